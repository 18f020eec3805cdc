"""graph add, get, list, search: entities at the command line."""

from typing import Annotated, Any

import typer

from commonplace.core.entities.validation import NewEntity
from commonplace.errors import Invalid
from commonplace.interfaces.cli import output
from commonplace.interfaces.cli.command import (
    Command,
    Session,
    item_argument,
    parse_options,
    read_text,
)
from commonplace.model import EntityType, ItemFilter

Title = Annotated[str, typer.Argument(help="Short title.", show_default=False)]
EntityId = Annotated[str, item_argument()]
Type = Annotated[
    str,
    typer.Option(
        "--type",
        help="episode, pattern, procedure, decision, plan, idea, claim, artifact, session, "
        "domain, task, epic or project.",
    ),
]
Types = Annotated[list[str] | None, typer.Option("--type", help="Only this type (repeatable).")]
Many = list[str] | None
FACTS = (
    "status",
    "priority",
    "due_date",
    "project",
    "epic",
    "category",
    "depends_on",
    "assignees",
    "languages",
    "technologies",
    "tags",
)


async def add(
    session: Session,
    title: Title,
    content: Annotated[str, typer.Option(help="The text; - reads standard input.")] = "-",
    entity_type: Type = "episode",
    project: Annotated[
        str | None, typer.Option(help="Id of a project; tasks and epics need one.")
    ] = None,
    epic: Annotated[str | None, typer.Option(help="Id of a task's epic.")] = None,
    category: Annotated[str, typer.Option(help="Domain category.")] = "",
    tag: Annotated[Many, typer.Option("--tag", help="A tag (repeatable).")] = None,
    language: Annotated[Many, typer.Option("--language", help="A programming language.")] = None,
    technology: Annotated[Many, typer.Option("--technology", help="A technology.")] = None,
    assignee: Annotated[Many, typer.Option("--assignee", help="Name of an assignee.")] = None,
    related_to: Annotated[
        Many,
        typer.Option(
            "--related-to",
            help=(
                "Id of a related entity, or supersedes:ID, contradicts:ID, requires:ID, "
                "supports:ID."
            ),
        ),
    ] = None,
    depends_on: Annotated[
        Many, typer.Option("--depends-on", help="Id of a task that must be done first.")
    ] = None,
    priority: Annotated[
        str | None, typer.Option(help="critical, high, medium, low or someday.")
    ] = None,
    due_date: Annotated[str | None, typer.Option("--due", help="ISO date.")] = None,
    repository_url: Annotated[
        str | None, typer.Option("--repository", help="URL of a project's repository.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="Look for duplicates and contradictions.")
    ] = True,
) -> None:
    """Add an entity (episode, decision, project ...). Reports duplicates and contradictions."""
    new = NewEntity(
        title,
        read_text(content),
        entity_type,
        category=category,
        tags=tuple(tag or ()),
        languages=tuple(language or ()),
        technologies=tuple(technology or ()),
        assignees=tuple(assignee or ()),
        related_to=tuple(related_to or ()),
        depends_on=tuple(depends_on or ()),
        project=project,
        epic=epic,
        priority=priority,
        due_date=due_date,
        repository_url=repository_url,
    )
    added = await session.services.entities.add(
        session.caller, new, sync=True, check_conflicts=check
    )
    notes = [
        f"{found.kind.replace('_', ' ')} ({found.score:.2f}): {found.name} "
        f"({found.entity_id}); {found.reason}"
        for found in added.conflicts
    ]
    session.show(added, f"{added.message} ({added.item.entity_id})", *notes)


async def get(session: Session, entity_id: EntityId) -> None:
    """Show an entity in full."""
    from commonplace.interfaces.actions import entities as entity_shapes

    entity = await session.services.entities.get(session.caller, entity_id)
    shown: dict[str, Any] = {**entity_shapes.entity_in_full(entity, session.settings)}
    facts = [
        f"{name}: {', '.join(shown[name]) if isinstance(shown[name], list) else shown[name]}"
        for name in FACTS
        if shown[name]
    ]
    session.show(
        shown, "\n".join([f"{shown['title']} ({shown['id']})", *facts, "", shown["content"]])
    )


async def list_entities(
    session: Session,
    types: Types = None,
    project: Annotated[str | None, typer.Option(help="Only entities of this project.")] = None,
    status: Annotated[Many, typer.Option("--status", help="Only with this status.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only with this tag.")] = None,
    since: Annotated[str | None, typer.Option(help="ISO date, or 7d, 2w.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number.")] = 20,
    page: Annotated[int, typer.Option(min=1, help="Page number.")] = 1,
) -> None:
    """List entities, newest first."""
    from commonplace.core.entities.validation import since as parse_since

    where = ItemFilter(
        entity_types=_check_types(types),
        statuses=tuple(status or ()),
        tag=tag,
        since=parse_since(since) if since else None,
    )
    entities, total = await session.services.entities.page(
        session.caller, where, project=project, limit=limit, offset=limit * (page - 1)
    )
    items = [each.item for each in entities]
    rows = [(item.entity_id, item.status, item.title, item.tags) for item in items]
    session.show(
        {
            "entities": entities,
            "total": total,
            "page": page,
            "per_page": limit,
            "has_more": page * limit < total,
        },
        lambda: output.page(
            ["id", "status", "title", "tags"], rows, total, limit * page, f"--page {page + 1}"
        ),
    )


async def search(
    session: Session,
    query: Annotated[str, typer.Argument(help="What to search for.", show_default=False)],
    types: Types = None,
    project: Annotated[str | None, typer.Option(help="Only entities of this project.")] = None,
    status: Annotated[str | None, typer.Option(help="Only with this status.")] = None,
    since: Annotated[str | None, typer.Option(help="ISO date, or 7d, 2w.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=50, help="Maximum number.")] = 10,
) -> None:
    """Search entities and documents; each result appears once."""
    from commonplace.interfaces.actions import entities as entity_shapes

    if not query.strip():
        raise Invalid("Say what to look for.")
    wanted = parse_options(
        entity_shapes.SearchInput,
        query=query,
        types=list(_check_types(types)) or None,
        project=project,
        status=status,
        since=since,
        limit=limit,
        content_max_chars=200,
    )
    hits, degraded = await session.services.entity_search.search(session.caller, wanted.to_query())
    answer = entity_shapes.entity_results(wanted, hits, degraded, session.settings)
    lines = [
        f"{rank}. ({result['score']:.2f}) {result['title']} ({result['id']})\n"
        f"   {' '.join((result['content'] or '').split())}"
        for rank, result in enumerate(answer["results"], 1)
    ]
    session.show(answer, "\n".join(lines) or "Nothing found.", degraded)


def _check_types(types: list[str] | None) -> tuple[str, ...]:
    for name in types or ():
        if name not in set(EntityType):
            raise Invalid(f"Unknown type {name!r}; it is one of: {', '.join(EntityType)}")
    return tuple(types or ())


COMMANDS: dict[str, Command] = {"add": add, "get": get, "list": list_entities, "search": search}
