"""The database engines: SQLite and Postgres, transactions, group commit, schema."""
