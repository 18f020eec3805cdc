"""Disks: list, read, preview, publish, save."""

from typing import Annotated

from fastapi import Query
from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from commonplace.interfaces.actions import disks as disk_shapes
from commonplace.interfaces.actions.disks import Category, Tag
from commonplace.interfaces.actions.items import Input
from commonplace.interfaces.rest.items import IdText
from commonplace.interfaces.rest.routes import OK, ApiRequest, ItemId, Ok, api_router
from commonplace.model import Audience, DiskFilter, DiskScope

router = api_router("disks")


class DisksQuery(Input):
    model_config = ConfigDict(strict=False)  # query values are text

    search: Annotated[str | None, Field(max_length=500, description="Found in title or tags")] = (
        None
    )
    scope: disk_shapes.DiskScope = "all"
    category: Category = None
    tag: Tag = None
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0


@router.get("/disks", summary="List owned and saved disks, newest first")
async def list_disks(
    api: ApiRequest, query: Annotated[DisksQuery, Query()]
) -> disk_shapes.DiskList:
    lines, total = await api.services.disks.page(
        api.caller,
        DiskScope(query.scope),
        DiskFilter(query.category, query.tag, query.search),
        limit=query.limit,
        offset=query.offset,
    )
    return disk_shapes.disk_list(query.scope, lines, total)


class DiskBatchRequest(Input):
    ids: Annotated[list[IdText], Field(min_length=1, max_length=10)]


class DiskBatch(TypedDict):
    disks: list[disk_shapes.Disk]
    not_found: list[str]


@router.post("/disks/batch", summary="Read several owned disks")
async def read_disks(api: ApiRequest, body: DiskBatchRequest) -> DiskBatch:
    disks, not_found = await api.services.disks.batch(api.caller, body.ids)
    return {"disks": [disk_shapes.disk(disk) for disk in disks], "not_found": not_found}


@router.get("/disks/{item_id}", summary="Read a disk")
async def read_disk(api: ApiRequest, item_id: ItemId) -> disk_shapes.Disk:
    """Your private disks include their text. Published disks and those of others are redacted."""
    return disk_shapes.disk(await api.services.disks.get(api.caller, item_id))


@router.get("/disks/{item_id}/preview", summary="Preview a disk as others will see it")
async def preview_disk(api: ApiRequest, item_id: ItemId) -> disk_shapes.Disk:
    return disk_shapes.disk(await api.services.disks.preview(api.caller, item_id))


class PublishRequest(Input):
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
                "Your own words for redacted views. It may quote at most 60 words of the text and "
                "a tenth of it (422 otherwise). "
                "Left out: as it was; empty: a derived outline"
            ),
        ),
    ] = None


@router.post("/disks/{item_id}/publish", summary="Publish a disk")
async def publish_disk(
    api: ApiRequest, item_id: ItemId, body: PublishRequest | None = None
) -> disk_shapes.Publication:
    """Others find it by its id, read the redacted view and can save it. Publish again to change the
    access or the summary."""
    body = body or PublishRequest()
    return disk_shapes.publication(
        await api.services.disks.publish(api.caller, item_id, body.access, body.summary)
    )


@router.delete("/disks/{item_id}/publish", summary="Unpublish a disk")
async def unpublish_disk(api: ApiRequest, item_id: ItemId) -> disk_shapes.Publication:
    """Takes effect immediately for everyone. People who saved it get it back if you publish it
    again."""
    item = await api.services.disks.unpublish(api.caller, item_id)
    return {
        "public_id": item.public_id,
        "visibility": "private",
        "access": None,
        "published_at": None,
        "path": None,
    }


@router.post("/disks/{item_id}/save", summary="Save another person's disk")
async def save_disk(api: ApiRequest, item_id: ItemId) -> disk_shapes.SavedDisk:
    return disk_shapes.saved_disk(await api.services.disks.save(api.caller, item_id))


@router.delete("/disks/{item_id}/save", summary="Remove a saved disk")
async def unsave_disk(api: ApiRequest, item_id: ItemId) -> Ok:
    await api.services.disks.unsave(api.caller, item_id)
    return OK
