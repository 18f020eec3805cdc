-- Portable. The next jobs of a kind are found in their place, however many of all kinds wait.
CREATE INDEX jobs_next ON jobs (state, kind, run_after);
DROP INDEX jobs_ready;
