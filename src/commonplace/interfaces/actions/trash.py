"""Actions on the trash."""

from datetime import datetime, timedelta

from commonplace.interfaces.actions.action import Action
from commonplace.interfaces.actions.fields import Input, PerPage
from commonplace.interfaces.actions.items import ITEM, OneItem, Paged
from commonplace.interfaces.actions.shapes import OK, Field, Listing, Shape, said
from commonplace.model import Trashed, moment


class Nothing(Input):
    """The input of an action that takes none."""


class ListTrash(Paged):
    per_page: PerPage = 100


TRASHED = Shape(
    "TrashedItem",
    Trashed,
    "id public_id entity_id title deleted_at",
    type="entity_type",
    deleted_by=said(
        str | None, "deleted_by", "Name of a person or token; null if the token may not see it"
    ),
    expires_at=Field(
        datetime,
        lambda entry, call: moment(entry.deleted_at + timedelta(days=call.settings.trash_days)),
        "When it is deleted for good",
    ),
)
EMPTIED = Shape("EmptiedTrash", None, base=OK, deleted=said(int, "", "Items deleted for good"))

ACTIONS = (
    Action(
        "list_trash",
        "List deleted items, newest first",
        ListTrash,
        "trash.page",
        Listing("items", TRASHED, paged=True),
        "GET /api/v1/trash",
        cli="trash list",
        description="Tokens see what was in their scope when it was deleted. Items stay "
        "COMMONPLACE_TRASH_DAYS days.",
    ),
    Action(
        "restore_item",
        "Restore a deleted item",
        OneItem,
        "trash.restore",
        ITEM,
        "POST /api/v1/trash/{item_id}/restore",
        cli="trash restore",
        description="Brings back the item with its id, notes, relations, versions, capture and the "
        "folders that still exist. A disk is not published again.",
    ),
    Action(  # at the command line, it is this one if no item is named
        "empty_trash",
        "Delete everything in the trash for good",
        Nothing,
        "trash.empty",
        EMPTIED,
        "DELETE /api/v1/trash",
        cli="trash empty",
    ),
    Action(
        "delete_trashed_item",
        "Delete an item in the trash for good",
        OneItem,
        "trash.delete",
        route="DELETE /api/v1/trash/{item_id}",
        cli="trash empty",
    ),
)
