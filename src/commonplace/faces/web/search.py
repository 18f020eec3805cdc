"""Search over passages; each hit leads to its place in the reader."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from markupsafe import Markup
from starlette.responses import Response

from commonplace.faces.web.doors import get
from commonplace.faces.web.text import snippet
from commonplace.faces.web.visit import Visit
from commonplace.model import EntityType, Found, ItemFilter, Mode, now

LIMIT = 20
MODES = {Mode.HYBRID: "Both", Mode.SEMANTIC: "Meaning", Mode.KEYWORD: "Words"}
TIMES = {"1": "The last day", "7": "The last week", "31": "The last month", "365": "The last year"}  # in days


async def show(visit: Visit) -> Response:
    query, mode, since = visit.query("q").strip()[:2000], visit.query("mode"), visit.query("since")
    folders = await visit.services.library.folders(visit.caller)
    folder = next((folder for folder in folders if folder.id == visit.query("folder")), None)
    kind = visit.query("type") if visit.query("type") in {*EntityType} else ""
    shown: dict[str, Any] = {"query": query, "mode": mode if mode in {*Mode} else Mode.HYBRID, "folder": folder, "type": kind,
                             "since": since if since in TIMES else "", "found": None, "snippets": []}
    if query:
        where = ItemFilter(entity_types=(kind,) if kind else (),
                           since=now() - timedelta(days=int(since)) if since in TIMES else None)
        # Narrowing to a folder is what a token of that folder would see: inside the query, as all scopes are.
        caller = visit.caller if folder is None else replace(visit.caller, folders=frozenset({folder.id}))
        found = await visit.services.search.search(caller, query, limit=LIMIT, mode=Mode(shown["mode"]), where=where)
        shown |= {"found": found, "snippets": _snippets(found)}
    if visit.query("part"):
        return visit.part("hits.html", **shown)
    return visit.page("search.html", folders=folders, modes=MODES, times=TIMES, **shown)


def _snippets(found: Found) -> list[Markup]:
    return [snippet(hit.passage.text, found.query) for hit in found.hits]


DOORS = (get("/search", show),)
