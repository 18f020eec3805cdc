"""Disks: publish, save, redact."""
