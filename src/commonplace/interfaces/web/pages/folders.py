"""Folders: create, rename, delete with a preview of the consequences."""

from starlette.responses import Response

from commonplace.errors import Invalid, NotFound
from commonplace.interfaces.web.request import WebRequest
from commonplace.interfaces.web.route import get, post
from commonplace.model import Folder


async def create(request: WebRequest) -> Response:
    folder = await request.services.folders.create(request.caller, _name(request))
    return request.redirect(
        f"/?folder={folder.id}",
        f"“{folder.name}” is there; file things into it from the list, or add them here.",
    )


async def show(request: WebRequest) -> Response:
    folder = await _folder(request)
    return request.page(
        "folder.html",
        folder=folder,
        stakes=await request.services.overview.folder_impact(request.caller, folder.id),
    )


async def rename(request: WebRequest) -> Response:
    folder = await request.services.folders.rename(
        request.caller, request.path("folder_id"), _name(request)
    )
    return request.redirect(f"/?folder={folder.id}", f"It is called “{folder.name}” now.")


async def delete(request: WebRequest) -> Response:
    items = request.form.get("items", "")
    if items not in ("keep", "delete"):
        raise Invalid("Say what is to become of the items in it.")
    await request.services.folders.delete(
        request.caller, request.path("folder_id"), cascade_items=items == "delete"
    )
    return request.redirect(
        "/",
        "The folder is deleted, with what lay in no other."
        if items == "delete"
        else "The folder is deleted; its items are still in the library.",
    )


def _name(request: WebRequest) -> str:
    name = " ".join(request.form.get("name", "").split())
    if not 0 < len(name) <= 200:
        raise Invalid("Give the folder a name of up to 200 characters.")
    return name


async def _folder(request: WebRequest) -> Folder:
    for folder in await request.services.folders.list_folders(request.caller):
        if folder.id == request.path("folder_id"):
            return folder
    raise NotFound("Folder not found")


ROUTES = (
    post("/folders", create),
    get("/folders/{folder_id}", show),
    post("/folders/{folder_id}", rename),
    post("/folders/{folder_id}/delete", delete),
)
