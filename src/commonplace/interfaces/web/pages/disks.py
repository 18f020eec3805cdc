"""Shelves of disks: what is published, what was saved of others; publishing with a look at what others will see."""

from starlette.responses import Response

from commonplace.errors import Invalid, NotFound
from commonplace.interfaces.web.request import Visit
from commonplace.interfaces.web.route import get, post
from commonplace.model import Audience, DiskFilter, DiskScope

SHELVES = {DiskScope.PUBLISHED: "Published", DiskScope.SAVED: "Saved", DiskScope.PRIVATE: "Private"}
AUDIENCES = {
    Audience.ANYONE: "everybody with the address",
    Audience.MEMBERS: "people with an account here",
}
PER_PAGE = 30
LONGEST_SUMMARY = 2_000


async def show(visit: Visit) -> Response:
    shelf = visit.query("shelf", DiskScope.PUBLISHED)
    shelf = shelf if shelf in {*SHELVES} else DiskScope.PUBLISHED
    page = visit.number("page", 1)
    disks, total = await visit.services.disks.page(
        visit.caller, DiskScope(shelf), DiskFilter(), limit=PER_PAGE, offset=(page - 1) * PER_PAGE
    )
    pages = -(-total // PER_PAGE)
    if page > pages > 0:
        return visit.go(f"/disks?shelf={shelf}&page={pages}")
    return visit.page(
        "disks.html", disks=disks, total=total, page=page, pages=pages, shelves=SHELVES, shelf=shelf
    )


async def preview(visit: Visit) -> Response:
    disk = await visit.services.disks.preview(visit.caller, visit.request.path_params["disk_id"])
    try:
        now, _ = await visit.services.disks.public(disk.public_id, visit.caller)
    except NotFound:
        now = None
    return visit.page("publish.html", disk=disk, audiences=AUDIENCES, published=now)


async def publish(visit: Visit) -> Response:
    form = await visit.form()
    audience, summary = form.get("audience", Audience.ANYONE), form.get("summary")
    if audience not in {*Audience}:
        raise Invalid("Choose who may read it.")
    if summary and len(summary) > LONGEST_SUMMARY:
        raise Invalid(f"Shorten the summary to {LONGEST_SUMMARY:,} characters.")
    published = await visit.services.disks.publish(
        visit.caller, visit.request.path_params["disk_id"], Audience(audience), summary
    )
    return visit.go(
        f"/d/{published.public_id}", "It is published; this is the page that others see."
    )


async def unpublish(visit: Visit) -> Response:
    await visit.services.disks.unpublish(visit.caller, visit.request.path_params["disk_id"])
    return visit.go("/disks", "It is private again.")


DOORS = (
    get("/disks", show),
    get("/disks/{disk_id}/publish", preview),
    post("/disks/{disk_id}/publish", publish),
    post("/disks/{disk_id}/unpublish", unpublish),
)
