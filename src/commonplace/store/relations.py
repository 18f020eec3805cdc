"""Relations, within a scope, and the rules that they keep for the items at their ends.

A task is part of at most one epic, and a task or epic belongs to one project: a new relation
replaces the old one. An item is `superseded` as long as an item that is neither wrong nor stale
replaces it, directly or not. Both are kept in the transaction that changes either.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from commonplace.database import Table, Tx, reads, scope_sql, writes
from commonplace.errors import Conflict, Invalid, NotFound
from commonplace.model import (
    EVERYTHING,
    STALE,
    SUPERSEDED,
    WRONG,
    Dependencies,
    Did,
    EventType,
    ItemFilter,
    ItemRef,
    Json,
    Kind,
    Neighbourhood,
    Relation,
    Scope,
    TaskWeights,
    Ticket,
    now,
)
from commonplace.store import graph_queries, rows
from commonplace.store.events import log
from commonplace.store.people import people
from commonplace.store.undo import journal

NAMED = 20  # items of a cycle that a refusal names
_KEY = "library_id = :library_id AND from_id = :from_id AND kind = :kind AND to_id = :to_id"
_UNLESS_EXPLICIT = """ON CONFLICT (library_id, from_id, kind, to_id)
    DO UPDATE SET weight = excluded.weight, explicit = excluded.explicit
    WHERE excluded.explicit > relations.explicit"""


class Relations(Table):
    """A relation whose ends are not both in scope does not exist for the caller."""

    @writes
    def put(self, tx: Tx, scope: Scope, relations: Sequence[Relation]) -> int:
        """Add relations; return how many are new. Explicit ones outlast derived ones.

        Invalid: dependencies would form a cycle, which the message names.
        """
        return put_relations(tx, scope, relations)

    @writes
    def replace_discovered(
        self, tx: Tx, scope: Scope, outdated: Sequence[Relation], found: Sequence[Relation]
    ) -> int:
        """Delete relations that nobody made explicit, and add others; return how many are new."""
        for relation in outdated:
            tx.run(f"DELETE FROM relations WHERE {_KEY} AND explicit = 0", **_key(relation))
        return put_relations(tx, scope, found)

    @writes
    def delete(self, tx: Tx, scope: Scope, from_id: str, kind: str, to_id: str) -> None:
        _require_visible(tx, scope, {from_id, to_id})
        if not drop_relations(tx, scope, [Relation(scope.library_id, from_id, kind, to_id)]):
            raise NotFound("Relation not found")

    @reads
    def of_items(
        self,
        tx: Tx,
        scope: Scope,
        item_ids: Sequence[str],
        kinds: Sequence[str] = (),
        *,
        outgoing: bool = False,
    ) -> list[Relation]:
        """Return relations that start or end at the items, oldest first; with `outgoing`, only
        those that start there."""
        wanted = " AND r.kind IN :kinds" if kinds else ""
        found: dict[Relation, None] = {}
        for end in ("from_id",) if outgoing else ("from_id", "to_id"):
            for relation in rows.every(
                tx,
                Relation,
                f"""SELECT r.* FROM relations AS r
                    JOIN items AS f ON f.library_id = r.library_id AND f.id = r.from_id
                    JOIN items AS t ON t.library_id = r.library_id AND t.id = r.to_id
                    WHERE r.library_id = :library_id AND r.{end} IN :ids{wanted}
                    AND {scope_sql.visible(scope, "f")} AND {scope_sql.visible(scope, "t")}
                    ORDER BY r.created_at, r.from_id, r.to_id""",
                ids=list(item_ids),
                kinds=list(kinds),
                **scope_sql.within(scope),
            ):
                found.setdefault(relation)
        return list(found)

    @reads
    def has_task(
        self, tx: Tx, scope: Scope, epic_id: str, statuses: Sequence[str], *, but: bool = False
    ) -> bool:
        """Return whether a task of the epic has one of these statuses, or with `but` another."""
        # CROSS JOIN: from the epic's own relations, and no further than to the first that fits.
        return (
            tx.one(
                f"""SELECT 1 FROM relations AS r CROSS JOIN items AS i
                    WHERE r.library_id = :library_id AND r.to_id = :epic_id AND r.kind = 'PART_OF'
                    AND i.id = r.from_id AND {scope_sql.visible(scope)} AND i.entity_type = 'task'
                    AND {"NOT " * but} i.status IN :statuses LIMIT 1""",
                epic_id=epic_id,
                statuses=list(statuses),
                **scope_sql.within(scope),
            )
            is not None
        )

    @reads
    def neighbourhood(
        self,
        tx: Tx,
        scope: Scope,
        ref: ItemRef,
        *,
        depth: int,
        limit: int,
        offset: int = 0,
        kinds: Sequence[str] = (),
        where: ItemFilter = EVERYTHING,
    ) -> Neighbourhood:
        """Return items within `depth` steps, nearest first, then by their best relation.

        Items out of scope are never traversed. `where` limits the results, not the traversal.
        """
        return graph_queries.neighbourhood(tx, scope, ref, depth, kinds, where, limit, offset)

    @reads
    def dependencies(
        self, tx: Tx, scope: Scope, ref: ItemRef, where: ItemFilter = EVERYTHING
    ) -> Dependencies:
        return graph_queries.dependencies(tx, scope, ref, where)

    @reads
    def dependency_pairs(self, tx: Tx, scope: Scope) -> list[tuple[str, str]]:
        return graph_queries.dependency_pairs(tx, scope)

    @reads
    def tickets(
        self,
        tx: Tx,
        scope: Scope,
        where: ItemFilter = EVERYTHING,
        *,
        project_id: str | None = None,
        assignee: str | None = None,
        worth: TaskWeights | None = None,
    ) -> tuple[list[Ticket], list[tuple[str, str]], int | None]:
        """Return matching tasks and epics in any order, and all dependency pairs.

        Tickets say whether they are inside the project, and the assignee's or nobody's. With
        `worth`, of more than 1,000 only those are returned that count most by themselves, with
        their dependencies; then the number of all matching tasks is returned too.
        """
        return graph_queries.tickets(tx, scope, where, project_id, assignee, worth)


def put_relations(
    tx: Tx, scope: Scope, relations: Sequence[Relation], new: str | None = None
) -> int:
    """Add relations; return how many are new.

    `new` is an item of this transaction; it may lie where its creator does not see it.
    """
    if not relations:
        return 0
    _require_visible(tx, scope, {end for r in relations for end in (r.from_id, r.to_id)} - {new})
    added = sum(_put(tx, scope, r, new) for r in relations)
    update_superseded(
        tx, scope.library_id, {r.to_id for r in relations if r.kind == Kind.SUPERSEDES}
    )
    return added


def _put(tx: Tx, scope: Scope, r: Relation, new: str | None) -> int:
    if r.kind in (Kind.DEPENDS_ON, Kind.SUPERSEDES):
        _refuse_cycle(tx, scope, r)
    _replace_single_relation(tx, scope, r)
    before = _row(tx, r)
    added = insert_relation(tx, r)
    if new not in (r.from_id, r.to_id) and (after := _row(tx, r)) != before:
        journal.note(tx, scope, Did.RELATION, r.from_id, before=before, after=after)
    return added


def _row(tx: Tx, r: Relation) -> Json | None:
    row = tx.one(f"SELECT * FROM relations WHERE {_KEY}", **_key(r))
    return None if row is None else dict(row)


def put_back(tx: Tx, scope: Scope, before: Json | None, after: Json | None) -> None:
    """Undo a change of a relation. Conflict: it was changed since."""
    said = rows.value(Relation, before or after)
    if _row(tx, said) != after:
        raise Conflict("A link was changed since.")
    if after is not None:
        drop_relations(tx, scope, [said])
    if before is not None:
        put_relations(tx, scope, [said])


def insert_relation(tx: Tx, r: Relation) -> int:
    """Insert a relation that keeps the rules; return 1 if it is new, else 0."""
    known = tx.one(f"SELECT 1 FROM relations WHERE {_KEY}", **_key(r))
    rows.insert(tx, "relations", r, _UNLESS_EXPLICIT)
    return 0 if known else 1


def _key(r: Relation) -> dict[str, str]:
    return {name: getattr(r, name) for name in ("library_id", "from_id", "kind", "to_id")}


def _refuse_cycle(tx: Tx, scope: Scope, r: Relation) -> None:
    # Within the transaction that writes: two that check first could close a cycle together.
    people.lock_library(tx, scope.library_id)
    names = [item.title for item in graph_queries.find_cycle(tx, scope, r.from_id, r.to_id, r.kind)]
    if not names:
        return
    if len(names) > NAMED:
        names = [*names[: NAMED - 1], f"({len(names) - NAMED} more)", names[-1]]
    if r.kind != Kind.SUPERSEDES:
        raise Invalid(f"Dependencies must not form a cycle: {' -> '.join(names)}.", cycle=names)
    if r.from_id == r.to_id:
        raise Invalid(f"{names[0]!r} cannot replace itself; name what does.", cycle=names)
    raise Invalid(
        f"{names[0]!r} cannot replace {names[1]!r}: it was itself replaced by it "
        f"({' <- '.join(names)}).",
        cycle=names,
    )


def _replace_single_relation(tx: Tx, scope: Scope, r: Relation) -> None:
    """Delete the task's other epic, or the task's or epic's other project.

    Also one that the caller does not see, or there would be two.
    """
    if r.kind not in (Kind.BELONGS_TO, Kind.PART_OF):
        return
    lock = " FOR NO KEY UPDATE" if tx.engine == "postgres" else ""
    if tx.scalar(
        f"SELECT entity_type FROM items WHERE library_id = :library_id AND id = :id{lock}",
        library_id=r.library_id,
        id=r.from_id,
    ) in ("task", "epic"):
        for row in tx.all(
            """DELETE FROM relations WHERE library_id = :library_id AND from_id = :from_id
               AND kind = :kind AND to_id <> :to_id RETURNING *""",
            **_key(r),
        ):
            journal.note(tx, scope, Did.RELATION, r.from_id, before=dict(row))


def is_replaced(tx: Tx, relation: Relation) -> bool:
    """Return whether an item belongs elsewhere by now, and can belong to one only."""
    return relation.kind in (Kind.BELONGS_TO, Kind.PART_OF) and bool(
        tx.one(
            """SELECT 1 FROM relations AS r JOIN items AS i
               ON i.library_id = r.library_id AND i.id = r.from_id
               WHERE r.library_id = :library_id AND r.from_id = :from_id AND r.kind = :kind
               AND r.to_id <> :to_id AND i.entity_type IN ('task', 'epic')""",
            library_id=relation.library_id,
            from_id=relation.from_id,
            kind=relation.kind,
            to_id=relation.to_id,
        )
    )


def drop_relations(tx: Tx, scope: Scope, relations: Sequence[Relation]) -> int:
    """Delete relations that the caller may delete; return how many there were."""
    gone = 0
    for r in relations:
        for row in tx.all(f"DELETE FROM relations WHERE {_KEY} RETURNING *", **_key(r)):
            journal.note(tx, scope, Did.RELATION, r.from_id, before=dict(row))
            gone += 1
    if freed := {r.to_id for r in relations if r.kind == Kind.SUPERSEDES}:
        update_superseded(tx, relations[0].library_id, freed)
    return gone


def _require_visible(tx: Tx, scope: Scope, item_ids: Iterable[str | None]) -> None:
    wanted = {item_id for item_id in item_ids if item_id is not None}
    seen = tx.column(
        f"SELECT i.id FROM items AS i WHERE i.id IN :ids AND {scope_sql.visible(scope)}",
        ids=sorted(wanted),
        **scope_sql.within(scope),
    )
    if unseen := sorted(wanted - set(seen)):
        raise NotFound("Item not found", ids=unseen)


# -- superseded items


def superseded_by(tx: Tx, library_id: str, item_id: str) -> list[str]:
    """Return the items that this one replaces."""
    return tx.column(
        """SELECT to_id FROM relations
           WHERE library_id = :library_id AND from_id = :item_id AND kind = 'SUPERSEDES'""",
        library_id=library_id,
        item_id=item_id,
    )


def relink_around(tx: Tx, library_id: str, item_id: str) -> list[dict[str, Any]]:
    """Before an item is deleted: let its replacements replace the items that it replaced.

    Return the new relations, as rows.
    """
    return [
        dict(row)
        for row in tx.all(
            """INSERT INTO relations (library_id, from_id, kind, to_id, weight, explicit,
                                      created_at)
               SELECT n.library_id, n.from_id, n.kind, o.to_id, n.weight, n.explicit,
                      n.created_at
               FROM relations AS n JOIN relations AS o
                    ON o.library_id = n.library_id AND o.from_id = n.to_id AND o.kind = n.kind
               WHERE n.library_id = :library_id AND n.to_id = :item_id
               AND n.kind = 'SUPERSEDES' AND n.from_id <> o.to_id
               ON CONFLICT DO NOTHING
               RETURNING library_id, from_id, kind, to_id, created_at""",
            library_id=library_id,
            item_id=item_id,
        )
    ]


def update_superseded(tx: Tx, library_id: str, item_ids: Collection[str]) -> None:
    """Set or clear the status `superseded` of these items and of those below them.

    Wrong ones stay wrong, and tasks and epics have statuses of their own.
    """
    if not item_ids:
        return
    people.lock_library(tx, library_id)
    for row in tx.all(
        """
        WITH RECURSIVE below (id) AS (
            SELECT i.id FROM items AS i WHERE i.library_id = :library_id AND i.id IN :ids
            UNION SELECT r.to_id FROM below JOIN relations AS r
                  ON r.library_id = :library_id AND r.from_id = below.id AND r.kind = 'SUPERSEDES'),
        above (id, newer) AS (
            SELECT below.id, r.from_id FROM below JOIN relations AS r
                   ON r.library_id = :library_id AND r.to_id = below.id AND r.kind = 'SUPERSEDES'
            UNION SELECT above.id, r.from_id FROM above JOIN relations AS r
                  ON r.library_id = :library_id AND r.to_id = above.newer
                     AND r.kind = 'SUPERSEDES')
        SELECT i.*, CASE WHEN EXISTS (
                        SELECT 1 FROM above JOIN items AS n
                               ON n.library_id = :library_id AND n.id = above.newer
                        WHERE above.id = i.id AND NOT n.status IN :not_holding)
                    THEN 1 ELSE 0 END AS replaced
        FROM below JOIN items AS i ON i.library_id = :library_id AND i.id = below.id
        WHERE NOT i.entity_type IN ('task', 'epic')""",
        library_id=library_id,
        ids=sorted(item_ids),
        not_holding=[WRONG, STALE],
    ):
        changes: dict[str, Any] = {}
        if row["replaced"] and row["status"] not in (SUPERSEDED, WRONG):
            changes = {"status": SUPERSEDED}
        elif not row["replaced"] and row["status"] == SUPERSEDED:
            changes = _restored(rows.item(row).metadata)
        if changes:
            changes |= {"updated_at": now()}
            tx.run(
                f"""UPDATE items SET {", ".join(f"{c} = :{c}" for c in changes)},
                           revision = revision + 1, {rows.CHANGED}
                    WHERE library_id = :library_id AND id = :id""",
                library_id=library_id,
                id=row["id"],
                **{c: rows.column(value) for c, value in changes.items()},
            )
            log.record(tx, EventType.CHANGED, library_id, [row["id"]], None)


def _restored(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the changes that make an item valid again, or stale if it was."""
    correction = metadata.get("correction")
    if isinstance(correction, dict) and correction.get("status") == STALE:
        return {"status": STALE}
    return {
        "status": "",
        "metadata": {name: value for name, value in metadata.items() if name != "correction"},
    }
