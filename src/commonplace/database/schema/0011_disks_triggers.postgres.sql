-- Whoever changes what a view is derived from, in whatever way, the view is known to be old.
CREATE FUNCTION view_is_old() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE published SET change = change + 1 WHERE library_id = new.library_id AND item_id = new.id;
  RETURN NULL;
END $$;
CREATE TRIGGER items_view_is_old AFTER UPDATE OF content_id, title, url, summary, key_points, tags, category, metadata,
    in_kb, word_count ON items FOR EACH ROW EXECUTE FUNCTION view_is_old();
