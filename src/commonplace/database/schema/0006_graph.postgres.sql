-- SQLite's name for it, so that both engines read the same statements.
CREATE FUNCTION instr(whole TEXT, part TEXT) RETURNS INTEGER LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS 'SELECT strpos(whole, part)';
