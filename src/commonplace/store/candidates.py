"""Candidates: memories that notes suggest, waiting to be accepted, edited or rejected."""

import json
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from commonplace.database import Table, Tx, reads, writes
from commonplace.errors import Conflict, NotFound
from commonplace.model import (
    Candidate,
    CandidateState,
    Did,
    EventType,
    Json,
    Proposal,
    Quote,
    Scope,
    now,
)
from commonplace.store import rows
from commonplace.store.events import log
from commonplace.store.undo import journal

_COLUMNS = [f.name for kind in (Candidate, Proposal) for f in fields(kind) if f.name != "proposal"]
_INSERT = f"""INSERT INTO candidates ({", ".join(_COLUMNS)})
              VALUES ({", ".join(f":{name}" for name in _COLUMNS)})
              ON CONFLICT (library_id, id) DO NOTHING"""
_OWN = "library_id = :library_id AND owner = coalesce(:owner, owner)"
_CHANGEABLE = ("kind", "title", "content", "project_id", "state", "item_id", "decided_at")


class Candidates(Table):
    """`owner` limits a call to what this one queued; None stands for the whole library.

    A candidate that is decided stays as it is: Conflict.
    """

    @writes
    def put(self, tx: Tx, candidates: Sequence[Candidate]) -> None:
        """Insert candidates; those that exist stay as they are."""
        known = tx.column(
            "SELECT id FROM candidates WHERE library_id IN :libraries AND id IN :ids",
            libraries=sorted({each.library_id for each in candidates}),
            ids=[each.id for each in candidates],
        )
        tx.many(_INSERT, [_values(candidate) for candidate in candidates])
        for new in candidates:
            if new.id not in known:
                _tell(tx, new)

    @reads
    def exists_for(self, tx: Tx, library_id: str, source_id: str) -> bool:
        """Return whether the item has brought a candidate, decided or not."""
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
        """Return candidates, newest and most confident first, and their total."""
        condition = _OWN if state is None else f"{_OWN} AND state = :state"
        values = {"library_id": library_id, "owner": owner, "state": state}
        found = tx.all(
            f"""SELECT * FROM candidates WHERE {condition}
                ORDER BY created_at DESC, confidence DESC, id LIMIT :limit OFFSET :offset""",
            limit=limit,
            offset=offset,
            **values,
        )
        total = tx.scalar(f"SELECT count(*) FROM candidates WHERE {condition}", **values)
        return [_candidate(row) for row in found], total

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
        return _tell(
            tx,
            _update(
                tx,
                replace(
                    _pending(tx, library_id, owner, candidate_id),
                    proposal=proposal,
                    project_id=project_id,
                ),
            ),
        )

    @writes
    def decide(
        self,
        tx: Tx,
        scope: Scope,
        owner: str | None,
        candidate_id: str,
        state: CandidateState,
        item_id: str | None = None,
    ) -> Candidate:
        found = _pending(tx, scope.library_id, owner, candidate_id)
        decided = replace(found, state=state, item_id=item_id, decided_at=now())
        return _tell(tx, _decide(tx, scope, found, decided))


def _tell(tx: Tx, candidate: Candidate) -> Candidate:
    log.record(
        tx, EventType.CANDIDATE, candidate.library_id, [candidate.source_id], candidate.owner
    )
    return candidate


def accept_candidate(tx: Tx, scope: Scope, candidate: Candidate, item_id: str) -> None:
    """Accept a pending candidate, as it reads now, in the transaction that writes its memory."""
    found = _pending(tx, candidate.library_id, None, candidate.id)
    accepted = replace(candidate, state=CandidateState.ACCEPTED, item_id=item_id, decided_at=now())
    _decide(tx, scope, found, accepted)


def _decide(tx: Tx, scope: Scope, before: Candidate, after: Candidate) -> Candidate:
    was, is_now = (_values(each) for each in (before, after))
    journal.note(tx, scope, Did.CANDIDATE, before.source_id, before=was, after=is_now)
    return _update(tx, after)


def put_back(tx: Tx, before: Json, after: Json) -> None:
    """Undo a decision. Conflict: the candidate was changed since."""
    found = _find(tx, after["library_id"], None, after["id"], lock=True)
    if _values(found) != after:
        raise Conflict("The candidate was changed since.")
    _tell(tx, _update(tx, _candidate(before)))


def _update(tx: Tx, candidate: Candidate) -> Candidate:
    values = _values(candidate)
    tx.run(
        f"""UPDATE candidates SET {", ".join(f"{name} = :{name}" for name in _CHANGEABLE)}
            WHERE library_id = :library_id AND id = :id""",
        **{name: values[name] for name in ("library_id", "id", *_CHANGEABLE)},
    )
    return candidate


def _find(
    tx: Tx, library_id: str, owner: str | None, candidate_id: str, *, lock: bool = False
) -> Candidate:
    end = " FOR UPDATE" if lock and tx.engine == "postgres" else ""
    row = tx.one(
        f"SELECT * FROM candidates WHERE {_OWN} AND id = :id{end}",
        id=candidate_id,
        library_id=library_id,
        owner=owner,
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
    quotes = [[quote.start, quote.end, quote.text] for quote in candidate.proposal.quotes]
    return {
        field.name: rows.column(getattr(part, field.name))
        for part in (candidate, candidate.proposal)
        for field in fields(part)
        if field.name not in ("proposal", "quotes")
    } | {"quotes": rows.column(quotes)}


def _candidate(row: Any) -> Candidate:
    return rows.value(
        Candidate,
        row,
        proposal=rows.value(
            Proposal, row, quotes=tuple(Quote(*quote) for quote in json.loads(row["quotes"]))
        ),
    )
