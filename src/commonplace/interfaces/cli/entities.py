"""graph add, get, list, search: entities at the command line."""

import sys
from typing import Annotated, Any

import typer

from commonplace.errors import Invalid
from commonplace.interfaces.cli import output
from commonplace.interfaces.cli.command import Desk, asked, command, item_argument
from commonplace.model import ItemFilter

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


def register(group: typer.Typer) -> None:
    command(group, "add")(add)
    command(group, "get")(get)
    command(group, "list")(list_entities)
    command(group, "search")(search)


async def add(
    desk: Desk,
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
            help="Id of a related entity, or supersedes:ID, contradicts:ID, requires:ID, supports:ID.",
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
    """Add an entity: an episode, a decision, a project, a task ... Reports duplicates and contradictions."""
    from commonplace.core.entities.validation import NewEntity
    from commonplace.interfaces.actions import entities as wire_graph

    text = sys.stdin.read() if content == "-" else content
    new = NewEntity(
        title,
        text,
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
    async with desk.open() as (app, caller):
        added = await app.entities.add(caller, new, sync=True, check_conflicts=check)
    if desk.as_json:
        output.as_json(wire_graph.added(added))
        return
    output.text(f"{added.message} ({added.item.entity_id})")
    for found in added.conflicts:
        output.note(
            f"{found.kind.replace('_', ' ')} ({found.score:.2f}): {found.name} ({found.entity_id}); {found.reason}"
        )


async def get(desk: Desk, entity_id: EntityId) -> None:
    """Show an entity in full."""
    from commonplace.interfaces.actions import entities as wire_graph

    async with desk.open() as (app, caller):
        entity = await app.entities.get(caller, entity_id)
        shown = wire_graph.entity_in_full(entity, app.settings)
    if desk.as_json:
        output.as_json(shown)
        return
    names: tuple[Any, ...] = (
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
    output.text(f"{shown['title']} ({shown['id']})")
    for name in names:
        if value := shown[name]:  # type: ignore[literal-required]
            output.text(f"{name}: {', '.join(value) if isinstance(value, list) else value}")
    output.text()
    output.text(shown["content"])


async def list_entities(
    desk: Desk,
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
    from commonplace.interfaces.actions import entities as wire_graph

    where = ItemFilter(
        entity_types=_known(types),
        statuses=tuple(status or ()),
        tag=tag,
        since=parse_since(since) if since else None,
    )
    async with desk.open() as (app, caller):
        entities, total = await app.entities.page(
            caller, where, project=project, limit=limit, offset=limit * (page - 1)
        )
        shown = [wire_graph.entity(entity, app.settings) for entity in entities]
    if desk.as_json:
        output.as_json(
            {
                "entities": shown,
                "total": total,
                "page": page,
                "per_page": limit,
                "has_more": page * limit < total,
            }
        )
        return
    output.table(
        ["id", "status", "title", "tags"],
        [(one["id"], one["status"], one["title"], one["tags"]) for one in shown],
    )
    if total > limit * page:
        output.note(f"{len(shown)} of {total}; --page {page + 1} shows more.")


async def search(
    desk: Desk,
    query: Annotated[str, typer.Argument(help="What to search for.", show_default=False)],
    types: Types = None,
    project: Annotated[str | None, typer.Option(help="Only entities of this project.")] = None,
    status: Annotated[str | None, typer.Option(help="Only with this status.")] = None,
    since: Annotated[str | None, typer.Option(help="ISO date, or 7d, 2w.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=50, help="Maximum number.")] = 10,
) -> None:
    """Search entities and documents; each result appears once."""
    from commonplace.interfaces.actions import entities as wire_graph

    if not query.strip():
        raise Invalid("Say what to look for.")
    wanted = asked(
        wire_graph.SearchInput,
        query=query,
        types=list(_known(types)) or None,
        project=project,
        status=status,
        since=since,
        limit=limit,
        content_max_chars=200,
    )
    async with desk.open() as (app, caller):
        hits, degraded = await app.entity_search.search(caller, wanted.asked())
        answer = wire_graph.results(wanted, hits, degraded, app.settings)
    if desk.as_json:
        output.as_json(answer)
        return
    for rank, result in enumerate(answer["results"], 1):
        output.text(f"{rank}. ({result['score']:.2f}) {result['title']} ({result['id']})")
        output.text(f"   {' '.join((result['content'] or '').split())}")
    if not answer["results"]:
        output.text("Nothing found.")
    if degraded:
        output.note(degraded)


def _known(types: list[str] | None) -> tuple[str, ...]:
    from commonplace.model import EntityType

    for name in types or ():
        if name not in set(EntityType):
            raise Invalid(f"Unknown type {name!r}; it is one of: {', '.join(EntityType)}")
    return tuple(types or ())
