-- Portable. Addresses that led to another one when they were read: the content is kept under the address it was found at.
CREATE TABLE redirects (
  key TEXT PRIMARY KEY,      -- as contents.key
  content_id TEXT NOT NULL REFERENCES contents (id) ON DELETE CASCADE
);
CREATE INDEX redirects_content ON redirects (content_id);
