"""Feeds: subscribed to, listed, ended."""

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field
from typing_extensions import TypedDict

from commonplace.interfaces.actions import items
from commonplace.interfaces.actions.items import Input, web_address, whole
from commonplace.interfaces.rest.routes import OK, Desk, Id, Ok, api_router

router = api_router("feeds")


class Subscribe(Input):
    url: Annotated[
        str,
        Field(
            max_length=8192,
            json_schema_extra={"pattern": "^[Hh][Tt][Tt][Pp][Ss]?://"},
            examples=["https://example.org/feed.xml"],
        ),
        AfterValidator(web_address),
    ]
    folder_id: Annotated[
        str | None, Field(max_length=200, description="Folder that new entries are filed in")
    ] = None
    newest: Annotated[
        int,
        BeforeValidator(whole),
        Field(ge=0, le=100, description=("How many of the entries that are there now to take")),
    ] = 10


class Feeds(TypedDict):
    feeds: list[items.Feed]
    total: int


@router.post("/feeds", status_code=201, summary="Follow a feed")
async def subscribe(desk: Desk, body: Subscribe) -> items.Feed:
    """New entries are added automatically, with the rights of this token. Following a feed again
    returns the same feed."""
    return items.feed(
        await desk.services.feeds.subscribe(desk.caller, body.url, body.folder_id, body.newest)
    )


@router.get("/feeds", summary="List feeds")
async def list_feeds(desk: Desk) -> Feeds:
    """Tokens limited to folders or the KB see only the feeds that they follow themselves."""
    found = await desk.services.feeds.all(desk.caller)
    return {"feeds": [items.feed(feed) for feed in found], "total": len(found)}


@router.delete("/feeds/{feed_id}", summary="Unfollow a feed")
async def unsubscribe(desk: Desk, feed_id: Id) -> Ok:
    """Items that it added stay."""
    await desk.services.feeds.unsubscribe(desk.caller, feed_id)
    return OK
