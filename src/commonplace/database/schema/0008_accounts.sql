-- How people sign in to the web app. Secrets are kept only as hashes.

CREATE TABLE passwords (
  person_id TEXT PRIMARY KEY REFERENCES people (id) ON DELETE CASCADE,
  hash TEXT NOT NULL,  -- argon2id, with its salt and costs
  changed_at BIGINT NOT NULL
);

CREATE TABLE passkeys (
  id TEXT PRIMARY KEY,  -- the credential's, base64url
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  public_key TEXT NOT NULL,  -- base64url
  uses BIGINT NOT NULL,      -- the authenticator's own counter
  created_at BIGINT NOT NULL,
  used_at BIGINT
);
CREATE INDEX passkeys_person ON passkeys (person_id);

CREATE TABLE web_sessions (
  digest TEXT PRIMARY KEY,
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  view_as TEXT,  -- a token whose eyes the person looks through
  about TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX web_sessions_person ON web_sessions (person_id);

CREATE TABLE once_only (
  digest TEXT PRIMARY KEY,
  purpose TEXT NOT NULL,
  person_id TEXT REFERENCES people (id) ON DELETE CASCADE,
  expires_at BIGINT NOT NULL
);
