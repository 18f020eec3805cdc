"""What an item said before its text was replaced."""

from typing import Annotated

from fastapi import Path

from commonplace.interfaces.actions import versions as wire
from commonplace.interfaces.rest.routes import Desk, ItemId, api_router

router = api_router("items")

Revision = Annotated[int, Path(ge=1, le=2**31 - 1, description="As the list of versions tells it")]


@router.get("/items/{item_id}/versions", summary="List an item's earlier versions, newest first")
async def list_versions(desk: Desk, item_id: ItemId) -> wire.Versions:
    return wire.versions(await desk.services.versions.of(desk.caller, item_id))


@router.get("/items/{item_id}/versions/{revision}", summary="Read an earlier version")
async def read_version(desk: Desk, item_id: ItemId, revision: Revision) -> wire.VersionInFull:
    return wire.version_in_full(await desk.services.versions.get(desk.caller, item_id, revision))


@router.get(
    "/items/{item_id}/versions/{revision}/diff",
    summary="Compare an earlier version with the next one",
)
async def compare_version(desk: Desk, item_id: ItemId, revision: Revision) -> wire.Difference:
    """Returns a line diff against the next version, or against the current text."""
    return wire.difference(await desk.services.versions.compare(desk.caller, item_id, revision))
