"""The two-dimensional map of a library."""
