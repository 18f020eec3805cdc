"""Editing in the reader: a whole text, one passage of it, a box of a task list, notes beside it."""

import asyncio
from dataclasses import dataclass
from typing import Any

from starlette.responses import JSONResponse, Response

from commonplace.core.items.item_parts import part_of
from commonplace.core.items.text_editor import ROUTES as OTHERWISE
from commonplace.core.items.versions import Line, difference
from commonplace.errors import Conflict, ForbiddenScope, Invalid, NotFound
from commonplace.interfaces.web.forms import field
from commonplace.interfaces.web.markdown_html import beginning, box_lines, ticked
from commonplace.interfaces.web.request import WebRequest, act, get, post, post_then, whole_number
from commonplace.model import FullItem, Item, Json

LONG = 200_000  # characters; longer texts are edited by passage
LONGEST = 5_000_000  # of a text whose passages are edited
TRIES = 5


def is_editable(item: Item) -> bool:
    """Whether the text is edited in the reader: tasks, epics and projects have their own pages."""
    return item.state == "ready" and item.entity_type not in OTHERWISE


def by_passage(full: FullItem) -> bool:
    """Whether the text is edited by passage: transcripts, for their times, and long texts."""
    timed = any("seconds" in section.locator for section in full.sections)
    return bool(full.sections) and (timed or len(full.text) > LONG)


@dataclass(frozen=True, slots=True)
class Editing:
    """The part of an item's text that is edited: all of it, or a passage."""

    full: FullItem
    start: int
    end: int
    passage: int | None = None

    @property
    def text(self) -> str:
        return self.full.text[self.start : self.end]

    @property
    def seconds(self) -> float | None:
        found = self.full.sections[self.passage].locator if self.passage is not None else {}
        return found.get("seconds")

    def replaced(self, text: str) -> str:
        """Return the item's whole text with another one for this part."""
        whole, limit = self.full.text, field("update_item", "text")["maxLength"]
        text = text.replace("\n", "\r\n") if "\r\n" in whole else text
        changed = whole[: self.start] + text + whole[self.end :]
        if not changed.strip():
            raise Invalid("The text is empty. Delete the item instead.")
        if len(text) > limit or len(changed) > LONGEST:
            raise Invalid(f"The text has {len(text):,} characters; it may have {limit:,}.")
        return changed


async def _editing(request: WebRequest, before: str | None = None) -> Editing:
    """Return what the address names. `before`: the text of the passage, which may have moved."""
    full = await request.services.library.read(request.caller, request.path("item_id"))
    if not is_editable(full.item):
        raise Invalid("The text of this item cannot be edited here.")
    passage = whole_number(request.query("passage"))
    if passage is None:
        return Editing(full, 0, len(full.text))
    places = part_of(full).sections
    if before is not None and passage < len(places):
        alike = [each for each in places if _unix(full.text[each.start : each.end]) == before]
        at = passage
        places, passage = tuple(sorted(alike, key=lambda each: abs(each.position - at))), 0
    if passage >= len(places):
        raise NotFound("The passage is no longer there. Reload the page.")
    place = places[passage]
    return Editing(full, place.start, place.end, place.position)


async def _page(
    request: WebRequest,
    editing: Editing,
    text: str,
    *,
    lines: tuple[Line, ...] | None = (),
    conflict: bool = False,
) -> Response:
    return request.page(
        "editor.html",
        409 if conflict else 200,
        item=editing.full.item,
        editing=editing,
        text=text,
        preview=await asyncio.to_thread(beginning, text),
        conflict=conflict,
        lines=lines,
    )


async def show(request: WebRequest) -> Response:
    if not request.user.has_full_write:
        raise ForbiddenScope("You can read this item, but not edit it.")
    editing = await _editing(request)
    return await _page(request, editing, editing.text)


async def save(request: WebRequest) -> Response:
    """Save the text, unless somebody has changed it meanwhile: then show both texts."""
    mine, before = _unix(request.text("text")), _unix(request.text("before"))
    revision = whole_number(request.text("revision")) or 0
    for _ in range(TRIES):
        try:
            editing = await _editing(request, before if request.query("passage") else None)
            changed = editing.replaced(mine)
            if editing.passage is None and not await _is_base(request, editing.full, revision):
                return await _conflict(request, editing, mine)
            return await _saved(request, editing.full, changed)
        except NotFound:
            if not request.query("passage"):
                raise
            return await _conflict(request, await _nearest(request), mine)
        except Conflict:
            continue  # somebody was faster: read it again
    raise Conflict("The text is being changed by somebody else. Try again.")


