-- Embeddings that were given up while the embedder was down. Jobs that fail for a passing reason are no longer given up.
UPDATE jobs SET state = 'queued', attempts = 0 WHERE kind = 'embed' AND state = 'failed';
