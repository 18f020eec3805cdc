"""remember, reflect, context, review."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commonplace.core.entities.validation import NewEntity
from commonplace.errors import Invalid
from commonplace.interfaces.cli import output
from commonplace.interfaces.cli.command import Commands, Group, Session, read_text

if TYPE_CHECKING:
    from commonplace.interfaces.actions.memory import ReflectedCandidate

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


async def remember(
    session: Session,
    title: Title,
    text: Text = "-",
    kind: Annotated[str, typer.Option(help="Kind: decision, claim, procedure ...")] = "episode",
    project: Project = None,
    category: Annotated[str, typer.Option(help="Category.")] = "",
    tag: Annotated[list[str] | None, typer.Option(help="A tag (repeatable).")] = None,
    related_to: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "Id of a related entity, or supersedes:ID, contradicts:ID, requires:ID, "
                "supports:ID."
            )
        ),
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="Idempotency key; the same key creates one memory.")
    ] = None,
) -> None:
    """Remember a text verbatim."""
    from commonplace.core.memory.memories import Memo

    new = NewEntity(
        title,
        read_text(text),
        kind,
        category,
        tags=tuple(tag or ()),
        related_to=tuple(related_to or ()),
        project=project,
    )
    remembered = await session.services.memory.remember(
        session.caller, Memo(new, key, {"kind": "command line"}), sync=True
    )
    notes = [
        f"{other.kind} of {other.entity_id} ({other.name}), {other.score:.2f}: {other.reason}"
        for other in remembered.conflicts
    ]
    session.show(remembered, f"{remembered.message} ({remembered.item.entity_id})", *notes)


async def reflect(
    session: Session,
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
    from commonplace.interfaces.actions import memory as memory_shapes

    notes = Notes(
        read_text("-") if source == "-" else _read_file(Path(source)),
        title or (UNTITLED if source == "-" else Path(source).name[:200]),
        project,
        limit,
        persist,
        review,
    )
    found = memory_shapes.reflect_result(
        notes, await session.services.reflection.reflect(session.caller, notes)
    )
    lines = [line for one in found["candidates"] for line in _candidate_lines(one)]
    if lines or session.as_json:
        session.show(found, "\n".join(lines))
    else:
        output.note("Nothing was found that is worth remembering.")


def _candidate_lines(candidate: "ReflectedCandidate") -> list[str]:
    where = candidate["id"] or candidate["candidate_id"]
    about = f"{candidate['kind']} ({candidate['confidence']:.2f}, {candidate['state']})"
    return [
        f"{about} {candidate['title']}{f' [{where}]' if where else ''}",
        *(
            f"    {other['kind']} of {other['id']} ({other['name']}): {other['reason']}"
            for other in (*candidate["duplicates"], *candidate["contradictions"])
        ),
    ]


async def context(
    session: Session,
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
    from commonplace.core.memory.context import Goal
    from commonplace.model import INTENTS
    from commonplace.interfaces.actions import memory as memory_shapes

    chosen = next((known for known in INTENTS if known == intent), None)
    if chosen is None:
        raise Invalid(f"--intent must be one of {', '.join(INTENTS)}, not {intent!r}.")
    if not goal.strip():
        raise Invalid("Say what the goal is.")
    pack = await session.services.context.pack(
        session.caller, Goal(goal, chosen, project, limit, token_budget)
    )
    markdown = pack.markdown()
    session.show(
        {**memory_shapes.context_pack(pack), "markdown": markdown}, markdown, pack.degraded
    )


async def list_candidates(
    session: Session,
    state: Annotated[str, typer.Option(help="pending, accepted, rejected or all.")] = "pending",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number.")] = 50,
) -> None:
    """List candidate memories."""
    if state not in ("pending", "accepted", "rejected", "all"):
        raise Invalid(f"--state must be pending, accepted, rejected or all, not {state!r}.")
    found, total = await session.services.reflection.candidates(
        session.caller, None if state == "all" else state, limit=limit
    )
    session.show_table(
        {"candidates": found, "total": total},
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


async def show_candidate(session: Session, which: Which) -> None:
    """Show a candidate with its source sentences, duplicates and contradictions."""
    found = await session.services.reflection.candidate(session.caller, which)
    said = found.proposal
    lines = [
        f"{said.kind}: {said.title} ({said.confidence:.2f}: {said.reason})\n\n{said.content}\n",
        *(f"> {' '.join(quote.text.split())}" for quote in said.quotes),
        *(
            f"{other.kind} of {other.entity_id} ({other.name}): {other.reason}"
            for other in (*found.duplicates, *found.contradictions)
        ),
    ]
    session.show(found, "\n".join(lines))


async def edit_candidate(
    session: Session,
    which: Which,
    title: NewTitle = None,
    content: NewContent = None,
    kind: Kind = None,
    project: Project = None,
) -> None:
    """Edit a candidate."""
    candidate = await session.services.reflection.edit(
        session.caller, which, _changes(title, content, kind, project)
    )
    session.show(candidate, f"Changed: {candidate.proposal.title}")


async def accept_candidate(
    session: Session,
    which: Which,
    title: NewTitle = None,
    content: NewContent = None,
    kind: Kind = None,
    project: Project = None,
) -> None:
    """Accept a candidate as a memory, with optional changes."""
    from commonplace.interfaces.actions import memory as memory_shapes

    candidate, remembered = await session.services.reflection.accept(
        session.caller, which, _changes(title, content, kind, project)
    )
    item = remembered.item
    session.show(
        {**memory_shapes.remember_result(remembered), "candidate": candidate},
        f"Accepted: {item.title} ({item.entity_id})",
    )


async def reject_candidate(session: Session, which: Which) -> None:
    """Reject a candidate. Its notes stay."""
    candidate = await session.services.reflection.reject(session.caller, which)
    session.show(candidate, f"Rejected: {candidate.proposal.title}")


def _changes(
    title: str | None, content: str | None, kind: str | None, project: str | None
) -> dict[str, Any]:
    given = {
        "title": title,
        "content": None if content is None else read_text(content),
        "kind": kind,
        "project": project,
    }
    return {name: value for name, value in given.items() if value is not None}


def _read_file(path: Path) -> str:
    from commonplace.text import front_matter

    return front_matter.decode(path.read_bytes(), str(path))


COMMANDS: Commands = {"remember": remember, "reflect": reflect, "context": context}
REVIEW: Group = (
    "review",
    "Review candidate memories.",
    {
        "list": list_candidates,
        "show": show_candidate,
        "edit": edit_candidate,
        "accept": accept_candidate,
        "reject": reject_candidate,
    },
)
