"""The trash: deleted items until they are restored or expire."""
