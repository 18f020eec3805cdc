"""The graph door's map: what there is, and how it hangs together."""

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
        "Look at the user's projects, tasks and knowledge by how they are joined, without searching for words. mode=list "
        'gives entities newest first, by types, project and status: begin with types=["project"] to find a project\'s id. '
        "mode=related gives what an entity is joined to, mode=traverse what lies up to three steps away, each with its "
        "distance and the relation that led there. mode=dependencies gives all that a task waits for in the order to do it, "
        "the task itself last, and names cycles. Entities whose status is superseded, wrong or stale are not to be relied on. "
        "When has_more is true, ask again with a larger offset. To find something by what it says, use search.",
        Capability.READ,
        graph_shapes.Explore,
        graph_shapes.ExploreResult,
        _explore,
    ),
)
