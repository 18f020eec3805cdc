"""Tools on memory: context, remember, reflect."""

from commonplace.core.services import Services
from commonplace.interfaces.actions import memory as memory_shapes
from commonplace.interfaces.mcp.tools import Tool, as_text
from commonplace.model import Caller, Capability


async def _remember(
    services: Services, caller: Caller, args: memory_shapes.Remember
) -> tuple[str, memory_shapes.RememberResult]:
    answer = memory_shapes.remember_result(await services.memory.remember(caller, args.to_memo()))
    return as_text(answer), answer


async def _reflect(
    services: Services, caller: Caller, args: memory_shapes.Reflect
) -> tuple[str, memory_shapes.ReflectResult]:
    notes = args.to_notes()
    answer = memory_shapes.reflect_result(notes, await services.reflection.reflect(caller, notes))
    return as_text(answer), answer


async def _context(
    services: Services, caller: Caller, args: memory_shapes.ContextRequest
) -> tuple[str, memory_shapes.ContextPack]:
    pack = await services.context.pack(caller, args.to_goal())
    note = f"Note: {pack.degraded}\n\n" if pack.degraded else ""
    return note + pack.markdown(), memory_shapes.context_pack(pack)


TOOLS = (
    Tool(
        "context",
        "Gather context for a goal",
        "Call this first, before you start on a task: it gathers what the library knows about a "
        "goal, within a token budget. You get active tasks (with what blocks them), decisions, "
        "constraints and facts, procedures, gotchas, plans, recent memory and relevant passages, "
        "most useful first, each with the id that other tools take. Pass the project if you know "
        "it, and the intent (build, plan, debug, decide, research, review, learn, ideate) to "
        "change the weights. `left_out` counts what did not fit.",
        Capability.READ,
        memory_shapes.ContextRequest,
        memory_shapes.ContextPack,
        _context,
    ),
    Tool(
        "remember",
        "Remember",
        "Remember something that future work should not have to learn again: a decision with its "
        "reasons, a procedure, a fact, a plan, an idea, or what happened and what it taught. The "
        "text is stored verbatim with its hash and cannot be changed; an entity that search, "
        "context and explore find points to it. Put `supersedes:<id>` into related_to if it "
        "replaces something. Send an idempotency_key if you may have to repeat the call: the same"
        " key returns the first result. `conflicts` lists known entities that are similar or "
        "contradict it; nothing is merged or discarded.",
        Capability.WRITE,
        memory_shapes.Remember,
        memory_shapes.RememberResult,
        _remember,
        idempotent=False,
    ),
    Tool(
        "reflect",
        "Reflect on notes",
        "Extract candidate memories from notes or a transcript: decisions, plans, claims, "
        "procedures, "
        "ideas, tasks, patterns and episodes, each with a confidence, its source sentences (with "
        "offsets), duplicates and contradictions. By default nothing is stored. With persist=true "
        "the "
        "notes are captured, and confident new candidates become memories; uncertain, duplicate or "
        "contradicting ones wait in the review queue (with review=true, all of them do). "
        "Reflecting on "
        "the same notes again stores nothing twice.",
        Capability.READ,
        memory_shapes.Reflect,
        memory_shapes.ReflectResult,
        _reflect,
        writes=True,
    ),
)
