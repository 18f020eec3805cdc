-- What is found depends on an item's status and type too: whoever follows the changes hears of these.
CREATE FUNCTION items_restated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO changes (library_id, item_id) VALUES (new.library_id, new.id);
  RETURN NULL;
END $$;
CREATE TRIGGER items_restated AFTER UPDATE OF status, entity_type ON items FOR EACH ROW
WHEN (old.status <> new.status OR old.entity_type <> new.entity_type) EXECUTE FUNCTION items_restated();
