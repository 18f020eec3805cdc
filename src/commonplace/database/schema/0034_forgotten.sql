-- Portable. Of many changes the oldest are forgotten: up to where, for each library. Whoever has followed a library further than
-- that has missed nothing, however much others wrote since.
CREATE TABLE forgotten (
  library_id TEXT PRIMARY KEY,
  mark BIGINT NOT NULL
);
