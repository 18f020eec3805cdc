"""Actions on memory: remember, reflect, context, captures, and the review queue."""

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import ConfigDict

from commonplace.core.entities.validation import LONGEST_TITLE
from commonplace.interfaces.actions.action import Action, Tool
from commonplace.interfaces.actions.conflicts import CONFLICT, SIMILAR, added_text
from commonplace.interfaces.actions.entities import (
    MemoryFields,
    OneEntity,
    required,
)
from commonplace.interfaces.actions.fields import (
    NOT_BLANK,
    WHOLE,
    Cli,
    EntityContent,
    EntityTypeName,
    Id,
    Input,
    Intent,
    LongText,
    Offset,
    OneOf,
    Project,
    ProjectOfNew,
    RelatedTo,
    about,
    chars,
    number,
    patch_of,
)
from commonplace.interfaces.actions.items import DEGRADED, on_one_line
from commonplace.interfaces.actions.shapes import NEXT, Call, Field, Shape, many, one, said
from commonplace.model import (
    CONTEXT_SECTIONS,
    Caller,
    Candidate,
    CandidateState,
    Capture,
    Json,
    Proposal,
    Quote,
)

if TYPE_CHECKING:
    from commonplace.core.memory.memories import Memo
    from commonplace.core.memory.reflection import Notes
    from commonplace.core.services import Services

LONGEST_KEY = 200
UNTITLED = "Session reflection"
ALL_STATES = "all"

# -- inputs


class Remember(MemoryFields):
    model_config = ConfigDict(json_schema_extra=required("title", "content"))

    kind: EntityTypeName = "episode"
    project: ProjectOfNew | None = None
    related_to: RelatedTo = []
    source: Annotated[
        Json, about("Where the text comes from: file, session, message"), Cli(hidden=True)
    ] = {}
    idempotency_key: Annotated[
        Annotated[str, chars(1, LONGEST_KEY), NOT_BLANK] | None,
        about("Same key: same answer, stored once"),
        Cli("--key"),
    ] = None

    @property
    def memo(self) -> "Memo":
        from commonplace.core.memory.memories import Memo

        return Memo(self.new_entity(entity_type=self.kind), self.idempotency_key, self.source)


class Reflect(Input):
    model_config = ConfigDict(json_schema_extra=required("content"))

    content: Annotated[
        EntityContent, about("Notes or a transcript"), Cli("FILE", argument=True, stdin=True)
    ] = ""
    source_title: Annotated[str, chars(1, LONGEST_TITLE, "Title of the notes"), Cli("--title")] = (
        UNTITLED
    )
    project: Project | None = None
    session_key: Annotated[
        Annotated[str, chars(1, LONGEST_KEY), NOT_BLANK] | None,
        about("With persist: same key, same session, which grows with its transcript"),
        Cli("--key"),
    ] = None
    persist: Annotated[bool, about("Keep the notes, and what is sure and new of them")] = False
    review: Annotated[bool, about("With persist: queue all candidates for review")] = False
    limit: Annotated[int, number(1, 50, "How many candidates to return"), WHOLE] = 12

    @property
    def notes(self) -> "Notes":
        from commonplace.core.memory.reflection import Notes

        return Notes(**self.model_dump())


class ContextRequest(Input):
    goal: Annotated[str, chars(1, 2_000, "What you are about to do"), NOT_BLANK, Cli(argument=True)]
    intent: Annotated[Intent, about("Orders the sections")] = "build"
    project: Project | None = None
    limit: Annotated[int, number(1, 100, "Maximum number of lines"), WHOLE] = 24
    token_budget: Annotated[int, number(200, 32_000, "Maximum number of tokens"), WHOLE] = 4_000


class ListCandidates(Input):
    state: Annotated[str, OneOf((*CandidateState, ALL_STATES))] = "pending"
    limit: Annotated[int, number(1, 100, "How many to return"), WHOLE] = 50
    offset: Offset = 0


