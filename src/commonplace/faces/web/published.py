"""The page of a published disk: for everybody with its address, and to be saved by those who are signed in."""

from starlette.responses import Response

from commonplace.core.masking import masked
from commonplace.errors import NotFound
from commonplace.faces.web.doors import get, post
from commonplace.faces.web.visit import Visit

DESCRIPTION = 300  # characters, as much as previews of links show


async def show(visit: Visit) -> Response:
    public_id = visit.request.path_params["public_id"]
    try:
        published, own = await visit.services.disks.public(public_id, visit.caller if visit.visitor else None)
    except NotFound:
        # The same for what is not there and for what only members may read.
        message = "There is no published disk at this address" + (
            "." if visit.visitor else ", or it is for people with an account here: sign in to see.")
        return visit.page("error.html", 404, title="Not found", message=message)
    view = published.view
    site = visit.services.settings.public_url.rstrip("/") or visit.site.origin
    return visit.page("published.html", disk=published, view=view, own=own, owner=masked(published.owner_name),
                      address=f"{site}/d/{published.public_id}", description=view.summary[:DESCRIPTION])


async def save(visit: Visit) -> Response:
    published = await visit.services.disks.save(visit.caller, visit.request.path_params["public_id"])
    return visit.go(f"/d/{published.public_id}", "Saved to your library.")


async def forget(visit: Visit) -> Response:
    public_id = visit.request.path_params["public_id"]
    await visit.services.disks.unsave(visit.caller, public_id)
    return visit.go(f"/d/{public_id}", "No longer in your library.")


DOORS = (get("/d/{public_id}", show, open=True), post("/d/{public_id}/save", save), post("/d/{public_id}/forget", forget))
