"""Folders: made beside the list, renamed and deleted on a page that says beforehand what goes with them."""

from starlette.responses import Response

from commonplace.errors import Invalid, NotFound
from commonplace.interfaces.web.request import Visit
from commonplace.interfaces.web.route import get, post
from commonplace.model import Folder


async def create(visit: Visit) -> Response:
    folder = await visit.services.folders.create(
        visit.caller, _name((await visit.form()).get("name", ""))
    )
    return visit.go(
        f"/?folder={folder.id}",
        f"“{folder.name}” is there; file things into it from the list, or add them here.",
    )


async def show(visit: Visit) -> Response:
    folder = await _folder(visit)
    stakes = await visit.services.overview.folder_impact(visit.caller, folder.id)
    return visit.page("folder.html", folder=folder, stakes=stakes)


async def rename(visit: Visit) -> Response:
    name = _name((await visit.form()).get("name", ""))
    folder = await visit.services.folders.rename(
        visit.caller, visit.request.path_params["folder_id"], name
    )
    return visit.go(f"/?folder={folder.id}", f"It is called “{folder.name}” now.")


async def delete(visit: Visit) -> Response:
    items = (await visit.form()).get("items", "")
    if items not in ("keep", "delete"):
        raise Invalid("Say what is to become of the items in it.")
    folder_id = visit.request.path_params["folder_id"]
    await visit.services.folders.delete(visit.caller, folder_id, cascade_items=items == "delete")
    return visit.go(
        "/",
        "The folder is deleted, with what lay in no other."
        if items == "delete"
        else "The folder is deleted; its items are still in the library.",
    )


def _name(text: str) -> str:
    name = " ".join(text.split())
    if not 0 < len(name) <= 200:
        raise Invalid("Give the folder a name of up to 200 characters.")
    return name


async def _folder(visit: Visit) -> Folder:
    wanted = visit.request.path_params["folder_id"]
    for folder in await visit.services.folders.list_folders(visit.caller):
        if folder.id == wanted:
            return folder
    raise NotFound("Folder not found")


DOORS = (
    post("/folders", create),
    get("/folders/{folder_id}", show),
    post("/folders/{folder_id}", rename),
    post("/folders/{folder_id}/delete", delete),
)
