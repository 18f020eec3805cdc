"""The page of one item: text, notes, links, versions, actions."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from markupsafe import Markup
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response

from commonplace.core.entities.annotations import Annotation, beside, quoted
from commonplace.core.items.item_parts import part_of
from commonplace.errors import NotFound
from commonplace.interfaces.http.source_files import kept_image, saved_page, thumbnail
from commonplace.interfaces.web.jinja import web_address
from commonplace.interfaces.web.live import states
from commonplace.interfaces.web.markdown_html import (
    beginning,
    box_lines,
    highest_heading,
    rendered,
    resumed,
    without_title,
)
from commonplace.interfaces.web.pages.editor import by_passage, is_editable
from commonplace.interfaces.web.pages.library import place_in_list
from commonplace.interfaces.web.request import WebRequest, act, get, post, post_then, whole_number
from commonplace.model import NOT_DISKS, FileRole, FullItem, Item, Kind, Neighbour, Section, Upload
from commonplace.model.workflow import notes, searchable
from commonplace.text.snippets import plain_text

LINKS = 30
CONTENTS = 4  # headings that are worth a list of them
PLAYED = ("audio/", "video/")
# A file that somebody uploaded is never shown as a page of ours, whatever it says it is.
ORIGINAL = {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
}
# Browsers show PDF in a viewer of their own, which they do not open within a sandbox.
PDF, SHOWN = (
    b"%PDF-",
    ORIGINAL
    | {"Content-Security-Policy": "default-src 'none'; object-src 'self'; frame-ancestors 'none'"},
)


async def show(request: WebRequest) -> Response:
    services, caller = request.services, request.caller
    reading = await services.library.read(caller, request.path("item_id"))
    item = reading.item
    jobs = await services.overview.unfinished(caller, [item.id])
    original = await services.originals.find(caller, item.id)
    around = (await services.graph.relations(caller, item.id, limit=LINKS)).reached
    annotations = _placed(await services.annotations.of(caller, item.id), reading.sections)
    images = {
        file.url: f"/items/{item.public_id}/images/{file.id}"
        for file in await services.files.images(caller, item.id)
    }
    passages = {section.position for section in reading.sections}
    return request.page(
        "item.html",
        reading=reading,
        item=item,
        place=await place_in_list(request, item),
        # In a thread: a book takes seconds, and others are waiting.
        sections=await asyncio.to_thread(_passages, reading, images),
        whole=None
        if reading.sections
        else await asyncio.to_thread(beginning, reading.text, item.title, images=images),
        editable=is_editable(item),
        by_passage=by_passage(reading),
        boxes=await asyncio.to_thread(lambda: len(box_lines(reading.text))),
        starts={each.position: each.start for each in part_of(reading).sections},
        state=states({item.id: item}, jobs)[item.id],
        outline=_outline(reading),
        failed=[job for job in jobs if job.state == "failed"],
        original=original,
        saved=await services.files.find(caller, item.id, FileRole.PAGE),
        plays=_plays(original),
        pages=_pages(original, item),
        pictures=_picture_count(original, reading),
        shown=request.number("page", 1),
        annotations=annotations,
        beside={
            position: found
            for position, found in beside(annotations).items()
            if position in passages
        },
        versions=await services.versions.of(caller, item.id),
        links=[
            link
            for link in around
            if not (link.kind == Kind.ANNOTATES and link.direction == "incoming")
        ],
        about=_about(item, around),
        related=await _related(request, item, {reached.item.public_id for reached in around}),
        notes=notes(item),
    )


def _passages(reading: FullItem, images: Mapping[str, str]) -> list[tuple[Section, Markup]]:
    """Return each passage with its text. Notes of tasks are searched with the text, but shown below
    it."""
    noted = searchable(reading.item, "").strip()
    highest = highest_heading(without_title(reading.text, reading.item.title))
    said, at = [], 0
    for section in reading.sections:
        found = reading.text.find(section.text, at)
        lead = reading.text[reading.text.rfind("\n", 0, found) + 1 : found] if found > 0 else ""
        at = max(at, found)
        said.append(
            (lead if lead.isspace() else "")
            + (section.text.removesuffix(noted) if noted else section.text)
        )
    return [
        (
            section,
            rendered(text, highest, images)
            if section.position
            else beginning(text, reading.item.title, highest, images),
        )
        for section, text in zip(reading.sections, resumed(said), strict=True)
        if text.strip()
    ]


def _placed(notes: Sequence[Annotation], sections: Sequence[Section]) -> list[Annotation]:
    """Return notes with the passages where the quoted words are now: an edit may have moved
    them."""
    plain: dict[int, str] = {}

    def has(section: Section, quote: str) -> bool:
        if section.position not in plain:
            plain[section.position] = plain_text(section.text)
        return quote in plain[section.position]

    placed = list[Annotation]()
    for note in notes:
        quote, at = plain_text(note.quote), note.position
        known = at is not None and at < len(sections)
        if quote and not (known and has(sections[at or 0], quote)):
            found = next((each.position for each in sections if has(each, quote)), at)
            note = replace(note, position=found)
        placed.append(note)
    return placed


def _outline(reading: FullItem) -> list[tuple[int, str, int]]:
    """Return (passage, heading, depth) where each heading starts; nothing for short texts."""
    found, before = list[tuple[int, str, int]](), list[str]()
    for section in reading.sections:
        path = [
            part for part in section.heading.split(" > ") if part and part != reading.item.title
        ]
        for depth, name in enumerate(path):
            if path[: depth + 1] != before[: depth + 1]:
                found.append((section.position, name, min(depth, 3)))
        before = path
    return found if len(found) >= CONTENTS else []


def _plays(original: Upload | None) -> str:
    kind = original.content_type if original else ""
    return kind.partition("/")[0] if kind.startswith(PLAYED) else ""


def _pages(original: Upload | None, item: Item) -> str:
    """Return the address whose pages are the PDF's pages."""
    if original and _is_pdf_name(original):
        return f"/items/{item.public_id}/original"
    url = web_address(item.url)
    return (
        url.partition("#")[0]
        if url.lower().partition("#")[0].partition("?")[0].endswith(".pdf")
        else ""
    )


