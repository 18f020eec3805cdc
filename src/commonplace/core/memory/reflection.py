"""Reflection: extract candidate memories from notes and compare them with existing ones.

Confident and new candidates can be stored at once. Uncertain, known or contradicting ones wait for
review, so that nothing is dropped or duplicated silently.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from commonplace.core.entities import validation as rules
from commonplace.core.entities.candidates import Draft, Part
from commonplace.core.entities.conflicts import Conflicts, FoundConflict, SimilarStatement
from commonplace.core.entities.entities import HELD, Entities
from commonplace.core.entities.judgement import DUPLICATE, NEAR_DUPLICATE
from commonplace.core.ingest.pipeline import within_call
from commonplace.core.memory.memories import Memo, Memory, Remembered, owner_of
from commonplace.core.people.authorization import GRAPH_WRITE, READ, Needs, Service, verb
from commonplace.errors import Conflict, EmbeddingFailed, Invalid, NotFound
from commonplace.model import (
    Caller,
    Candidate,
    CandidateState,
    EntityType,
    Item,
    ItemRef,
    Json,
    Proposal,
    Quote,
    Section,
    digest,
)
from commonplace.ports import Embedder, Reflector, Vector
from commonplace.text.chunking import embedding_text

SURE = 0.5  # confidence from which a candidate is stored without review
# owner of the idempotency keys of acceptances, so that two callers who accept one create one memory
REVIEW = "review"
MOST = 50  # candidates of a growing transcript, of which the new ones come first
UNTITLED = "Session reflection"


@dataclass(frozen=True, slots=True)
class Notes:
    content: str
    source_title: str = UNTITLED
    project: str | None = None
    session_key: str | None = None  # of a transcript that grows
    limit: int = 12
    persist: bool = False
    review: bool = False  # with `persist`: store nothing at once, queue all for review


@dataclass(frozen=True, slots=True)
class ReviewedCandidate:
    proposal: Proposal
    duplicates: tuple[FoundConflict, ...] = ()
    contradictions: tuple[FoundConflict, ...] = ()
    closest: SimilarStatement | None = None  # of what is neither
    kept: Item | None = None
    queued: Candidate | None = None


@dataclass(frozen=True, slots=True)
class ReflectResult:
    candidates: tuple[ReviewedCandidate, ...]
    source: Remembered | None = None  # the stored notes, if they were stored


@dataclass(eq=False)
class Reflection(Service):
    _embedder: Embedder
    _conflicts: Conflicts
    _reflector: Reflector
    _entities: Entities
    _memory: Memory

    async def reflect(self, caller: Caller, notes: Notes) -> ReflectResult:
        # reading, unless something is stored
        await self._access.admit(
            caller,
            Needs(GRAPH_WRITE if notes.persist else READ, "reflect"),
            notes.source_title[:200],
        )
        if notes.review and not notes.persist:
            raise Invalid(
                "`review` needs persist=true: it queues candidates instead of storing them"
            )
        notes = replace(
            notes,
            content=rules.content(notes.content),
            source_title=rules.title(notes.source_title),
        )
        project_id = await self._entities.project_id(caller, notes.project)
        before = await self._stored(caller, notes)
        proposals = await self._reflector.reflect(
            notes.source_title, notes.content, MOST if before else notes.limit
        )
        proposals = sorted(proposals, key=lambda one: _end(one) <= before)[: notes.limit]
        judged = await self._judged(caller, proposals)
        if not notes.persist:
            return ReflectResult(tuple(judged))
        return await self._persist(caller, notes, project_id, judged)

    async def queue(
        self, caller: Caller, source: Item, text: str, project_id: str | None, limit: int = 12
    ) -> int:
        """Extract candidates from a stored item for review, and return how many. The caller is
        authorized already."""
        proposals = await self._reflector.reflect(source.title, text, limit)
        await self._store.candidates.put(
            [
                Candidate(
                    str(uuid5(NAMESPACE_URL, f"{source.id}:{one.kind}:{one.content}")),
                    caller.library_id,
                    source.id,
                    owner_of(caller),
                    one,
                    project_id,
                )
                for one in proposals
            ]
        )
        return len(proposals)

    # -- the review queue

    @verb(READ, "list_candidates")
    async def candidates(
        self,
        caller: Caller,
        state: str | None = CandidateState.PENDING,
        *,
        limit: int = 50,
        offset: int = 0,
    ) -> tuple[list[Candidate], int]:
        return await self._store.candidates.list_page(
            caller.library_id, _whose(caller), state, limit=limit, offset=offset
        )

    @verb(READ, "read_candidate", target="candidate_id")
    async def candidate(self, caller: Caller, candidate_id: str) -> ReviewedCandidate:
        found = await self._store.candidates.get(caller.library_id, _whose(caller), candidate_id)
        return await self.compare(caller, found)

    async def compare(self, caller: Caller, found: Candidate) -> ReviewedCandidate:
        """Return a candidate with the existing items similar to it. The caller is authorized
        already."""
        [judged] = await self._judged(
            caller, [found.proposal], but=[found.item_id] if found.item_id else []
        )
        return replace(judged, queued=found)

    @verb(GRAPH_WRITE, "edit_candidate", target="candidate_id")
    async def edit(self, caller: Caller, candidate_id: str, changes: dict[str, Any]) -> Candidate:
        """Change kind, title, content or project of a candidate."""
        after = await self._edited(
            caller,
            await self._store.candidates.get(caller.library_id, _whose(caller), candidate_id),
            changes,
        )
        return await self._store.candidates.change(
            caller.library_id, _whose(caller), candidate_id, after.proposal, after.project_id
        )

    @verb(GRAPH_WRITE, "accept_candidate", target="candidate_id")
    async def accept(
        self, caller: Caller, candidate_id: str, changes: dict[str, Any]
    ) -> tuple[Candidate, Remembered]:
        """Turn a candidate into a memory, after optional changes."""
        found = await self._store.candidates.get(caller.library_id, _whose(caller), candidate_id)
        if changes:
            found = await self._edited(caller, found, changes)
        if found.state is CandidateState.REJECTED:
            raise Conflict("The candidate was already rejected.", state=found.state.value)
        kept = await self._accept(caller, found, await self._visible(caller, found.source_id))
        return (
            await self._store.candidates.get(caller.library_id, _whose(caller), candidate_id),
            kept,
        )

    @verb(GRAPH_WRITE, "reject_candidate", target="candidate_id")
    async def reject(self, caller: Caller, candidate_id: str) -> Candidate:
        return await self._store.candidates.decide(
            caller.scope, _whose(caller), candidate_id, CandidateState.REJECTED
        )

    # -- how

    async def _edited(
        self, caller: Caller, before: Candidate, changes: dict[str, Any]
    ) -> Candidate:
        if not changes:
            raise Invalid("There is nothing to change. Name at least one field.")
        if before.state is not CandidateState.PENDING:
            raise Conflict(f"The candidate was already {before.state}.", state=before.state.value)
        said = before.proposal
        proposal = replace(
            said,
            kind=rules.entity_type(changes.get("kind", said.kind)),
            title=rules.title(changes.get("title", said.title)),
            content=rules.content(changes.get("content", said.content)),
        )
        project_id = before.project_id
        if "project" in changes:
            project_id = await self._entities.project_id(caller, changes["project"])
        return replace(before, proposal=proposal, project_id=project_id)

    async def _persist(
        self,
        caller: Caller,
        notes: Notes,
        project_id: str | None,
        judged: Sequence[ReviewedCandidate],
    ) -> ReflectResult:
        """Store notes and candidates. Reflecting on the same notes again returns the first result;
        notes with the session key of earlier ones extend these."""
        key = _session_key(notes) or "reflect:" + digest(
            "\0".join([notes.content, notes.source_title, project_id or ""])
        )
        source = await self._memory.keep(
            caller,
            Memo(
                rules.NewEntity(
                    notes.source_title, notes.content, EntityType.SESSION, project=project_id
                ),
                key,
                {"kind": "reflection"},
            ),
            check_conflicts=False,
        )
        before = len(source.capture.text) if source.repeated else 0
        if notes.session_key and source.repeated:
            source = await self._memory.extend(caller, source, notes.content)
        quoted = source.item.id if await self._visible(caller, source.item.id) else None
        made = _candidates(caller, source, notes.content, judged, project_id)
        await self._store.candidates.put(made)
        done: list[ReviewedCandidate] = []
        for one, candidate in zip(judged, made, strict=True):
            # Another call, perhaps at the same time, may have queued or kept it.
            found = await self._store.candidates.get(caller.library_id, None, candidate.id)
            is_new = found.state is CandidateState.PENDING and _end(found.proposal) > before
            if found.state is CandidateState.ACCEPTED or (
                is_new and not notes.review and _can_be_kept(one, project_id)
            ):
                kept = await self._accept(caller, found, quoted, check_conflicts=False)
                done.append(replace(one, kept=kept.item))
            else:
                done.append(replace(one, queued=found))
        return ReflectResult(tuple(done), source)

    async def _stored(self, caller: Caller, notes: Notes) -> int:
        """Return how much of a growing transcript was stored before: what is new comes first."""
        key = notes.persist and _session_key(notes)
        capture = key and await self._store.captures.by_key(
            caller.library_id, owner_of(caller), key
        )
        words = capture.text.rstrip() if capture else ""
        return len(words) if notes.content.startswith(words) else 0

    async def _accept(
        self, caller: Caller, found: Candidate, source_id: str | None, **how: bool
    ) -> Remembered:
        memo = _memo(found.proposal, found.project_id, f"candidate:{found.id}", source_id)
        pending = found if found.state is CandidateState.PENDING else None
        return await self._memory.keep(caller, replace(memo, owner=REVIEW, accepts=pending), **how)

    async def _visible(self, caller: Caller, item_id: str) -> str | None:
        """Return the id if the caller sees the item. Items added by a token of several folders are
        in none yet."""
        try:
            return (await self._store.items.get(caller.scope, ItemRef(id=item_id))).id
        except NotFound:
            return None

    async def _judged(
        self, caller: Caller, proposals: Sequence[Proposal], but: Sequence[str] = ()
    ) -> list[ReviewedCandidate]:
        """Compare proposals with existing items."""
        judged: list[ReviewedCandidate] = []
        texts = [[embedding_text(one.title, Section(0, one.content))] for one in proposals]
        vectors: Sequence[Vector | None] = [None] * len(texts)  # then keywords are compared
        if texts:
            with suppress(EmbeddingFailed):
                found = await within_call(self._embedder.documents(texts))
                vectors = [each[0] for each in found]
        for proposal, vector in zip(proposals, vectors, strict=True):
            draft = Draft(
                proposal.title, proposal.content, [Part(proposal.content, vector)], proposal.kind
            )
            known = await self._conflicts.find(caller.scope, draft, but=but, where=HELD)
            same = [one for one in known.conflicts if one.kind in (DUPLICATE, NEAR_DUPLICATE)]
            judged.append(
                ReviewedCandidate(
                    proposal,
                    tuple(same),
                    tuple(one for one in known.conflicts if one not in same),
                    next(iter(known.similar), None),
                )
            )
        return judged


def _whose(caller: Caller) -> str | None:
    """Return whose candidates the caller sees: all with full scope, else their own."""
    return None if caller.whole_library else owner_of(caller)


def _can_be_kept(one: ReviewedCandidate, project_id: str | None) -> bool:
    needs_project = one.proposal.kind in rules.WORK and project_id is None
    return one.proposal.confidence >= SURE and not (
        one.duplicates or one.contradictions or needs_project
    )


def _session_key(notes: Notes) -> str:
    return f"reflect:session:{digest(notes.session_key)}" if notes.session_key else ""


def _end(said: Proposal) -> int:
    return max(quote.end for quote in said.quotes)


def _candidates(
    caller: Caller,
    source: Remembered,
    notes: str,
    judged: Sequence[ReviewedCandidate],
    project_id: str | None,
) -> list[Candidate]:
    """Return candidates with quotes of the stored session, which may begin before the notes.

    The place of its first sentence identifies a candidate: it stays as the session grows.
    """
    words = notes.strip()
    shift = max(0, source.capture.text.find(words)) - notes.find(words)
    places: Counter[str] = Counter()
    made = []
    for said in (one.proposal for one in judged):
        quotes = tuple(Quote(q.start + shift, q.end + shift, q.text) for q in said.quotes)
        place = f"{source.item.id}:{said.kind}:{quotes[0].start}:{digest(quotes[0].text)}"
        places[place] += 1
        made.append(
            Candidate(
                str(uuid5(NAMESPACE_URL, f"{owner_of(caller)}:{place}:{places[place]}")),
                caller.library_id,
                source.item.id,
                owner_of(caller),
                replace(said, quotes=quotes),
                project_id,
            )
        )
    return made


def _memo(proposal: Proposal, project_id: str | None, key: str, source_id: str | None) -> Memo:
    about: Json = {
        "confidence": proposal.confidence,
        "reason": proposal.reason,
        "sentences": [{"start": quote.start, "end": quote.end} for quote in proposal.quotes],
    }
    return Memo(
        rules.NewEntity(
            proposal.title,
            proposal.content,
            proposal.kind,
            project=project_id,
            metadata={"reflection": about},
        ),
        key,
        {"kind": "reflection", "sentences": [quote.text for quote in proposal.quotes]},
        derived_from=source_id,
    )
