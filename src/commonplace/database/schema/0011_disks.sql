-- Portable. What others see of a published item, derived from it and kept apart from it; and who saved it.
CREATE TABLE published (
  library_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  audience TEXT NOT NULL,       -- anyone, members
  published_at BIGINT NOT NULL,
  title TEXT NOT NULL,          -- these three are in the view too: others' lists are filtered by them
  category TEXT NOT NULL,
  tags TEXT NOT NULL,
  shown TEXT NOT NULL,          -- the view, JSON
  vector TEXT NOT NULL,         -- of the view, never of the source: float16, base64; '' while there is none
  stamp TEXT NOT NULL,
  change INTEGER NOT NULL,      -- counts the item's changes
  derived INTEGER NOT NULL,     -- the change that the view is of; any other: it is to be derived again
  PRIMARY KEY (library_id, item_id),
  FOREIGN KEY (library_id, item_id) REFERENCES items (library_id, id) ON DELETE CASCADE
);
CREATE INDEX published_stale ON published (library_id, item_id) WHERE change <> derived;

-- A save outlives unpublishing, without showing anything, and goes with the item.
CREATE TABLE saves (
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  owner_id TEXT NOT NULL,       -- the library that the item is in
  item_id TEXT NOT NULL,
  person_id TEXT NOT NULL,
  saved_at BIGINT NOT NULL,
  PRIMARY KEY (library_id, owner_id, item_id),
  FOREIGN KEY (owner_id, item_id) REFERENCES items (library_id, id) ON DELETE CASCADE
);
CREATE INDEX saves_newest ON saves (library_id, saved_at);
CREATE INDEX saves_item ON saves (owner_id, item_id);
