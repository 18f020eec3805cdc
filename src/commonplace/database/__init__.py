"""The database engines: SQLite and Postgres, transactions, group commit, schema."""

from commonplace.database.transaction import Database, Table, Tx, reads, reads_inline, writes

__all__ = ["Database", "Table", "Tx", "reads", "reads_inline", "writes"]
