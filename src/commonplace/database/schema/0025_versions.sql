-- Portable. What an item said before: a content that it had, until when, and at which revision.
CREATE TABLE versions (
  library_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  revision INTEGER NOT NULL,
  content_id TEXT NOT NULL REFERENCES contents (id),
  title TEXT NOT NULL,
  word_count INTEGER NOT NULL,
  replaced_at BIGINT NOT NULL,
  PRIMARY KEY (library_id, item_id, revision),
  FOREIGN KEY (library_id, item_id) REFERENCES items (library_id, id) ON DELETE CASCADE
);
CREATE INDEX versions_content ON versions (content_id);
