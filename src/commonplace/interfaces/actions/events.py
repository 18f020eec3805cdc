"""Actions on events and webhooks."""

from typing import Annotated

from commonplace.interfaces.actions.action import Action
from commonplace.interfaces.actions.fields import (
    WHOLE,
    Id,
    Input,
    OneOf,
    WebAddress,
    about,
    chars,
    number,
)
from commonplace.interfaces.actions.folders import Nothing
from commonplace.interfaces.actions.shapes import Field, Listing, Shape, many, said
from commonplace.model import EventType, Webhook


class ListEvents(Input):
    after: Annotated[
        Annotated[str, chars(1, 200)] | None,
        about("`next` of an answer, or the id of an event; the oldest events if left out"),
    ] = None
    limit: Annotated[int, number(1, 100, "How many"), WHOLE] = 100


class CreateWebhook(Input):
    url: Annotated[WebAddress, about("Where events are posted to")]
    events: Annotated[
        list[Annotated[str, OneOf(EventType)]] | None,
        about("Types of events; all if left out", min_length=1, max_length=len(EventType)),
    ] = None


class OneWebhook(Input):
    webhook_id: Id


EVENT = Shape("Event", "commonplace.core.events.events.EventView", "id type at item_id actor")
EVENTS = Shape(
    "EventList",
    "commonplace.core.events.events.EventList",
    events=many(EVENT, "events"),
    next=said(str, "next", "The cursor behind these events; ask with it again for later ones"),
)
WEBHOOK = Shape(
    "Webhook",
    Webhook,
    "id url events token_id",
    active=Field(bool, lambda hook, call: hook.disabled_at is None),
    created_at="created_at",
    delivered_at="delivered_at",
    disabled_at="disabled_at",
    error=said(str | None, "error", "Of the last attempt, if it failed"),
)
NEW_WEBHOOK = Shape(
    "NewWebhook",
    None,
    base=WEBHOOK,
    at=0,
    secret=said(str, 1, "Checks signatures. It is shown this once"),
)
DELIVERY = Shape("Delivery", "commonplace.core.events.webhooks.Delivery", "ok status error")

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
    Action(
        "list_webhooks",
        "List webhooks",
        Nothing,
        "webhooks.all",
        Listing("webhooks", WEBHOOK),
        "GET /api/v1/webhooks",
    ),
    Action(
        "create_webhook",
        "Create a webhook",
        CreateWebhook,
        "webhooks.create",
        NEW_WEBHOOK,
        "POST /api/v1/webhooks",
        description="Events that the token sees are posted to the address from now on, signed as "
        "Standard Webhooks says with `secret`, which is shown this once. After ten failed attempts "
        "over a day the webhook is disabled. It ends with the token.",
        status=201,
        secret="secret",
        example={"url": "https://example.org/hook", "events": ["item.ready", "item.failed"]},
    ),
    Action(
        "get_webhook",
        "Read a webhook",
        OneWebhook,
        "webhooks.get",
        WEBHOOK,
        "GET /api/v1/webhooks/{webhook_id}",
    ),
    Action(
        "delete_webhook",
        "Delete a webhook",
        OneWebhook,
        "webhooks.delete",
        route="DELETE /api/v1/webhooks/{webhook_id}",
    ),
    Action(
        "test_webhook",
        "Test a webhook",
        OneWebhook,
        "webhooks.test",
        DELIVERY,
        "POST /api/v1/webhooks/{webhook_id}/test",
        description="Posts an event of the type `webhook.test`, and tells whether it arrived. If "
        "it does, a disabled webhook works again and gets what it has missed.",
    ),
)
