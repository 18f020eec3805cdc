-- Portable. Files that were promised, and the item that each became.
CREATE TABLE uploads (
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  id TEXT NOT NULL,
  owner TEXT NOT NULL,
  filename TEXT NOT NULL,
  content_type TEXT NOT NULL,
  size BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  item_id TEXT,
  PRIMARY KEY (library_id, id)
);
CREATE INDEX uploads_id ON uploads (id);
CREATE INDEX uploads_expire ON uploads (expires_at);
