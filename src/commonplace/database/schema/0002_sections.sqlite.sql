CREATE TABLE sections (
  id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used twice: in-process indexes hold these numbers
  library_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  title TEXT NOT NULL,
  heading TEXT NOT NULL,
  text TEXT NOT NULL,
  extra TEXT NOT NULL,
  word_count INTEGER NOT NULL,
  key_points TEXT NOT NULL,
  locator TEXT NOT NULL,
  UNIQUE (library_id, item_id, position),
  FOREIGN KEY (library_id, item_id) REFERENCES items (library_id, id) ON DELETE CASCADE
);

-- The different terms of a section and how much each counts, apart from its text: a library's are read in one go.
CREATE TABLE section_terms (
  library_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  section_id INTEGER NOT NULL,
  length INTEGER NOT NULL,
  terms BLOB NOT NULL,   -- 32 bits each
  counts BLOB NOT NULL,  -- 8 bits each
  PRIMARY KEY (library_id, item_id, section_id)
) WITHOUT ROWID;

-- All terms in order, 16 bits each: what phrases are looked for in.
CREATE TABLE sequences (
  section_id INTEGER PRIMARY KEY,
  sequence BLOB NOT NULL
);

CREATE TABLE vectors (
  library_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  section_id INTEGER NOT NULL,
  stamp TEXT NOT NULL,
  vector BLOB NOT NULL,  -- float16
  PRIMARY KEY (library_id, item_id, section_id)
) WITHOUT ROWID;

CREATE TRIGGER sections_removed AFTER DELETE ON sections BEGIN
  DELETE FROM sequences WHERE section_id = old.id;
  DELETE FROM section_terms WHERE library_id = old.library_id AND item_id = old.item_id AND section_id = old.id;
  DELETE FROM vectors WHERE library_id = old.library_id AND item_id = old.item_id AND section_id = old.id;
END;

-- Which items' sections changed, so that what all processes on this file hold in memory can catch up.
CREATE TABLE changes (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  library_id TEXT NOT NULL,
  item_id TEXT NOT NULL
);
