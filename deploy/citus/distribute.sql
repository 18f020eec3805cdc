-- Spread the tables of Commonplace over the nodes of a Citus cluster. See deploy/citus/README.md.
--
--   psql "$COMMONPLACE_DATABASE_URL" --set ON_ERROR_STOP=1 --set schema=commonplace \
--     --file distribute.sql
--
-- Run it once, on the coordinator, after the first start of the server has made the tables, and
-- while no server or worker runs.

SET search_path = :"schema", public;

BEGIN;

-- Citus has no triggers on distributed tables. This one only guards against SQL by hand.
DROP TRIGGER captures_stay ON captures;
SELECT create_distributed_function('instr(text, text)');

-- The whole of each on every node: who there is, and how they sign in.
SELECT create_reference_table('people');
SELECT create_reference_table('libraries');
SELECT create_reference_table('members');
SELECT create_reference_table('passwords');
SELECT create_reference_table('passkeys');
SELECT create_reference_table('web_sessions');
SELECT create_reference_table('once_only');
SELECT create_reference_table('oauth_clients');

-- From a name to the libraries that have it. These follow the name, not the library.
SELECT create_distributed_table('directory', 'key', colocate_with => 'none');
SELECT create_distributed_table('sources', 'key', colocate_with => 'directory');
SELECT create_distributed_table('source_libraries', 'key', colocate_with => 'directory');
SELECT create_distributed_table('transcribing', 'key', colocate_with => 'directory');

-- Workers ask one shard of this for work.
SELECT create_distributed_table('job_queues', 'shard', colocate_with => 'none');

-- All rows of a library on one node. A table comes after those that it refers to.
SELECT create_distributed_table('folders', 'library_id', colocate_with => 'none');
SELECT create_distributed_table('invitations', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('tokens', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('token_folders', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('events', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('oauth_secrets', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('contents', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('items', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('folder_items', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('versions', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('aliases', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('trash', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('trash_rows', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('trash_folders', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('undo_steps', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('undo_rows', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('relations', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('captures', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('candidates', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('published', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('saves', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('sections', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('section_words', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('sequences', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('vectors', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('scope_sizes', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('term_counts', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('usage', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('event_counters', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('event_log', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('webhooks', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('jobs', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('transcriptions', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('idempotency_keys', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('uploads', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('source_files', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('feeds', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('feed_entries', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('crawls', 'library_id', colocate_with => 'folders');
SELECT create_distributed_table('crawl_pages', 'library_id', colocate_with => 'folders');

COMMIT;
