-- What was said, word for word, stays as it was said: also for those who write SQL.
CREATE TRIGGER captures_stay BEFORE UPDATE ON captures
BEGIN
  SELECT RAISE(ABORT, 'captures are never changed');
END;
