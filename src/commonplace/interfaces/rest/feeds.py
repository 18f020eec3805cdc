"""Feeds: subscribe, list, unsubscribe."""

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field
from typing_extensions import TypedDict

from commonplace.interfaces.actions import items as item_shapes
from commonplace.interfaces.actions.items import Input, web_address, whole_number
from commonplace.interfaces.rest.routes import OK, ApiRequest, Id, Ok, api_router

router = api_router("feeds")


class FeedRequest(Input):
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
        BeforeValidator(whole_number),
        Field(ge=0, le=100, description=("How many of the entries that are there now to take")),
    ] = 10


class Feeds(TypedDict):
    feeds: list[item_shapes.Feed]
    total: int


@router.post("/feeds", status_code=201, summary="Follow a feed")
async def subscribe(api: ApiRequest, body: FeedRequest) -> item_shapes.Feed:
    """New entries are added automatically, with the rights of this token. Following a feed again
    returns the same feed."""
    return item_shapes.feed(
        await api.services.feeds.subscribe(api.caller, body.url, body.folder_id, body.newest)
    )


@router.get("/feeds", summary="List feeds")
async def list_feeds(api: ApiRequest) -> Feeds:
    """Tokens limited to folders or the KB see only the feeds that they follow themselves."""
    found = await api.services.feeds.all(api.caller)
    return {"feeds": [item_shapes.feed(feed) for feed in found], "total": len(found)}


@router.delete("/feeds/{feed_id}", summary="Unfollow a feed")
async def unsubscribe(api: ApiRequest, feed_id: Id) -> Ok:
    """Items that it added stay."""
    await api.services.feeds.unsubscribe(api.caller, feed_id)
    return OK
