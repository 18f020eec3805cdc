-- Portable. What notes may teach, until somebody says yes or no. A candidate goes with the notes it quotes, and with what it
-- became: deleting either leaves nothing behind.
CREATE TABLE candidates (
  library_id TEXT NOT NULL,
  id TEXT NOT NULL,
  source_id TEXT NOT NULL,
  owner TEXT NOT NULL,          -- who queued it: a token's id, else the person's
  kind TEXT NOT NULL,
  title TEXT NOT NULL,
  content TEXT NOT NULL,
  confidence DOUBLE PRECISION NOT NULL,
  reason TEXT NOT NULL,
  quotes TEXT NOT NULL,
  project_id TEXT,
  state TEXT NOT NULL,          -- pending, accepted, rejected
  item_id TEXT,
  created_at BIGINT NOT NULL,
  decided_at BIGINT,
  PRIMARY KEY (library_id, id),
  FOREIGN KEY (library_id, source_id) REFERENCES items (library_id, id) ON DELETE CASCADE,
  FOREIGN KEY (library_id, item_id) REFERENCES items (library_id, id) ON DELETE CASCADE
);
CREATE INDEX candidates_queue ON candidates (library_id, state, created_at, id);
CREATE INDEX candidates_source ON candidates (library_id, source_id);
CREATE INDEX candidates_item ON candidates (library_id, item_id);
