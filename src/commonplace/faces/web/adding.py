"""The add box: an address, a text or files, with word of how far they are."""

import asyncio
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import ValidationError
from starlette.datastructures import UploadFile
from starlette.responses import Response

from commonplace.core.library import Draft
from commonplace.core.telling import Tell, silent
from commonplace.errors import KEEPS_OUT, Invalid
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
    form, files = await visit.form(), await visit.files("file")
    upload, text = form.get("upload", ""), form.get("text", "").strip()
    if files:
        return await _add_files(visit, files, text, form.get("folder", ""))
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


async def _add_files(visit: Visit, files: list[UploadFile], text: str, folder: str) -> Response:
    """As a browser without scripts sends them, all in one form; what cannot be read is named, and the rest is kept."""
    if text:
        raise Invalid("Add the files and the note one after the other: take either of them out of the box.")
    kept: list[Item] = []
    failed: list[str] = []
    for file in files:
        name = PurePath((file.filename or "").replace("\\", "/")).name[-200:] or "file"
        try:
            kept.append(await _add_file(visit, file, name))
        except KEEPS_OUT as error:
            failed.append(f"{name}: {error.message}")
    for item in kept if folder else ():
        await visit.services.library.file(visit.caller, item.id, [folder])
    if failed:
        raise Invalid(" ".join([*failed, f"The other {len(kept)} are in the library."] if kept else failed))
    if len(kept) == 1:
        return visit.go(f"/items/{kept[0].public_id}", "It is in the library.")
    return visit.go("/", f"{len(kept)} files are in the library.")


async def _add_file(visit: Visit, file: UploadFile, name: str) -> Item:
    with TemporaryDirectory(prefix="commonplace-") as folder:
        place = Path(folder) / "file"  # what it is called elsewhere may be too long here, or a folder
        with await asyncio.to_thread(place.open, "wb") as out:
            await asyncio.to_thread(shutil.copyfileobj, file.file, out)
        if not file.size:
            raise Invalid("The file is empty.")
        return (await visit.services.uploads.add_file(visit.caller, place, name=name)).item


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
