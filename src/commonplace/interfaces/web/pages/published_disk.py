"""The page of a published disk: for everybody with its address, and to be saved by those who are signed in."""

import hashlib

from starlette.responses import Response

from commonplace import __version__
from commonplace.errors import NotFound, RateLimited
from commonplace.interfaces.http.gate import nobody
from commonplace.interfaces.web.request import Visit
from commonplace.interfaces.web.route import get, post
from commonplace.model import Published
from commonplace.text.secret_masking import mask_secrets

DESCRIPTION = 300  # characters, as much as previews of links show


async def show(visit: Visit) -> Response:
    public_id = visit.request.path_params["public_id"]
    if visit.visitor is None:
        await _count(visit)
    try:
        published, own = await visit.services.disks.public(
            public_id, visit.caller if visit.visitor else None
        )
    except NotFound:
        # The same for what is not there and for what only members may read.
        message = "There is no published disk at this address" + (
            "." if visit.visitor else ", or it is for people with an account here: sign in to see."
        )
        return visit.page("error.html", 404, title="Not found", message=message)
    view = published.view
    site = visit.services.settings.public_url.rstrip("/") or visit.site.origin
    page = visit.page(
        "published.html",
        disk=published,
        view=view,
        own=own,
        owner=mask_secrets(published.owner_name),
        address=f"{site}/d/{published.public_id}",
        description=view.summary[:DESCRIPTION],
    )
    return page if visit.visitor else _for_everybody(visit, published, page)


async def _count(visit: Visit) -> None:
    """Whoever has no account is counted by their address, as tokens are by their names."""
    wait = await visit.services.access.request(nobody(visit.request.scope))
    if wait is not None:
        raise RateLimited(wait)


def _for_everybody(visit: Visit, published: Published, page: Response) -> Response:
    """The same for all who are not signed in, so it sets no cookie; kept by others only if they ask each time whether it is
    still published, which costs no second copy of it."""
    visit.cookies.clear()
    shown = (
        __version__,
        visit.templates.version,
        published.view,
        published.owner_name,
        published.published_at,
    )
    said = hashlib.sha256(repr(shown).encode()).hexdigest()[:32]
    headers = {"Cache-Control": "public, no-cache", "ETag": f'W/"{said}"', "Vary": "Cookie"}
    if headers["ETag"] in visit.request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    page.headers.update(headers)
    return page


async def save(visit: Visit) -> Response:
    published = await visit.services.disks.save(
        visit.caller, visit.request.path_params["public_id"]
    )
    return visit.go(f"/d/{published.public_id}", "Saved to your library.")


async def forget(visit: Visit) -> Response:
    public_id = visit.request.path_params["public_id"]
    await visit.services.disks.unsave(visit.caller, public_id)
    return visit.go(f"/d/{public_id}", "No longer in your library.")


DOORS = (
    get("/d/{public_id}", show, open=True),
    post("/d/{public_id}/save", save),
    post("/d/{public_id}/forget", forget),
)
