"""edit: the text of an item in an editor, or from standard input."""

import asyncio
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Literal

import typer

from commonplace.core.items.text_editor import ROUTES
from commonplace.errors import CommonplaceError, Conflict, Invalid
from commonplace.interfaces.actions.items import ITEM
from commonplace.interfaces.actions.shapes import Call
from commonplace.interfaces.cli.command import Commands, Session
from commonplace.interfaces.cli.generated import run
from commonplace.interfaces.cli.items import LONGEST_TEXT
from commonplace.interfaces.cli.job_queue import run_jobs
from commonplace.model import EntityType, Json
from commonplace.model.workflow import with_article
from commonplace.text import front_matter

FALLBACK = "vi"
CORRECTIONS = {
    "superseded": "supersede",
    "wrong": "mark_wrong",
    "stale": "mark_stale",
    "valid": "restore",
}
Mark = Literal["superseded", "wrong", "stale", "valid"]


async def edit(
    session: Session,
    entity_id: Annotated[
        str, typer.Argument(metavar="ITEM", help="An item's id.", show_default=False)
    ],
    given: Json,
    mark: Annotated[
        Mark | None,
        typer.Option(help="Correct a memory instead: superseded, wrong, stale, or valid again."),
    ] = None,
) -> None:
    """Edit the text of an item, or mark a memory as superseded, wrong or stale. Opens $EDITOR, or
    takes the new text from standard input. The old text becomes a version, which `history` lists
    and restores. Search ranks a superseded memory below its replacement, leaves out wrong ones,
    and shows that one is stale."""
    if mark is not None:
        await run(session, CORRECTIONS[mark], {"entity_id": entity_id, **given})
        return
    if given:
        raise Invalid("--by, --content, --title and --reason need --mark.")
    library = session.services.library
    full = await library.read(session.caller, entity_id)
    item = full.item
    if item.entity_type in ROUTES:
        is_work = item.entity_type != EntityType.PROJECT
        how = "commonplace task update" if is_work else ROUTES[EntityType.PROJECT]
        raise Invalid(f"The text of {with_article(item.entity_type)} changes with `{how}`.")
    kept: Path | None = None
    if sys.stdin.isatty():
        kept = await asyncio.to_thread(_write, full.text)
        text = await asyncio.to_thread(_edit, kept)
    else:
        text = front_matter.decode(sys.stdin.buffer.read(), "Standard input")
    if text != full.text:
        try:
            changed = await library.update(
                session.caller, item.id, {"text": _checked(text)}, item.revision
            )
        except Conflict:
            raise Conflict(
                _with_copy("Somebody changed the item meanwhile, and nothing was saved.", kept)
            ) from None
        except CommonplaceError as error:
            raise Invalid(_with_copy(error.message, kept)) from None
        await run_jobs(session.services, "Making vectors")
    if kept:
        kept.unlink()
    shown = changed if text != full.text else item
    said = "Saved" if text != full.text else "Nothing changed"
    session.show(
        ITEM(shown, Call(None, session.settings)), f"{said}: {shown.title} ({shown.public_id})"
    )


def _checked(text: str) -> str:
    if not text.strip():
        raise Invalid("The new text is empty. Delete the item with `commonplace delete` instead.")
    if len(text) > LONGEST_TEXT:
        raise Invalid(f"The text has {len(text):,} characters; it may have {LONGEST_TEXT:,}.")
    return text


def _write(text: str) -> Path:
    file, name = tempfile.mkstemp(prefix="commonplace-", suffix=".md")
    with open(file, "w", encoding="utf-8", newline="") as out:
        out.write(text)
    return Path(name)


def _edit(file: Path) -> str:
    """Open the file in the editor, and return what it holds afterwards."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or FALLBACK
    try:
        status = subprocess.run([*shlex.split(editor), str(file)]).returncode
    except (OSError, ValueError) as error:
        file.unlink()
        raise Invalid(
            f"Cannot start the editor {editor!r} ({error}). Set EDITOR, or send the text by "
            "standard input."
        ) from None
    if status:
        raise Invalid(_with_copy(f"The editor ended with status {status}.", file))
    return front_matter.decode(file.read_bytes(), str(file))


def _with_copy(message: str, kept: Path | None) -> str:
    return f"{message} Your text is in {kept}." if kept else message


COMMANDS: Commands = {"edit": edit}
