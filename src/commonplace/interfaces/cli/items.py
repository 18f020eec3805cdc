"""add, get, history, refresh, retry; disk publish and save."""

import shlex
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from commonplace.core.items.drafts import AddedItem, Draft, note_draft
from commonplace.core.items.folders import FolderIds
from commonplace.errors import (
    SOURCE_ERRORS,
    IngestFailed,
    Invalid,
    NotFound,
    TranscriptionFailed,
)
from commonplace.interfaces.actions.action import Answer
from commonplace.interfaces.actions.items import ADDED, ITEM
from commonplace.interfaces.actions.shapes import Call
from commonplace.interfaces.cli import output
from commonplace.interfaces.cli.command import Commands, Session
from commonplace.interfaces.cli.generated import answer, find_id, run, show
from commonplace.interfaces.cli.job_queue import count_unfinished, run_jobs
from commonplace.model import Json
from commonplace.text import front_matter

Add = Callable[[], Awaitable[AddedItem]]

LONGEST_TEXT = 500_000
LONGEST_TITLE = 500
LONGEST_NAME = 200
# Read here, with their front matter; other files as uploads are.
NOTES = (".md", ".markdown", ".txt", "")


async def add(
    session: Session,
    sources: Annotated[
        list[str] | None,
        typer.Argument(help="Files, URLs, or - for standard input.", show_default=False),
    ] = None,
    note: Annotated[str | None, typer.Option("--note", "-n", help="A note to add.")] = None,
    title: Annotated[
        str | None,
        typer.Option(
            help="Title; default: from the front matter, the first heading or the file name."
        ),
    ] = None,
    folder: Annotated[str | None, typer.Option(help="Folder, by name or id.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A tag (repeatable).")] = None,
    kb: Annotated[bool, typer.Option("--kb/--no-kb", help="Make it searchable.")] = True,
) -> None:
    """Add web pages, files, standard input or a note. Creates the folder if it does not exist."""
    sources = sources or []
    if note is None and not sources:
        raise Invalid("Name a URL or a file, or write a note: commonplace add -n TEXT")
    if title is not None and len(sources) + (note is not None) > 1:
        raise Invalid("--title names one text; give one source with it.")
    if title is not None and len(title) > LONGEST_TITLE:
        raise Invalid(f"The title has {len(title)} characters; the limit is {LONGEST_TITLE}.")
    drafts = [_draft(session, source, title, tuple(tag or ()), kb) for source in sources]
    if note is not None:
        parsed = front_matter.parse(note, "")
        sources, drafts = (
            [*sources, "The note"],
            [*drafts, _note(session, parsed, "The note", title, tuple(tag or ()), kb)],
        )
    target = None if folder is None else await find_or_create(session, check_name(folder))
    answers: list[Json] = []
    failed: list[str] = []
    with output.progress("Adding") as advance:
        for done, (source, draft) in enumerate(zip(sources, drafts, strict=True), 1):
            try:
                answers.append(await _add_one(session, draft, target))
            except SOURCE_ERRORS as error:
                failed.append(error.message if len(sources) == 1 else f"{source}: {error.message}")
            advance(done, len(drafts))
    # A longer queue is the workers', and nobody should wait for it here.
    if await count_unfinished(session.services) <= 2 * len(drafts):
        spoken = any(added["status"] == "transcribing" for added in answers)
        await run_jobs(session.services, "Transcribing" if spoken else "Making vectors")
        await _update_status(session, answers)
    lines = [
        f"{'Added' if added['created'] else 'Already there'}: {added['title']} "
        f"({added['public_id']})"
        f"{', being transcribed' if added['status'] == 'transcribing' else ''}"
        for added in answers
    ]
    if answers:
        session.show(answers[0] if len(sources) == 1 else answers, "\n".join(lines))
    if failed:
        raise IngestFailed("\n".join(failed))


async def _add_one(session: Session, draft: Add, target: str | None) -> Json:
    added, caller = await draft(), session.caller
    if target is not None and target not in added.item.folders and caller.single_folder is None:
        await session.services.folders.file(caller, added.item.id, [target])
    return {
        **ADDED(added, Call(None, session.settings)),
        "title": added.item.title,
        "public_id": added.item.public_id,
        "created": added.created,
        "folder_id": target or added.folder_id,
    }


async def _update_status(session: Session, answers: list[Json]) -> None:
    """Update those whose transcription has finished by now."""
    for added in answers:
        if added["status"] == "transcribing":
            item_id = added["user_item_id"]
            job = (await session.services.library.read(session.caller, item_id)).transcription
            if job is None:
                added["status"] = "ready"
            elif job.error:
                output.note(f"{added['title']}: {job.error}")


async def find_or_create(session: Session, name: str) -> str:
    try:
        return await find_id(session, "folder_id", name)
    except NotFound:
        return await FolderIds(session.services.folders, session.caller).find(name)


def check_name(name: str) -> str:
    if not name.strip() or len(name.strip()) > LONGEST_NAME:
        raise Invalid(f"A name has 1 to {LONGEST_NAME} characters.")
    return name.strip()


