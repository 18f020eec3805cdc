"""Typed items: validation, duplicates, automatic links, annotations."""
