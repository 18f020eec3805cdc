"""Lists of published, saved and private disks; publishing with a preview."""

from starlette.responses import Response

from commonplace.errors import Invalid, NotFound
from commonplace.interfaces.web.request import WebRequest
from commonplace.interfaces.web.route import get, post
from commonplace.model import Audience, DiskFilter, DiskScope

SHELVES = {DiskScope.PUBLISHED: "Published", DiskScope.SAVED: "Saved", DiskScope.PRIVATE: "Private"}
AUDIENCES = {
    Audience.ANYONE: "everybody with the address",
    Audience.MEMBERS: "people with an account here",
}
PER_PAGE = 30
LONGEST_SUMMARY = 2_000


async def show(request: WebRequest) -> Response:
    shelf = request.query("shelf", DiskScope.PUBLISHED)
    shelf = shelf if shelf in {*SHELVES} else DiskScope.PUBLISHED
    page = request.number("page", 1)
    disks, total = await request.services.disks.page(
        request.caller, DiskScope(shelf), DiskFilter(), limit=PER_PAGE, offset=(page - 1) * PER_PAGE
    )
    pages = -(-total // PER_PAGE)
    if page > pages > 0:
        return request.redirect(f"/disks?shelf={shelf}&page={pages}")
    return request.page(
        "disks.html", disks=disks, total=total, page=page, pages=pages, shelves=SHELVES, shelf=shelf
    )


async def preview(request: WebRequest) -> Response:
    disk = await request.services.disks.preview(request.caller, request.path("disk_id"))
    try:
        now, _ = await request.services.disks.public(disk.public_id, request.caller)
    except NotFound:
        now = None
    return request.page("publish.html", disk=disk, audiences=AUDIENCES, published=now)


async def publish(request: WebRequest) -> Response:
    audience, summary = request.form.get("audience", Audience.ANYONE), request.form.get("summary")
    if audience not in {*Audience}:
        raise Invalid("Choose who may read it.")
    if summary and len(summary) > LONGEST_SUMMARY:
        raise Invalid(f"Shorten the summary to {LONGEST_SUMMARY:,} characters.")
    published = await request.services.disks.publish(
        request.caller, request.path("disk_id"), Audience(audience), summary
    )
    return request.redirect(
        f"/d/{published.public_id}", "It is published; this is the page that others see."
    )


async def unpublish(request: WebRequest) -> Response:
    await request.services.disks.unpublish(request.caller, request.path("disk_id"))
    return request.redirect("/disks", "It is private again.")


ROUTES = (
    get("/disks", show),
    get("/disks/{disk_id}/publish", preview),
    post("/disks/{disk_id}/publish", publish),
    post("/disks/{disk_id}/unpublish", unpublish),
)
