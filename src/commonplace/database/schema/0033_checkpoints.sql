-- Portable. Which files of searchable sections belong to this database (adapters/store/checkpoint.py): a file is true to the
-- rows as they were at its mark in `changes`. A database that is an older copy, or another one, has no row for it.
CREATE TABLE checkpoints (
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  id TEXT NOT NULL,
  mark BIGINT NOT NULL,
  server TEXT NOT NULL,         -- whose transactions the mark counts
  migrations INTEGER NOT NULL,  -- how many had been run: one may give the rows another meaning
  PRIMARY KEY (library_id, id)
);
