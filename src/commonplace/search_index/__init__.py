"""The in-process search index: words and vectors of a library in memory, with checkpoints."""
