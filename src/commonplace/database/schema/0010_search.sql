-- Portable. Searches leave out what was marked as wrong, which few items are.
CREATE INDEX items_status ON items (library_id, status);
