-- What a source says of itself (title, author, ...), and the job that is writing down what is said in it.
ALTER TABLE contents ADD COLUMN about TEXT NOT NULL DEFAULT '{}';
ALTER TABLE contents ADD COLUMN claimed_by TEXT;
ALTER TABLE contents ADD COLUMN claimed_until BIGINT;

-- Seconds of speech that a person had written down, or has reserved: a row for each job, so that a job which is run
-- twice is counted once.
CREATE TABLE transcriptions (
  library_id TEXT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
  id TEXT NOT NULL,
  person_id TEXT NOT NULL,
  month TEXT NOT NULL,
  seconds DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (library_id, id)
);
CREATE INDEX transcriptions_month ON transcriptions (library_id, person_id, month);
