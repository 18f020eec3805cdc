"""Search over passages; each hit leads to its place in the reader."""

from dataclasses import replace
from typing import Any

from starlette.responses import Response

from commonplace.faces.web.doors import get
from commonplace.faces.web.text import snippet
from commonplace.faces.web.visit import Visit
from commonplace.model import Found, Mode

LIMIT = 20


async def show(visit: Visit) -> Response:
    query, mode = visit.query("q").strip()[:2000], visit.query("mode", "hybrid")
    mode = mode if mode in {*Mode} else "hybrid"
    folders = await visit.services.library.folders(visit.caller)
    folder = next((folder for folder in folders if folder.id == visit.query("folder")), None)
    # Narrowing to a folder is what a token of that folder would see: inside the query, as all scopes are.
    caller = visit.caller if folder is None else replace(visit.caller, folders=frozenset({folder.id}))
    found = await visit.services.search.search(caller, query, limit=LIMIT, mode=Mode(mode)) if query else None
    shown: dict[str, Any] = {"query": query, "mode": mode, "folder": folder, "found": found, "snippets": _snippets(found)}
    if visit.query("part"):
        return visit.part("hits.html", **shown)
    return visit.page("search.html", folders=folders, modes=list(Mode), **shown)


def _snippets(found: Found | None) -> list[str]:
    return [snippet(hit.passage.text, found.query) for hit in found.hits] if found else []


DOORS = (get("/search", show),)
