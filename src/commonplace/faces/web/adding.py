"""The add box: an address, a text or files, with word of how far they are."""

import re
from collections.abc import AsyncIterator
from typing import Any

from pydantic import ValidationError
from starlette.responses import Response

from commonplace.core.library import Draft
from commonplace.core.telling import Tell, silent
from commonplace.errors import Invalid
from commonplace.faces.web.doors import get, post
from commonplace.faces.web.library import row_of
from commonplace.faces.web.progress import events, told, watch
from commonplace.faces.web.visit import Visit
from commonplace.faces.wire import Ingest
from commonplace.model import Item

_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)
TITLE = 120
MOST_WATCHED = 60


async def add(visit: Visit) -> Response:
    form = await visit.form()
    upload, text = form.get("upload", ""), form.get("text", "").strip()
    draft = None if upload else _draft(text, form.get("title", "").strip())

    async def work(tell: Tell) -> Item:
        services, caller = visit.services, visit.caller
        if draft is None:
            await tell(0.5, "Reading the file")
            added = await services.uploads.finish(caller, upload)
        else:
            added = await services.library.add(caller, draft, tell)
        if form.get("folder"):
            await services.library.file(caller, added.item.id, [form["folder"]])
        return added.item

    if "text/event-stream" in visit.request.headers.get("accept", ""):
        return events(_follow(visit, told(work)))
    item = await work(silent)
    return visit.go(f"/items/{item.public_id}", "It is in the library.")


async def _follow(visit: Visit, lines: AsyncIterator[dict[str, Any] | Item]) -> AsyncIterator[dict[str, Any]]:
    async for line in lines:
        if not isinstance(line, Item):
            yield line
            continue
        item = line
        yield {"id": item.id, "added": True, "row": await row_of(visit, item.id)}
        async for state in watch(visit, [item.id], lambda item_id: row_of(visit, item_id)):
            yield state


def _draft(text: str, title: str) -> Draft:
    """One address alone is fetched; everything else is a note, called after its first line."""
    try:
        if _ADDRESS.fullmatch(text):
            return Ingest(kind="url", url=text, title=title or None).draft()
        first = text.splitlines()[0].strip("# ") if text else ""
        return Ingest(kind="text", text=text, title=title or first[:TITLE]).draft()
    except ValidationError as error:
        raise Invalid(_said(error)) from None


def _said(error: ValidationError) -> str:
    detail = error.errors()[0]
    match detail["type"]:
        case "string_too_short":
            return "Write a little more: a note has 20 characters or more."
        case "string_too_long":
            return "That is too long: a note has up to 500,000 characters. Put it into a file, and drop the file here."
    return f"That cannot be kept: {detail['msg'].removeprefix('Value error, ')}."


async def promise(visit: Visit) -> Response:
    """Where the bytes of a file are to be sent; `add` with the upload's id is the end of it."""
    body = await visit.json()
    name, kind, size = body.get("name"), body.get("type") or "application/octet-stream", body.get("size")
    if not isinstance(name, str) or not 0 < len(name) <= 200 or not isinstance(kind, str) or not isinstance(size, int):
        raise Invalid("A file needs a name of up to 200 characters, a type and a size.")
    if size == 0:
        raise Invalid("The file is empty.")
    # Through this server also where files lie in an object store: the page's policy lets it speak to nobody else.
    upload, url = await visit.services.uploads.promise(visit.caller, name, kind, size, here=True)
    return visit.json_answer({"upload": upload.id, "url": url})


async def live(visit: Visit) -> Response:
    wanted = visit.request.query_params.getlist("item")[:MOST_WATCHED]
    return events(watch(visit, wanted, lambda item_id: row_of(visit, item_id)))


DOORS = (post("/add", add), post("/uploads", promise), get("/live", live))