def _picture_count(original: Upload | None, reading: FullItem) -> int:
    """Return how many pages can be shown beside the text; 0: it was read from no PDF."""
    if original is None or not _is_pdf_name(original):
        return 0
    found = (section.locator.get("page") for section in reading.sections)
    return max((page for page in found if isinstance(page, int)), default=0)


def _is_pdf_name(original: Upload) -> bool:
    return original.filename.lower().endswith(".pdf")


def _about(item: Item, around: Sequence[Neighbour]) -> tuple[Item, str, int | None] | None:
    """Return the item that this item annotates, the quoted words and their place."""
    for link in around:
        if link.kind == Kind.ANNOTATES and link.direction == "outgoing":
            return (link.item, *quoted(item))
    return None


async def _related(request: WebRequest, item: Item, linked: set[str]) -> list[tuple[str, str]]:
    """Return similar items that are not linked yet."""
    if item.entity_type in NOT_DISKS:
        return []
    found = (await request.services.disks.get(request.caller, item.id)).related
    return [(one.public_id, one.title) for one in found if one.public_id not in linked]


async def change(request: WebRequest) -> Response:
    wanted = request.input("update_item", "title tags in_kb").changes
    item = await request.services.library.find(request.caller, request.path("item_id"))
    if item is None:
        raise NotFound("Item not found")
    changes = {name: value for name, value in wanted.items() if getattr(item, name) != value}
    if changes:
        await request.services.library.update(request.caller, item.id, changes)
    held, folders = set(item.folders), set(request.form_list("folder"))
    if folders - held:
        await request.services.folders.file(request.caller, item.id, sorted(folders - held))
    for folder_id in held - folders:
        await request.services.folders.unfile(request.caller, item.id, folder_id)
    return request.redirect(f"/items/{item.public_id}", "Saved.")


async def retry(request: WebRequest) -> Response:
    item = await request.act("retry_item")
    return request.redirect(request.referrer or f"/items/{item.public_id}", "Retrying.")


async def original(request: WebRequest) -> Response:
    item = await request.services.library.find(request.caller, request.path("item_id"))
    upload = await request.services.originals.find(request.caller, item.id) if item else None
    if upload is None:
        raise NotFound("The original file was not kept.")
    stack = AsyncExitStack()
    file = await stack.enter_async_context(request.services.originals.open(upload))
    kind = upload.content_type.partition(";")[0].lower()
    is_pdf = await asyncio.to_thread(_is_pdf, file)
    if is_pdf:
        kind = "application/pdf"
    elif not kind.startswith(PLAYED):
        kind = "application/octet-stream"
    return FileResponse(
        file,
        filename=upload.filename,
        media_type=kind,
        headers=SHOWN if is_pdf else ORIGINAL,
        content_disposition_type="inline" if is_pdf else "attachment",
        background=BackgroundTask(stack.aclose),
    )


async def picture(request: WebRequest) -> Response:
    """Return a page of a PDF as a picture. Browsers' own viewers do not open within a sandbox."""
    item = await request.services.library.find(request.caller, request.path("item_id"))
    upload = await request.services.originals.find(request.caller, item.id) if item else None
    page = whole_number(request.path("page"))
    if upload is None or page is None or not _is_pdf_name(upload):
        raise NotFound("The page was not found.")
    headers = ORIGINAL | {"ETag": f'"{upload.id}-{page}"'}
    if headers["ETag"] in request.http.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    drawn = await request.services.originals.draw_page(request.caller, upload, page)
    return Response(drawn, media_type="image/png", headers=headers)


def _is_pdf(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(len(PDF)) == PDF


async def page(request: WebRequest) -> Response:
    return await saved_page(request.services, request.caller, request.path("item_id"))


async def small_picture(request: WebRequest) -> Response:
    return await thumbnail(request.services, request.caller, request.path("item_id"))


async def image(request: WebRequest) -> Response:
    return await kept_image(
        request.services, request.caller, request.path("item_id"), request.path("image_id")
    )


async def version(request: WebRequest) -> Response:
    """Show an earlier version: the changes that followed, or its text."""
    revision = whole_number(request.path("revision")) or 0  # which none has
    found = await request.services.versions.compare(
        request.caller, request.path("item_id"), revision
    )
    as_text = request.query("view") == "text" or found.lines is None
    return request.page(
        "version.html",
        found=found,
        item=found.item,
        version=found.version,
        restorable=is_editable(found.item),
        as_text=as_text,
        text=(
            await asyncio.to_thread(beginning, found.version.text, found.version.title)
            if as_text
            else None
        ),
    )


ROUTES = (
    get("/items/{item_id}", show),
    post("/items/{item_id}", change),
    post_then(
        "/items/{item_id}/refresh",
        act("refresh_item"),
        "/items/{done.public_id}",
        "Refreshed.",
    ),
    post("/items/{item_id}/retry", retry),
    get("/items/{item_id}/original", original),
    get("/items/{item_id}/page", page),
    get("/items/{item_id}/pages/{page}", picture),
    get("/items/{item_id}/thumbnail", small_picture),
    get("/items/{item_id}/images/{image_id}", image),
    get("/items/{item_id}/versions/{revision}", version),
)
