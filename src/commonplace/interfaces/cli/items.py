"""add, search, get, list."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commonplace.errors import SOURCE_ERRORS, IngestFailed, Invalid, TranscriptionFailed
from commonplace.interfaces.cli import output
from commonplace.interfaces.cli.command import Commands, Session, item_argument
from commonplace.interfaces.cli.job_queue import count_unfinished, run_jobs
from commonplace.model import Folder, Hit, Item, ItemFilter, Mode, folder_key

if TYPE_CHECKING:
    from commonplace.core.items.drafts import Draft

LONGEST_TEXT = 500_000
LONGEST_TITLE = 500
LONGEST_NAME = 200
NOTES = (
    ".md",
    ".markdown",
    ".txt",
    "",
)  # read here, with their front matter; other files as uploads are

Sources = Annotated[
    list[str],
    typer.Argument(help="Files, URLs, or - for standard input.", show_default=False),
]
Title = Annotated[
    str | None,
    typer.Option(help="Title; default: from the front matter, the first heading or the file name."),
]
FolderName = Annotated[str | None, typer.Option("--folder", help="Folder, by name or id.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="A tag (repeatable).")]
WhichItem = Annotated[str, item_argument()]


@dataclass(frozen=True, slots=True)
class FileDraft:
    file: Path
    title: str
    in_kb: bool
    tags: tuple[str, ...]


async def add(
    session: Session,
    sources: Sources,
    title: Title = None,
    folder: FolderName = None,
    tag: Tags = None,
    kb: Annotated[bool, typer.Option("--kb/--no-kb", help="Make it searchable.")] = True,
) -> None:
    """Add web pages, files or standard input. Creates the folder if it does not exist."""
    if title is not None and len(sources) > 1:
        raise Invalid("--title names one text; give one source with it.")
    if title is not None and len(title) > LONGEST_TITLE:
        raise Invalid(f"The title has {len(title)} characters; it may have {LONGEST_TITLE}.")
    drafts = [_draft(source, title, tuple(tag or ()), kb) for source in sources]
    target = None if folder is None else await _find_or_create(session, check_name(folder))
    answers: list[dict[str, Any]] = []
    failed: list[tuple[str, str]] = []
    with output.progress("Adding") as advance:
        for done, (source, draft) in enumerate(zip(sources, drafts, strict=True), 1):
            try:
                answers.append(await _add_one(session, draft, target))
            except SOURCE_ERRORS as error:
                failed.append((source, error.message))
            advance(done, len(drafts))
    # A longer queue is the workers', and nobody should wait for it here.
    if await count_unfinished(session.services) <= 2 * len(drafts):
        spoken = any(answer["status"] == "transcribing" for answer in answers)
        await run_jobs(session.services, "Transcribing" if spoken else "Making vectors")
        await _update_status(session, answers)
    lines = [
        f"{'Added' if answer['created'] else 'Already there'}: {answer['title']} "
        f"({answer['user_item_id']})"
        f"{', being transcribed' if answer['status'] == 'transcribing' else ''}"
        for answer in answers
    ]
    if answers:
        session.show(answers[0] if len(sources) == 1 else answers, "\n".join(lines))
    if failed:
        raise IngestFailed(
            "\n".join(
                reason if len(sources) == 1 else f"{source}: {reason}" for source, reason in failed
            )
        )


async def _add_one(
    session: Session, draft: "Draft | FileDraft", target: Folder | None
) -> dict[str, Any]:
    from commonplace.interfaces.actions import items as item_shapes

    services, caller = session.services, session.caller
    if isinstance(draft, FileDraft):
        added = await services.uploads.add_file(
            caller, draft.file, title=draft.title, in_kb=draft.in_kb, tags=draft.tags
        )
    else:
        added = await services.library.add(caller, draft)
    if target is not None and target.id not in added.item.folders and caller.single_folder is None:
        await services.folders.file(caller, added.item.id, [target.id])
    return {
        **item_shapes.add_result(added),
        "title": added.item.title,
        "created": added.created,
        "folder_id": target.id if target else added.folder_id,
    }


async def _update_status(session: Session, answers: list[dict[str, Any]]) -> None:
    """Update those whose transcription has finished by now."""
    for answer in answers:
        if answer["status"] == "transcribing":
            job = (
                await session.services.library.read(session.caller, answer["user_item_id"])
            ).transcription
            if job is None:
                answer["status"] = "ready"
            elif job.error:
                output.note(f"{answer['title']}: {job.error}")


async def search(
    session: Session,
    query: Annotated[str, typer.Argument(help="What to search for.", show_default=False)],
    mode: Annotated[
        Mode, typer.Option(help="Search by meaning, by keywords, or both.")
    ] = Mode.HYBRID,
    limit: Annotated[int, typer.Option(min=1, max=20, help="Maximum number of passages.")] = 8,
) -> None:
    """Search passages."""
    if not query.strip():
        raise Invalid("Say what to look for.")
    found = await session.services.search.search(session.caller, query, limit=limit, mode=mode)
    session.show(
        {
            "query": found.query,
            "mode": found.mode,
            "hits": found.hits,
            "degraded": found.degraded,
        },
        "\n".join(map(_hit_lines, found.hits)) or "Nothing found.",
        found.degraded,
    )


def _hit_lines(hit: Hit) -> str:
    passage = hit.passage
    headings = [name for name in passage.heading.split(" > ") if name not in ("", passage.title)]
    return (
        f"{hit.rank}. ({hit.score:.2f}) {' > '.join([passage.title, *headings])}\n"
        f"   {_shorten(passage.text)}\n"
        f"   {passage.url or passage.item_id} #{passage.position} · {passage.origin}"
    )


async def get(session: Session, item_id: WhichItem) -> None:
    """Show an item in full."""
    full = await session.services.library.read(session.caller, item_id)
    item = full.item
    facts = [
        item.entity_id,
        item.url,
        f"{item.created_at.astimezone():%Y-%m-%d %H:%M}",
        ", ".join(folder.name for folder in full.folders),
        " ".join(f"#{tag}" for tag in item.tags),
        "" if item.in_kb else "not in the KB",
        _state(item),
    ]
    session.show(full, f"{item.title}\n{' · '.join(filter(None, facts))}\n\n{full.text}")


async def list_items(
    session: Session,
    folder: FolderName = None,
    text: Annotated[
        str | None, typer.Option("--query", help="Words in the title, tags or URL.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number.")] = 20,
    page: Annotated[int, typer.Option(min=1, help="Page number.")] = 1,
) -> None:
    """List items, newest first."""
    within = (await find_folder(session, folder)).id if folder else None
    items, total = await session.services.library.page(
        session.caller,
        ItemFilter(folder_id=within, text=text),
        limit=limit,
        offset=limit * (page - 1),
    )
    rows = [
        (item.public_id, item.created_at, item.title, item.tags, _state(item)) for item in items
    ]
    session.show(
        {"items": items, "total": total, "page": page, "per_page": limit},
        lambda: output.page(
            ["id", "created", "title", "tags", "status"],
            rows,
            total,
            limit * page,
            f"--page {page + 1}",
        ),
    )


async def retry(session: Session, item_id: WhichItem) -> None:
    """Retry failed work of an item: fetching, transcription, vectors, summary."""
    library, caller = session.services.library, session.caller
    item = await library.retry(caller, item_id)
    await run_jobs(session.services, "Trying again")
    full = await library.read(caller, item.id)
    if full.item.ingest_status is not None:
        raise IngestFailed(full.item.status_reason or "It is still queued; try again later.")
    if full.transcription is not None:
        raise TranscriptionFailed(
            full.transcription.error or "It is not done yet; another process is at it."
        )
    session.show(full.item, f"Done: {full.item.title} ({full.item.id})")


async def refresh(session: Session, item_id: WhichItem) -> None:
    """Fetch an item's page again."""
    item = await session.services.library.refresh(session.caller, item_id)
    await run_jobs(session.services, "Making vectors")
    session.show(item, f"Refreshed: {item.title} ({item.id})")


