"""remember, reflect, correct, related; tasks and epics."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from commonplace.errors import Invalid
from commonplace.interfaces.actions.entities import WORK_FIELDS
from commonplace.interfaces.cli.command import Commands, Session
from commonplace.interfaces.cli.generated import answer, run, show
from commonplace.model import Json, Kind
from commonplace.model.workflow import MACHINES, STEPS, TASK
from commonplace.text import front_matter

WORK = ("project", "task", "epic")  # they are added, not remembered
FIELDS_OF_WORK = (*WORK_FIELDS, "depends_on", "epic", "repository_url")
CORRECTIONS = {"wrong": "mark_wrong", "stale": "mark_stale"}

Work = Annotated[Literal["task", "epic"], typer.Option("--type", help="What it is.")]


async def remember(session: Session, given: Json) -> None:
    """Remember a text, or add a project or another entity. The text of a memory is kept verbatim.
    Reports duplicates and contradictions."""
    kind = given.pop("entity_type", "episode")
    if kind in WORK or any(name in given for name in FIELDS_OF_WORK):
        await run(session, "add_entity", {**given, "entity_type": kind, "sync": True})
    else:
        check = given.pop("check_conflicts", True)
        given |= {"kind": kind, "source": {"kind": "command line"}}
        await run(session, "remember", given, sync=True, check_conflicts=check)


async def reflect(session: Session, given: Json) -> None:
    """Extract candidate memories from notes or a transcript. Stores nothing without --persist."""
    if given["content"] != "-":
        file = Path(given["content"])
        given = {"source_title": file.name[:200], **given, "content": _read(file)}
    await run(session, "reflect", given)


def _read(file: Path) -> str:
    return front_matter.decode(file.read_bytes(), str(file))


async def correct(
    session: Session,
    action: Annotated[
        Literal["supersede", "wrong", "stale", "restore"],
        typer.Argument(metavar="ACTION", help="supersede, wrong, stale or restore."),
    ],
    given: Json,
) -> None:
    """Supersede a memory, mark it as wrong or stale, or restore it. Search ranks a superseded
    memory below its replacement, leaves out wrong ones, and shows that one is stale."""
    await run(session, CORRECTIONS.get(action, action), given)


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
    note: Annotated[
        str | None, typer.Option(help="Add this note, which search finds; - reads standard input.")
    ] = None,
) -> None:
    """Update a task or an epic, or add a note to it. Lists replace the current values."""
    which = {"entity_id": given["entity_id"]}
    if len(given) > 1 or note is None:
        item = (await answer(session, "get_entity", which)).value.item
        name = "update_epic" if item.entity_type == "epic" else "update_task"
        found = await answer(session, name, given)
    if note is not None:
        name = "add_note"
        found = await answer(session, name, {**which, "content": note})
    show(session, name, found, given)


async def move(
    session: Session,
    given: Json,
    status: Annotated[
        str,
        typer.Argument(
            metavar="STATUS",
            help="Of tasks: todo, doing, blocked, review, done or archived; of epics: planning, "
            "in_progress, completed or archived.",
        ),
    ],
) -> None:
    """Move a task or an epic to another status. Blocked ones need a --reason."""
    item = (await answer(session, "get_entity", {"entity_id": given["entity_id"]})).value.item
    machine = MACHINES.get(item.entity_type, TASK)
    machine.require(item)
    steps = [
        name
        for name, step in STEPS.items()
        if (step.machine, step.to) == (machine, status)
        and (not step.only_from or machine.state(item) in step.only_from)
    ]
    if steps:
        await run(session, steps[-1], given)  # unblock_task comes after start_task
    else:
        await run(session, f"update_{machine.entity_type}", {**given, "status": status})


COMMANDS: Commands = {
    "remember": remember,
    "reflect": reflect,
    "correct": correct,
    "related": related,
    "task add": add_work,
    "task list": list_work,
    "task update": update_work,
    "task move": move,
}
