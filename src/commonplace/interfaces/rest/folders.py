"""Folders: list, create, rename, delete."""

from typing import Annotated

from fastapi import Query
from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from commonplace.interfaces.actions import items as item_shapes
from commonplace.interfaces.actions.items import Input, Name
from commonplace.interfaces.rest.routes import OK, ApiRequest, Id, Ok, api_router

router = api_router("folders")


class FolderName(Input):
    name: Annotated[
        Name, Field(description="Unique in the library, whatever its case", examples=["Research"])
    ]


class Folders(TypedDict):
    folders: list[item_shapes.Folder]
    total: int


class FolderDeletion(Input):
    model_config = ConfigDict(strict=False)

    cascade_items: Annotated[
        bool, Field(description="Also delete the items that lie in no other folder")
    ] = False


@router.get("/folders", summary="List the folders in the token's scope")
async def list_folders(api: ApiRequest) -> Folders:
    folders = await api.services.folders.list_folders(api.caller)
    return {"folders": [item_shapes.folder(folder) for folder in folders], "total": len(folders)}


@router.post("/folders", status_code=201, summary="Create a folder")
async def create_folder(api: ApiRequest, body: FolderName) -> item_shapes.Folder:
    return item_shapes.folder(await api.services.folders.create(api.caller, body.name))


@router.patch("/folders/{folder_id}", summary="Rename a folder")
async def rename_folder(api: ApiRequest, folder_id: Id, body: FolderName) -> item_shapes.Folder:
    return item_shapes.folder(await api.services.folders.rename(api.caller, folder_id, body.name))


@router.delete("/folders/{folder_id}", summary="Delete a folder")
async def delete_folder(
    api: ApiRequest, folder_id: Id, query: Annotated[FolderDeletion, Query()]
) -> Ok:
    """Revokes tokens that had no other folder."""
    await api.services.folders.delete(api.caller, folder_id, cascade_items=query.cascade_items)
    return OK
