"""Recent changes: what a person did within a day, and the way back."""

from urllib.parse import parse_qs, urlsplit

from starlette.responses import JSONResponse, Response

from commonplace.interfaces.web.request import WebRequest, get, post


async def show(request: WebRequest) -> Response:
    changes = await request.services.recent_changes.list_changes(request.caller)
    return request.page("recent.html", changes=changes)


async def undo(request: WebRequest) -> Response:
    request.step = None  # an undo is not undone
    stays = await request.services.recent_changes.undo(request.caller, request.path("step_id"))
    said = " ".join(["Undone, but not all of it.", *stays]) if stays else "Undone."
    if not request.wants_page:
        return JSONResponse({"message": said})
    return request.redirect(await _page(request), said)


async def _page(request: WebRequest) -> str:
    """Return the page that the button was on, unless what that page shows is gone by now."""
    back = urlsplit(request.back)
    name, _, item_id = back.path.strip("/").partition("/")
    if name in ("items", "work", "d") and item_id:
        item = await request.services.library.find(request.caller, item_id.partition("/")[0])
        if item and name == "d":  # which may not be published any more
            return f"/items/{item.public_id}"
        return request.back if item else "/work" if name == "work" else "/"
    folder = parse_qs(back.query).get("folder", [""])[0]
    if back.path == "/" and folder:
        folders = await request.services.folders.list_folders(request.caller)
        return request.back if folder in {each.id for each in folders} else "/"
    return request.back


ROUTES = (get("/recent", show), post("/undo/{step_id}", undo))
