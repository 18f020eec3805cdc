"""What a person's step changes, recorded in the transaction of the change: see `undo`."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from commonplace.database import Tx, as_json
from commonplace.model import Did, Item, Json, Scope, Step, now

# Fields that people choose. Others follow from these and from the text.
FIELDS = (
    "title",
    "tags",
    "auto_tags",
    "category",
    "status",
    "priority",
    "due_date",
    "valid_until",
    "review_by",
    "in_kb",
    "archived",
    "assignees",
    "languages",
    "technologies",
    "content_id",
)
_COLUMNS = "library_id, step_id, seq, kind, item_id, was, revision, before, after"


@dataclass(frozen=True, slots=True)
class _Entry:
    library_id: str
    step: Step
    kind: Did
    item_id: str | None
    before: Json | None
    after: Json | None
    was: int
    revision: int


def note(
    tx: Tx,
    scope: Scope,
    kind: Did,
    item_id: str | None = None,
    *,
    before: Json | None = None,
    after: Json | None = None,
    was: int = 0,
    revision: int = 0,
) -> None:
    """Record a change, if it is part of a step that can be undone."""
    if scope.step is not None:
        entry = _Entry(scope.library_id, scope.step, kind, item_id, before, after, was, revision)
        tx.defer(_write, entry)


def note_update(tx: Tx, scope: Scope, before: Item, after: Item) -> None:
    """Record a change of an item's fields."""
    if scope.step is None:
        return
    names = [name for name in FIELDS if getattr(before, name) != getattr(after, name)]
    keys = {
        key
        for key in before.metadata.keys() | after.metadata.keys()
        if part(before.metadata, [key]) != part(after.metadata, [key])
    }
    if names or keys:
        note(
            tx,
            scope,
            Did.CHANGED,
            before.id,
            before=fields_of(before, names, keys),
            after=fields_of(after, names, keys),
            was=before.revision,
            revision=after.revision,
        )


def fields_of(item: Item, names: Collection[str], keys: Collection[str]) -> Json:
    """Return fields of an item as JSON holds them; `keys`: those of its metadata."""
    found: Json = {}
    for name in names:
        value = getattr(item, name)
        found[name] = list(value) if isinstance(value, tuple) else value
    return found | {"metadata": part(item.metadata, keys)} if keys else found


def part(of: Json, keys: Collection[str]) -> Json:
    return {key: of[key] for key in sorted(keys) if key in of}


def forget(tx: Tx, library_id: str, item_ids: Collection[str]) -> None:
    """Delete what is recorded of items that are deleted for good, and of candidates that became
    them; steps that have changed anything else do not name them any more."""
    key = {"library_id": library_id}
    touched = set(
        tx.column(
            """DELETE FROM undo_rows WHERE library_id = :library_id AND item_id IN :ids
               RETURNING step_id""",
            ids=sorted(item_ids),
            **key,
        )
    )
    for step_id, seq, after in tx.tuples(
        """SELECT step_id, seq, after FROM undo_rows
           WHERE library_id = :library_id AND kind = :kind""",
        kind=str(Did.CANDIDATE),
        **key,
    ):
        if json.loads(after)["item_id"] in item_ids:
            tx.run(
                """DELETE FROM undo_rows
                   WHERE library_id = :library_id AND step_id = :step_id AND seq = :seq""",
                step_id=step_id,
                seq=seq,
                **key,
            )
            touched.add(step_id)
    if touched:
        tx.run(
            "UPDATE undo_steps SET said = '' WHERE library_id = :library_id AND id IN :ids",
            ids=sorted(touched),
            **key,
        )
        tx.run(
            """DELETE FROM undo_steps WHERE library_id = :library_id AND id IN :ids AND NOT EXISTS (
                   SELECT 1 FROM undo_rows AS r
                   WHERE r.library_id = undo_steps.library_id AND r.step_id = undo_steps.id)""",
            ids=sorted(touched),
            **key,
        )


def _write(tx: Tx, entries: list[_Entry]) -> None:
    library_id, step = entries[0].library_id, entries[0].step
    key = {"library_id": library_id, "step_id": step.id}
    if not step.recorded:
        tx.run(
            """INSERT INTO undo_steps (library_id, id, person_id, at)
               VALUES (:library_id, :step_id, :person_id, :at) ON CONFLICT DO NOTHING""",
            person_id=step.person_id,
            at=now(),
            **key,
        )
    last = tx.scalar(
        "SELECT max(seq) FROM undo_rows WHERE library_id = :library_id AND step_id = :step_id",
        **key,
    )
    tx.insert(
        "undo_rows",
        _COLUMNS,
        [
            (
                library_id,
                step.id,
                seq,
                str(each.kind),
                each.item_id,
                each.was,
                each.revision,
                _json(each.before),
                _json(each.after),
            )
            for seq, each in enumerate(entries, (last or 0) + 1)
        ],
    )
    step.recorded = True


def _json(value: Any) -> str | None:
    return None if value is None else as_json(value)
