"""The add box: an address, a text or files. All of it is stored at once, and read by jobs."""

import asyncio
import re
import shutil
from dataclasses import replace
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory

from starlette.datastructures import UploadFile
from starlette.responses import JSONResponse, Response

from commonplace.core.items.drafts import Draft, note_draft
from commonplace.errors import SOURCE_ERRORS, Invalid
from commonplace.interfaces.web.jinja import count
from commonplace.interfaces.web.pages.library import row_of
from commonplace.interfaces.web.request import WebRequest, post
from commonplace.model import Item
from commonplace.text import front_matter

_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)
LONGEST_NOTE = 500_000


async def add(request: WebRequest) -> Response:
    """Store the input and answer with its item: a page, or its row in the list for a script."""
    files, text, folder = (
        request.files("file"),
        request.text("text").strip(),
        request.text("folder"),
    )
    if files:
        return await _add_files(request, files, text, folder)
    if request.text("upload"):
        added = await request.services.uploads.submitted_item(
            request.caller, request.text("upload")
        )
    else:
        draft = await _draft(request, text, request.text("title"))
        added = await request.services.queued_items.submit(request.caller, draft, folder or None)
    if not request.wants_page:
        return JSONResponse({"id": added.item.id, "row": await row_of(request, added.item.id)})
    return request.redirect(
        f"/items/{added.item.public_id}",
        "Added." if added.created else "Already in your library.",
    )


async def _add_files(
    request: WebRequest, files: list[UploadFile], text: str, folder: str
) -> Response:
    """Add the files of a form sent without scripts; refused ones are named, the rest is kept."""
    if text:
        raise Invalid("Add files and text separately. Remove one of them and try again.")
    kept, failed = list[Item](), list[str]()
    for file in files:
        name = PurePath((file.filename or "").replace("\\", "/")).name[-200:] or "file"
        try:
            kept.append(await _add_file(request, file, name, folder))
        except SOURCE_ERRORS as error:
            failed.append(f"{name}: {error.message}")
    if failed:
        raise Invalid(" ".join([*failed, f"{count(len(kept), 'file')} added."] if kept else failed))
    if len(kept) == 1:
        return request.redirect(f"/items/{kept[0].public_id}", "Added.")
    return request.redirect("/", f"{count(len(kept), 'file')} added.")


async def _add_file(request: WebRequest, file: UploadFile, name: str, folder: str) -> Item:
    if not file.size:
        raise Invalid("The file is empty.")
    with TemporaryDirectory(prefix="commonplace-") as temporary:
        # What it is called elsewhere may be too long here, or a folder.
        place = Path(temporary) / "file"
        with await asyncio.to_thread(place.open, "wb") as out:
            await asyncio.to_thread(shutil.copyfileobj, file.file, out)
        added = await request.services.uploads.submit_file(
            request.caller, place, name, file.content_type or "application/octet-stream", folder
        )
        return added.item


async def _draft(request: WebRequest, text: str, title: str) -> Draft:
    """Draft the page of a lone address, or a note. Notes of people may be short."""
    if _ADDRESS.fullmatch(text):
        draft: Draft = request.input("add_to_knowledge", kind="url", url=text).draft
        return replace(draft, title=title.strip())
    # In a thread: front matter may be long.
    note = await asyncio.to_thread(front_matter.parse, text, "")
    if not note.text.strip():
        raise Invalid("Write something, or paste a link.")
    if len(text) > LONGEST_NOTE:
        raise Invalid(
            f"The note has {len(text):,} characters; it may have {LONGEST_NOTE:,}. "
            "Add it as a file instead."
        )
    return note_draft(note, title)


async def promise(request: WebRequest) -> Response:
    """Return where to send a file. It is queued when complete, even if the page is closed."""
    body = await request.json()
    if body.get("size") == 0:
        raise Invalid("The file is empty.")
    if not isinstance(body.get("folder", ""), str):
        raise Invalid("`folder` must be the id of a folder.")
    file = request.input(
        "create_upload",
        filename=body.get("name"),
        content_type=body.get("type") or "application/octet-stream",
        size=body.get("size"),
    )
    # Through this server also where files lie in an object store: the page's policy lets it
    # speak to nobody else.
    upload, url = await request.services.uploads.announce(
        request.caller, **dict(file), on_arrival={"folder": body.get("folder", "")}
    )
    return JSONResponse({"upload": upload.id, "url": url})


ROUTES = (post("/add", add), post("/uploads", promise))
