"""Candidates: what notes may teach, waiting to be accepted, edited or rejected."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from commonplace.database.columns import from_micros, from_optional_micros, micros
from commonplace.database.transaction import Tx
from commonplace.database.unit_of_work import Table, reads, writes
from commonplace.errors import Conflict, NotFound
from commonplace.model import Candidate, CandidateState, Proposal, Quote, now

_COLUMNS = (
    "library_id",
    "id",
    "source_id",
    "owner",
    "kind",
    "title",
    "content",
    "confidence",
    "reason",
    "quotes",
    "project_id",
    "state",
    "item_id",
    "created_at",
    "decided_at",
)
_INSERT = f"""INSERT INTO candidates ({", ".join(_COLUMNS)})
              VALUES ({", ".join(":" + c for c in _COLUMNS)})
              ON CONFLICT (library_id, id) DO NOTHING"""


class Candidates(Table):
    """`owner`: only what this one queued; None: the library's. What is decided stays as it is: Conflict."""

    @writes
    def put(self, tx: Tx, candidates: Sequence[Candidate]) -> None:
        """Those that are there already stay as they are."""
        tx.many(_INSERT, [_values(candidate) for candidate in candidates])

    @reads
    def exists_for(self, tx: Tx, library_id: str, source_id: str) -> bool:
        """Whether there is one, decided or not, that this item brought."""
        return (
            tx.one(
                """SELECT 1 FROM candidates
                   WHERE library_id = :library_id AND source_id = :source_id LIMIT 1""",
                library_id=library_id,
                source_id=source_id,
            )
            is not None
        )

    @reads
    def list_page(
        self,
        tx: Tx,
        library_id: str,
        owner: str | None,
        state: str | None,
        *,
        limit: int,
        offset: int,
    ) -> tuple[list[Candidate], int]:
        """Newest and surest first, and how many there are in all."""

        condition, values = _within(library_id, owner)
        if state is not None:
            condition, values = f"{condition} AND state = :state", values | {"state": state}
        found = tx.all(
            f"""SELECT * FROM candidates
                WHERE {condition}
                ORDER BY created_at DESC, confidence DESC, id LIMIT :limit OFFSET :offset""",
            limit=limit,
            offset=offset,
            **values,
        )
        total = tx.one(f"SELECT count(*) AS n FROM candidates WHERE {condition}", **values)
        return [_candidate(row) for row in found], total["n"] if total else 0

    @reads
    def get(self, tx: Tx, library_id: str, owner: str | None, candidate_id: str) -> Candidate:
        return _find(tx, library_id, owner, candidate_id)

    @writes
    def change(
        self,
        tx: Tx,
        library_id: str,
        owner: str | None,
        candidate_id: str,
        proposal: Proposal,
        project_id: str | None,
    ) -> Candidate:
        before = _pending(tx, library_id, owner, candidate_id)
        after = replace(before, proposal=proposal, project_id=project_id)
        tx.run(
            """UPDATE candidates SET kind = :kind, title = :title, content = :content,
               project_id = :project_id
               WHERE library_id = :library_id AND id = :id""",
            library_id=library_id,
            id=candidate_id,
            kind=proposal.kind,
            title=proposal.title,
            content=proposal.content,
            project_id=project_id,
        )
        return after

    @writes
    def decide(
        self,
        tx: Tx,
        library_id: str,
        owner: str | None,
        candidate_id: str,
        state: CandidateState,
        item_id: str | None = None,
    ) -> Candidate:
        after = replace(
            _pending(tx, library_id, owner, candidate_id),
            state=state,
            item_id=item_id,
            decided_at=now(),
        )
        tx.run(
            """UPDATE candidates SET state = :state, item_id = :item_id,
               decided_at = :decided_at
               WHERE library_id = :library_id AND id = :id""",
            library_id=library_id,
            id=candidate_id,
            state=state.value,
            item_id=item_id,
            decided_at=micros(after.decided_at),
        )
        return after


def accept_candidate(tx: Tx, candidate: Candidate, item_id: str) -> None:
    """Mark a pending candidate as accepted, as it reads now, in the transaction that writes its memory."""
    _pending(tx, candidate.library_id, None, candidate.id)
    said = candidate.proposal
    tx.run(
        """UPDATE candidates SET kind = :kind, title = :title, content = :content,
           project_id = :project_id, state = :state, item_id = :item_id, decided_at = :at
           WHERE library_id = :library_id AND id = :id""",
        kind=said.kind,
        title=said.title,
        content=said.content,
        project_id=candidate.project_id,
        state=CandidateState.ACCEPTED.value,
        item_id=item_id,
        at=micros(now()),
        library_id=candidate.library_id,
        id=candidate.id,
    )


def _within(library_id: str, owner: str | None) -> tuple[str, dict[str, Any]]:
    if owner is None:
        return "library_id = :library_id", {"library_id": library_id}
    return "library_id = :library_id AND owner = :owner", {"library_id": library_id, "owner": owner}


def _find(
    tx: Tx, library_id: str, owner: str | None, candidate_id: str, *, lock: bool = False
) -> Candidate:
    condition, values = _within(library_id, owner)
    end = " FOR UPDATE" if lock and tx.engine == "postgres" else ""
    row = tx.one(
        f"SELECT * FROM candidates WHERE {condition} AND id = :id{end}", id=candidate_id, **values
    )
    if row is None:
        raise NotFound("Candidate not found")
    return _candidate(row)


def _pending(tx: Tx, library_id: str, owner: str | None, candidate_id: str) -> Candidate:
    found = _find(tx, library_id, owner, candidate_id, lock=True)
    if found.state is not CandidateState.PENDING:
        raise Conflict(f"The candidate was {found.state} already.", state=found.state.value)
    return found


def _values(candidate: Candidate) -> dict[str, Any]:
    proposal = candidate.proposal
    return {
        "library_id": candidate.library_id,
        "id": candidate.id,
        "source_id": candidate.source_id,
        "owner": candidate.owner,
        "kind": proposal.kind,
        "title": proposal.title,
        "content": proposal.content,
        "confidence": proposal.confidence,
        "reason": proposal.reason,
        "project_id": candidate.project_id,
        "state": candidate.state.value,
        "quotes": json.dumps(
            [[quote.start, quote.end, quote.text] for quote in proposal.quotes], ensure_ascii=False
        ),
        "item_id": candidate.item_id,
        "created_at": micros(candidate.created_at),
        "decided_at": micros(candidate.decided_at),
    }


def _candidate(row: Any) -> Candidate:
    quotes = tuple(Quote(*quote) for quote in json.loads(row["quotes"]))
    proposal = Proposal(
        row["kind"], row["title"], row["content"], row["confidence"], row["reason"], quotes
    )
    return Candidate(
        row["id"],
        row["library_id"],
        row["source_id"],
        row["owner"],
        proposal,
        row["project_id"],
        CandidateState(row["state"]),
        row["item_id"],
        from_micros(row["created_at"]),
        from_optional_micros(row["decided_at"]),
    )
