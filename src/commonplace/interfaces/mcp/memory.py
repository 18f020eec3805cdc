"""The graph door's memory: remember, reflect, and the context that an agent starts with."""

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
        "Call this first, before you start on a task: it gathers what the library knows that helps with a goal, within a token "
        "budget. You get active tasks (with what blocks them), decisions, constraints and facts, procedures, gotchas, plans, "
        "recent memory and relevant passages, most useful first, each with the id that other tools take. "
        "Name the project when you know it, and the intent (build, plan, debug, decide, research, review, learn, ideate) to "
        "shift what weighs more. `left_out` says what there was no room for.",
        Capability.READ,
        memory_shapes.ContextRequest,
        memory_shapes.ContextPack,
        _context,
    ),
    Tool(
        "remember",
        "Remember",
        "Keep something that future work should not have to learn again: a decision with its reasons, a procedure, a fact, a "
        "plan, an idea, or what happened and what it taught. The words are kept unchangeable with their hash, and an entity "
        "that is found by search, context and explore points to them. Say `supersedes:<id>` in related_to when it replaces "
        "something. Send an idempotency_key when you may have to repeat the call: the same key answers with the first result. "
        "`conflicts` names what is known already and alike or says otherwise; nothing is merged or thrown away.",
        Capability.WRITE,
        memory_shapes.Remember,
        memory_shapes.RememberResult,
        _remember,
        idempotent=False,
    ),
    Tool(
        "reflect",
        "Reflect on notes",
        "Extract candidate memories from notes or a transcript: decisions, plans, claims, procedures, "
        "ideas, tasks, patterns and episodes, each with a confidence, its source sentences (with "
        "offsets), duplicates and contradictions. By default nothing is stored. With persist=true the "
        "notes are captured, and confident new candidates become memories; uncertain, duplicate or "
        "contradicting ones wait in the review queue (with review=true, all of them do). Reflecting on "
        "the same notes again stores nothing twice.",
        Capability.READ,
        memory_shapes.Reflect,
        memory_shapes.ReflectResult,
        _reflect,
        writes=True,
    ),
)
