-- What was said, word for word, stays as it was said: also for those who write SQL.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql
  AS $$ BEGIN RAISE EXCEPTION 'captures are never changed'; END $$;
CREATE TRIGGER captures_stay BEFORE UPDATE ON captures FOR EACH ROW EXECUTE FUNCTION refuse_change();
