"""Disks: lists, publishing with a preview, and the public page of a published disk."""

import hashlib
from functools import partial

from starlette.responses import Response

from commonplace import __version__
from commonplace.core.people.authorization import whole_seconds
from commonplace.errors import NotFound, RateLimited
from commonplace.interfaces.http.gate import nobody
from commonplace.interfaces.web.request import WebRequest, act, get, post, post_then
from commonplace.model import Audience, DiskFilter, DiskScope, Published, RedactedDisk
from commonplace.text.secret_masking import mask_secrets

SHELVES = {DiskScope.PUBLISHED: "Published", DiskScope.SAVED: "Saved", DiskScope.PRIVATE: "Private"}
AUDIENCES = {
    Audience.ANYONE: "Anyone with the link",
    Audience.MEMBERS: "People with an account here",
}
PER_PAGE = 30
DESCRIPTION = 300  # characters, as much as previews of links show


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
    item = await request.services.library.find(request.caller, disk.public_id)
    own = await request.services.disks.own_summary(request.caller, item) if item else ""
    return request.page("publish.html", disk=disk, audiences=AUDIENCES, published=now, own=own)


async def publish(request: WebRequest) -> Response:
    published = await request.act(
        "publish_disk",
        access=request.text("audience") or Audience.ANYONE.value,
        summary=request.form.get("summary"),
    )
    return request.redirect(f"/d/{published.public_id}", "Published. Others see this page.")


# -- the public page; signed-in people can save the disk


async def show_published(request: WebRequest) -> Response:
    if request.visitor is None:
        # Those without an account are counted by their address, as tokens are by their names.
        window = await request.services.access.request(nobody(request.http.scope))
        if window is not None and not window.allowed:
            raise RateLimited(whole_seconds(window.reset))
    try:
        published, own = await request.services.disks.public(
            request.path("public_id"), request.caller if request.visitor else None
        )
    except NotFound:
        # The same for what is not there and for what only members may read.
        message = "Nothing is published at this address" + (
            "." if request.visitor else ", or you need to sign in to see it."
        )
        return request.page("error.html", 404, title="Not found", message=message)
    page = request.page(
        "published.html",
        disk=published,
        view=published.view,
        own=own,
        owner=mask_secrets(published.owner_name),
        address=f"{request.base_url}/d/{published.public_id}",
        description=_description(published.view),
    )
    return page if request.visitor else _for_everybody(request, published, page)


def _description(view: RedactedDisk) -> str:
    points = [*view.tags, *(point for section in view.sections for point in section.key_points)]
    return (view.summary or ", ".join(dict.fromkeys(points)))[:DESCRIPTION]


def _for_everybody(request: WebRequest, published: Published, page: Response) -> Response:
    """Make the page cacheable: no cookie, and an ETag.

    Caches must ask each time whether it is still published, which costs no second copy.
    """
    request.cookies.clear()
    shown = (
        __version__,
        request.templates.version,
        published.view,
        published.owner_name,
        published.published_at,
    )
    said = hashlib.sha256(repr(shown).encode()).hexdigest()[:32]
    headers = {"Cache-Control": "public, no-cache", "ETag": f'W/"{said}"', "Vary": "Cookie"}
    if headers["ETag"] in request.http.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    page.headers.update(headers)
    return page


async def forget(request: WebRequest) -> Response:
    public_id = request.path("public_id")
    await request.services.disks.unsave(request.caller, public_id)
    return request.redirect(f"/d/{public_id}", "Removed from your library.")


ROUTES = (
    get("/disks", show),
    get("/disks/{disk_id}/publish", preview),
    post("/disks/{disk_id}/publish", publish),
    post_then("/disks/{disk_id}/unpublish", act("unpublish_disk"), "/disks", "Unpublished."),
    get("/d/{public_id}", show_published, open=True),
    post_then(
        "/d/{public_id}/save",
        lambda request: request.act("save_disk", disk_id=request.path("public_id")),
        "/d/{done.public_id}",
        "Saved to your library.",
    ),
    post("/d/{public_id}/forget", forget),
)
