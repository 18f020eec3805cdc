"""Folders: listed by whoever may see them, made and changed by who may write to the whole library."""

from typing import Annotated

from fastapi import Query
from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from commonplace.interfaces.actions import items
from commonplace.interfaces.actions.items import Input, Name
from commonplace.interfaces.rest.routes import OK, Desk, Id, Ok, api_router

router = api_router("folders")


class FolderName(Input):
    name: Annotated[
        Name, Field(description="Unique in the library, whatever its case", examples=["Research"])
    ]


class Folders(TypedDict):
    folders: list[items.Folder]
    total: int


class FolderDeletion(Input):
    model_config = ConfigDict(strict=False)

    cascade_items: Annotated[
        bool, Field(description="Also delete the items that lie in no other folder")
    ] = False


@router.get("/folders", summary="List the folders in the token's scope")
async def list_folders(desk: Desk) -> Folders:
    folders = await desk.services.folders.list_folders(desk.caller)
    return {"folders": [items.folder(folder) for folder in folders], "total": len(folders)}


@router.post("/folders", status_code=201, summary="Create a folder")
async def create_folder(desk: Desk, body: FolderName) -> items.Folder:
    return items.folder(await desk.services.folders.create(desk.caller, body.name))


@router.patch("/folders/{folder_id}", summary="Rename a folder")
async def rename_folder(desk: Desk, folder_id: Id, body: FolderName) -> items.Folder:
    return items.folder(await desk.services.folders.rename(desk.caller, folder_id, body.name))


@router.delete("/folders/{folder_id}", summary="Delete a folder")
async def delete_folder(desk: Desk, folder_id: Id, query: Annotated[FolderDeletion, Query()]) -> Ok:
    """Revokes tokens that had no other folder."""
    await desk.services.folders.delete(desk.caller, folder_id, cascade_items=query.cascade_items)
    return OK