def _state(item: Item) -> str:
    """Return the state and its reason, or nothing for a ready item."""
    if item.state == "ready":
        return ""
    return f"{item.state}: {item.status_reason}" if item.status_reason else item.state


async def find_folder(session: Session, name: str) -> Folder:
    found = await _known_folder(session, name)
    if found is None:
        raise Invalid(f"There is no folder {name!r}; `commonplace folder list` shows them.")
    return found


async def _find_or_create(session: Session, name: str) -> Folder:
    return await _known_folder(session, name) or await session.services.folders.create(
        session.caller, name
    )


async def _known_folder(session: Session, name: str) -> Folder | None:
    folders, key = await session.services.folders.list_folders(session.caller), folder_key(name)
    return next((each for each in folders if name == each.id or key == folder_key(each.name)), None)


def check_name(name: str) -> str:
    if not name.strip() or len(name.strip()) > LONGEST_NAME:
        raise Invalid(f"A name has 1 to {LONGEST_NAME} characters.")
    return name.strip()


def _draft(
    source: str, title: str | None, tags: tuple[str, ...], in_kb: bool
) -> "Draft | FileDraft":
    from commonplace.core.items.drafts import Draft
    from commonplace.text import front_matter

    if source.lower().startswith(("http://", "https://")):
        return Draft("url", title=title or "", url=source, in_kb=in_kb, tags=tags)
    if source == "-":
        note = front_matter.parse(
            front_matter.decode(sys.stdin.buffer.read(), "Standard input"), ""
        )
    else:
        file = Path(source)
        if not file.is_file():
            raise Invalid(
                f"There is no file {source!r}. A text is added by standard input: commonplace add "
                "- --title TITLE"
            )
        if file.suffix.lower() not in NOTES:
            return FileDraft(file, title or "", in_kb, tags)
        note = front_matter.read(file)
    if not note.text.strip():
        raise Invalid(f"{'Standard input' if source == '-' else source} has no text.")
    if len(note.text) > LONGEST_TEXT:
        raise Invalid(
            f"{source} has {len(note.text):,} characters; a text may have {LONGEST_TEXT:,}."
        )
    title = (title or note.title).strip() or " ".join(note.text.split())[:60]
    return Draft(
        "text",
        title=title[:LONGEST_TITLE],
        text=note.text,
        in_kb=in_kb and note.front.get("in_kb") is not False,
        tags=tuple(dict.fromkeys((*note.tags, *tags))),
    )


def _shorten(text: str, limit: int = 200) -> str:
    line = " ".join(text.lstrip("# ").split())
    return line if len(line) <= limit else line[:limit].rsplit(" ", 1)[0] + " …"


COMMANDS: Commands = {
    "add": add,
    "search": search,
    "get": get,
    "list": list_items,
    "retry": retry,
    "refresh": refresh,
}
