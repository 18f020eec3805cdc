"""The add box: an address, a text or files. All of it is stored at once, and read by jobs."""

import asyncio
import re
import shutil
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory

from pydantic import ValidationError
from starlette.datastructures import UploadFile
from starlette.responses import JSONResponse, Response

from commonplace.core.items.drafts import Draft
from commonplace.errors import SOURCE_ERRORS, Invalid
from commonplace.interfaces.actions.items import Ingest
from commonplace.interfaces.web.jinja import count
from commonplace.interfaces.web.live_progress import events, watch
from commonplace.interfaces.web.pages.library import row_of
from commonplace.interfaces.web.request import WebRequest
from commonplace.interfaces.web.route import get, post
from commonplace.model import Item

_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)
TITLE = 120
MOST_WATCHED = 60


async def add(request: WebRequest) -> Response:
    """Store the input and answer with its item: a page, or its row in the list for a script."""
    form, files = request.form, request.files("file")
    upload, text, folder = (
        form.get("upload", ""),
        form.get("text", "").strip(),
        form.get("folder", ""),
    )
    if files:
        return await _add_files(request, files, text, folder)
    if upload:
        added = await request.services.uploads.submitted_item(request.caller, upload)
    else:
        draft = _draft(text, form.get("title", "").strip())
        added = await request.services.queued_items.submit(request.caller, draft, folder or None)
    if not request.wants_page:
        return JSONResponse({"id": added.item.id, "row": await row_of(request, added.item.id)})
    return request.redirect(
        f"/items/{added.item.public_id}",
        "Added." if added.created else "The library already has it.",
    )


async def _add_files(
    request: WebRequest, files: list[UploadFile], text: str, folder: str
) -> Response:
    """Add the files of a form sent without scripts; refused ones are named, the rest is kept."""
    if text:
        raise Invalid(
            "Add the files and the note one after the other: take either of them out of the box."
        )
    kept: list[Item] = []
    failed: list[str] = []
    for file in files:
        name = PurePath((file.filename or "").replace("\\", "/")).name[-200:] or "file"
        try:
            kept.append(await _add_file(request, file, name, folder))
        except SOURCE_ERRORS as error:
            failed.append(f"{name}: {error.message}")
    if failed:
        raise Invalid(
            " ".join([*failed, f"The other {len(kept)} are in the library."] if kept else failed)
        )
    if len(kept) == 1:
        return request.redirect(f"/items/{kept[0].public_id}", "Added.")
    return request.redirect("/", f"{count(len(kept), 'file')} added.")


async def _add_file(request: WebRequest, file: UploadFile, name: str, folder: str) -> Item:
    if not file.size:
        raise Invalid("The file is empty.")
    with TemporaryDirectory(prefix="commonplace-") as temporary:
        place = (
            Path(temporary) / "file"
        )  # what it is called elsewhere may be too long here, or a folder
        with await asyncio.to_thread(place.open, "wb") as out:
            await asyncio.to_thread(shutil.copyfileobj, file.file, out)
        added = await request.services.uploads.submit_file(
            request.caller, place, name, file.content_type or "application/octet-stream", folder
        )
        return added.item


def _draft(text: str, title: str) -> Draft:
    """Fetch a lone address; keep everything else as a note with its first line as title."""
    try:
        if _ADDRESS.fullmatch(text):
            return Ingest(kind="url", url=text, title=title or None).draft
        first = text.splitlines()[0].strip("# ") if text else ""
        return Ingest(kind="text", text=text, title=title or first[:TITLE]).draft
    except ValidationError as error:
        raise Invalid(_said(error)) from None


def _said(error: ValidationError) -> str:
    detail = error.errors()[0]
    match detail["type"]:
        case "string_too_short":
            return "Write a little more: a note has 20 characters or more."
        case "string_too_long":
            return (
                "That is too long: a note has up to 500,000 characters. Put it into a file, and "
                "drop the file here."
            )
    return f"That cannot be kept: {detail['msg'].removeprefix('Value error, ')}."


async def promise(request: WebRequest) -> Response:
    """Return where to send a file. It is queued when complete, even if the page is closed."""
    body = await request.json()
    name, kind, size = (
        body.get("name"),
        body.get("type") or "application/octet-stream",
        body.get("size"),
    )
    folder = body.get("folder", "")
    if (
        not isinstance(name, str)
        or not 0 < len(name) <= 200
        or not isinstance(kind, str)
        or not isinstance(size, int)
    ):
        raise Invalid("A file needs a name of up to 200 characters, a type and a size.")
    if not isinstance(folder, str):
        raise Invalid("`folder` must be the id of a folder.")
    if size == 0:
        raise Invalid("The file is empty.")
    # Through this server also where files lie in an object store: the page's policy lets it
    # speak to nobody else.
    upload, url = await request.services.uploads.announce(
        request.caller, name, kind, size, on_arrival={"folder": folder}
    )
    return JSONResponse({"upload": upload.id, "url": url})


async def live(request: WebRequest) -> Response:
    wanted = request.http.query_params.getlist("item")[:MOST_WATCHED]
    return events(watch(request, wanted, lambda item_id: row_of(request, item_id)))


ROUTES = (post("/add", add), post("/uploads", promise), get("/live", live))
