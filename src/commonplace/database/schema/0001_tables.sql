-- Portable: runs on SQLite and Postgres alike. Times are microseconds since 1970, flags are 0 or 1,
-- lists and objects are JSON text. library_id leads every key of what belongs to a library.

CREATE TABLE people (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  email TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX people_email ON people (lower(email));

CREATE TABLE libraries (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE TABLE members (
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  role TEXT NOT NULL,
  PRIMARY KEY (library_id, person_id)
);

CREATE TABLE folders (
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  name_key TEXT NOT NULL,  -- case-folded
  created_at BIGINT NOT NULL,
  PRIMARY KEY (library_id, id),
  UNIQUE (library_id, name_key)
);

CREATE TABLE tokens (
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  id TEXT NOT NULL,
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  digest TEXT NOT NULL UNIQUE,
  capabilities TEXT NOT NULL,
  whole_library INTEGER NOT NULL,
  kb_only INTEGER NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  revoked_at BIGINT,
  last_used_at BIGINT,
  PRIMARY KEY (library_id, id)
);

CREATE TABLE token_folders (
  library_id TEXT NOT NULL,
  token_id TEXT NOT NULL,
  folder_id TEXT NOT NULL,
  PRIMARY KEY (library_id, token_id, folder_id),
  FOREIGN KEY (library_id, token_id) REFERENCES tokens (library_id, id) ON DELETE CASCADE,
  FOREIGN KEY (library_id, folder_id) REFERENCES folders (library_id, id) ON DELETE CASCADE
);

CREATE TABLE events (
  library_id TEXT NOT NULL,
  token_id TEXT NOT NULL,
  at BIGINT NOT NULL,
  action TEXT NOT NULL,
  target TEXT,
  ok INTEGER NOT NULL,
  FOREIGN KEY (library_id, token_id) REFERENCES tokens (library_id, id) ON DELETE CASCADE
);
CREATE INDEX events_newest ON events (library_id, token_id, at);

CREATE TABLE contents (
  id TEXT PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,  -- canonical URL; for private text library, scope and hash
  hash TEXT NOT NULL,        -- of the text
  text TEXT NOT NULL,
  url TEXT,
  segments TEXT NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE INDEX contents_hash ON contents (hash);

CREATE TABLE items (
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  id TEXT NOT NULL,
  public_id TEXT NOT NULL UNIQUE,
  content_id TEXT NOT NULL REFERENCES contents (id),
  entity_type TEXT NOT NULL,
  kind TEXT NOT NULL,
  title TEXT NOT NULL,
  url TEXT,
  summary TEXT NOT NULL,
  key_points TEXT NOT NULL,
  tags TEXT NOT NULL,
  category TEXT NOT NULL,
  visibility TEXT NOT NULL,
  in_kb INTEGER NOT NULL,
  archived INTEGER NOT NULL,
  transcription_status TEXT,
  metadata TEXT NOT NULL,
  revision INTEGER NOT NULL,
  word_count INTEGER NOT NULL,
  created_by TEXT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (library_id, id)
);
CREATE INDEX items_newest ON items (library_id, created_at, id);
CREATE INDEX items_id ON items (id);
CREATE INDEX items_content ON items (content_id, library_id);

CREATE TABLE folder_items (
  library_id TEXT NOT NULL,
  folder_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  PRIMARY KEY (library_id, folder_id, item_id),
  FOREIGN KEY (library_id, folder_id) REFERENCES folders (library_id, id) ON DELETE CASCADE,
  FOREIGN KEY (library_id, item_id) REFERENCES items (library_id, id) ON DELETE CASCADE
);
CREATE INDEX folder_items_item ON folder_items (library_id, item_id);

CREATE TABLE jobs (
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  state TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  error TEXT,
  progress DOUBLE PRECISION NOT NULL,
  payload TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  run_after BIGINT NOT NULL,
  leased_by TEXT,
  leased_until BIGINT,
  PRIMARY KEY (library_id, id),
  FOREIGN KEY (library_id, item_id) REFERENCES items (library_id, id) ON DELETE CASCADE
);
CREATE INDEX jobs_ready ON jobs (state, run_after);
CREATE INDEX jobs_open ON jobs (library_id, kind) WHERE state IN ('queued', 'running');
CREATE INDEX jobs_id ON jobs (id);
CREATE INDEX jobs_item ON jobs (library_id, item_id);
