"""What people changed, so that they can undo it."""
