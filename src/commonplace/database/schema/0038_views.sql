-- Portable. The owner's own words for others. Views of before were derived by looser rules: all of them are derived again.
ALTER TABLE published ADD COLUMN summary TEXT NOT NULL DEFAULT '';
UPDATE published SET change = change + 1;