class OneCandidate(Input):
    candidate_id: Id


class CandidateFields(Input):
    kind: EntityTypeName
    title: Annotated[str, chars(1, LONGEST_TITLE, "New title"), NOT_BLANK]
    content: Annotated[LongText, about("New text"), Cli(stdin=True)]
    project: Project | None


ChangeCandidate = patch_of(
    "ChangeCandidate", CandidateFields, "kind title content project", candidate_id=(Id, ...)
)

# -- answers

REMEMBERED = Shape(
    "RememberedEntity",
    "commonplace.core.memory.memories.Remembered",
    success=Field(bool, lambda done, call: True),
    id="item.entity_id",
    message="message",
    timestamp="capture.created_at",
    conflicts=many(CONFLICT, "conflicts", "Entities that it repeats or contradicts; all stay"),
    similar=many(SIMILAR, "similar", "At most three closest statements; you decide about them"),
    capture_id="capture.id",
    capture_hash=said(str, "capture.hash", "SHA-256 of the verbatim text"),
    repeated=said(bool, "repeated", "The idempotency_key was used before; the first result"),
)
REMEMBERED_TOOL = Shape(
    "RememberedByTool",
    "commonplace.core.memory.memories.Remembered",
    success=Field(bool, lambda done, call: True),
    id="item.entity_id",
    message="message",
    conflicts=many(CONFLICT, "conflicts"),
    similar=many(SIMILAR, "similar"),
    capture_id="capture.id",
    repeated=Field(bool, lambda done, call: done.repeated or None, optional=True),
)
CAPTURE = Shape("Capture", Capture, "id item_id title text hash source idempotency_key created_at")
SENTENCE = Shape("SourceSentence", Quote, "text start end")
PROPOSAL = Shape(
    "Proposal",
    Proposal,
    "kind title content confidence",
    reason=said(str, "reason", "Why it is a candidate"),
    sentences=many(SENTENCE, "quotes", "Source sentences, verbatim, with offsets in the notes"),
)


def _state(found: Any, call: Call) -> str:
    if found.kept:
        return "kept"
    return "queued" if found.queued else "proposed"


