-- Holds all there is to know of where an item lies: without the folder in it, SQLite reads the primary key's index instead,
-- all of the library's part of it, to find the folders of one item.
CREATE INDEX folder_items_of ON folder_items (library_id, item_id, folder_id);
DROP INDEX folder_items_item;
