-- Portable. What waits for what is read without looking at all other relations.
CREATE INDEX relations_waiting ON relations (library_id, from_id, to_id) WHERE kind = 'DEPENDS_ON';
