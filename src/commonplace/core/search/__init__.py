"""Hybrid search over sections."""
