-- The schema for SQLite as of release 0.1.0, which is version 100. postgres.sql holds the same
-- tables. From that release on, neither file changes: each change is a file of its own for each
-- engine, 0101_name.sqlite.sql and 0101_name.postgres.sql, which runs once at the next start.
--
-- Times are microseconds since 1970, flags are 0 or 1, lists and objects are JSON text.
-- library_id is in every key of every table that belongs to one library, so that libraries can be
-- spread over shards by it, on Postgres. Exceptions: sections and changes are numbered, sign-in
-- belongs to people, OAuth clients to the server, and the directory and the sources lead from a name
-- to the libraries that have it.
-- Long columns come last where it matters: a row is read from its start, and long texts take pages
-- of their own.


-- People, libraries and who may do what in them

CREATE TABLE people (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  email TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX people_email ON people (lower(email));
CREATE INDEX people_oldest ON people (created_at, id);

CREATE TABLE libraries (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  created_at BIGINT NOT NULL
);

-- What a library holds, its trash included. Counted with every write; quotas compare with it.
CREATE TABLE usage (
  library_id TEXT PRIMARY KEY REFERENCES libraries (id) ON DELETE CASCADE,
  items BIGINT NOT NULL,
  sections BIGINT NOT NULL,
  size BIGINT NOT NULL,   -- bytes of texts and uploaded files
  writes BIGINT NOT NULL  -- tells whether a read replica is up to date
);

CREATE TABLE members (
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  role TEXT NOT NULL,
  PRIMARY KEY (library_id, person_id)
);
CREATE INDEX members_person ON members (person_id, library_id);

-- Which library a name leads to, for callers who know no more than the name: digests of tokens, OAuth
-- secrets and invitations, and the ids of disks that were ever published.
CREATE TABLE directory (
  key TEXT PRIMARY KEY,
  library_id TEXT NOT NULL
);
CREATE INDEX directory_library ON directory (library_id);

-- Each invitation is good for one person.
CREATE TABLE invitations (
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  id TEXT NOT NULL,
  role TEXT NOT NULL,
  email TEXT,                   -- the only address that may accept it; NULL: any
  digest TEXT NOT NULL,  -- of the secret in the link, which is not kept
  invited_by TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  accepted_at BIGINT,
  accepted_by TEXT,
  PRIMARY KEY (library_id, id),
  UNIQUE (library_id, digest)
);


-- Sign-in. Secrets are kept only as hashes.

CREATE TABLE passwords (
  person_id TEXT PRIMARY KEY REFERENCES people (id) ON DELETE CASCADE,
  hash TEXT NOT NULL,  -- argon2id, with its salt and costs
  changed_at BIGINT NOT NULL
);

CREATE TABLE passkeys (
  id TEXT PRIMARY KEY,       -- the credential's, base64url
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  public_key TEXT NOT NULL,  -- base64url
  uses BIGINT NOT NULL,      -- the authenticator's own counter; one that runs backwards was copied
  created_at BIGINT NOT NULL,
  used_at BIGINT
);
CREATE INDEX passkeys_person ON passkeys (person_id);

CREATE TABLE web_sessions (
  digest TEXT PRIMARY KEY,  -- of the secret in the cookie
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  view_as TEXT,             -- a token; pages then show only what it sees
  about TEXT NOT NULL,      -- the browser's name for itself
  sealed TEXT,              -- a new secret for this browser, encrypted with that of its cookie
  sealed_until BIGINT,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX web_sessions_person ON web_sessions (person_id);

-- Links and challenges that work once.
CREATE TABLE once_only (
  digest TEXT PRIMARY KEY,
  purpose TEXT NOT NULL,
  person_id TEXT REFERENCES people (id) ON DELETE CASCADE,
  expires_at BIGINT NOT NULL
);


-- Folders and tokens

CREATE TABLE folders (
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  id TEXT NOT NULL,
  parent_id TEXT,          -- the folder that it lies in; NULL: at the top
  name TEXT NOT NULL,
  name_key TEXT NOT NULL,  -- case-folded: names that look the same are the same
  created_at BIGINT NOT NULL,
  PRIMARY KEY (library_id, id),
  -- Deferred: a backup has them in any order.
  FOREIGN KEY (library_id, parent_id) REFERENCES folders (library_id, id)
    DEFERRABLE INITIALLY DEFERRED
);
CREATE UNIQUE INDEX folders_siblings ON folders (library_id, COALESCE(parent_id, ''), name_key);

CREATE TABLE tokens (
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  id TEXT NOT NULL,
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  kind TEXT NOT NULL,              -- token; oauth: the grant of a client, whose secrets come and go
  digest TEXT,                     -- of the secret, which is not kept; NULL: oauth
  client_id TEXT,                  -- these three only of oauth
  redirect_host TEXT,              -- where the client receives its codes
  resource TEXT,                   -- the URL that its access tokens are good for
  capabilities TEXT NOT NULL,
  whole_library INTEGER NOT NULL,  -- 0: only the folders in token_folders
  kb_only INTEGER NOT NULL,        -- 1: only items that search finds
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  revoked_at BIGINT,
  last_used_at BIGINT,
  PRIMARY KEY (library_id, id),
  UNIQUE (library_id, digest)
);

CREATE TABLE token_folders (
  library_id TEXT NOT NULL,
  token_id TEXT NOT NULL,
  folder_id TEXT NOT NULL,
  PRIMARY KEY (library_id, token_id, folder_id),
  FOREIGN KEY (library_id, token_id) REFERENCES tokens (library_id, id) ON DELETE CASCADE,
  FOREIGN KEY (library_id, folder_id) REFERENCES folders (library_id, id) ON DELETE CASCADE
);

-- The log of what each token did.
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


-- OAuth: clients of this server, and the secrets of grants, which are rows of tokens

-- Clients that are a URL (client ID metadata documents) have no row.
CREATE TABLE oauth_clients (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  source TEXT NOT NULL,         -- registered: by itself; created: by the operator
  secret_digest TEXT,           -- NULL: a public client
  redirect_uris TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  used_at BIGINT
);

CREATE TABLE oauth_secrets (
  library_id TEXT NOT NULL,
  token_id TEXT NOT NULL,       -- the grant
  digest TEXT NOT NULL,         -- of the secret, which is not kept
  kind TEXT NOT NULL,           -- code, access, refresh
  scopes TEXT NOT NULL,
  expires_at BIGINT NOT NULL,
  used_at BIGINT,               -- of codes and refresh tokens, which are good for one use
  salt TEXT,                    -- of a refresh token: with it, its use gives its successor again
  redirect_uri TEXT,            -- these two only of codes
  challenge TEXT,
  PRIMARY KEY (library_id, token_id, digest),
  UNIQUE (library_id, digest),
  FOREIGN KEY (library_id, token_id) REFERENCES tokens (library_id, id) ON DELETE CASCADE
);
CREATE INDEX oauth_secrets_expire ON oauth_secrets (expires_at);


-- Contents: the texts of a library's items. A public source is fetched, transcribed and embedded once
-- for all libraries: the next one copies it from a library that has it, under the same id.

CREATE TABLE contents (
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  id TEXT NOT NULL,
  key TEXT NOT NULL,          -- canonical URL; for private text: library, scope and hash
  edit_of TEXT NOT NULL DEFAULT '',  -- the key of the source that a library has edited the text of
  hash TEXT NOT NULL,         -- of the text
  url TEXT,
  created_at BIGINT NOT NULL,
  about TEXT NOT NULL DEFAULT '{}',  -- what the source says of itself: title, author, ...
  segments TEXT NOT NULL,     -- where parts of the text were in the source: page, seconds, ...
  text TEXT NOT NULL,
  PRIMARY KEY (library_id, id),
  UNIQUE (library_id, key)
);
CREATE INDEX contents_hash ON contents (library_id, hash);
CREATE INDEX contents_edited ON contents (library_id, edit_of) WHERE edit_of <> '';

-- Public sources that some library has, by canonical URL. No texts: these are in the libraries.
CREATE TABLE sources (
  key TEXT PRIMARY KEY,  -- as contents.key
  content_id TEXT,       -- of its newest text
  hash TEXT,             -- of that text
  leads_to TEXT          -- only of another address of a source: the source's key
);
CREATE INDEX sources_aliases ON sources (leads_to) WHERE leads_to IS NOT NULL;

-- Which libraries have a source. Some may have an older text of it.
CREATE TABLE source_libraries (
  key TEXT NOT NULL,
  library_id TEXT NOT NULL,
  content_id TEXT NOT NULL,
  PRIMARY KEY (key, library_id)
);

-- The job that transcribes a recording. Other jobs for it, of any library, wait.
CREATE TABLE transcribing (
  key TEXT PRIMARY KEY,  -- as contents.key
  job_id TEXT NOT NULL,
  until BIGINT NOT NULL
);


-- Items

CREATE TABLE items (
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  id TEXT NOT NULL,
  public_id TEXT NOT NULL,
  content_id TEXT NOT NULL,
  entity_type TEXT NOT NULL,
  kind TEXT NOT NULL,                   -- how it came in: text, url, file
  origin TEXT NOT NULL DEFAULT 'you',   -- where its text came from: you, agent, web, upload
  created_by TEXT,                      -- the token, which may file what it added itself
  annotates TEXT,                       -- the item that this one is a note on
  title TEXT NOT NULL,
  url TEXT,
  category TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT '',      -- of tasks, epics and memories
  priority TEXT NOT NULL DEFAULT '',
  due_date TEXT,                        -- ISO date
  valid_until TEXT,                     -- ISO date, or time in UTC, from which a memory no longer holds
  review_by TEXT,                       -- the same, from which somebody should look whether it does
  visibility TEXT NOT NULL,
  in_kb INTEGER NOT NULL,               -- 0: search does not find it
  archived INTEGER NOT NULL,
  ingest_status TEXT,                   -- queued or failed; NULL once its source has been read
  transcription_status TEXT,
  status_reason TEXT,                   -- why reading or transcribing failed
  revision INTEGER NOT NULL,
  changes INTEGER NOT NULL DEFAULT 1,   -- of what a published view of it is derived from
  word_count INTEGER NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  tags TEXT NOT NULL,
  auto_tags TEXT NOT NULL DEFAULT '[]',  -- made by rules or a model; not in tags: removed
  languages TEXT NOT NULL DEFAULT '[]',
  technologies TEXT NOT NULL DEFAULT '[]',
  assignees TEXT NOT NULL DEFAULT '[]',
  summary TEXT NOT NULL,
  key_points TEXT NOT NULL,
  metadata TEXT NOT NULL,
  author TEXT NOT NULL DEFAULT '',      -- these three are in the metadata too: search filters by them
  text_language TEXT NOT NULL DEFAULT '',
  published_at BIGINT,
  PRIMARY KEY (library_id, id),
  UNIQUE (library_id, public_id),
  FOREIGN KEY (library_id, content_id) REFERENCES contents (library_id, id)
);
CREATE INDEX items_newest ON items (library_id, created_at, id);
CREATE INDEX items_content ON items (library_id, content_id);
CREATE INDEX items_type ON items (library_id, entity_type, created_at, id);
-- Searches leave out items that were marked wrong, which are few.
CREATE INDEX items_status ON items (library_id, status);
CREATE INDEX items_notes ON items (library_id, annotates) WHERE annotates IS NOT NULL;
-- All that planning orders open tasks and epics by, so that it does not read their wide rows.
CREATE INDEX items_work ON items
  (library_id, entity_type, status, priority, due_date, created_at, id, assignees)
  WHERE entity_type IN ('task', 'epic');
-- Lists give a total, which is counted from this index alone.
CREATE INDEX items_listed ON items
  (library_id, archived, entity_type, category, visibility, annotates, tags);

CREATE TABLE folder_items (
  library_id TEXT NOT NULL,
  folder_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  PRIMARY KEY (library_id, folder_id, item_id),
  FOREIGN KEY (library_id, folder_id) REFERENCES folders (library_id, id) ON DELETE CASCADE,
  FOREIGN KEY (library_id, item_id) REFERENCES items (library_id, id) ON DELETE CASCADE
);
-- With the folder in it: else SQLite finds one item's folders in the primary key's index, of which
-- it reads the whole library's part.
CREATE INDEX folder_items_of ON folder_items (library_id, item_id, folder_id);

-- Earlier texts of an item.
CREATE TABLE versions (
  library_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  revision INTEGER NOT NULL,  -- that the item had then
  content_id TEXT NOT NULL,
  title TEXT NOT NULL,
  word_count INTEGER NOT NULL,
  replaced_at BIGINT NOT NULL,
  PRIMARY KEY (library_id, item_id, revision),
  FOREIGN KEY (library_id, content_id) REFERENCES contents (library_id, id),
  FOREIGN KEY (library_id, item_id) REFERENCES items (library_id, id) ON DELETE CASCADE
);
CREATE INDEX versions_content ON versions (library_id, content_id);

-- Ids of queued items whose source turned out to be in the library already: they lead to that item.
CREATE TABLE aliases (
  library_id TEXT NOT NULL,
  id TEXT NOT NULL,
  public_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  PRIMARY KEY (library_id, id),
  FOREIGN KEY (library_id, item_id) REFERENCES items (library_id, id) ON DELETE CASCADE
);
CREATE INDEX aliases_public_id ON aliases (library_id, public_id);
CREATE INDEX aliases_item ON aliases (library_id, item_id);


-- Trash: deleted items until they are restored or expire. Their rows are kept as JSON, where no
-- list, count, search or relation finds them.

CREATE TABLE trash (
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  item_id TEXT NOT NULL,
  public_id TEXT NOT NULL,
  deleted_with TEXT,         -- the item that this one is a note on, and comes back with
  entity_type TEXT NOT NULL,
  title TEXT NOT NULL,
  in_kb INTEGER NOT NULL,
  folders TEXT NOT NULL,     -- that it was in, JSON
  deleted_at BIGINT NOT NULL,
  deleted_by TEXT,           -- a token's id, else a person's
  PRIMARY KEY (library_id, item_id)
);
CREATE INDEX trash_newest ON trash (library_id, deleted_at, item_id);
CREATE INDEX trash_oldest ON trash (deleted_at);
CREATE INDEX trash_notes ON trash (library_id, deleted_with) WHERE deleted_with IS NOT NULL;

CREATE TABLE trash_rows (
  library_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  other_id TEXT,                                -- another item that the row is about
  content_id TEXT,                              -- the text that it needs
  source TEXT NOT NULL,                         -- the table that it comes from
  stored TEXT NOT NULL,                         -- the row, JSON
  FOREIGN KEY (library_id, content_id) REFERENCES contents (library_id, id),
  FOREIGN KEY (library_id, item_id) REFERENCES trash (library_id, item_id) ON DELETE CASCADE
);
CREATE INDEX trash_rows_item ON trash_rows (library_id, item_id);
CREATE INDEX trash_rows_content ON trash_rows (library_id, content_id);

-- Items that a token deleted from its folders, and that others still have in theirs: in the trash
-- only for those who do not see the item.
CREATE TABLE trash_folders (
  library_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  folder_id TEXT NOT NULL,
  entity_type TEXT NOT NULL,
  title TEXT NOT NULL,
  in_kb INTEGER NOT NULL,
  deleted_at BIGINT NOT NULL,
  deleted_by TEXT,
  forgotten TEXT NOT NULL,  -- rows that were deleted for them: [table, row], JSON
  PRIMARY KEY (library_id, item_id, folder_id),
  FOREIGN KEY (library_id, item_id) REFERENCES items (library_id, id) ON DELETE CASCADE,
  FOREIGN KEY (library_id, folder_id) REFERENCES folders (library_id, id) ON DELETE CASCADE
);
CREATE INDEX trash_folders_oldest ON trash_folders (deleted_at);


-- What people did within a day, and what each step changed, so that it can be undone.

CREATE TABLE undo_steps (
  library_id TEXT NOT NULL,
  id TEXT NOT NULL,
  person_id TEXT NOT NULL,
  at BIGINT NOT NULL,
  said TEXT NOT NULL DEFAULT '',
  claimed_at BIGINT,  -- it is being undone since then
  PRIMARY KEY (library_id, id),
  FOREIGN KEY (library_id, person_id) REFERENCES members (library_id, person_id) ON DELETE CASCADE
);
CREATE INDEX undo_steps_newest ON undo_steps (library_id, person_id, at);
CREATE INDEX undo_steps_oldest ON undo_steps (at);

CREATE TABLE undo_rows (
  library_id TEXT NOT NULL,
  step_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  kind TEXT NOT NULL,
  item_id TEXT,  -- which may be in the trash
  was INTEGER NOT NULL,       -- the revision of the item before the change
  revision INTEGER NOT NULL,  -- and after it
  before TEXT,                -- JSON; NULL: there was nothing
  after TEXT,
  PRIMARY KEY (library_id, step_id, seq),
  FOREIGN KEY (library_id, step_id) REFERENCES undo_steps (library_id, id) ON DELETE CASCADE
);
CREATE INDEX undo_rows_item ON undo_rows (library_id, item_id) WHERE item_id IS NOT NULL;


-- Relations between items

CREATE TABLE relations (
  library_id TEXT NOT NULL,
  from_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  to_id TEXT NOT NULL,
  weight DOUBLE PRECISION NOT NULL,
  explicit INTEGER NOT NULL,  -- 1: somebody said so; 0: found by similarity
  created_at BIGINT NOT NULL,
  PRIMARY KEY (library_id, from_id, kind, to_id),
  FOREIGN KEY (library_id, from_id) REFERENCES items (library_id, id) ON DELETE CASCADE,
  FOREIGN KEY (library_id, to_id) REFERENCES items (library_id, id) ON DELETE CASCADE
);
CREATE INDEX relations_to ON relations (library_id, to_id, kind, from_id);
-- An item's best relations are found without reading all of them.
CREATE INDEX relations_best_from ON relations (library_id, from_id, explicit, weight, created_at);
CREATE INDEX relations_best_to ON relations (library_id, to_id, explicit, weight, created_at);
CREATE INDEX relations_waiting ON relations (library_id, from_id, to_id) WHERE kind = 'DEPENDS_ON';


-- Memory: captures, and what may be learned from them

-- The words as they were said: rows are written once and never changed.
CREATE TABLE captures (
  library_id TEXT NOT NULL,
  id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  owner TEXT NOT NULL,   -- who captured it: a token's id, else the person's
  idempotency_key TEXT,  -- unique for its owner
  source TEXT NOT NULL,
  hash TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  title TEXT NOT NULL,
  text TEXT NOT NULL,
  answer TEXT,           -- the first answer to whoever captured it, JSON
  PRIMARY KEY (library_id, id),
  FOREIGN KEY (library_id, item_id) REFERENCES items (library_id, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX captures_once ON captures (library_id, owner, idempotency_key);
CREATE INDEX captures_item ON captures (library_id, item_id);
CREATE INDEX captures_newest ON captures (library_id, created_at, id);

-- Also for those who write SQL by hand.
CREATE TRIGGER captures_stay BEFORE UPDATE ON captures
BEGIN
  SELECT RAISE(ABORT, 'captures are never changed');
END;

-- Suggested memories, until somebody accepts or rejects them. A candidate is deleted with the notes
-- it quotes and with the item it became.
CREATE TABLE candidates (
  library_id TEXT NOT NULL,
  id TEXT NOT NULL,
  source_id TEXT NOT NULL,  -- the notes
  owner TEXT NOT NULL,      -- who queued it: a token's id, else the person's
  kind TEXT NOT NULL,
  project_id TEXT,
  confidence DOUBLE PRECISION NOT NULL,
  state TEXT NOT NULL,      -- pending, accepted, rejected
  item_id TEXT,             -- what it became
  created_at BIGINT NOT NULL,
  decided_at BIGINT,
  title TEXT NOT NULL,
  content TEXT NOT NULL,
  reason TEXT NOT NULL,
  quotes TEXT NOT NULL,
  PRIMARY KEY (library_id, id),
  FOREIGN KEY (library_id, source_id) REFERENCES items (library_id, id) ON DELETE CASCADE,
  FOREIGN KEY (library_id, item_id) REFERENCES items (library_id, id) ON DELETE CASCADE
);
CREATE INDEX candidates_queue ON candidates (library_id, state, created_at, id);
CREATE INDEX candidates_source ON candidates (library_id, source_id);
CREATE INDEX candidates_item ON candidates (library_id, item_id);


-- Disks: what others see of an item, and who saved it

-- Derived from the item and kept apart from it.
CREATE TABLE published (
  library_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  audience TEXT NOT NULL,
  published_at BIGINT NOT NULL,
  derived INTEGER NOT NULL,  -- items.changes when the view was derived; if it differs, it is stale
  title TEXT NOT NULL,       -- these three are in the view too: lists filter by them
  category TEXT NOT NULL,
  tags TEXT NOT NULL,
  summary TEXT NOT NULL DEFAULT '',  -- the owner's own words for others
  stamp TEXT NOT NULL,       -- the embedding model
  vector TEXT NOT NULL,      -- of the view, never of the source; base64; '' until it is made
  shown TEXT NOT NULL,       -- the view, JSON
  PRIMARY KEY (library_id, item_id),
  FOREIGN KEY (library_id, item_id) REFERENCES items (library_id, id) ON DELETE CASCADE
);

-- A save outlives unpublishing, showing nothing, and is deleted with the item, which is in another
-- library.
CREATE TABLE saves (
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  owner_id TEXT NOT NULL,  -- the library that the item is in
  item_id TEXT NOT NULL,
  person_id TEXT NOT NULL,
  saved_at BIGINT NOT NULL,
  PRIMARY KEY (library_id, owner_id, item_id)
);
CREATE INDEX saves_newest ON saves (library_id, saved_at);
CREATE INDEX saves_item ON saves (owner_id, item_id);


-- Sections: the passages that search finds

CREATE TABLE sections (
  id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never reused: indexes in memory hold these numbers
  library_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  word_count INTEGER NOT NULL,
  title TEXT NOT NULL,
  heading TEXT NOT NULL,     -- the headings above it, outermost first
  locator TEXT NOT NULL,     -- where it was in the source: page, seconds, ...
  key_points TEXT NOT NULL,
  extra TEXT NOT NULL,       -- derived search words: parts of identifiers, pairs of CJK characters
  text TEXT NOT NULL,
  UNIQUE (library_id, item_id, position),
  FOREIGN KEY (library_id, item_id) REFERENCES items (library_id, id) ON DELETE CASCADE
);

-- Each distinct term of a section and its weight. Not in sections, so that a library's terms are
-- read without its texts.
CREATE TABLE section_terms (
  library_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  section_id INTEGER NOT NULL,
  length INTEGER NOT NULL,
  terms BLOB NOT NULL,   -- 32 bits each
  counts BLOB NOT NULL,  -- 8 bits each
  PRIMARY KEY (library_id, item_id, section_id)
) WITHOUT ROWID;

-- All terms in order, 16 bits each, to find phrases in.
CREATE TABLE sequences (
  section_id INTEGER PRIMARY KEY,
  sequence BLOB NOT NULL
);

CREATE TABLE vectors (
  library_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  section_id INTEGER NOT NULL,
  stamp TEXT NOT NULL,   -- the embedding model
  vector BLOB NOT NULL,  -- float16
  PRIMARY KEY (library_id, item_id, section_id)
) WITHOUT ROWID;

-- What is derived from a section is deleted with it.
CREATE TRIGGER sections_removed AFTER DELETE ON sections BEGIN
  DELETE FROM sequences WHERE section_id = old.id;
  DELETE FROM section_terms
    WHERE library_id = old.library_id AND item_id = old.item_id AND section_id = old.id;
  DELETE FROM vectors
    WHERE library_id = old.library_id AND item_id = old.item_id AND section_id = old.id;
END;


-- What keeps the indexes in memory current

-- Items whose sections changed. Every process on this database reads these rows to catch up.
CREATE TABLE changes (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  library_id TEXT NOT NULL,
  item_id TEXT NOT NULL
);

-- Search results depend on an item's status and type too.
CREATE TRIGGER items_restated AFTER UPDATE OF status, entity_type ON items
WHEN old.status <> new.status OR old.entity_type <> new.entity_type BEGIN
  INSERT INTO changes (library_id, item_id) VALUES (new.library_id, new.id);
END;

-- The oldest changes are deleted. Whoever has read a library's changes beyond this mark has missed
-- none, however much was written to other libraries.
CREATE TABLE forgotten (
  library_id TEXT PRIMARY KEY,
  mark BIGINT NOT NULL
);

-- The index files that belong to this database: a file equals the rows as they were at its mark in
-- changes. An older copy of the database, or another one, has no row for the file.
CREATE TABLE checkpoints (
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  id TEXT NOT NULL,
  mark BIGINT NOT NULL,
  migrations INTEGER NOT NULL,  -- how many had run: one may give the rows another meaning
  PRIMARY KEY (library_id, id)
);


-- Events: what happened to the items of a library, for 7 days. No texts.

-- A library's last event. Writers take this row last, so that a lower number is never committed
-- after a higher one.
CREATE TABLE event_counters (
  library_id TEXT PRIMARY KEY REFERENCES libraries (id) ON DELETE CASCADE,
  last BIGINT NOT NULL,
  key TEXT NOT NULL  -- encrypts the numbers: they tell how much happens out of scope
);

CREATE TABLE event_log (
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  seq BIGINT NOT NULL,
  type TEXT NOT NULL,
  at BIGINT NOT NULL,
  item_id TEXT NOT NULL,  -- which may be deleted
  actor TEXT,             -- a token's id, else a person's; NULL: the server
  folders TEXT,           -- that the item was in when it was deleted or left a scope, JSON
  in_kb INTEGER,          -- and whether search found it
  PRIMARY KEY (library_id, seq)
);
CREATE INDEX event_log_item ON event_log (library_id, item_id, seq);

-- Addresses that events are sent to. They end with the token or membership that they belong to.
CREATE TABLE webhooks (
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  id TEXT NOT NULL,
  person_id TEXT NOT NULL,
  token_id TEXT,                -- whose scope it has
  url TEXT NOT NULL,
  events TEXT NOT NULL,
  secret_digest TEXT NOT NULL,  -- of the secret, which is derived from the server's key
  seq BIGINT NOT NULL,          -- the last event that was sent or passed over
  created_at BIGINT NOT NULL,
  delivered_at BIGINT,
  disabled_at BIGINT,
  error TEXT,
  PRIMARY KEY (library_id, id),
  FOREIGN KEY (library_id, person_id) REFERENCES members (library_id, person_id) ON DELETE CASCADE,
  FOREIGN KEY (library_id, token_id) REFERENCES tokens (library_id, id) ON DELETE CASCADE
);


-- Jobs

CREATE TABLE jobs (
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  id TEXT NOT NULL,
  item_id TEXT,  -- NULL: of no item
  kind TEXT NOT NULL,
  state TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  run_after BIGINT NOT NULL,
  leased_by TEXT,
  leased_until BIGINT,
  progress DOUBLE PRECISION NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  error TEXT,
  payload TEXT NOT NULL,
  PRIMARY KEY (library_id, id),
  FOREIGN KEY (library_id, item_id) REFERENCES items (library_id, id) ON DELETE CASCADE
);
CREATE INDEX jobs_item ON jobs (library_id, item_id);
CREATE INDEX jobs_next ON jobs (library_id, kind, state, run_after);
-- Done jobs are deleted by their time.
CREATE INDEX jobs_done ON jobs (updated_at) WHERE state = 'done';

-- Which libraries have work, and when a worker should look at each next: jobs by their kind, feeds,
-- webhooks. One row may be early, but never late.
CREATE TABLE job_queues (
  shard INTEGER NOT NULL,  -- by a hash of the library
  kind TEXT NOT NULL,
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  next_at BIGINT NOT NULL,
  PRIMARY KEY (shard, kind, library_id)
);
CREATE INDEX job_queues_next ON job_queues (shard, kind, next_at);

-- Seconds of speech that a person had transcribed, or has reserved. One row for each job, so that a
-- job that runs twice counts once.
CREATE TABLE transcriptions (
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  id TEXT NOT NULL,
  person_id TEXT NOT NULL,
  month TEXT NOT NULL,
  seconds DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (library_id, id)
);
CREATE INDEX transcriptions_month ON transcriptions (library_id, person_id, month);


-- Calls that clients may repeat

CREATE TABLE idempotency_keys (
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  owner TEXT NOT NULL,           -- who calls: a token's id, else the person's
  key TEXT NOT NULL,
  request_digest TEXT NOT NULL,  -- of the first call
  status INTEGER,                -- of its answer; NULL: it is still running
  created_at BIGINT NOT NULL,
  answer TEXT,                   -- JSON
  item_id TEXT,                  -- that the answer tells of, and with which it is deleted
  PRIMARY KEY (library_id, owner, key),
  FOREIGN KEY (library_id, item_id) REFERENCES items (library_id, id) ON DELETE CASCADE
);
CREATE INDEX idempotency_keys_by_item ON idempotency_keys (library_id, item_id);
CREATE INDEX idempotency_keys_oldest ON idempotency_keys (library_id, created_at);


-- Uploads and feeds

-- Files that somebody announced, and the item that each became.
CREATE TABLE uploads (
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  id TEXT NOT NULL,
  owner TEXT NOT NULL,
  filename TEXT NOT NULL,
  content_type TEXT NOT NULL,
  size BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  on_arrival TEXT,  -- what to do when its last byte arrives, JSON; NULL: it waits for finalize
  item_id TEXT,
  answer TEXT,      -- finalize's first answer, which it repeats
  has_file INTEGER NOT NULL DEFAULT 1,  -- 0: its bytes were deleted
  PRIMARY KEY (library_id, id)
);
CREATE INDEX uploads_item ON uploads (library_id, item_id, created_at);
CREATE INDEX uploads_expire ON uploads (expires_at);

-- Files that belong to texts: the raw pages that they were read from, and their pictures. The bytes are blobs.
CREATE TABLE source_files (
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  id TEXT NOT NULL,
  content_id TEXT,  -- NULL: no text needs it, or not yet; it is deleted after an hour
  role TEXT NOT NULL,
  url TEXT NOT NULL,
  media_type TEXT NOT NULL,
  hash TEXT NOT NULL,
  size BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (library_id, id)
);
CREATE INDEX source_files_content ON source_files (library_id, content_id, role);
CREATE INDEX source_files_hash ON source_files (library_id, hash);
CREATE INDEX source_files_unused ON source_files (created_at) WHERE content_id IS NULL;

-- Entries are added with the rights of whoever subscribed.
CREATE TABLE feeds (
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  id TEXT NOT NULL,
  url TEXT NOT NULL,
  title TEXT NOT NULL,
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  token_id TEXT,
  folder_id TEXT,
  newest INTEGER NOT NULL,  -- how many entries the first poll takes
  created_at BIGINT NOT NULL,
  polled_at BIGINT,
  poll_at BIGINT NOT NULL,
  validators TEXT NOT NULL DEFAULT '{}',  -- the last answer's ETag and Last-Modified, JSON
  error TEXT,
  PRIMARY KEY (library_id, id),
  FOREIGN KEY (library_id, folder_id) REFERENCES folders (library_id, id) ON DELETE CASCADE
);
CREATE INDEX feeds_due ON feeds (library_id, poll_at);

CREATE TABLE feed_entries (
  library_id TEXT NOT NULL,
  feed_id TEXT NOT NULL,
  entry TEXT NOT NULL,
  tries INTEGER NOT NULL,
  ok INTEGER NOT NULL,
  PRIMARY KEY (library_id, feed_id, entry),
  FOREIGN KEY (library_id, feed_id) REFERENCES feeds (library_id, id) ON DELETE CASCADE
);

-- Sites that are crawled, with the rights of whoever began it, and the frontier of each.
CREATE TABLE crawls (
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  id TEXT NOT NULL,
  url TEXT NOT NULL,
  start TEXT NOT NULL,   -- the address that was given, before its redirects
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  token_id TEXT,
  folder_id TEXT,
  prefix TEXT NOT NULL,  -- of the pages' addresses; '' until the first page is read
  max_pages INTEGER NOT NULL,
  max_depth INTEGER NOT NULL,
  exclude TEXT NOT NULL,   -- JSON
  state TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  started_at BIGINT NOT NULL,
  finished_at BIGINT,
  due_at BIGINT NOT NULL,  -- when a worker goes on, or the lease of the one that does ends
  error TEXT,
  robots TEXT,             -- the site's robots.txt; NULL: not read yet
  tries INTEGER NOT NULL,
  discovered INTEGER NOT NULL,  -- whether its sitemaps were read
  version TEXT NOT NULL,        -- the one that is crawled, of several
  versions TEXT NOT NULL,       -- all of them, JSON
  requests INTEGER NOT NULL,
  bytes BIGINT NOT NULL,
  PRIMARY KEY (library_id, id),
  FOREIGN KEY (library_id, folder_id) REFERENCES folders (library_id, id) ON DELETE CASCADE
);
CREATE INDEX crawls_due ON crawls (library_id, state, due_at);

CREATE TABLE crawl_pages (
  library_id TEXT NOT NULL,
  crawl_id TEXT NOT NULL,
  url TEXT NOT NULL,
  depth INTEGER NOT NULL,
  state TEXT NOT NULL,
  modified TEXT NOT NULL,  -- as the sitemap says
  seen TEXT NOT NULL,      -- the same when the page was read
  tries INTEGER NOT NULL,
  item_id TEXT,
  reason TEXT,             -- why there is no item
  PRIMARY KEY (library_id, crawl_id, url),
  FOREIGN KEY (library_id, crawl_id) REFERENCES crawls (library_id, id) ON DELETE CASCADE
);
CREATE INDEX crawl_pages_next ON crawl_pages (library_id, crawl_id, state, depth, url);
