-- Portable. What the graph door says of an item, and how items are joined.
ALTER TABLE items ADD COLUMN status TEXT NOT NULL DEFAULT '';       -- of tasks, epics and memories
ALTER TABLE items ADD COLUMN priority TEXT NOT NULL DEFAULT '';
ALTER TABLE items ADD COLUMN due_date TEXT;                          -- ISO date
ALTER TABLE items ADD COLUMN languages TEXT NOT NULL DEFAULT '[]';
ALTER TABLE items ADD COLUMN technologies TEXT NOT NULL DEFAULT '[]';
ALTER TABLE items ADD COLUMN assignees TEXT NOT NULL DEFAULT '[]';
CREATE INDEX items_type ON items (library_id, entity_type, created_at, id);

CREATE TABLE relations (
  library_id TEXT NOT NULL,
  from_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  to_id TEXT NOT NULL,
  weight DOUBLE PRECISION NOT NULL,
  explicit INTEGER NOT NULL,   -- 1: somebody said so; 0: found by likeness
  created_at BIGINT NOT NULL,
  PRIMARY KEY (library_id, from_id, kind, to_id),
  FOREIGN KEY (library_id, from_id) REFERENCES items (library_id, id) ON DELETE CASCADE,
  FOREIGN KEY (library_id, to_id) REFERENCES items (library_id, id) ON DELETE CASCADE
);
CREATE INDEX relations_to ON relations (library_id, to_id, kind, from_id);

-- What was said, word for word; rows are written once and never changed.
CREATE TABLE captures (
  library_id TEXT NOT NULL,
  id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  title TEXT NOT NULL,
  text TEXT NOT NULL,
  hash TEXT NOT NULL,
  source TEXT NOT NULL,
  idempotency_key TEXT,         -- within its owner's
  owner TEXT NOT NULL,          -- who captured it: a token's id, else the person's
  created_at BIGINT NOT NULL,
  PRIMARY KEY (library_id, id),
  FOREIGN KEY (library_id, item_id) REFERENCES items (library_id, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX captures_once ON captures (library_id, owner, idempotency_key);
CREATE INDEX captures_item ON captures (library_id, item_id);
