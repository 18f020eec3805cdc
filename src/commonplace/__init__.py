"""Commonplace: the knowledge base that people and their agents share."""

__version__ = "0.1.0"
