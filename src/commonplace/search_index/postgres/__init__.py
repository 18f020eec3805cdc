"""Search inside Postgres, with pgvector: a process keeps nothing of a library in memory."""
