-- Lists leave notes out, and are still counted from this index.
CREATE INDEX items_listed ON items (library_id, archived, entity_type, category, visibility, annotates);
