"""Which work is due, and who does it."""
