"""The trash: deleted items, to restore or to delete for good."""

from datetime import timedelta
from functools import partial

from starlette.responses import Response

from commonplace.interfaces.web.jinja import count
from commonplace.interfaces.web.request import WebRequest, act, get, post, post_then

PER_PAGE = 50


async def show(request: WebRequest) -> Response:
    read = partial(request.services.trash.page, request.caller)
    return request.page(
        "trash.html",
        **await request.read_page(PER_PAGE, "/trash?", read),
        kept=timedelta(days=request.services.settings.trash_days),
    )


async def empty(request: WebRequest) -> Response:
    deleted = await request.act("empty_trash")
    return request.redirect("/trash", f"{count(deleted, 'item')} deleted for good.")


ROUTES = (
    get("/trash", show),
    post("/trash/empty", empty),
    post_then(
        "/trash/{item_id}/restore",
        act("restore_item"),
        "/trash",
        "Restored “{done.title}”.",
    ),
    post_then("/trash/{item_id}/delete", act("delete_trashed_item"), "/trash", "Deleted for good."),
)
