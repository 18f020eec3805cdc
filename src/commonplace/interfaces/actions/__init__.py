"""Everything that can be done, declared once. Each module holds the actions of one noun."""
