-- Search works as on SQLite: each process keeps the words and vectors of the libraries it searches, and follows `changes`.
DROP TABLE signs;
DROP TABLE shelves;
DROP TABLE section_words;
DROP TEXT SEARCH CONFIGURATION words;
DROP TEXT SEARCH DICTIONARY endings;

-- The different terms of a section and how much each counts, apart from its text: a library's are read in one go.
CREATE TABLE section_terms (
  section_id BIGINT PRIMARY KEY REFERENCES sections (id) ON DELETE CASCADE,
  library_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  length INTEGER NOT NULL,
  terms BYTEA NOT NULL,   -- 32 bits each
  counts BYTEA NOT NULL   -- 8 bits each
);
CREATE INDEX section_terms_item ON section_terms (library_id, item_id);

-- All terms in order, 16 bits each: what phrases are looked for in.
CREATE TABLE sequences (
  section_id BIGINT PRIMARY KEY REFERENCES sections (id) ON DELETE CASCADE,
  sequence BYTEA NOT NULL
);
-- Noise to a compressor; it would only cost time.
ALTER TABLE section_terms ALTER terms SET STORAGE EXTERNAL, ALTER counts SET STORAGE EXTERNAL;
ALTER TABLE sequences ALTER sequence SET STORAGE EXTERNAL;

-- Which items' sections changed. Numbers are given out before their transactions end, in any order: whoever follows goes
-- by the transaction, and knows from its snapshot which of them may still be under way.
CREATE TABLE changes (
  seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  xid BIGINT NOT NULL DEFAULT pg_current_xact_id()::text::bigint,
  library_id TEXT NOT NULL,
  item_id TEXT NOT NULL
);
CREATE INDEX changes_library ON changes (library_id, xid);
CREATE INDEX changes_xid ON changes (xid);