REFLECTED = Shape(
    "ReflectedCandidate",
    None,
    base=PROPOSAL,
    at="proposal",
    duplicates=many(CONFLICT, "duplicates"),
    contradictions=many(CONFLICT, "contradictions"),
    closest=one(SIMILAR, "closest", "Closest known statement that is neither"),
    state=Field(Annotated[str, OneOf(("proposed", "kept", "queued"))], _state),
    id=Field(
        str | None,
        lambda found, call: found.kept.entity_id if found.kept else None,
        "Id of the entity that was created",
    ),
    candidate_id=Field(
        str | None,
        lambda found, call: found.queued.id if found.queued else None,
        "Its id in the review queue",
    ),
)
REFLECTION = Shape(
    "Reflection",
    None,
    source_title=Field(str, lambda done, call: call.args.source_title),
    source_id=Field(
        str | None,
        lambda done, call: done.source.item.entity_id if done.source else None,
        "Id of the session with the notes",
    ),
    candidates=many(REFLECTED, "candidates"),
    total=Field(int, lambda done, call: len(done.candidates)),
    kept=Field(int, lambda done, call: sum(one.kept is not None for one in done.candidates)),
    queued=Field(int, lambda done, call: sum(one.queued is not None for one in done.candidates)),
    repeated=Field(
        bool,
        lambda done, call: bool(done.source and done.source.repeated),
        "These notes were stored before; nothing is stored twice",
    ),
)
CANDIDATE = Shape(
    "Candidate",
    Candidate,
    "id state project_id item_id created_at decided_at",
    base=PROPOSAL,
    at="proposal",
    source_item_id="source_id",
)
FULL_CANDIDATE = Shape(
    "FullCandidate",
    None,
    base=CANDIDATE,
    at="queued",
    duplicates=many(CONFLICT, "duplicates"),
    contradictions=many(CONFLICT, "contradictions"),
    closest=one(SIMILAR, "closest", "Closest known statement that is neither"),
)
CANDIDATES = Shape(  # of the candidates, and their total
    "CandidateList",
    None,
    candidates=many(CANDIDATE, 0),
    total=said(int, 1),
    limit=Field(int, lambda found, call: call.args.limit),
    offset=Field(int, lambda found, call: call.args.offset),
    next=NEXT,
)
ACCEPTED = Shape(  # of the candidate, and the memory it became
    "AcceptedCandidate", None, base=REMEMBERED, at=1, candidate=one(CANDIDATE, 0)
)
ALSO = Shape("AlsoNamed", "commonplace.core.memory.token_budget.Also", "id title")
PACK_LINE = Shape(
    "ContextLine",
    "commonplace.core.memory.token_budget.Line",
    "id type title text status",
    score=Field(float, lambda line, call: round(line.score, 4)),
    reason=said(str, "reason", "Why it is included"),
    also=many(ALSO, "also", "Near duplicates, which share its place"),
)
PACK_SECTION = Shape(  # of its name and lines
    "ContextSection",
    None,
    section=said(str, 0),
    title=Field(str, lambda section, call: CONTEXT_SECTIONS[section[0]]),
    items=many(PACK_LINE, 1),
)
PROJECT_OF_PACK = Field(
    str | None, lambda pack, call: pack.project.entity_id if pack.project else None
)
PACK = Shape(
    "ContextPack",
    "commonplace.core.memory.context.Pack",
    goal="goal.goal",
    intent="goal.intent",
    project=PROJECT_OF_PACK,
    sections=many(PACK_SECTION, "sections", "Most useful first"),
    total_items=Field(int, lambda pack, call: len(pack.packed.lines)),
    tokens=said(int, "packed.tokens", "Estimated tokens of the text; never too low"),
    token_budget="goal.token_budget",
    left_out=said(dict[str, int], "packed.left_out", "Items that did not fit, by section"),
    degraded=DEGRADED,
)
TOOL_LINE = Shape(
    "ContextLineByTool",
    "commonplace.core.memory.token_budget.Line",
    "id type title text",
    status=Field(str | None, lambda line, call: line.status or None),
    also=many(ALSO, "also"),
)
PACK_TOOL = Shape(
    "ContextPackByTool",
    "commonplace.core.memory.context.Pack",
    goal="goal.goal",
    project=PROJECT_OF_PACK,
    sections=Field(
        list[Json],
        lambda pack, call: [
            {"section": name, "items": [TOOL_LINE(line, call) for line in lines]}
            for name, lines in pack.sections
        ],
    ),
    left_out=said(dict[str, int], "packed.left_out"),
    degraded=DEGRADED,
)
FULL_PACK = Shape(
    "ContextPackWithText", None, base=PACK, markdown=Field(str, lambda pack, call: pack.markdown())
)


# -- texts of answers


def _reflection_text(done: Json, value: Any) -> str:
    kept = f" Notes kept as [{done['source_id']}]." if done["source_id"] else ""
    count = f"{done['total']} candidate{'s' * (done['total'] != 1)}"
    head = f"{count}, {done['kept']} kept, {done['queued']} queued for review."
    return "\n".join([head + kept, *map(_candidate_line, done["candidates"])])


def _candidate_line(found: Json) -> str:
    known = [f"{other['kind']} of [{other['id']}]" for other in found["duplicates"]]
    known += [f"contradicts [{other['id']}]" for other in found["contradictions"]]
    if closest := found["closest"]:
        known.append(f"close to [{closest['id']}] {on_one_line(closest['statements'][0])}")
    facts = [found["kind"], found["state"], f"{found['confidence']:.2f}", *known]
    return f"- {on_one_line(found['title'])} ({', '.join(facts)})\n  {found['content']}"


