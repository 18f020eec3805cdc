-- Lists say how many there are in all: counted from this index. Not the tags: an entry of it has room for 2,700 bytes only.
CREATE INDEX items_listed ON items (library_id, archived, entity_type, category, visibility);
