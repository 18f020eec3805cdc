-- Portable. An item's best relations are found without reading all of them, however many it has.
CREATE INDEX relations_best_from ON relations (library_id, from_id, explicit, weight, created_at);
CREATE INDEX relations_best_to ON relations (library_id, to_id, explicit, weight, created_at);
