-- Portable. Captures are looked through newest first.
CREATE INDEX captures_newest ON captures (library_id, created_at, id);
