-- Lists say how many there are in all: counted from this index alone, never from the wide rows.
CREATE INDEX items_listed ON items (library_id, archived, entity_type, category, visibility, tags);
