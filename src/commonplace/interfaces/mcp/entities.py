"""Tools on entities: add, search, and fetch of anything."""

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from commonplace.core.services import Services
from commonplace.interfaces.actions import entities as entity_shapes, items as item_shapes
from commonplace.interfaces.mcp.tools import Tool, as_text
from commonplace.model import Caller, Capability


async def _add(
    services: Services, caller: Caller, args: entity_shapes.AddInput
) -> tuple[str, entity_shapes.AddEntityResult]:
    answer = entity_shapes.add_entity_result(
        await services.entities.add(caller, args.to_new_entity(), **args.checks)
    )
    return as_text(answer), answer


async def _search(
    services: Services, caller: Caller, args: entity_shapes.SearchInput
) -> tuple[str, entity_shapes.EntityResults]:
    hits, degraded = await services.entity_search.search(caller, args.to_query())
    answer = entity_shapes.entity_results(args, hits, degraded, services.settings)
    return as_text(answer), answer


class FetchInput(item_shapes.Input):
    id: Annotated[
        str,
        Field(
            min_length=1,
            max_length=200,
            description="Id of an entity or item, as returned by other tools",
        ),
    ]


class FetchResult(TypedDict):
    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, Any]


async def _fetch(services: Services, caller: Caller, args: FetchInput) -> tuple[str, FetchResult]:
    entity = await services.entities.get(caller, args.id)
    shown = entity_shapes.entity(entity, services.settings)
    told = {
        name: value
        for name, value in shown.items()
        if name not in ("id", "title", "name", "url", "metadata") and value
    }
    answer: FetchResult = {
        "id": shown["id"],
        "title": shown["title"],
        "text": entity.text or "",
        "url": shown["url"],
        "metadata": {
            **entity_shapes.remaining_metadata(shown["metadata"], shown),
            **told,
            "origin": entity.item.origin,
        },
    }
    return as_text(answer), answer


TOOLS = (
    Tool(
        "add",
        "Add an entity",
        "Add an entity to the graph: something learned (episode, the default), a pattern, "
        "procedure, decision, plan, idea, claim, artifact, session or domain; or work: a project,"
        ' and tasks and epics in it (find projects with explore(types=["project"])). Similar '
        "patterns, procedures and decisions are linked automatically; name others in related_to "
        "and, for tasks, depends_on. The answer has the new id; linking continues in the "
        "background. `conflicts` lists existing entities that say the same, nearly the same, or "
        "the opposite: check it before you add more. Nothing is merged. For memories with their "
        "verbatim source, use remember.",
        Capability.WRITE,
        entity_shapes.AddInput,
        entity_shapes.AddEntityResult,
        _add,
        idempotent=False,
    ),
    Tool(
        "search",
        "Search entities and documents",
        "Search everything in the library by meaning and by keywords: entities of the graph and "
        "saved documents. Each result is one entity with its best passage. Filter by types, "
        "language, category, status, project, assignee or since; `include_content` returns the "
        "passage.",
        Capability.READ,
        entity_shapes.SearchInput,
        entity_shapes.EntityResults,
        _search,
    ),
)

# Shown where all doors are: what ChatGPT reads results of `search` by.
FETCH = Tool(
    "fetch",
    "Fetch an entity or document",
    "Read one entity or document in full: its text, its source and its metadata. Use the id of a "
    "search result.",
    Capability.READ,
    FetchInput,
    FetchResult,
    _fetch,
)
