"""Folders: create, rename, delete with a preview of the consequences."""

from starlette.responses import Response

from commonplace.errors import Invalid
from commonplace.interfaces.web.request import WebRequest
from commonplace.interfaces.web.route import act, get, post, post_then


async def show(request: WebRequest) -> Response:
    folder = await request.act("get_folder")
    return request.page(
        "folder.html",
        folder=folder,
        stakes=await request.services.overview.folder_impact(request.caller, folder.id),
    )


async def delete(request: WebRequest) -> Response:
    items = request.text("items")
    if items not in ("keep", "delete"):
        raise Invalid("Say what is to become of the items in it.")
    await request.act("delete_folder", cascade_items=items == "delete")
    return request.redirect(
        "/",
        "The folder is deleted, with what lay in no other."
        if items == "delete"
        else "The folder is deleted; its items are still in the library.",
    )


ROUTES = (
    post_then(
        "/folders",
        act("create_folder", "name"),
        "/?folder={done.id}",
        "“{done.name}” is there; file things into it from the list, or add them here.",
    ),
    get("/folders/{folder_id}", show),
    post_then(
        "/folders/{folder_id}",
        act("rename_folder", "name"),
        "/?folder={done.id}",
        "It is called “{done.name}” now.",
    ),
    post("/folders/{folder_id}/delete", delete),
)
