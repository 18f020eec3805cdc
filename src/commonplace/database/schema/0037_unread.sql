-- Portable. Items that the web app accepted and has not read yet: 'queued' or 'failed', NULL once read. `status_reason` says
-- why reading or transcribing failed.
ALTER TABLE items ADD COLUMN ingest_status TEXT;
ALTER TABLE items ADD COLUMN status_reason TEXT;

-- What becomes of an upload when its last byte arrives (JSON; NULL: it waits for finalize), and what finalize answered first.
ALTER TABLE uploads ADD COLUMN on_arrival TEXT;
ALTER TABLE uploads ADD COLUMN answer TEXT;

-- Ids of queued items whose source turned out to be in the library already; they keep leading to the item that is there.
CREATE TABLE aliases (
  library_id TEXT NOT NULL,
  id TEXT NOT NULL,
  public_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  PRIMARY KEY (library_id, id),
  FOREIGN KEY (library_id, item_id) REFERENCES items (library_id, id) ON DELETE CASCADE
);
CREATE INDEX aliases_public_id ON aliases (library_id, public_id);
CREATE INDEX aliases_item ON aliases (library_id, item_id);
