"""Inputs and answers about memories, reflection and context."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field
from typing_extensions import TypedDict

from commonplace import model
from commonplace.core.entities.duplicates import SimilarItem
from commonplace.core.entities.validation import (
    LONGEST_CONTENT,
    LONGEST_TITLE,
    LONGEST_WORD,
    NewEntity,
)
from commonplace.core.memory.context import SECTIONS, Goal, Intent, Pack
from commonplace.core.memory.memories import LONGEST_KEY, Memo, Remembered
from commonplace.core.memory.reflection import (
    UNTITLED,
    Notes,
    ReflectResult as CoreReflectResult,
    ReviewedCandidate,
)
from commonplace.interfaces.actions.entities import (
    Conflict,
    EntityTypeName,
    Essential,
    ProjectId,
    Reference,
    References,
    ShortList,
    conflict,
    refuse_document,
    required_not_blank,
)
from commonplace.interfaces.actions.items import (
    NOT_BLANK,
    Input,
    Moment,
    moment,
    not_blank,
    whole_number,
)


class Remember(Input):
    model_config = ConfigDict(json_schema_extra=required_not_blank("title", "content"))

    title: Annotated[
        Essential,
        Field(
            json_schema_extra={"maxLength": LONGEST_TITLE},
            description="Short title, understandable by itself",
        ),
    ] = ""
    content: Annotated[
        Essential,
        Field(
            json_schema_extra={"maxLength": LONGEST_CONTENT},
            description=(
                "What to remember, in full. It is kept word for word, and nothing changes it "
                "afterwards"
            ),
        ),
    ] = ""
    kind: Annotated[
        EntityTypeName,
        BeforeValidator(refuse_document),
        Field(description="Kind of entity; tasks and epics require a project"),
    ] = "episode"
    project: Annotated[ProjectId | None, Field(description="Id of the project")] = None
    tags: Annotated[
        ShortList,
        Field(default_factory=list, description="Tags; tasks also get tags from their words"),
    ]
    related_to: Annotated[
        References,
        Field(
            default_factory=list,
            description=(
                "Ids of what it relates to; `supersedes:<id>`, `contradicts:<id>`, `requires:<id>` "
                "or `supports:<id>` say how"
            ),
        ),
    ]
    category: Annotated[
        str, Field(max_length=LONGEST_WORD, description="Domain category, such as debugging")
    ] = ""
    languages: Annotated[
        ShortList, Field(default_factory=list, description="Programming languages")
    ]
    technologies: Annotated[
        ShortList, Field(default_factory=list, description="Technologies involved")
    ]
    metadata: Annotated[
        dict[str, Any], Field(default_factory=dict, description="Additional structured data")
    ]
    source: Annotated[
        dict[str, Any],
        Field(
            default_factory=dict,
            description=("Where the text comes from: a file, a session, a message"),
        ),
    ]
    idempotency_key: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=LONGEST_KEY,
            description=(
                "Sending the same key again answers with the first result instead of keeping it "
                "twice"
            ),
        ),
    ] = None

    def to_memo(self) -> Memo:
        return Memo(
            NewEntity(
                title=self.title,
                content=self.content,
                entity_type=self.kind,
                project=self.project,
                tags=tuple(self.tags),
                related_to=tuple(self.related_to),
                category=self.category,
                languages=tuple(self.languages),
                technologies=tuple(self.technologies),
                metadata=self.metadata,
            ),
            self.idempotency_key,
            self.source,
        )


class Reflect(Input):
    model_config = ConfigDict(json_schema_extra=required_not_blank("content"))

    content: Annotated[
        Essential,
        Field(
            json_schema_extra={"maxLength": LONGEST_CONTENT}, description="Notes or a transcript"
        ),
    ] = ""
    source_title: Annotated[
        str,
        Field(
            min_length=1,
            max_length=LONGEST_TITLE,
            json_schema_extra=NOT_BLANK,
            description="Title of the notes",
        ),
    ] = UNTITLED
    project: Annotated[Reference | None, Field(description="Id of the project")] = None
    persist: Annotated[
        bool,
        Field(
            description=(
                "Keep the notes, and what is sure and new of the candidates; the rest is queued "
                "for review"
            )
        ),
    ] = False
    review: Annotated[
        bool, Field(description="With persist: queue all candidates for review instead")
    ] = False
    limit: Annotated[
        int,
        Field(ge=1, le=50, description="How many candidates to return"),
        BeforeValidator(whole_number),
    ] = 12

    def to_notes(self) -> Notes:
        return Notes(
            self.content, self.source_title, self.project, self.limit, self.persist, self.review
        )


class ContextRequest(Input):
    goal: Annotated[
        str,
        Field(
            min_length=1,
            max_length=2_000,
            json_schema_extra=NOT_BLANK,
            description="What you are about to do, in a sentence or two",
        ),
        BeforeValidator(not_blank),
    ]
    intent: Annotated[
        Intent, Field(description="Kind of work; changes the weights of the sections")
    ] = "build"
    project: Annotated[
        Reference | None, Field(description="Id of the project; its tasks and memories come first")
    ] = None
    limit: Annotated[
        int,
        Field(ge=1, le=100, description="Maximum number of lines"),
        BeforeValidator(whole_number),
    ] = 24
    token_budget: Annotated[
        int,
        Field(ge=200, le=32_000, description="Maximum number of tokens"),
        BeforeValidator(whole_number),
    ] = 4_000

    def to_goal(self) -> Goal:
        return Goal(self.goal, self.intent, self.project, self.limit, self.token_budget)


# -- going out


def conflicts(found: Iterable[SimilarItem]) -> list[Conflict]:
    return [conflict(one) for one in found]


class RememberResult(TypedDict):
    success: Literal[True]
    id: Annotated[str, Field(description="The entity's id")]
    message: str
    timestamp: Moment
    conflicts: Annotated[
        list[Conflict], Field(description="Known entities that are similar or contradict it")
    ]
    capture_id: Annotated[str, Field(description="Id of the verbatim text")]
    capture_hash: Annotated[str, Field(description="Their SHA-256")]
    repeated: Annotated[
        bool,
        Field(description="True if the idempotency_key was used before; this is the first result"),
    ]


def remember_result(value: Remembered) -> RememberResult:
    return {
        "success": True,
        "id": value.item.entity_id,
        "message": value.message,
        "timestamp": moment(value.capture.created_at),
        "conflicts": conflicts(value.conflicts),
        "capture_id": value.capture.id,
        "capture_hash": value.capture.hash,
        "repeated": value.repeated,
    }


class Capture(TypedDict):
    id: str
    item_id: str
    title: str
    text: str
    hash: str
    source: dict[str, Any]
    idempotency_key: str | None
    created_at: Moment


def capture(value: model.Capture) -> Capture:
    return {
        "id": value.id,
        "item_id": value.item_id,
        "title": value.title,
        "text": value.text,
        "hash": value.hash,
        "source": value.source,
        "idempotency_key": value.idempotency_key,
        "created_at": moment(value.created_at),
    }


class Sentence(TypedDict):
    text: str
    start: Annotated[int, Field(description="Offset in the notes, in characters")]
    end: int


class Proposal(TypedDict):
    kind: str
    title: str
    content: str
    confidence: float
    reason: Annotated[str, Field(description="Why it is a candidate")]
    sentences: Annotated[list[Sentence], Field(description="Source sentences, verbatim")]


def proposal(value: model.Proposal) -> Proposal:
    return {
        "kind": value.kind,
        "title": value.title,
        "content": value.content,
        "confidence": value.confidence,
        "reason": value.reason,
        "sentences": [{"text": q.text, "start": q.start, "end": q.end} for q in value.quotes],
    }


class ReflectedCandidate(Proposal):
    duplicates: list[Conflict]
    contradictions: list[Conflict]
    state: Annotated[
        Literal["proposed", "kept", "queued"],
        Field(description="queued: in the review queue"),
    ]
    id: Annotated[str | None, Field(description="Id of the entity that was created")]
    candidate_id: Annotated[str | None, Field(description="Its id in the review queue")]


def reflected_candidate(value: ReviewedCandidate) -> ReflectedCandidate:
    return {
        **proposal(value.proposal),
        "duplicates": conflicts(value.duplicates),
        "contradictions": conflicts(value.contradictions),
        "state": "kept" if value.kept else "queued" if value.queued else "proposed",
        "id": value.kept.entity_id if value.kept else None,
        "candidate_id": value.queued.id if value.queued else None,
    }


class ReflectResult(TypedDict):
    source_title: str
    source_id: Annotated[str | None, Field(description="Id of the session with the notes")]
    candidates: list[ReflectedCandidate]
    total: int
    kept: int
    queued: int
    repeated: Annotated[
        bool, Field(description="True if these notes were stored before; nothing is stored twice")
    ]


def reflect_result(notes: Notes, value: CoreReflectResult) -> ReflectResult:
    return {
        "source_title": notes.source_title,
        "source_id": value.source.item.entity_id if value.source else None,
        "candidates": [reflected_candidate(one) for one in value.candidates],
        "total": len(value.candidates),
        "kept": sum(one.kept is not None for one in value.candidates),
        "queued": sum(one.queued is not None for one in value.candidates),
        "repeated": bool(value.source and value.source.repeated),
    }


class Candidate(Proposal):
    id: str
    state: Literal["pending", "accepted", "rejected"]
    source_item_id: Annotated[str, Field(description="Item with the notes")]
    project_id: str | None
    item_id: Annotated[str | None, Field(description="Item that was created from it")]
    created_at: Moment
    decided_at: Moment | None


def candidate(value: model.Candidate) -> Candidate:
    return {
        **proposal(value.proposal),
        "id": value.id,
        "state": value.state.value,
        "source_item_id": value.source_id,
        "project_id": value.project_id,
        "item_id": value.item_id,
        "created_at": moment(value.created_at),
        "decided_at": moment(value.decided_at) if value.decided_at else None,
    }


class CandidateInFull(Candidate):
    duplicates: list[Conflict]
    contradictions: list[Conflict]


def candidate_in_full(value: ReviewedCandidate) -> CandidateInFull:
    assert value.queued is not None
    return {
        **candidate(value.queued),
        "duplicates": conflicts(value.duplicates),
        "contradictions": conflicts(value.contradictions),
    }


class PackLine(TypedDict):
    id: str
    type: str
    title: str
    text: str
    status: str
    score: float
    reason: Annotated[str, Field(description="Why it is included")]


class PackSection(TypedDict):
    section: Annotated[str, Field(json_schema_extra={"enum": list(SECTIONS)})]
    title: str
    items: list[PackLine]


class ContextPack(TypedDict):
    goal: str
    intent: str
    project: str | None
    sections: Annotated[list[PackSection], Field(description="Most useful first")]
    total_items: int
    tokens: Annotated[int, Field(description="Estimated tokens of the text; never too low")]
    token_budget: int
    left_out: Annotated[
        dict[str, int], Field(description="Number of items that did not fit, by section")
    ]
    degraded: Annotated[
        str | None, Field(description="Why the result is incomplete; null if it is complete")
    ]


def context_pack(value: Pack) -> ContextPack:
    return {
        "goal": value.goal.goal,
        "intent": value.goal.intent,
        "project": value.project.entity_id if value.project else None,
        "sections": [
            {
                "section": name,
                "title": SECTIONS[name],
                "items": [
                    {
                        "id": line.id,
                        "type": line.type,
                        "title": line.title,
                        "text": line.text,
                        "status": line.status,
                        "score": round(line.score, 4),
                        "reason": line.reason,
                    }
                    for line in lines
                ],
            }
            for name, lines in value.sections
        ],
        "total_items": len(value.packed.lines),
        "tokens": value.packed.tokens,
        "token_budget": value.goal.token_budget,
        "left_out": value.packed.left_out,
        "degraded": value.degraded,
    }
