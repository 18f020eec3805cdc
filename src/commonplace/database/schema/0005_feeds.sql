-- Portable. Feeds that somebody follows, with the rights of who subscribed, and the entries that were taken in.
CREATE TABLE feeds (
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  id TEXT NOT NULL,
  url TEXT NOT NULL,
  title TEXT NOT NULL,
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  token_id TEXT,
  folder_id TEXT,
  newest INTEGER NOT NULL,
  created_at BIGINT NOT NULL,
  polled_at BIGINT,
  poll_at BIGINT NOT NULL,
  error TEXT,
  PRIMARY KEY (library_id, id),
  FOREIGN KEY (library_id, folder_id) REFERENCES folders (library_id, id) ON DELETE CASCADE
);
CREATE INDEX feeds_due ON feeds (poll_at);

CREATE TABLE feed_entries (
  library_id TEXT NOT NULL,
  feed_id TEXT NOT NULL,
  entry TEXT NOT NULL,
  tries INTEGER NOT NULL,
  ok INTEGER NOT NULL,
  PRIMARY KEY (library_id, feed_id, entry),
  FOREIGN KEY (library_id, feed_id) REFERENCES feeds (library_id, id) ON DELETE CASCADE
);
