"""Use the client that openapi-python-client generates: add, read, search, change, and work on a task."""

import sys

from commonplace_client import AuthenticatedClient
from commonplace_client.api.entities import add_entity
from commonplace_client.api.items import add_to_knowledge, get_item, update_item
from commonplace_client.api.search import search_items
from commonplace_client.api.tasks import add_task, get_task, list_tasks, start_task, update_task
from commonplace_client.models import (
    AddBodyBody,
    AddedItem,
    AddedWork,
    ChangedEntity,
    ChangeItemBody,
    ChangeTaskBody,
    FullItem,
    IngestBody,
    IngestBodyKind,
    NewEntity,
    NewTaskBody,
    Problem,
    SearchBody,
    SearchResults,
    StepBody,
    TaskList,
)

address, token = sys.argv[1:]
client = AuthenticatedClient(address, token)

text = "The keeper has the tide tables."
added = add_to_knowledge.sync(
    client=client, body=IngestBody(kind=IngestBodyKind.TEXT, title="Tide tables", text=text)
)
assert isinstance(added, AddedItem), added
assert added.status.value == "ready"

item = get_item.sync(added.user_item_id, client=client)
assert isinstance(item, FullItem), item
assert (item.text, len(item.sections), item.next_section) == (text, 1, None)

found = search_items.sync(client=client, body=SearchBody(query="tide tables", limit=3))
assert isinstance(found, SearchResults), found
assert found.results[0].item_id == item.id

stale = update_item.sync_detailed(
    item.id, client=client, body=ChangeItemBody(title="Never"), if_match='W/"999"'
)
assert stale.status_code == 412
assert isinstance(stale.parsed, Problem) and stale.parsed.error == "precondition_failed"
changed = update_item.sync(item.id, client=client, body=ChangeItemBody(tags=["sea"], category=None))
assert isinstance(changed, FullItem), changed
assert (changed.tags, changed.title) == (["sea"], "Tide tables")

project = add_entity.sync(
    client=client,
    body=AddBodyBody.from_dict(
        {"entity_type": "project", "title": "Harbour", "content": "The harbour."}
    ),
    sync=True,
)
assert isinstance(project, NewEntity), project
task = add_task.sync(
    client=client,
    body=NewTaskBody("Dredge", "Dredge it.", project=project.id, due_date="2030-03-01"),
)
assert isinstance(task, AddedWork), task
started = start_task.sync(task.id, client=client, body=StepBody())
assert isinstance(started, ChangedEntity), started
assert started.status == "doing"
cleared = update_task.sync(task.id, client=client, body=ChangeTaskBody(due_date=None))
assert isinstance(cleared, ChangedEntity), cleared
assert cleared.due_date is None
tasks = list_tasks.sync(client=client, status=["doing"])
assert isinstance(tasks, TaskList), tasks
assert [each.id for each in tasks.tasks] == [task.id]

missing = get_task.sync_detailed("task_nope", client=client)
assert missing.status_code == 404 and isinstance(missing.parsed, Problem)
print("done")
