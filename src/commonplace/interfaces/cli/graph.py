"""graph explore, link, unlink; and the group that entities.py adds to."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from commonplace.interfaces.cli import corrections, entities, output
from commonplace.interfaces.cli.command import Group, Session, item_argument, parse_options
from commonplace.model import EntityType, ExploreMode, Kind

if TYPE_CHECKING:
    from commonplace.interfaces.actions.graph import ExploreResult

One = Annotated[str, item_argument("ENTITY")]
Other = Annotated[
    str, typer.Argument(metavar="OTHER", help="Id, public id or entity id.", show_default=False)
]
How = Annotated[Kind, typer.Option("--type", help="Type of the relation.")]


async def explore(
    session: Session,
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

    wanted = parse_options(
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
    answer = await exploration.explore(session.services, session.caller, wanted)
    session.show(answer, lambda: _print_graph(answer))


def _print_graph(answer: "ExploreResult") -> None:
    found = answer["entities"]
    match answer["mode"]:
        case "list":
            columns: list[str] = []
            before: list[list[Any]] = [[] for _ in found]
        case "dependencies":
            columns, before = (
                [""],
                [[answer["offset"] + place] for place in range(1, len(found) + 1)],
            )
        case _:
            arrows = {"outgoing": "->", "incoming": "<-", None: "<-"}
            columns = ["steps", "joined"]
            before = [
                [each["distance"], f"{arrows[each['direction']]} {each['relationship']}"]
                for each in found
            ]
    rows = [
        [*cells, each["id"], each["status"], each["title"]]
        for cells, each in zip(before, found, strict=True)
    ]
    output.table([*columns, "id", "status", "title"], rows)
    for cycle in answer["cycles"]:
        output.note(f"These wait for each other: {' -> '.join(cycle)}")
    if answer["truncated"]:
        output.note("Only the best relations were followed where there were very many.")
    if answer["has_more"]:
        shown = answer["offset"] + len(found)
        output.note(f"{shown} of {answer['total']}; --offset {shown} shows more.")


async def link(session: Session, one: One, other: Other, kind: How = Kind.RELATED_TO) -> None:
    """Link two entities. Rejects dependencies that would create a cycle."""
    from commonplace.interfaces.actions import graph as graph_shapes

    first, second, relation, new = await session.services.graph.link(
        session.caller, one, kind, other
    )
    names = {item.id: item.entity_id for item in (first, second)}
    session.show(
        graph_shapes.relation(relation, names) | {"created": new},
        f"{first.title} -> {kind} -> {second.title}{'' if new else ' (it was so already)'}",
    )


async def unlink(session: Session, one: One, other: Other, kind: How = Kind.RELATED_TO) -> None:
    """Remove a relation between two entities."""
    await session.services.graph.unlink(session.caller, one, kind, other)
    session.show({"ok": True}, "Unlinked.")


GROUP: Group = (
    "graph",
    "Add, link and explore entities: projects, tasks, decisions, memories.",
    {
        "explore": explore,
        "link": link,
        "unlink": unlink,
        **entities.COMMANDS,
        **corrections.COMMANDS,
    },
)
