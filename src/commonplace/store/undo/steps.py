"""The steps of people that can be undone, with what each changed: see `journal`."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from commonplace.database import Tx, reads, writes
from commonplace.errors import Conflict, NotFound
from commonplace.model import (
    UNDO_KEPT,
    Change,
    Did,
    Item,
    ItemRef,
    Json,
    Scope,
    StepSummary,
    now,
)
from commonplace.store import candidates, item_queries, relations, rows
from commonplace.store.items import Items
from commonplace.store.undo import journal

SHOWN = 3  # items of a step
LISTED = 100
CLAIMED = timedelta(minutes=1)  # after which another request may go on with what one has begun
_KEY = "library_id = :library_id AND step_id = :step_id"
_OWN = "s.library_id = :library_id AND s.person_id = :person_id AND s.at >= :since"


class Undo(Items):
    @reads
    def list_steps(self, tx: Tx, library_id: str, person_id: str) -> list[StepSummary]:
        """Return what a person can undo, newest first."""
        found = tx.all(
            f"""SELECT s.id, s.at, s.said FROM undo_steps AS s WHERE {_OWN} AND EXISTS (
                    SELECT 1 FROM undo_rows AS r
                    WHERE r.library_id = s.library_id AND r.step_id = s.id)
                ORDER BY s.at DESC, s.id LIMIT :most""",
            most=LISTED,
            **_own(library_id, person_id),
        )
        items: dict[str, dict[str, None]] = {}
        for step_id, item_id in tx.tuples(
            """SELECT step_id, item_id FROM undo_rows WHERE library_id = :library_id
               AND step_id IN :ids AND item_id IS NOT NULL AND seq <= :most ORDER BY seq""",
            library_id=library_id,
            ids=[row["id"] for row in found],
            most=2 * SHOWN,
        ):
            items.setdefault(step_id, {})[item_id] = None
        return [
            rows.value(StepSummary, row, item_ids=tuple(items.get(row["id"], ()))[:SHOWN])
            for row in found
        ]

    @writes
    def name_step(self, tx: Tx, library_id: str, step_id: str, said: str) -> None:
        tx.run(
            """UPDATE undo_steps SET said = :said
               WHERE library_id = :library_id AND id = :step_id""",
            library_id=library_id,
            step_id=step_id,
            said=said,
        )

    @writes
    def claim(self, tx: Tx, library_id: str, person_id: str, step_id: str) -> list[Change]:
        """Return the changes of a step, last one first, for this request alone to undo. NotFound:
        there is nothing to undo any more."""
        at = now()
        claimed = tx.run(
            f"""UPDATE undo_steps AS s SET claimed_at = :at WHERE {_OWN} AND s.id = :step_id
                AND (s.claimed_at IS NULL OR s.claimed_at < :before)""",
            step_id=step_id,
            at=at,
            before=at - CLAIMED,
            **_own(library_id, person_id),
        )
        found = tx.all(
            f"SELECT * FROM undo_rows WHERE {_KEY} ORDER BY seq DESC",
            library_id=library_id,
            step_id=step_id,
        )
        if not claimed or not found:
            raise NotFound("This change was undone already, or is older than a day.")
        return [
            rows.value(
                Change,
                row,
                before=_parsed(row["before"]),
                after=_parsed(row["after"]),
            )
            for row in found
        ]

    @writes
    def release(self, tx: Tx, library_id: str, step_id: str, undone: Sequence[int]) -> None:
        """Forget what was undone of a step; the rest may be tried again."""
        key = {"library_id": library_id, "step_id": step_id}
        tx.run(f"DELETE FROM undo_rows WHERE {_KEY} AND seq IN :seqs", seqs=list(undone), **key)
        tx.run(
            """UPDATE undo_steps SET claimed_at = NULL
               WHERE library_id = :library_id AND id = :step_id""",
            **key,
        )

    @writes
    def prune(self, tx: Tx) -> None:
        tx.run("DELETE FROM undo_steps WHERE at < :before", before=now() - UNDO_KEPT)

    # -- what was changed

    @reads
    def find_changed(self, tx: Tx, scope: Scope, change: Change) -> Item | None:
        """Return an item that still is as a change left it; None if it is as it was before already.
        Conflict: it was changed since."""
        item = item_queries.find(tx, scope, ItemRef(id=change.item_id))
        return _unchanged(tx, item, change)

    @writes
    def put_back_fields(
        self, tx: Tx, scope: Scope, changes: Sequence[Change]
    ) -> list[tuple[Change, str]]:
        """Give items the fields that they had; return those that were changed since, and why."""
        refused = []
        for change in changes:
            try:
                ref = ItemRef(id=change.item_id)
                item = _unchanged(tx, item_queries.find(tx, scope, ref, lock=True), change)
            except (Conflict, NotFound) as error:
                refused.append((change, error.message))
                continue
            if item is not None:
                after = self._update(tx, scope, item.id, earlier_fields(item, change))
                _follow(tx, change, item, after)
        return refused

    @writes
    def follow(self, tx: Tx, change: Change, before: Item, after: Item) -> None:
        """Let earlier changes of an item count as unchanged, now that a later one was undone."""
        _follow(tx, change, before, after)

    @writes
    def put_back_candidate(self, tx: Tx, before: Json, after: Json) -> None:
        candidates.put_back(tx, before, after)

    @writes
    def put_back_relation(
        self, tx: Tx, scope: Scope, before: Json | None, after: Json | None
    ) -> None:
        relations.put_back(tx, scope, before, after)


def earlier_fields(item: Item, change: Change) -> dict[str, Any]:
    """Return the fields to give to an item again. Its text is another matter."""
    before, after = change.before or {}, change.after or {}
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in before.items()
        if name not in ("metadata", "content_id")
    }
    if "metadata" in before:
        changed = {*before["metadata"], *after["metadata"]}
        kept = {key: value for key, value in item.metadata.items() if key not in changed}
        fields["metadata"] = kept | before["metadata"]
    return fields


def _unchanged(tx: Tx, item: Item, change: Change) -> Item | None:
    before, after = (_chosen(each or {}) for each in (change.before, change.after))
    keys = {*before.get("metadata", ()), *after.get("metadata", ())}
    present = journal.fields_of(item, [name for name in after if name != "metadata"], keys)
    if after and present == before:
        return None
    # A status may have been left and entered again.
    whole = change.kind is not Did.CHANGED or "status" in after
    if present != after or (whole and item.revision != _revision(tx, change)):
        raise Conflict(f"“{item.title}” was changed since.")
    return item


def _chosen(fields: Json) -> Json:
    """Leave out what is derived from a text some time after it was added."""
    return {name: value for name, value in fields.items() if name != "auto_tags"}


def _revision(tx: Tx, change: Change) -> int:
    """Return the revision that the item has if nobody else has changed it."""
    return int(
        tx.scalar(
            f"SELECT revision FROM undo_rows WHERE {_KEY} AND seq = :seq",
            library_id=change.library_id,
            step_id=change.step_id,
            seq=change.seq,
        )
    )


def _follow(tx: Tx, change: Change, before: Item, after: Item) -> None:
    if before.revision == _revision(tx, change):
        tx.run(
            """UPDATE undo_rows SET revision = :now WHERE library_id = :library_id
               AND item_id = :item_id AND revision = :was""",
            library_id=before.library_id,
            item_id=before.id,
            was=change.was,
            now=after.revision,
        )


def _own(library_id: str, person_id: str) -> dict[str, str | datetime]:
    return {"library_id": library_id, "person_id": person_id, "since": now() - UNDO_KEPT}


def _parsed(stored: str | None) -> Json | None:
    return None if stored is None else json.loads(stored)
