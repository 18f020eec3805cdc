"""remember, reflect, related; tasks and epics."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from commonplace.core.entities.validation import LONGEST_TITLE
from commonplace.errors import Invalid
from commonplace.interfaces.actions.entities import WORK_FIELDS
from commonplace.interfaces.actions.registry import ACTIONS
from commonplace.interfaces.cli.command import Commands, Session
from commonplace.interfaces.cli.generated import answer, run, show
from commonplace.model import Item, Json, Kind
from commonplace.model.workflow import MACHINES, STEPS, TASK
from commonplace.text import front_matter

WORK = ("project", "task", "epic")  # they are added, not remembered
FIELDS_OF_WORK = (*WORK_FIELDS, "depends_on", "epic", "repository_url")

Work = Annotated[Literal["task", "epic"], typer.Option("--type", help="What it is.")]


async def remember(
    session: Session,
    given: Json,
    content: Annotated[
        str | None,
        typer.Argument(
            metavar="[CONTENT]",
            help="The whole text, up to 50,000 characters; - reads standard input. Default: what "
            "is piped in; if nothing is, TITLE is the text, and its first line the title.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Remember a text, or add a project or another entity. A text alone gets its first line as
    title. The text of a memory is kept verbatim. Reports duplicates and contradictions."""
    if content is None or content == "-":
        content = "" if content is None and sys.stdin.isatty() else _read_input()
        if not content.strip():
            content = given["title"]
            given["title"] = _title(content)
    given["content"] = content
    kind = given.pop("entity_type", "episode")
    if kind in WORK or any(name in given for name in FIELDS_OF_WORK):
        await run(session, "add_entity", {**given, "entity_type": kind, "sync": True})
    else:
        check = given.pop("check_conflicts", True)
        given |= {"kind": kind, "source": {"kind": "command line"}}
        await run(session, "remember", given, sync=True, check_conflicts=check)


def _title(text: str) -> str:
    """Return the first line that says something, cut to the length of titles."""
    line = next((line.strip("# ") for line in text.splitlines() if line.strip("# ")), "")
    return line if len(line) <= LONGEST_TITLE else f"{line[: LONGEST_TITLE - 1].rstrip()}…"


async def reflect(session: Session, given: Json) -> None:
    """Extract candidate memories from notes or a transcript. Stores nothing without --persist."""
    if given["content"] != "-":
        file = Path(given["content"])
        given = {"source_title": file.name[:200], **given, "content": _read(file)}
    await run(session, "reflect", given)


def _read_input() -> str:
    return front_matter.decode(sys.stdin.buffer.read(), "Standard input")


def _read(file: Path) -> str:
    return front_matter.decode(file.read_bytes(), str(file))


async def related(
    session: Session,
    entity_id: Annotated[str, typer.Argument(metavar="ENTITY", help="Id, public id or entity id.")],
    given: Json,
    mode: Annotated[
        Literal["related", "traverse", "dependencies"],
        typer.Option(help="Direct links, up to --depth hops, or what a task waits for, in order."),
    ] = "related",
    link: Annotated[str | None, typer.Option(help="Link it to this entity.")] = None,
    unlink: Annotated[str | None, typer.Option(help="Remove its link to this entity.")] = None,
    kind: Annotated[
        Kind, typer.Option("--as", metavar="KIND", help="Its kind, such as DEPENDS_ON.")
    ] = Kind.RELATED_TO,
) -> None:
    """Show what an entity is linked to, or link it. Rejects dependencies that would create a
    cycle."""
    if link is not None and unlink is not None:
        raise Invalid("Use --link or --unlink, not both.")
    other = unlink if link is None else link
    if other is None:
        await run(session, "explore", {"entity_id": entity_id, "mode": mode, **given})
    else:
        relation = {"entity_id": entity_id, "to": other, "type": kind}
        await run(session, "link" if unlink is None else "unlink", {**relation, **given})


async def add_work(
    session: Session,
    given: Json,
    content: Annotated[
        str, typer.Option(help="Description; - reads standard input. Default: the title.")
    ] = "",
    kind: Work = "task",
) -> None:
    """Add a task or an epic."""
    await run(session, f"add_{kind}", {**given, "content": content or given["title"]})


async def list_work(
    session: Session,
    given: Json,
    kind: Work = "task",
    suggest: Annotated[
        bool, typer.Option("--next", help="Suggest what to do next, with reasons.")
    ] = False,
) -> None:
    """List tasks or epics, or suggest what to do next. Newest first."""
    if suggest and "per_page" in given:
        given["limit"] = given.pop("per_page")
    await run(session, "suggest" if suggest else f"list_{kind}s", given)


async def update_work(
    session: Session,
    given: Json,
    status: Annotated[
        str | None,
        typer.Option(
            help="Of tasks: todo, doing, blocked (with a --reason), review, done or archived; of "
            "epics: planning, in_progress, completed or archived.",
        ),
    ] = None,
    note: Annotated[
        str | None, typer.Option(help="Add this note, which search finds; - reads standard input.")
    ] = None,
) -> None:
    """Update a task or an epic, change its status, or add a note. Lists replace the current
    values."""
    which = {"entity_id": given["entity_id"]}
    if status is not None or len(given) > 1 or note is None:
        item = (await answer(session, "get_entity", which)).value.item
        machine = MACHINES.get(item.entity_type, TASK)
        name, step = f"update_{machine.entity_type}", _step(item, status)
        if status is not None:
            machine.require(item)
            # What the step takes goes with it; the rest is changed before.
            own = ACTIONS[step].input.model_fields.keys() if step else set[str]()
            rest = {key: value for key, value in given.items() if key not in own} | which
            if step and len(rest) > 1:
                await answer(session, name, rest)
            given = {key: value for key, value in given.items() if key in own or not step}
            name, given = (step, given) if step else (name, {**given, "status": status})
        found = await answer(session, name, given)
    if note is not None:
        name = "add_note"
        found = await answer(session, name, {**which, "content": note})
    show(session, name, found, given)


def _step(item: Item, status: str | None) -> str:
    """Return the action that leads to the status, which takes more than a change of it does."""
    machine = MACHINES.get(item.entity_type, TASK)
    steps = [
        name
        for name, step in STEPS.items()
        if (step.machine, step.to) == (machine, status)
        and (not step.only_from or machine.state(item) in step.only_from)
    ]
    return steps[-1] if steps else ""  # unblock_task comes after start_task


COMMANDS: Commands = {
    "remember": remember,
    "reflect": reflect,
    "related": related,
    "task add": add_work,
    "task list": list_work,
    "task update": update_work,
}