async def _nearest(request: WebRequest) -> Editing:
    """Return the passage that is now where the edited one was."""
    full = await request.services.library.read(request.caller, request.path("item_id"))
    places = part_of(full).sections
    if not places:
        return Editing(full, 0, len(full.text))
    place = places[min(whole_number(request.query("passage")) or 0, len(places) - 1)]
    return Editing(full, place.start, place.end, place.position)


async def _is_base(request: WebRequest, full: FullItem, revision: int) -> bool:
    """Whether the text is still that of the revision; other fields may have changed."""
    if revision == full.item.revision:
        return True
    before = await request.services.versions.text_at(request.caller, full.item.id, revision)
    return before == full.text


async def _conflict(request: WebRequest, editing: Editing, mine: str) -> Response:
    lines = await asyncio.to_thread(difference, editing.text, mine)
    page = await _page(request, editing, mine, lines=lines, conflict=True)
    if request.wants_page:
        return page
    said = {"error": "conflict", "message": "The text was changed meanwhile."}
    html = bytes(page.body).decode()
    return JSONResponse(said | {"revision": editing.full.item.revision, "html": html}, 409)


async def _saved(
    request: WebRequest, full: FullItem, text: str, said: str = "Text saved."
) -> Response:
    changed = await request.services.library.update(
        request.caller, full.item.id, {"text": text}, full.item.revision
    )
    if request.wants_page:
        return request.redirect(f"/items/{changed.public_id}", said)
    undo = await request.end_step(said)
    return JSONResponse({"revision": changed.revision, "message": said, "undo": undo})


def _unix(text: str) -> str:
    """Undo what browsers do to the line ends of a form."""
    return text.replace("\r\n", "\n")


async def preview(request: WebRequest) -> Response:
    text = (await request.json()).get("text")
    if not isinstance(text, str) or len(text) > LONGEST:
        raise Invalid("`text` must be a text.")
    return JSONResponse({"html": await asyncio.to_thread(beginning, text)})


async def tick(request: WebRequest) -> Response:
    """Tick a box of a task list, or clear it: its line may have no other text than it was shown
    with."""
    body = await request.json()
    number, revision = _whole(body, "box"), _whole(body, "revision")
    for _ in range(TRIES):
        full = (await _editing(request)).full
        if not await _is_same_box(request, full, revision, number):
            raise Conflict("The list was changed meanwhile. Try again.")
        try:
            done = body.get("done") is True
            changed = await asyncio.to_thread(ticked, full.text, number, done)
            return await _saved(request, full, changed, "Box ticked." if done else "Box cleared.")
        except Conflict:
            continue
    raise Conflict("The text is being changed by somebody else. Try again.")


async def _is_same_box(request: WebRequest, full: FullItem, revision: int, number: int) -> bool:
    if revision == full.item.revision:
        return True
    before = await request.services.versions.text_at(request.caller, full.item.id, revision)
    was, now = ([] if each is None else box_lines(each) for each in (before, full.text))
    return was[number : number + 1] == now[number : number + 1]


def _whole(body: Json, name: str) -> int:
    value: Any = body.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
        raise Invalid(f"`{name}` must be a whole number.")
    return value


# -- notes beside the text


async def annotate(request: WebRequest) -> Response:
    item_id = request.path("item_id")
    await request.services.annotations.add(
        request.caller,
        item_id,
        request.text("text"),
        quote=request.text("quote"),
        position=whole_number(request.text("position")),
    )
    return request.redirect(f"/items/{item_id}#notes", "Note saved.")


async def change_note(request: WebRequest) -> Response:
    note = await request.services.annotations.change(
        request.caller, request.path("note_id"), request.text("text")
    )
    return await _beside(request, note, f"n-{note.public_id}", "Note saved.")


async def delete_note(request: WebRequest) -> Response:
    note = await request.services.library.find(request.caller, request.path("note_id"))
    if note is None or note.annotates is None:
        raise NotFound("Note not found")
    await request.services.library.delete(request.caller, note.id)
    return await _beside(request, note, "notes", "Note deleted.")


async def _beside(request: WebRequest, note: Item, place: str, said: str) -> Response:
    """Return to the item that a note is about."""
    item = await request.services.library.find(request.caller, note.annotates or "")
    return request.redirect(f"/items/{item.public_id}#{place}" if item else "/", said)


ROUTES = (
    get("/items/{item_id}/edit", show),
    post("/items/{item_id}/edit", save),
    post("/items/{item_id}/boxes", tick),
    post("/preview", preview),
    post("/items/{item_id}/notes", annotate),
    post("/notes/{note_id}", change_note),
    post("/notes/{note_id}/delete", delete_note),
    post_then(
        "/items/{item_id}/versions/{revision}/restore",
        act("restore_version", "expected_revision"),
        "/items/{done.public_id}",
        "Restored. The text before is an earlier version now.",
    ),
)
