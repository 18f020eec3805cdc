"""Lists of published, saved and private disks; publishing with a preview."""

from functools import partial

from starlette.responses import Response

from commonplace.errors import NotFound
from commonplace.interfaces.web.request import WebRequest
from commonplace.interfaces.web.route import act, get, post, post_then
from commonplace.model import Audience, DiskFilter, DiskScope

SHELVES = {DiskScope.PUBLISHED: "Published", DiskScope.SAVED: "Saved", DiskScope.PRIVATE: "Private"}
AUDIENCES = {
    Audience.ANYONE: "everybody with the address",
    Audience.MEMBERS: "people with an account here",
}
PER_PAGE = 30


async def show(request: WebRequest) -> Response:
    shelf = request.query("shelf", DiskScope.PUBLISHED)
    shelf = shelf if shelf in {*SHELVES} else DiskScope.PUBLISHED
    read = partial(request.services.disks.page, request.caller, DiskScope(shelf), DiskFilter())
    listed = await request.read_page(PER_PAGE, f"/disks?shelf={shelf}&", read)
    return request.page("disks.html", **listed, shelves=SHELVES, shelf=shelf)


async def preview(request: WebRequest) -> Response:
    disk = await request.services.disks.preview(request.caller, request.path("disk_id"))
    try:
        now, _ = await request.services.disks.public(disk.public_id, request.caller)
    except NotFound:
        now = None
    return request.page("publish.html", disk=disk, audiences=AUDIENCES, published=now)


async def publish(request: WebRequest) -> Response:
    published = await request.act(
        "publish_disk",
        access=request.text("audience") or Audience.ANYONE.value,
        summary=request.form.get("summary"),  # an empty one is derived
    )
    return request.redirect(
        f"/d/{published.public_id}", "It is published; this is the page that others see."
    )


ROUTES = (
    get("/disks", show),
    get("/disks/{disk_id}/publish", preview),
    post("/disks/{disk_id}/publish", publish),
    post_then(
        "/disks/{disk_id}/unpublish", act("unpublish_disk"), "/disks", "It is private again."
    ),
)
