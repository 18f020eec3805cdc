"""Pure functions on text: no I/O, nothing of the library."""
