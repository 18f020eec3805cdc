-- Portable. Which item a note in a margin is about, and where an item came from. A category is free text, and no marker: what has
-- the one that notes had, and is joined to nothing as a note, is an item like all others.
ALTER TABLE items ADD COLUMN annotates TEXT;
ALTER TABLE items ADD COLUMN origin TEXT NOT NULL DEFAULT 'you';
UPDATE items SET annotates = (SELECT min(r.to_id) FROM relations AS r
                              WHERE r.library_id = items.library_id AND r.from_id = items.id AND r.kind = 'ANNOTATES')
  WHERE category = 'annotation';
UPDATE items SET origin = CASE kind WHEN 'url' THEN 'web' WHEN 'file' THEN 'upload' ELSE 'agent' END
  WHERE kind IN ('url', 'file') OR created_by IS NOT NULL;
CREATE INDEX items_notes ON items (library_id, annotates) WHERE annotates IS NOT NULL;
DROP INDEX items_listed;
