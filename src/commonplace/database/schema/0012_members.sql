-- Portable. Invitations into a library: only a hash of each secret is kept, and each is good for one person.
CREATE TABLE invitations (
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  id TEXT NOT NULL,
  role TEXT NOT NULL,
  email TEXT,                  -- the only address that may accept it; NULL: any
  digest TEXT NOT NULL UNIQUE,
  invited_by TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  accepted_at BIGINT,
  accepted_by TEXT,
  PRIMARY KEY (library_id, id)
);
CREATE INDEX members_person ON members (person_id, library_id);
