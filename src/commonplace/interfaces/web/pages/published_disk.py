"""The public page of a published disk; signed-in people can save it."""

import hashlib

from starlette.responses import Response

from commonplace import __version__
from commonplace.core.people.authorization import whole_seconds
from commonplace.errors import NotFound, RateLimited
from commonplace.interfaces.http.gate import nobody
from commonplace.interfaces.web.request import WebRequest
from commonplace.interfaces.web.route import get, post
from commonplace.model import Published
from commonplace.text.secret_masking import mask_secrets

DESCRIPTION = 300  # characters, as much as previews of links show


async def show(request: WebRequest) -> Response:
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
        message = "There is no published disk at this address" + (
            "."
            if request.visitor
            else ", or it is for people with an account here: sign in to see."
        )
        return request.page("error.html", 404, title="Not found", message=message)
    view = published.view
    page = request.page(
        "published.html",
        disk=published,
        view=view,
        own=own,
        owner=mask_secrets(published.owner_name),
        address=f"{request.base_url}/d/{published.public_id}",
        description=view.summary[:DESCRIPTION],
    )
    return page if request.visitor else _for_everybody(request, published, page)


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


async def save(request: WebRequest) -> Response:
    published = await request.services.disks.save(request.caller, request.path("public_id"))
    return request.redirect(f"/d/{published.public_id}", "Saved to your library.")


async def forget(request: WebRequest) -> Response:
    public_id = request.path("public_id")
    await request.services.disks.unsave(request.caller, public_id)
    return request.redirect(f"/d/{public_id}", "No longer in your library.")


ROUTES = (
    get("/d/{public_id}", show, open=True),
    post("/d/{public_id}/save", save),
    post("/d/{public_id}/forget", forget),
)
