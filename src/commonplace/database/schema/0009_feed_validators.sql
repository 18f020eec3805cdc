-- Portable. What a feed's server said its last answer can be recognised by (ETag, Last-Modified), as JSON.
ALTER TABLE feeds ADD COLUMN validators TEXT NOT NULL DEFAULT '{}';
