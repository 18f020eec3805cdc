"""Actions on events."""

from typing import Annotated

from commonplace.interfaces.actions.action import Action
from commonplace.interfaces.actions.fields import WHOLE, Input, about, chars, number
from commonplace.interfaces.actions.shapes import Shape, many, said


class ListEvents(Input):
    after: Annotated[
        Annotated[str, chars(1, 200)] | None,
        about("`next` of an answer, or the id of an event; the oldest events if left out"),
    ] = None
    limit: Annotated[int, number(1, 100, "How many"), WHOLE] = 100


EVENT = Shape("Event", "commonplace.core.events.events.EventView", "id type at item_id actor")
EVENTS = Shape(
    "EventList",
    "commonplace.core.events.events.EventList",
    events=many(EVENT, "events"),
    next=said(str, "next", "The cursor behind these events; ask with it again for later ones"),
)

ACTIONS = (
    Action(
        "list_events",
        "List events",
        ListEvents,
        "events.list_events",
        EVENTS,
        "GET /api/v1/events",
        description="What happened to items in scope in the last 7 days, oldest first: item.added, "
        "item.ready, item.failed, item.changed, item.deleted, item.restored, task.changed (tasks "
        "and epics), memory.candidate, disk.published. Ids and types only; `actor` is a token or "
        "person, as far as the token may know. With `Accept: text/event-stream` the events follow "
        "as they happen, also job.progress, and `Last-Event-ID` resumes.",
    ),
)
