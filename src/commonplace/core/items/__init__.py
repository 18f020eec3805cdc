"""The library: add, read, change, file, delete, upload, subscribe."""
