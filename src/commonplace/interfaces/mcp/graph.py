"""The `explore` tool."""

from commonplace.core.services import Services
from commonplace.interfaces.actions import exploration, graph as graph_shapes
from commonplace.interfaces.mcp.tools import Tool, as_text
from commonplace.model import Caller, Capability


async def _explore(
    services: Services, caller: Caller, args: graph_shapes.Explore
) -> tuple[str, graph_shapes.ExploreResult]:
    answer = await exploration.explore(services, caller, args)
    return as_text(answer), answer


TOOLS = (
    Tool(
        "explore",
        "Explore the graph",
        "Explore the user's projects, tasks and knowledge by their relations, without a search "
        "query. mode=list returns entities, newest first, by types, project and status: start "
        'with types=["project"] to find a project\'s id. mode=related returns the direct '
        "neighbours of an entity, mode=traverse those up to three hops away, each with its "
        "distance and relation. mode=dependencies returns everything that a task depends on, in "
        "the order to do it, the task itself last, and names cycles. Do not rely on entities "
        "whose status is superseded, wrong or stale. If has_more is true, call again with a "
        "larger offset. To find something by its text, use search.",
        Capability.READ,
        graph_shapes.Explore,
        graph_shapes.ExploreResult,
        _explore,
    ),
)
