"""add, search, get, list."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commonplace.errors import SOURCE_ERRORS, IngestFailed, Invalid
from commonplace.interfaces.cli import output
from commonplace.interfaces.cli.command import Desk, command, item_argument
from commonplace.interfaces.cli.job_queue import waiting, work_off
from commonplace.model import Caller, Folder, Item, ItemFilter, Mode, folder_key

if TYPE_CHECKING:
    from commonplace.core.items.drafts import AddedItem, Draft
    from commonplace.core.services import Services

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


@dataclass(frozen=True, slots=True)
class FileDraft:
    file: Path
    title: str
    in_kb: bool
    tags: tuple[str, ...]


def register(root: typer.Typer) -> None:
    command(root, "add")(add)
    command(root, "search")(search)
    command(root, "get")(get)
    command(root, "list")(list_items)


async def add(
    desk: Desk,
    sources: Sources,
    title: Title = None,
    folder: FolderName = None,
    tag: Tags = None,
    kb: Annotated[bool, typer.Option("--kb/--no-kb", help="Make it searchable.")] = True,
) -> None:
    """Add web pages, files or standard input. Creates the folder if it does not exist."""
    from commonplace.interfaces.actions import items as wire

    if title is not None and len(sources) > 1:
        raise Invalid("--title names one text; give one source with it.")
    if title is not None and len(title) > LONGEST_TITLE:
        raise Invalid(f"The title has {len(title)} characters; it may have {LONGEST_TITLE}.")
    drafts = [_draft(source, title, tuple(tag or ()), kb) for source in sources]
    answers: list[dict[str, Any]] = []
    failed: list[tuple[str, str]] = []
    async with desk.open() as (app, caller):
        target = None if folder is None else await _folder(app, caller, named(folder))
        with output.progress("Adding") as advance:
            for done, (source, draft) in enumerate(zip(sources, drafts, strict=True), 1):
                try:
                    added = await _keep(app, caller, draft, target)
                    answers.append(
                        {
                            **wire.kept(added),
                            "title": added.item.title,
                            "created": added.created,
                            "folder_id": target.id if target else added.folder_id,
                        }
                    )
                except SOURCE_ERRORS as error:
                    failed.append((source, error.message))
                advance(done, len(drafts))
        if await waiting(app) <= 2 * len(
            drafts
        ):  # a longer queue is the workers', and nobody should wait for it here
            spoken = any(answer["status"] == "transcribing" for answer in answers)
            with output.progress(
                "Writing down what is said" if spoken else "Making vectors"
            ) as advance:
                await work_off(app, advance)
            await _bring_up_to_date(app, caller, answers)
    if desk.as_json and answers:
        output.as_json(answers[0] if len(sources) == 1 else answers)
    for answer in () if desk.as_json else answers:
        output.text(
            f"{'Added' if answer['created'] else 'Already there'}: {answer['title']} ({answer['user_item_id']})"
            f"{', being written down' if answer['status'] == 'transcribing' else ''}"
        )
    if failed:
        raise IngestFailed(
            "\n".join(
                reason if len(sources) == 1 else f"{source}: {reason}" for source, reason in failed
            )
        )


async def _keep(
    app: "Services", caller: Caller, draft: "Draft | FileDraft", target: Folder | None
) -> "AddedItem":
    if isinstance(draft, FileDraft):
        added = await app.uploads.add_file(
            caller, draft.file, title=draft.title, in_kb=draft.in_kb, tags=draft.tags
        )
    else:
        added = await app.library.add(caller, draft)
    if target is not None and target.id not in added.item.folders and caller.single_folder is None:
        await app.folders.file(caller, added.item.id, [target.id])
    return added


async def _bring_up_to_date(app: "Services", caller: Caller, answers: list[dict[str, Any]]) -> None:
    """What was to be written down may be by now."""
    for answer in answers:
        if answer["status"] == "transcribing":
            reading = await app.library.read(caller, answer["user_item_id"])
            if reading.transcription is None:
                answer["status"] = "ready"
            elif reading.transcription.error:
                output.note(f"{answer['title']}: {reading.transcription.error}")


async def search(
    desk: Desk,
    query: Annotated[str, typer.Argument(help="What to search for.", show_default=False)],
    mode: Annotated[
        Mode, typer.Option(help="Search by meaning, by keywords, or both.")
    ] = Mode.HYBRID,
    limit: Annotated[int, typer.Option(min=1, max=20, help="Maximum number of passages.")] = 8,
) -> None:
    """Search passages."""
    from commonplace.interfaces.actions import items as wire

    if not query.strip():
        raise Invalid("Say what to look for.")
    async with desk.open() as (app, caller):
        found = await app.search.search(caller, query, limit=limit, mode=mode)
    if desk.as_json:
        output.as_json(
            {
                "query": found.query,
                "mode": found.mode,
                "hits": wire.hits(found.hits),
                "degraded": found.degraded,
            }
        )
        return
    for hit in found.hits:
        passage = hit.passage
        above = [
            heading
            for heading in passage.heading.split(" > ")
            if heading and heading != passage.title
        ]
        output.text(f"{hit.rank}. ({hit.score:.2f}) {' > '.join([passage.title, *above])}")
        output.text(f"   {_short(passage.text)}")
        output.text(f"   {passage.url or passage.item_id} #{passage.position} · {passage.origin}")
    if not found.hits:
        output.text("Nothing found.")
    if found.degraded:
        output.note(found.degraded)


async def get(desk: Desk, item_id: Annotated[str, item_argument()]) -> None:
    """Show an item in full."""
    from commonplace.interfaces.actions import items as wire

    async with desk.open() as (app, caller):
        reading = await app.library.read(caller, item_id)
    if desk.as_json:
        output.as_json(wire.item_in_full(reading))
        return
    item = reading.item
    facts = [
        item.entity_id,
        item.url,
        f"{item.created_at.astimezone():%Y-%m-%d %H:%M}",
        ", ".join(folder.name for folder in reading.folders),
        " ".join(f"#{tag}" for tag in item.tags),
        "" if item.in_kb else "not in the KB",
        _state(item),
    ]
    output.text(item.title)
    output.text(" · ".join(fact for fact in facts if fact))
    output.text()
    output.text(reading.text)


async def list_items(
    desk: Desk,
    folder: FolderName = None,
    text: Annotated[
        str | None, typer.Option("--query", help="Words in the title, tags or URL.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number.")] = 20,
    page: Annotated[int, typer.Option(min=1, help="Page number.")] = 1,
) -> None:
    """List items, newest first."""
    from commonplace.interfaces.actions import items as wire

    async with desk.open() as (app, caller):
        within = (await find_folder(app, caller, folder)).id if folder else None
        items, total = await app.library.page(
            caller, ItemFilter(folder_id=within, text=text), limit=limit, offset=limit * (page - 1)
        )
    if desk.as_json:
        output.as_json(
            {
                "items": [wire.item(item) for item in items],
                "total": total,
                "page": page,
                "per_page": limit,
            }
        )
        return
    output.table(
        ["id", "created", "title", "tags", "status"],
        [(item.public_id, item.created_at, item.title, item.tags, _state(item)) for item in items],
    )
    if total > limit * page:
        output.note(f"{len(items)} of {total}; --page {page + 1} shows more.")


def _state(item: Item) -> str:
    """Empty for what is ready."""
    return (
        ""
        if item.state == "ready"
        else f"{item.state}: {item.status_reason}"
        if item.status_reason
        else item.state
    )


async def find_folder(app: "Services", caller: Caller, name: str) -> Folder:
    found = await _known_folder(app, caller, name)
    if found is None:
        raise Invalid(f"There is no folder {name!r}; `commonplace folder list` shows them.")
    return found


async def _folder(app: "Services", caller: Caller, name: str) -> Folder:
    return await _known_folder(app, caller, name) or await app.folders.create(caller, name)


async def _known_folder(app: "Services", caller: Caller, name: str) -> Folder | None:
    key = folder_key(name)
    return next(
        (
            folder
            for folder in await app.folders.list_folders(caller)
            if name == folder.id or key == folder_key(folder.name)
        ),
        None,
    )


def named(name: str) -> str:
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
                f"There is no file {source!r}. A text is added by standard input: commonplace add - --title TITLE"
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


def _short(text: str, limit: int = 200) -> str:
    line = " ".join(text.lstrip("# ").split())
    return line if len(line) <= limit else line[:limit].rsplit(" ", 1)[0] + " …"
