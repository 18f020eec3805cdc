-- Portable. All that orders open tasks and epics, so that planning reads it without the rows of the items.
CREATE INDEX items_work ON items (library_id, entity_type, status, priority, due_date, created_at, id, assignees)
  WHERE entity_type IN ('task', 'epic');
