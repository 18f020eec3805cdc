"""graph explore, link, unlink; and the group that entities.py adds to."""

from typing import TYPE_CHECKING, Annotated

import typer

from commonplace.interfaces.cli import corrections, entities, output
from commonplace.interfaces.cli.command import Desk, asked, command, item_argument
from commonplace.model import EntityType, ExploreMode, Kind

if TYPE_CHECKING:
    from commonplace.interfaces.actions.graph import Explored

One = Annotated[str, item_argument("ENTITY")]
Other = Annotated[
    str, typer.Argument(metavar="OTHER", help="Id, public id or entity id.", show_default=False)
]
How = Annotated[Kind, typer.Option("--type", help="Type of the relation.")]


def register(root: typer.Typer) -> None:
    graph = typer.Typer(
        no_args_is_help=True,
        help="Add, link and explore entities: projects, tasks, decisions, memories.",
    )
    command(graph, "explore")(explore)
    command(graph, "link")(link)
    command(graph, "unlink")(unlink)
    entities.register(graph)
    corrections.register(graph)
    root.add_typer(graph, name="graph")


async def explore(
    desk: Desk,
    entity: Annotated[
        str | None,
        typer.Argument(
            metavar="[ENTITY]",
            help=("Entity to start from; without one, list entities."),
            show_default=False,
        ),
    ] = None,
    mode: Annotated[
        ExploreMode | None,
        typer.Option(help="Default with an entity: related."),
    ] = None,
    types: Annotated[
        list[EntityType] | None, typer.Option("--type", help="Only this type (repeatable).")
    ] = None,
    kinds: Annotated[
        list[Kind] | None,
        typer.Option("--relation", help="Only follow this type (repeatable)."),
    ] = None,
    depth: Annotated[
        int, typer.Option(min=1, max=3, help="Number of hops for --mode traverse.")
    ] = 1,
    project: Annotated[str | None, typer.Option(help="Only entities of this project.")] = None,
    status: Annotated[
        str | None, typer.Option(help="Only with this status, or one of several: `todo,doing`.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Maximum number.")] = 50,
    offset: Annotated[int, typer.Option(min=0, max=1_000_000, help="Number to skip.")] = 0,
) -> None:
    """List entities, or show an entity's relations, surroundings or dependencies."""
    from commonplace.interfaces.actions import exploration
    from commonplace.interfaces.actions.graph import Explore

    wanted = asked(
        Explore,
        mode=mode or ("related" if entity else "list"),
        entity_id=entity,
        types=types or None,
        relationship_types=kinds or None,
        depth=depth,
        project=project,
        status=status,
        limit=limit,
        offset=offset,
    )
    async with desk.open() as (app, caller):
        answer = await exploration.explore(app, caller, wanted)
    output.as_json(answer) if desk.as_json else _show(answer)


def _show(answer: "Explored") -> None:
    if answer["mode"] == "list":
        output.table(
            ["id", "status", "title"],
            [(found["id"], found["status"], found["title"]) for found in answer["entities"]],
        )
    elif answer["mode"] == "dependencies":
        output.table(
            ["", "id", "status", "title"],
            [
                (answer["offset"] + place, found["id"], found["status"], found["title"])
                for place, found in enumerate(answer["entities"], 1)
            ],
        )
    else:
        output.table(
            ["steps", "joined", "id", "status", "title"],
            [
                (
                    found["distance"],
                    f"{'->' if found['direction'] == 'outgoing' else '<-'} {found['relationship']}",
                    found["id"],
                    found["status"],
                    found["title"],
                )
                for found in answer["entities"]
            ],
        )
    for cycle in answer["cycles"]:
        output.note(f"These wait for each other: {' -> '.join(cycle)}")
    if answer["truncated"]:
        output.note("Only the best relations were followed where there were very many.")
    if answer["has_more"]:
        shown = answer["offset"] + len(answer["entities"])
        output.note(f"{shown} of {answer['total']}; --offset {shown} shows more.")


async def link(desk: Desk, one: One, other: Other, kind: How = Kind.RELATED_TO) -> None:
    """Link two entities. Rejects dependencies that would create a cycle."""
    from commonplace.interfaces.actions import graph as wire_explore

    async with desk.open() as (app, caller):
        first, second, relation, new = await app.graph.link(caller, one, kind, other)
    if desk.as_json:
        output.as_json(
            wire_explore.relation(relation, {item.id: item.entity_id for item in (first, second)})
            | {"created": new}
        )
    else:
        output.text(
            f"{first.title} -> {kind} -> {second.title}" + ("" if new else " (it was so already)")
        )


async def unlink(desk: Desk, one: One, other: Other, kind: How = Kind.RELATED_TO) -> None:
    """Remove a relation between two entities."""
    async with desk.open() as (app, caller):
        await app.graph.unlink(caller, one, kind, other)
    output.as_json({"ok": True}) if desk.as_json else output.text("Unlinked.")
