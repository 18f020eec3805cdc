"""Earlier versions of an item."""

from typing import Annotated

from fastapi import Path

from commonplace.interfaces.actions import versions as version_shapes
from commonplace.interfaces.rest.routes import ApiRequest, ItemId, api_router

router = api_router("items")

Revision = Annotated[int, Path(ge=1, le=2**31 - 1, description="As the list of versions tells it")]


@router.get("/items/{item_id}/versions", summary="List an item's earlier versions, newest first")
async def list_versions(api: ApiRequest, item_id: ItemId) -> version_shapes.Versions:
    return version_shapes.versions(await api.services.versions.of(api.caller, item_id))


@router.get("/items/{item_id}/versions/{revision}", summary="Read an earlier version")
async def read_version(
    api: ApiRequest, item_id: ItemId, revision: Revision
) -> version_shapes.VersionInFull:
    return version_shapes.version_in_full(
        await api.services.versions.get(api.caller, item_id, revision)
    )


@router.get(
    "/items/{item_id}/versions/{revision}/diff",
    summary="Compare an earlier version with the next one",
)
async def compare_version(
    api: ApiRequest, item_id: ItemId, revision: Revision
) -> version_shapes.Difference:
    """Returns a line diff against the next version, or against the current text."""
    return version_shapes.difference(
        await api.services.versions.compare(api.caller, item_id, revision)
    )
