"""Memory: remembered, reflected on, gathered for a goal; and the queue of candidates that wait for review."""

from typing import Annotated, Literal

from fastapi import Query
from pydantic import BeforeValidator, Field
from typing_extensions import TypedDict

from commonplace.core.entities.validation import LONGEST_CONTENT, LONGEST_TITLE
from commonplace.interfaces.actions import memory as wire
from commonplace.interfaces.actions.entities import Conflict, EntityTypeName, Reference, kept_here
from commonplace.interfaces.actions.items import NOT_BLANK, Input
from commonplace.interfaces.rest.routes import Desk, Id, ItemId, api_router

router = api_router("memory")


class CandidateChanges(Input):
    kind: Annotated[EntityTypeName | None, BeforeValidator(kept_here)] = None
    title: Annotated[
        str | None, Field(min_length=1, max_length=LONGEST_TITLE, json_schema_extra=NOT_BLANK)
    ] = None
    content: Annotated[
        str | None, Field(min_length=1, max_length=LONGEST_CONTENT, json_schema_extra=NOT_BLANK)
    ] = None
    project: Annotated[
        Reference | None, Field(description="Id of the project that it belongs to")
    ] = None


class Candidates(TypedDict):
    candidates: list[wire.Candidate]
    total: int
    limit: int
    offset: int


class CandidateInFull(wire.Candidate):
    duplicates: list[Conflict]
    contradictions: list[Conflict]


class Accepted(wire.Kept):
    candidate: wire.Candidate


class PackAsText(wire.ContextPack):
    markdown: str


@router.post("/memory/remember", status_code=201, summary="Remember a text")
async def remember(desk: Desk, body: wire.Remember) -> wire.Kept:
    """Stores the text as an immutable capture and creates an entity that points to it. The same
    `idempotency_key` returns the first result."""
    return wire.kept(await desk.services.memory.remember(desk.caller, body.memo()))


@router.post("/memory/reflect", summary="Extract candidate memories from notes")
async def reflect(desk: Desk, body: wire.Reflect) -> wire.Reflections:
    """Returns candidates with their source sentences. Stores nothing unless `persist` is true."""
    notes = body.notes()
    return wire.reflections(notes, await desk.services.reflection.reflect(desk.caller, notes))


@router.post("/memory/context", summary="Gather context for a goal")
async def context(desk: Desk, body: wire.ContextRequest) -> PackAsText:
    """Returns what helps with the goal, within a token budget. `markdown` is the same as text for an
    agent."""
    pack = await desk.services.context.pack(desk.caller, body.wanted())
    return {**wire.context_pack(pack), "markdown": pack.markdown()}


@router.get("/memory/captures/{item_id}", summary="Read the capture of an entity")
async def read_capture(desk: Desk, item_id: ItemId) -> wire.Capture:
    """Returns the verbatim text with its hash."""
    return wire.capture(await desk.services.memory.capture(desk.caller, item_id))


@router.get("/memory/candidates", summary="List the review queue")
async def list_candidates(
    desk: Desk,
    state: Annotated[Literal["pending", "accepted", "rejected", "all"], Query()] = "pending",
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> Candidates:
    """Tokens limited to folders or the KB see only what they queued themselves."""
    found, total = await desk.services.reflection.candidates(
        desk.caller, None if state == "all" else state, limit=limit, offset=offset
    )
    return {
        "candidates": [wire.candidate(one) for one in found],
        "total": total,
        "limit": limit,
        "offset": offset,
    }


@router.get("/memory/candidates/{candidate_id}", summary="Read a candidate")
async def read_candidate(desk: Desk, candidate_id: Id) -> CandidateInFull:
    """Includes known duplicates and contradictions."""
    found = await desk.services.reflection.candidate(desk.caller, candidate_id)
    assert found.queued is not None
    return {
        **wire.candidate(found.queued),
        "duplicates": wire.like_it(found.duplicates),
        "contradictions": wire.like_it(found.contradictions),
    }


@router.patch("/memory/candidates/{candidate_id}", summary="Edit a candidate")
async def edit_candidate(desk: Desk, candidate_id: Id, body: CandidateChanges) -> wire.Candidate:
    return wire.candidate(
        await desk.services.reflection.edit(
            desk.caller, candidate_id, body.model_dump(exclude_none=True)
        )
    )


@router.post("/memory/candidates/{candidate_id}/accept", summary="Accept a candidate")
async def accept_candidate(
    desk: Desk, candidate_id: Id, body: CandidateChanges | None = None
) -> Accepted:
    """Creates a memory, with the changes in the body. Accepting twice creates one memory."""
    changes = body.model_dump(exclude_none=True) if body else {}
    candidate, kept = await desk.services.reflection.accept(desk.caller, candidate_id, changes)
    return {**wire.kept(kept), "candidate": wire.candidate(candidate)}


@router.post("/memory/candidates/{candidate_id}/reject", summary="Reject a candidate")
async def reject_candidate(desk: Desk, candidate_id: Id) -> wire.Candidate:
    return wire.candidate(await desk.services.reflection.reject(desk.caller, candidate_id))
