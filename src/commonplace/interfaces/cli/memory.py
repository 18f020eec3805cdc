"""remember, reflect, context, review."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from commonplace.errors import Invalid
from commonplace.interfaces.cli import output
from commonplace.interfaces.cli.command import Desk, command

Title = Annotated[str, typer.Argument(help="A short title.", show_default=False)]
Text = Annotated[str, typer.Argument(help="The text, or - for standard input.", show_default=False)]
Project = Annotated[str | None, typer.Option(help="Id of the project.")]
Which = Annotated[
    str, typer.Argument(metavar="CANDIDATE", help="The candidate's id.", show_default=False)
]
Kind = Annotated[str | None, typer.Option(help="Kind: decision, claim, procedure ...")]
NewTitle = Annotated[str | None, typer.Option("--title", help="New title.")]
NewContent = Annotated[
    str | None, typer.Option("--content", help="New text, or - for standard input.")
]


def register(root: typer.Typer) -> None:
    command(root, "remember")(remember)
    command(root, "reflect")(reflect)
    command(root, "context")(context)
    review = typer.Typer(no_args_is_help=True, help="Review candidate memories.")
    command(review, "list")(review_list)
    command(review, "show")(review_show)
    command(review, "edit")(review_edit)
    command(review, "accept")(review_accept)
    command(review, "reject")(review_reject)
    root.add_typer(review, name="review")


async def remember(
    desk: Desk,
    title: Title,
    text: Text = "-",
    kind: Annotated[str, typer.Option(help="Kind: decision, claim, procedure ...")] = "episode",
    project: Project = None,
    category: Annotated[str, typer.Option(help="Category.")] = "",
    tag: Annotated[list[str] | None, typer.Option(help="A tag (repeatable).")] = None,
    related_to: Annotated[
        list[str] | None,
        typer.Option(
            help="Id of a related entity, or supersedes:ID, contradicts:ID, requires:ID, supports:ID."
        ),
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="Idempotency key; the same key creates one memory.")
    ] = None,
) -> None:
    """Remember a text verbatim."""
    from commonplace.core.entities.validation import NewEntity
    from commonplace.core.memory.memories import Memo
    from commonplace.interfaces.actions import memory as wire

    new = NewEntity(
        title,
        _given(text),
        kind,
        category,
        tags=tuple(tag or ()),
        related_to=tuple(related_to or ()),
        project=project,
    )
    async with desk.open() as (app, caller):
        kept = wire.kept(
            await app.memory.remember(caller, Memo(new, key, {"kind": "command line"}), sync=True)
        )
    if desk.as_json:
        output.as_json(kept)
        return
    output.text(f"{kept['message']} ({kept['id']})")
    for other in kept["conflicts"]:
        output.note(
            f"{other['kind']} of {other['id']} ({other['name']}), {other['score']:.2f}: {other['reason']}"
        )


async def reflect(
    desk: Desk,
    source: Annotated[str, typer.Argument(help="A file of notes, or - for standard input.")] = "-",
    title: Annotated[
        str | None, typer.Option(help="Title of the notes; default: the file name.")
    ] = None,
    project: Project = None,
    persist: Annotated[
        bool,
        typer.Option("--persist", help="Store confident new memories, queue the rest for review."),
    ] = False,
    review: Annotated[
        bool, typer.Option("--review", help="With --persist: queue all candidates for review.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=50, help="Maximum number of candidates.")] = 12,
) -> None:
    """Extract candidate memories from notes or a transcript."""
    from commonplace.core.memory.reflection import UNTITLED, Notes
    from commonplace.interfaces.actions import memory as wire

    text = _given("-") if source == "-" else _file(Path(source))
    notes = Notes(
        text,
        title or (UNTITLED if source == "-" else Path(source).name[:200]),
        project,
        limit,
        persist,
        review,
    )
    async with desk.open() as (app, caller):
        found = wire.reflections(notes, await app.reflection.reflect(caller, notes))
    if desk.as_json:
        output.as_json(found)
        return
    for one in found["candidates"]:
        where = one["id"] or one["candidate_id"] or ""
        output.text(
            f"{one['kind']} ({one['confidence']:.2f}, {one['state']}) {one['title']}{f' [{where}]' if where else ''}"
        )
        for other in (*one["duplicates"], *one["contradictions"]):
            output.text(
                f"    {other['kind']} of {other['id']} ({other['name']}): {other['reason']}"
            )
    if not found["candidates"]:
        output.note("Nothing was found that is worth remembering.")


async def context(
    desk: Desk,
    goal: Annotated[str, typer.Argument(help="What you are about to do.", show_default=False)],
    intent: Annotated[
        str,
        typer.Option(
            help="build, plan, debug, decide, research, review, learn, ideate or general."
        ),
    ] = "build",
    project: Project = None,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Maximum number of lines.")] = 24,
    token_budget: Annotated[
        int, typer.Option(min=200, max=32_000, help="Maximum number of tokens.")
    ] = 4_000,
) -> None:
    """Gather context for a goal, as Markdown for an agent."""
    from commonplace.core.memory.context import INTENTS, Goal
    from commonplace.interfaces.actions import memory as wire

    chosen = next((known for known in INTENTS if known == intent), None)
    if chosen is None:
        raise Invalid(f"--intent must be one of {', '.join(INTENTS)}, not {intent!r}.")
    if not goal.strip():
        raise Invalid("Say what the goal is.")
    async with desk.open() as (app, caller):
        pack = await app.context.pack(caller, Goal(goal, chosen, project, limit, token_budget))
    output.as_json(
        {**wire.context_pack(pack), "markdown": pack.markdown()}
    ) if desk.as_json else output.text(pack.markdown())
    if pack.degraded and not desk.as_json:
        output.note(pack.degraded)


async def review_list(
    desk: Desk,
    state: Annotated[str, typer.Option(help="pending, accepted, rejected or all.")] = "pending",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number.")] = 50,
) -> None:
    """List candidate memories."""
    from commonplace.interfaces.actions import memory as wire

    if state not in ("pending", "accepted", "rejected", "all"):
        raise Invalid(f"--state must be pending, accepted, rejected or all, not {state!r}.")
    async with desk.open() as (app, caller):
        found, total = await app.reflection.candidates(
            caller, None if state == "all" else state, limit=limit
        )
    if desk.as_json:
        output.as_json({"candidates": [wire.candidate(one) for one in found], "total": total})
        return
    output.table(
        ["id", "state", "kind", "sure", "title"],
        [
            (
                one.id,
                one.state.value,
                one.proposal.kind,
                f"{one.proposal.confidence:.2f}",
                one.proposal.title,
            )
            for one in found
        ],
    )


async def review_show(desk: Desk, which: Which) -> None:
    """Show a candidate with its source sentences, duplicates and contradictions."""
    from commonplace.interfaces.actions import memory as wire

    async with desk.open() as (app, caller):
        found = await app.reflection.candidate(caller, which)
    assert found.queued is not None
    if desk.as_json:
        output.as_json(
            {
                **wire.candidate(found.queued),
                "duplicates": wire.like_it(found.duplicates),
                "contradictions": wire.like_it(found.contradictions),
            }
        )
        return
    said = found.proposal
    output.text(
        f"{said.kind}: {said.title} ({said.confidence:.2f}: {said.reason})\n\n{said.content}\n"
    )
    for quote in said.quotes:
        output.text(f"> {' '.join(quote.text.split())}")
    for other in (*found.duplicates, *found.contradictions):
        output.text(f"{other.kind} of {other.entity_id} ({other.name}): {other.reason}")


async def review_edit(
    desk: Desk,
    which: Which,
    title: NewTitle = None,
    content: NewContent = None,
    kind: Kind = None,
    project: Project = None,
) -> None:
    """Edit a candidate."""
    from commonplace.interfaces.actions import memory as wire

    async with desk.open() as (app, caller):
        changed = await app.reflection.edit(caller, which, _changes(title, content, kind, project))
    output.as_json(wire.candidate(changed)) if desk.as_json else output.text(
        f"Changed: {changed.proposal.title}"
    )


async def review_accept(
    desk: Desk,
    which: Which,
    title: NewTitle = None,
    content: NewContent = None,
    kind: Kind = None,
    project: Project = None,
) -> None:
    """Accept a candidate as a memory, with optional changes."""
    from commonplace.interfaces.actions import memory as wire

    async with desk.open() as (app, caller):
        candidate, kept = await app.reflection.accept(
            caller, which, _changes(title, content, kind, project)
        )
    if desk.as_json:
        output.as_json({**wire.kept(kept), "candidate": wire.candidate(candidate)})
    else:
        output.text(f"Accepted: {kept.item.title} ({kept.item.entity_id})")


async def review_reject(desk: Desk, which: Which) -> None:
    """Reject a candidate. Its notes stay."""
    from commonplace.interfaces.actions import memory as wire

    async with desk.open() as (app, caller):
        rejected = await app.reflection.reject(caller, which)
    output.as_json(wire.candidate(rejected)) if desk.as_json else output.text(
        f"Rejected: {rejected.proposal.title}"
    )


def _changes(
    title: str | None, content: str | None, kind: str | None, project: str | None
) -> dict[str, Any]:
    given = {
        "title": title,
        "content": None if content is None else _given(content),
        "kind": kind,
        "project": project,
    }
    return {name: value for name, value in given.items() if value is not None}


def _given(text: str) -> str:
    return _decoded(sys.stdin.buffer.read(), "standard input") if text == "-" else text


def _file(path: Path) -> str:
    return _decoded(path.read_bytes(), str(path))


def _decoded(data: bytes, name: str) -> str:
    from commonplace.text import front_matter

    return front_matter.decode(data, name)
