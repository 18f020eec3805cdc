"""Memory: remember, reflect, context, and the review queue."""

from typing import Annotated, Literal

from fastapi import Query
from pydantic import BeforeValidator, Field
from typing_extensions import TypedDict

from commonplace.core.entities.validation import LONGEST_CONTENT, LONGEST_TITLE
from commonplace.interfaces.actions import memory as memory_shapes
from commonplace.interfaces.actions.entities import (
    EntityTypeName,
    Reference,
    refuse_document,
)
from commonplace.interfaces.actions.items import NOT_BLANK, Input
from commonplace.interfaces.rest.routes import ApiRequest, Id, ItemId, api_router

router = api_router("memory")


class CandidateChanges(Input):
    kind: Annotated[EntityTypeName | None, BeforeValidator(refuse_document)] = None
    title: Annotated[
        str | None, Field(min_length=1, max_length=LONGEST_TITLE, json_schema_extra=NOT_BLANK)
    ] = None
    content: Annotated[
        str | None, Field(min_length=1, max_length=LONGEST_CONTENT, json_schema_extra=NOT_BLANK)
    ] = None
    project: Annotated[Reference | None, Field(description="Id of the project")] = None


class Candidates(TypedDict):
    candidates: list[memory_shapes.Candidate]
    total: int
    limit: int
    offset: int


class AcceptedCandidate(memory_shapes.RememberResult):
    candidate: memory_shapes.Candidate


class ContextPackText(memory_shapes.ContextPack):
    markdown: str


@router.post("/memory/remember", status_code=201, summary="Remember a text")
async def remember(api: ApiRequest, body: memory_shapes.Remember) -> memory_shapes.RememberResult:
    """Stores the text as an immutable capture and creates an entity that points to it. The same
    `idempotency_key` returns the first result."""
    return memory_shapes.remember_result(
        await api.services.memory.remember(api.caller, body.to_memo())
    )


@router.post("/memory/reflect", summary="Extract candidate memories from notes")
async def reflect(api: ApiRequest, body: memory_shapes.Reflect) -> memory_shapes.ReflectResult:
    """Returns candidates with their source sentences. Stores nothing unless `persist` is true."""
    notes = body.to_notes()
    return memory_shapes.reflect_result(
        notes, await api.services.reflection.reflect(api.caller, notes)
    )


@router.post("/memory/context", summary="Gather context for a goal")
async def context(api: ApiRequest, body: memory_shapes.ContextRequest) -> ContextPackText:
    """Returns what helps with the goal, within a token budget. `markdown` is the same as text for
    an agent."""
    pack = await api.services.context.pack(api.caller, body.to_goal())
    return {**memory_shapes.context_pack(pack), "markdown": pack.markdown()}


@router.get("/memory/captures/{item_id}", summary="Read the capture of an entity")
async def read_capture(api: ApiRequest, item_id: ItemId) -> memory_shapes.Capture:
    """Returns the verbatim text with its hash."""
    return memory_shapes.capture(await api.services.memory.capture(api.caller, item_id))


@router.get("/memory/candidates", summary="List the review queue")
async def list_candidates(
    api: ApiRequest,
    state: Annotated[Literal["pending", "accepted", "rejected", "all"], Query()] = "pending",
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> Candidates:
    """Tokens limited to folders or the KB see only what they queued themselves."""
    found, total = await api.services.reflection.candidates(
        api.caller, None if state == "all" else state, limit=limit, offset=offset
    )
    return {
        "candidates": [memory_shapes.candidate(one) for one in found],
        "total": total,
        "limit": limit,
        "offset": offset,
    }


@router.get("/memory/candidates/{candidate_id}", summary="Read a candidate")
async def read_candidate(api: ApiRequest, candidate_id: Id) -> memory_shapes.CandidateInFull:
    """Includes known duplicates and contradictions."""
    return memory_shapes.candidate_in_full(
        await api.services.reflection.candidate(api.caller, candidate_id)
    )


@router.patch("/memory/candidates/{candidate_id}", summary="Edit a candidate")
async def edit_candidate(
    api: ApiRequest, candidate_id: Id, body: CandidateChanges
) -> memory_shapes.Candidate:
    return memory_shapes.candidate(
        await api.services.reflection.edit(
            api.caller, candidate_id, body.model_dump(exclude_none=True)
        )
    )


@router.post("/memory/candidates/{candidate_id}/accept", summary="Accept a candidate")
async def accept_candidate(
    api: ApiRequest, candidate_id: Id, body: CandidateChanges | None = None
) -> AcceptedCandidate:
    """Creates a memory, with the changes in the body. Accepting twice creates one memory."""
    changes = body.model_dump(exclude_none=True) if body else {}
    candidate, kept = await api.services.reflection.accept(api.caller, candidate_id, changes)
    return {**memory_shapes.remember_result(kept), "candidate": memory_shapes.candidate(candidate)}


@router.post("/memory/candidates/{candidate_id}/reject", summary="Reject a candidate")
async def reject_candidate(api: ApiRequest, candidate_id: Id) -> memory_shapes.Candidate:
    return memory_shapes.candidate(await api.services.reflection.reject(api.caller, candidate_id))