def _pack_text(answer: Json, pack: Any) -> str:
    note = f"Note: {answer['degraded']}\n\n" if answer["degraded"] else ""
    return note + str(pack.markdown())


# -- what is done


async def _pack(services: "Services", caller: Caller, args: ContextRequest) -> Any:
    from commonplace.core.memory.context import Goal

    return await services.context.pack(caller, Goal(**args.model_dump()))


ACTIONS = (
    Action(
        "remember",
        "Remember a text",
        Remember,
        "memory.remember",
        REMEMBERED,
        "POST /api/v1/memory/remember",
        cli="remember",
        tool=Tool(
            "Keep durable memory for future sessions: a decision, procedure, fact or lesson. The "
            "text is stored verbatim; search and context find it. `conflicts` lists similar or "
            "contradicting entities.",
            added_text,
            shape=REMEMBERED_TOOL,
            shown="id message conflicts similar",
            idempotent=False,
        ),
        status=201,
        description="Stores the text as an immutable capture and creates an entity that points "
        "to it.",
    ),
    Action(
        "reflect",
        "Extract candidate memories from notes",
        Reflect,
        "reflection.reflect",
        REFLECTION,
        "POST /api/v1/memory/reflect",
        cli="reflect",
        tool=Tool(
            "Extract candidate memories (decisions, procedures, claims, tasks ...) from notes or "
            "a transcript, with their sentences and known duplicates or contradictions. Stores "
            "nothing unless persist=true; uncertain ones then wait for review.",
            _reflection_text,
            shown="candidates total kept queued",
            writes=True,
        ),
    ),
    Action(
        "context",
        "Gather context for a goal",
        ContextRequest,
        "context.pack",
        FULL_PACK,
        "POST /api/v1/memory/context",
        cli="context",
        tool=Tool(
            "Call first when you start: active tasks, decisions, constraints, procedures, gotchas "
            "and recent memory. project: id, title or repository URL.",
            _pack_text,
            shape=PACK_TOOL,
            shown="goal sections",
        ),
        run=_pack,
    ),
    Action(
        "get_capture",
        "Read the capture of an entity",
        OneEntity,
        "memory.capture",
        CAPTURE,
        "GET /api/v1/memory/captures/{entity_id}",
        description="Returns the verbatim text with its hash.",
    ),
    Action(
        "list_candidates",
        "List the review queue",
        ListCandidates,
        "reflection.candidates",
        CANDIDATES,
        "GET /api/v1/memory/candidates",
        cli="review list",
        description="Tokens limited to folders or the KB see only what they queued themselves.",
        run=lambda services, caller, args: services.reflection.candidates(
            caller,
            None if args.state == ALL_STATES else args.state,
            limit=args.limit,
            offset=args.offset,
        ),
    ),
    Action(
        "get_candidate",
        "Read a candidate",
        OneCandidate,
        "reflection.candidate",
        FULL_CANDIDATE,
        "GET /api/v1/memory/candidates/{candidate_id}",
        cli="review list",
        description="Includes known duplicates and contradictions.",
    ),
    Action(
        "update_candidate",
        "Edit a candidate",
        ChangeCandidate,
        "reflection.edit",
        FULL_CANDIDATE,
        "PATCH /api/v1/memory/candidates/{candidate_id}",
        expand=lambda services, caller, found: services.reflection.compare(caller, found),
    ),
    Action(
        "accept_candidate",
        "Accept a candidate",
        ChangeCandidate,
        "reflection.accept",
        ACCEPTED,
        "POST /api/v1/memory/candidates/{candidate_id}/accept",
        cli="review accept",
        description="Creates a memory, with the changes that are given. Accepting twice creates "
        "one memory.",
    ),
    Action(
        "reject_candidate",
        "Reject a candidate",
        OneCandidate,
        "reflection.reject",
        CANDIDATE,
        "POST /api/v1/memory/candidates/{candidate_id}/reject",
        cli="review reject",
    ),
)
