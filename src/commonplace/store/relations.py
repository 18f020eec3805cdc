"""Relations: both ends lie within the scope, whoever reads or writes them."""

from collections.abc import Iterable, Sequence

from commonplace.database import scope_sql
from commonplace.database.columns import micros
from commonplace.database.transaction import Tx
from commonplace.database.unit_of_work import Table, reads, writes
from commonplace.errors import Invalid, NotFound
from commonplace.model import (
    EVERYTHING,
    Dependencies,
    ItemFilter,
    ItemRef,
    Kind,
    Neighbourhood,
    Relation,
    Scope,
    TaskWeights,
    Ticket,
)
from commonplace.store import graph_queries, rows
from commonplace.store.relation_rules import (
    lock_library,
    replace_single_relation,
    update_superseded,
)

_INSERT = """INSERT INTO relations (library_id, from_id, kind, to_id, weight, explicit,
             created_at)
             VALUES (:library_id, :from_id, :kind, :to_id, :weight, :explicit, :created_at)
             ON CONFLICT (library_id, from_id, kind, to_id) DO UPDATE
             SET weight = excluded.weight, explicit = excluded.explicit
             WHERE excluded.explicit > relations.explicit"""


NAMED = 20  # items of a cycle that a refusal names


class Relations(Table):
    """Both ends lie within the scope, or the relation is not there. A task is part of one epic at most, and a task or an epic
    belongs to one project: what is put takes the place of what was there. An item is `superseded` for as long as something that
    is neither wrong nor stale replaces it, directly or not."""

    @writes
    def put(self, tx: Tx, scope: Scope, relations: Sequence[Relation]) -> int:
        """How many are new. What somebody said outlasts what was found by likeness. Invalid: tasks would wait for each
        other in a circle, which it names."""
        return put_relations(tx, scope, relations)

    @writes
    def delete(self, tx: Tx, scope: Scope, from_id: str, kind: str, to_id: str) -> None:
        _require_visible(tx, scope, {from_id, to_id})
        if not drop_relations(tx, [Relation(scope.library_id, from_id, kind, to_id)]):
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
        """Those that begin or end at one of the items, or with `outgoing` only those that begin there, oldest first."""

        here, there = scope_sql.visible(scope, "f"), scope_sql.visible(scope, "t")
        wanted = " AND r.kind IN :kinds" if kinds else ""
        found: dict[tuple[str, str, str], Relation] = {}
        for end in ("from_id",) if outgoing else ("from_id", "to_id"):
            for row in tx.all(
                f"""SELECT r.* FROM relations AS r
                    JOIN items AS f ON f.library_id = r.library_id AND f.id = r.from_id
                    JOIN items AS t ON t.library_id = r.library_id AND t.id = r.to_id
                    WHERE r.library_id = :library_id AND r.{end} IN :ids{wanted} AND {here[0]}
                    AND {there[0]}
                    ORDER BY r.created_at, r.from_id, r.to_id""",
                ids=list(item_ids),
                **({"kinds": list(kinds)} if kinds else {}),
                **here[1],
            ):
                found.setdefault((row["from_id"], row["kind"], row["to_id"]), rows.relation(row))
        return list(found.values())

    @reads
    def has_task(
        self, tx: Tx, scope: Scope, epic_id: str, statuses: Sequence[str], *, but: bool = False
    ) -> bool:
        """Whether a task of the epic has one of these statuses, or with `but` another one."""
        condition, values = scope_sql.visible(scope)
        # CROSS JOIN: from the epic's own relations, and no further than to the first that fits.
        return (
            tx.one(
                f"""SELECT 1 FROM relations AS r
                    CROSS JOIN items AS i
                    WHERE r.library_id = :library_id AND r.to_id = :epic_id
                    AND r.kind = 'PART_OF' AND i.id = r.from_id AND {condition}
                    AND i.entity_type = 'task' AND {"NOT " * but} i.status IN :statuses LIMIT 1""",
                epic_id=epic_id,
                statuses=list(statuses),
                **values,
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
        """What can be reached in so many steps, near before far, then the best joined first. Nothing out of scope is
        walked through; what `where` leaves out is, but not shown."""
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
        """Tasks and epics that are asked for, in any order, and all that depends on something. They say whether they are inside
        the project, and this person's or nobody's. With `worth`, of more than 1,000 only those that count most by themselves
        and what they depend on; then the number of all tasks inside that are theirs is told as well."""
        return graph_queries.tickets(tx, scope, where, project_id, assignee, worth)


def put_relations(
    tx: Tx, scope: Scope, relations: Sequence[Relation], new: str | None = None
) -> int:
    """How many are new. What somebody said outlasts what was found by likeness. `new`: an item that this transaction
    made; it may lie where its maker does not see it."""
    if not relations:
        return 0
    _require_visible(tx, scope, {end for r in relations for end in (r.from_id, r.to_id)} - {new})
    added = sum(_insert(tx, scope, r) for r in relations)
    update_superseded(
        tx, scope.library_id, {r.to_id for r in relations if r.kind == Kind.SUPERSEDES}
    )
    return added


def _insert(tx: Tx, scope: Scope, r: Relation) -> int:
    if r.kind in (Kind.DEPENDS_ON, Kind.SUPERSEDES):
        _refuse_circle(tx, scope, r)
    replace_single_relation(tx, r)
    return insert_relation(tx, r)


def _refuse_circle(tx: Tx, scope: Scope, r: Relation) -> None:
    """Within the transaction that writes: two who check first and write afterwards could close one together."""
    lock_library(tx, scope.library_id)
    names = [item.title for item in graph_queries.find_cycle(tx, scope, r.from_id, r.to_id, r.kind)]
    if len(names) > NAMED:
        names = [*names[: NAMED - 1], f"({len(names) - NAMED} more)", names[-1]]
    if names and r.kind == Kind.SUPERSEDES and r.from_id == r.to_id:
        raise Invalid(f"{names[0]!r} cannot replace itself; name what does.", cycle=names)
    if names and r.kind == Kind.SUPERSEDES:
        raise Invalid(
            f"{names[0]!r} cannot replace {names[1]!r}: it was itself replaced by it ({' <- '.join(names)}).",
            cycle=names,
        )
    if names:
        raise Invalid(f"Dependencies must not form a cycle: {' -> '.join(names)}.", cycle=names)


def drop_relations(tx: Tx, relations: Sequence[Relation]) -> int:
    """How many of them there were. Whoever calls this has seen to it that they are the caller's to drop."""
    gone = sum(
        tx.run(
            """DELETE FROM relations
               WHERE library_id = :library_id AND from_id = :from_id AND kind = :kind
               AND to_id = :to_id""",
            library_id=r.library_id,
            from_id=r.from_id,
            kind=r.kind,
            to_id=r.to_id,
        )
        for r in relations
    )
    if freed := {r.to_id for r in relations if r.kind == Kind.SUPERSEDES}:
        update_superseded(tx, relations[0].library_id, freed)
    return gone


def insert_relation(tx: Tx, r: Relation) -> int:
    known = tx.one(
        """SELECT 1 FROM relations
           WHERE library_id = :library_id AND from_id = :from_id AND kind = :kind
           AND to_id = :to_id""",
        library_id=r.library_id,
        from_id=r.from_id,
        kind=r.kind,
        to_id=r.to_id,
    )
    tx.run(
        _INSERT,
        library_id=r.library_id,
        from_id=r.from_id,
        kind=r.kind,
        to_id=r.to_id,
        weight=r.weight,
        explicit=int(r.explicit),
        created_at=micros(r.created_at),
    )
    return 0 if known else 1


def _require_visible(tx: Tx, scope: Scope, item_ids: Iterable[str | None]) -> None:
    wanted = {item_id for item_id in item_ids if item_id is not None}
    condition, values = scope_sql.visible(scope)
    seen = {
        row["id"]
        for row in tx.all(
            f"SELECT i.id FROM items AS i WHERE i.id IN :ids AND {condition}",
            ids=sorted(wanted),
            **values,
        )
    }
    if wanted - seen:
        raise NotFound("Item not found", ids=sorted(wanted - seen))
