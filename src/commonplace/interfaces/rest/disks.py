"""Disks: listed, read, searched; published, previewed, saved."""

from typing import Annotated

from fastapi import Query
from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from commonplace.interfaces.actions import disks as wire_disks
from commonplace.interfaces.actions.disks import Category, Tag
from commonplace.interfaces.actions.items import Input
from commonplace.interfaces.rest.items import IdText
from commonplace.interfaces.rest.routes import OK, Desk, ItemId, Ok, api_router
from commonplace.model import Audience, DiskFilter, DiskScope

router = api_router("disks")


class DisksQuery(Input):
    model_config = ConfigDict(strict=False)  # query values are text

    search: Annotated[str | None, Field(max_length=500, description="Found in title or tags")] = (
        None
    )
    scope: wire_disks.DiskScope = "all"
    category: Category = None
    tag: Tag = None
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0


@router.get("/disks", summary="List owned and saved disks, newest first")
async def list_disks(desk: Desk, query: Annotated[DisksQuery, Query()]) -> wire_disks.DiskList:
    lines, total = await desk.services.disks.page(
        desk.caller,
        DiskScope(query.scope),
        DiskFilter(query.category, query.tag, query.search),
        limit=query.limit,
        offset=query.offset,
    )
    return wire_disks.disk_list(query.scope, lines, total)


class Batch(Input):
    ids: Annotated[list[IdText], Field(min_length=1, max_length=10)]


class BatchAnswer(TypedDict):
    disks: list[wire_disks.Disk]
    not_found: list[str]


@router.post("/disks/batch", summary="Read several owned disks")
async def read_disks(desk: Desk, body: Batch) -> BatchAnswer:
    disks, not_found = await desk.services.disks.batch(desk.caller, body.ids)
    return {"disks": [wire_disks.disk(disk) for disk in disks], "not_found": not_found}


@router.get("/disks/{item_id}", summary="Read a disk")
async def read_disk(desk: Desk, item_id: ItemId) -> wire_disks.Disk:
    """Your private disks include their text. Your published disks and those of others are redacted."""
    return wire_disks.disk(await desk.services.disks.get(desk.caller, item_id))


@router.get("/disks/{item_id}/preview", summary="Preview a disk as others will see it")
async def preview_disk(desk: Desk, item_id: ItemId) -> wire_disks.Disk:
    return wire_disks.disk(await desk.services.disks.preview(desk.caller, item_id))


class Publishing(Input):
    access: Annotated[
        Audience,
        Field(
            strict=False,
            description=(
                "`anyone` with its address, or only `members`: people with an account here"
            ),
        ),
    ] = Audience.ANYONE
    summary: Annotated[
        str | None,
        Field(
            max_length=2_000,
            description=(
                "Your own words for redacted views. It may quote at most 60 words of the text and a tenth of it (422 otherwise). "
                "Left out: as it was; empty: a derived outline"
            ),
        ),
    ] = None


@router.post("/disks/{item_id}/publish", summary="Publish a disk")
async def publish_disk(
    desk: Desk, item_id: ItemId, body: Publishing | None = None
) -> wire_disks.Publication:
    """Others find it by its id, read the redacted view and can save it. Publish again to change the
    access or the summary."""
    body = body or Publishing()
    return wire_disks.publication(
        await desk.services.disks.publish(desk.caller, item_id, body.access, body.summary)
    )


@router.delete("/disks/{item_id}/publish", summary="Unpublish a disk")
async def unpublish_disk(desk: Desk, item_id: ItemId) -> wire_disks.Publication:
    """Takes effect immediately for everyone. People who saved it get it back if you publish it again."""
    item = await desk.services.disks.unpublish(desk.caller, item_id)
    return {
        "public_id": item.public_id,
        "visibility": "private",
        "access": None,
        "published_at": None,
        "path": None,
    }


@router.post("/disks/{item_id}/save", summary="Save another person's disk")
async def save_disk(desk: Desk, item_id: ItemId) -> wire_disks.Saved:
    return wire_disks.saved(await desk.services.disks.save(desk.caller, item_id))


@router.delete("/disks/{item_id}/save", summary="Remove a saved disk")
async def unsave_disk(desk: Desk, item_id: ItemId) -> Ok:
    await desk.services.disks.unsave(desk.caller, item_id)
    return OK
