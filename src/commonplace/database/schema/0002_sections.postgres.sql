-- Words are cut at everything but letters and digits before they get here, so the parser has nothing to guess at;
-- English endings are taken off, and no word is too common to be found in a phrase.
CREATE TEXT SEARCH DICTIONARY endings (TEMPLATE = snowball, Language = english);
CREATE TEXT SEARCH CONFIGURATION words (PARSER = "default");
ALTER TEXT SEARCH CONFIGURATION words
  ADD MAPPING FOR asciiword, word, numword, int, uint, float, sfloat, version WITH endings;

CREATE TABLE sections (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
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

-- Apart from the text, so that ranking reads words and nothing else, and filing an item does not rewrite its text.
CREATE TABLE section_words (
  section_id BIGINT PRIMARY KEY REFERENCES sections (id) ON DELETE CASCADE,
  length INTEGER NOT NULL,
  scope TEXT[] NOT NULL,      -- the library and folders, as lexemes that no text can contain
  words TSVECTOR NOT NULL     -- and these lexemes among the words, so that the index itself keeps to the scope
) WITH (toast_tuple_target = 8160);  -- in the row as long as it fits: ranking would unpack it once for every word asked
CREATE INDEX section_words_words ON section_words USING gin (words);

CREATE TABLE vectors (
  section_id BIGINT PRIMARY KEY REFERENCES sections (id) ON DELETE CASCADE,
  library_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  stamp TEXT NOT NULL,
  embedding HALFVEC NOT NULL
);
ALTER TABLE vectors ALTER embedding SET STORAGE PLAIN;
CREATE INDEX vectors_item ON vectors (library_id, item_id);

-- A library's vectors of one stamp, and their bits in rows as narrow as can be, for scans over all of them.
CREATE TABLE shelves (
  id INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  library_id TEXT NOT NULL,
  stamp TEXT NOT NULL,
  UNIQUE (library_id, stamp)
);
CREATE TABLE signs (
  section_id BIGINT PRIMARY KEY REFERENCES vectors (section_id) ON DELETE CASCADE,
  item BIGINT NOT NULL,  -- a hash of the item's id, for scopes; what is found is checked against the id itself
  shelf INTEGER NOT NULL,
  code BIT VARYING NOT NULL
);
CREATE INDEX signs_shelf ON signs (shelf);
