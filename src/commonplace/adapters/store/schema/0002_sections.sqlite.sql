CREATE TABLE sections (
  id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used twice: in-process indexes hold these numbers
  library_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  scope TEXT NOT NULL,  -- search words for the library and its folders, so that FTS5 itself keeps to the scope
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

CREATE VIRTUAL TABLE section_words USING fts5 (
  scope, title, heading, text, extra,
  content = 'sections', content_rowid = 'id', tokenize = 'porter unicode61 remove_diacritics 2'
);
INSERT INTO section_words (section_words, rank) VALUES ('rank', 'bm25(0.0, 3.0, 1.0, 1.0, 0.5)');

CREATE TRIGGER sections_added AFTER INSERT ON sections BEGIN
  INSERT INTO section_words (rowid, scope, title, heading, text, extra)
  VALUES (new.id, new.scope, new.title, new.heading, new.text, new.extra);
END;
CREATE TRIGGER sections_removed AFTER DELETE ON sections BEGIN
  INSERT INTO section_words (section_words, rowid, scope, title, heading, text, extra)
  VALUES ('delete', old.id, old.scope, old.title, old.heading, old.text, old.extra);
  DELETE FROM vectors WHERE library_id = old.library_id AND item_id = old.item_id AND section_id = old.id;
END;
CREATE TRIGGER sections_changed AFTER UPDATE OF scope, title, heading, text, extra ON sections BEGIN
  INSERT INTO section_words (section_words, rowid, scope, title, heading, text, extra)
  VALUES ('delete', old.id, old.scope, old.title, old.heading, old.text, old.extra);
  INSERT INTO section_words (rowid, scope, title, heading, text, extra)
  VALUES (new.id, new.scope, new.title, new.heading, new.text, new.extra);
END;

CREATE TABLE vectors (
  library_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  section_id INTEGER NOT NULL,
  stamp TEXT NOT NULL,
  vector BLOB NOT NULL,  -- float16
  PRIMARY KEY (library_id, item_id, section_id)
) WITHOUT ROWID;

-- Which items' vectors changed, so that the matrices of all processes on this file can catch up.
CREATE TABLE changes (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  library_id TEXT NOT NULL,
  item_id TEXT NOT NULL
);