def _draft(
    session: Session, source: str, title: str | None, tags: tuple[str, ...], in_kb: bool
) -> Add:
    """Return what adds the source. Invalid: it cannot be read."""
    add = partial(session.services.library.add, session.caller)
    if source.lower().startswith(("http://", "https://")):
        return partial(add, Draft("url", title=title or "", url=source, in_kb=in_kb, tags=tags))
    if source == "-":
        text = front_matter.decode(sys.stdin.buffer.read(), "Standard input")
        note = front_matter.parse(text, "")
    else:
        file = Path(source)
        if not file.is_file():
            raise Invalid(
                f"There is no file {source!r}. To add it as a note: commonplace add -n "
                f"{shlex.quote(source)}"
            )
        if file.suffix.lower() not in NOTES:
            add_file = partial(session.services.uploads.add_file, session.caller, file)
            return partial(add_file, title=title or "", in_kb=in_kb, tags=tags)
        note = front_matter.read(file)
    name = "Standard input" if source == "-" else source
    return _note(session, note, name, title, tags, in_kb)


def _note(
    session: Session,
    note: front_matter.Note,
    name: str,
    title: str | None,
    tags: tuple[str, ...],
    in_kb: bool,
) -> Add:
    if not note.text.strip():
        raise Invalid(f"{name} has no text.")
    if len(note.text) > LONGEST_TEXT:
        raise Invalid(
            f"{name} has {len(note.text):,} characters; a text may have {LONGEST_TEXT:,}."
        )
    draft = note_draft(note, title or "", tags, in_kb)
    return partial(session.services.library.add, session.caller, draft)


async def get(
    session: Session,
    given: Json,
    preview: Annotated[
        bool, typer.Option("--preview", help="Show it as others would see it, once published.")
    ] = False,
) -> None:
    """Show an item or entity in full. Also shows published disks of others."""
    disk = {"disk_id": given["item_id"]}
    if preview:
        await run(session, "preview_disk", disk)
        return
    try:
        found = await answer(session, "get_item", given)
    except NotFound:
        with suppress(NotFound):
            await run(session, "get_disk", disk)
            return
        raise
    if found.json["entity_type"] == "document":
        show(session, "get_item", found, given)
        return
    entity = await answer(session, "get_entity", {"entity_id": given["item_id"]})
    show(session, "get_entity", Answer(entity.value, found.json | entity.json), given)


async def history(
    session: Session,
    given: Json,
    diff: Annotated[
        bool, typer.Option("--diff", help="Compare the revision with the next one.")
    ] = False,
    restore: Annotated[
        bool, typer.Option("--restore", help="Make its text the item's text again.")
    ] = False,
) -> None:
    """List, show, compare or restore an item's earlier versions. Without REVISION, lists them."""
    if "revision" not in given:
        if diff or restore:
            option = "--restore" if restore else "--diff"
            raise Invalid(f"{option} needs a REVISION; `commonplace history ITEM` lists them.")
        await run(session, "list_versions", given)
    elif restore:
        found = await answer(session, "restore_version", given)
        await run_jobs(session.services, "Making vectors")
        show(session, "restore_version", found, given)
    else:
        await run(session, "compare_version" if diff else "get_version", given)


async def refresh(
    session: Session,
    item_id: Annotated[
        str | None, typer.Argument(help="The item's id; or give --all.", show_default=False)
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="All pages, with a pause between requests to a host.")
    ] = False,
) -> None:
    """Fetch an item's page again. --all fetches those of all items, and archives pages that are
    gone at two runs in a row."""
    if every == (item_id is not None):
        raise Invalid("Name an item, or give --all.")
    if item_id is not None:
        given = {"item_id": item_id}
        found = await answer(session, "refresh_item", given)
        await run_jobs(session.services, "Making vectors")
        show(session, "refresh_item", found, given)
        return
    with output.progress("Fetching pages") as advance:
        done = await session.services.page_updates.refresh_all(session.caller, advance)
    await run_jobs(session.services, "Making vectors")
    counts = ", ".join(f"{count:,} {status}" for status, count in sorted(done.counts.items()))
    session.show(
        {"pages": done.pages, **done.counts, "archived": done.archived},
        f"Fetched the pages of {output.count_items(done.pages)}"
        + (f": {counts}. Archived: {done.archived:,}." if done.pages else "."),
    )


async def retry(session: Session, given: Json) -> None:
    """Retry failed work of an item: fetching, transcription, vectors, summary."""
    await answer(session, "retry_item", given)
    await run_jobs(session.services, "Trying again")
    full = await session.services.library.read(session.caller, given["item_id"])
    item, job = full.item, full.transcription
    if item.ingest_status is not None:
        raise IngestFailed(item.status_reason or "It is still queued; try again later.")
    if job is not None:
        raise TranscriptionFailed(job.error or "It is not done yet; another process is at it.")
    show(session, "retry_item", Answer(item, ITEM(item, Call(None, session.settings))), given)


UNDO = typer.Option("--undo", help="Take it back.")


async def publish(session: Session, given: Json, undo: Annotated[bool, UNDO] = False) -> None:
    """Publish a disk, or unpublish it. Others see a summary and can save it, but never see the
    text. Publish again to change the access or the summary."""
    await run(session, "unpublish_disk" if undo else "publish_disk", given)


async def save(session: Session, given: Json, undo: Annotated[bool, UNDO] = False) -> None:
    """Save another person's disk, or remove it."""
    await run(session, "unsave_disk" if undo else "save_disk", given)


COMMANDS: Commands = {
    "add": add,
    "get": get,
    "history": history,
    "refresh": refresh,
    "retry": retry,
    "disk publish": publish,
    "disk save": save,
}
