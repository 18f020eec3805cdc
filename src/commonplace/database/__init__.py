"""The database engines: SQLite and Postgres, transactions, group commit, schema."""

from commonplace.database.columns import as_json, from_micros
from commonplace.database.transaction import Database, Table, Tx, reads, reads_inline, writes

__all__ = [
    "Database",
    "Table",
    "Tx",
    "as_json",
    "from_micros",
    "reads",
    "reads_inline",
    "writes",
]
