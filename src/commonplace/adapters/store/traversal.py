"""Walking along relations: one statement whatever the depth, and the scope holds at every hop.

From each item the walk follows its best relations only (said before found, heavy before light, new before old), and it
goes on from the best items that it came to: a hub costs no more than the rest.
"""

from collections.abc import Sequence
from typing import Any

from commonplace.adapters.store import rows
from commonplace.adapters.store.database import Tx
from commonplace.errors import NotFound
from commonplace.model import Dependencies, Item, ItemFilter, ItemRef, Reached, Relation, Scope, Surroundings, Ticket

FAN = 30         # relations that are followed from one item, each way
FRONT = 40      # items that the walk goes on from after a hop
REACH = 1_000    # items that are kept of a hop
CHAIN = 2_000    # items that one may depend on

NO_ITEM = "Item not found"
_ENDS = (("from_id", "to_id", "outgoing"), ("to_id", "from_id", "incoming"))


def around(tx: Tx, scope: Scope, ref: ItemRef, depth: int, kinds: Sequence[str], where: ItemFilter, limit: int,
           offset: int) -> Surroundings:
    # Direct neighbours can be paged through to the last; further away there is a bound to what is looked at.
    first = max(2 * FAN, offset + limit + 1) if depth == 1 else 2 * FAN
    asked, wanted = rows.matching(where)
    values = {**rows.visible(scope)[1], **wanted, **({"kinds": list(kinds)} if kinds else {})}
    start, name = _named(scope, ref)
    found = tx.all(_walk(tx.engine, scope, start, depth, bool(kinds), asked), first=first, fan=FAN, front=FRONT,
                   reach=max(REACH, 2 * first), limit=limit, offset=offset, **name, **values)
    if not found:
        raise NotFound(NO_ITEM)
    items = {row["id"]: row for row in found}
    center, *others = items.values()
    reached = tuple(Reached(rows.item(row), row["distance"], row["relation_kind"], row["direction"],
                            f"{row['via_type']}_{row['via_id']}") for row in others)
    total, cut = center["total"], bool(center["cut"])
    if cut and depth == 1:
        total, cut = tx.recall(_count, scope, center["id"], tuple(kinds), where), False
    relations = dict.fromkeys(_relation(scope, row) for row in found if row["e_via"] is not None)
    return Surroundings(rows.item(center), reached, tuple(relations), total, cut)


def _walk(engine: str, scope: Scope, start: str, depth: int, of_kinds: bool, asked: str) -> str:
    """The item itself first, then the page of those that were reached, each once for every relation that was followed to
    it from one that is shown; `total` and `cut` are on every row."""
    numbers = range(1, depth + 1)
    hops = ", ".join(_hop(engine, scope, number, of_kinds, asked if number == depth else "TRUE") for number in numbers)
    met = " UNION ALL ".join(f"SELECT * FROM hop{n}" for n in numbers)
    if asked != "TRUE":
        met = f"SELECT s.* FROM ({met}) AS s JOIN items AS i ON i.library_id = :library_id AND i.id = s.node WHERE {asked}"
    return f"""
        WITH hop0 AS MATERIALIZED (SELECT i.id AS node, i.id AS via, '' AS direction, '' AS kind, 1 AS explicit, 1.0 AS weight,
                                   i.created_at, 0 AS distance FROM items AS i WHERE {start}), {hops},
        met AS MATERIALIZED ({met}),
        shown AS MATERIALIZED (
            SELECT * FROM hop0 UNION ALL
            SELECT * FROM (SELECT s.* FROM met AS s ORDER BY s.distance, {_best("s")}, s.node LIMIT :limit OFFSET :offset) AS s),
        followed AS MATERIALIZED (
            SELECT e.* FROM ({" UNION ALL ".join(f"SELECT * FROM step{n}" for n in numbers)}) AS e
            WHERE e.node IN (SELECT node FROM shown) AND e.via IN (SELECT node FROM shown)),
        counted AS MATERIALIZED (SELECT (SELECT count(*) FROM met) AS total, {_cut(depth)} AS cut)
        SELECT s.distance, s.kind AS relation_kind, s.direction, counted.total, counted.cut,
               v.entity_type AS via_type, v.public_id AS via_id, e.via AS e_via, e.direction AS e_direction, e.kind AS e_kind,
               e.explicit AS e_explicit, e.weight AS e_weight, e.created_at AS e_created_at,
               {", ".join(f"i.{column}" for column in rows.ITEM_COLUMNS)}
        FROM shown AS s JOIN items AS i ON i.library_id = :library_id AND i.id = s.node
        JOIN items AS v ON v.library_id = :library_id AND v.id = s.via CROSS JOIN counted
        LEFT JOIN followed AS e ON e.node = s.node
        ORDER BY s.distance, {_best("s")}, s.node, {_best("e")}"""


def _hop(engine: str, scope: Scope, number: int, of_kinds: bool, asked: str) -> str:
    """One step from the best items of the hop before, to those that no earlier hop came to, and how each was come to."""
    seen = " UNION ALL ".join(f"SELECT node FROM hop{before}" for before in range(number))
    front = f"(SELECT h.node FROM hop{number - 1} AS h ORDER BY {_best('h')}, h.node LIMIT :front) AS h"
    ways = " UNION ALL ".join(
        f"""SELECT b.{far} AS node, h.node AS via, '{direction}' AS direction, b.kind, b.explicit, b.weight, b.created_at
            FROM {front} {_best_relations(engine, scope, near, far, of_kinds, asked, ":first" if number == 1 else ":fan")}"""
        for near, far, direction in _ENDS)
    return f"""step{number} AS MATERIALIZED ({ways}), hop{number} AS MATERIALIZED (
        SELECT node, via, direction, kind, explicit, weight, created_at, {number} AS distance FROM (
            SELECT w.*, row_number() OVER (PARTITION BY w.node ORDER BY {_best("w")}, w.via, w.direction DESC, w.kind) AS place
            FROM step{number} AS w WHERE NOT w.node IN ({seen})) AS w
        WHERE w.place = 1 ORDER BY {_best("w")}, w.node LIMIT :reach)"""


def _cut(depth: int) -> str:
    """More than 0 when some relations were not followed, or some items not gone on from."""
    return " + ".join(
        f"""(SELECT count(*) FROM (SELECT 1 FROM step{n} GROUP BY via, direction
                                   HAVING count(*) >= {":first" if n == 1 else ":fan"}) AS f)
            + (SELECT CASE WHEN count(*) >= :reach OR {n} < {depth} AND count(*) > :front THEN 1 ELSE 0 END FROM hop{n})"""
        for n in range(1, depth + 1))


def _relation(scope: Scope, row: Any) -> Relation:
    """The one that was followed to the row's item."""
    ends = (row["e_via"], row["id"]) if row["e_direction"] == "outgoing" else (row["id"], row["e_via"])
    return Relation(scope.library_id, ends[0], row["e_kind"], ends[1], row["e_weight"], bool(row["e_explicit"]),
                    rows.when(row["e_created_at"]))


def _best_relations(engine: str, scope: Scope, near: str, far: str, of_kinds: bool, asked: str,
                    fan: str) -> str:
    """JOIN the best relations of each `h.node` as `b`. An index has them in this order."""
    best = (f"FROM relations AS r WHERE r.{near} = h.node AND {_followed(scope, far, of_kinds, asked)}"
            f" ORDER BY {_best('r')}, r.{far} LIMIT {fan}")
    if engine == "postgres":
        return f"CROSS JOIN LATERAL (SELECT r.* {best}) AS b"
    return f"JOIN relations AS b ON b.rowid IN (SELECT r.rowid {best})"


def _followed(scope: Scope, far: str, of_kinds: bool, asked: str) -> str:
    condition = "r.library_id = :library_id"
    if of_kinds:
        condition += " AND r.kind || '' IN :kinds"  # an expression, or the index by kind would be taken, and all of it sorted
    return f"{condition} AND {_seen(scope, far, asked)}"


def _seen(scope: Scope, end: str, asked: str = "TRUE") -> str:
    """The condition for an end of `relations AS r` that is in scope, and asked for. That it is there need not be looked up."""
    if not scope.kb_only and asked == "TRUE":
        return "TRUE" if scope.folders is None else rows.filed("r.library_id", f"r.{end}")
    return f"EXISTS (SELECT 1 FROM items AS i WHERE i.id = r.{end} AND {rows.visible(scope)[0]} AND {asked})"


def _count(tx: Tx, scope: Scope, center: str, kinds: tuple[str, ...], where: ItemFilter) -> int:
    """All neighbours of a hub: what takes longest of a page of them, and is the same for the next."""
    (asked, wanted), (_, values) = rows.matching(where), rows.visible(scope)
    ways = " UNION ".join(f"SELECT r.{far} AS node FROM relations AS r WHERE r.{near} = :center"
                          f" AND {_followed(scope, far, bool(kinds), asked)}" for near, far, _ in _ENDS)
    row = tx.one(f"SELECT count(*) AS n FROM ({ways}) AS w", center=center, **values, **wanted,
                 **({"kinds": list(kinds)} if kinds else {}))
    return row["n"] if row else 0


def dependencies(tx: Tx, scope: Scope, ref: ItemRef, where: ItemFilter) -> Dependencies:
    asked, wanted = rows.matching(where)
    condition, values = rows.visible(scope)
    start, name = _named(scope, ref)
    found = tx.all(f"""
        WITH RECURSIVE chain (node) AS (
            SELECT i.id FROM items AS i WHERE {start}
            UNION SELECT i.id FROM chain JOIN relations AS r ON r.library_id = :library_id AND r.from_id = chain.node
                  AND r.kind = 'DEPENDS_ON' JOIN items AS i ON i.id = r.to_id AND {condition})
        SELECT {", ".join(f"i.{column}" for column in rows.ITEM_COLUMNS)}, CASE WHEN {asked} THEN 1 ELSE 0 END AS asked
        FROM (SELECT node FROM chain LIMIT :bound) AS c JOIN items AS i ON i.library_id = :library_id AND i.id = c.node
        ORDER BY i.created_at, i.id""", bound=CHAIN + 1, **name, **wanted, **values)
    items = {row["id"]: rows.item(row) for row in found}
    center = next((item for item in items.values() if item.id == ref.id or item.public_id == ref.public_id), None)
    if center is None:
        raise NotFound(NO_ITEM)
    return Dependencies(center, tuple(items.values()), tuple(_waits(tx, scope, list(items))),
                        frozenset(row["id"] for row in found if row["asked"]), len(items) > CHAIN)


def tickets(tx: Tx, scope: Scope, where: ItemFilter, project_id: str | None,
            assignee: str | None) -> tuple[list[Ticket], list[tuple[str, str]]]:
    """There may be tens of thousands: only what orders them is read, and all that waits in one go, by an index of its own."""
    (condition, values), (asked, wanted) = rows.visible(scope), rows.matching(where)
    inside, theirs = "TRUE", "TRUE"
    if project_id is not None:
        inside = """i.id IN (SELECT from_id FROM relations WHERE library_id = :library_id AND to_id = :project_id
                             AND kind = 'BELONGS_TO')"""
        wanted["project_id"] = project_id
    if assignee is not None:
        theirs = f"(i.assignees = '[]' OR {rows.listing('i.assignees', 'theirs')})"
        wanted["theirs"] = rows.in_list(assignee)
    here = tx.bare(f"""SELECT i.id, i.entity_type, i.status, i.priority, i.due_date, i.created_at, {inside}, {theirs}
                       FROM items AS i WHERE {condition} AND {asked} AND i.entity_type IN ('task', 'epic')""", **values, **wanted)
    waits = tx.bare(f"""SELECT r.from_id, r.to_id FROM relations AS r WHERE r.library_id = :library_id AND r.kind = 'DEPENDS_ON'
                        AND {_seen(scope, "from_id")} AND {_seen(scope, "to_id")} ORDER BY r.from_id, r.to_id""", **values)
    return [Ticket._make(row) for row in here], [(from_id, to_id) for from_id, to_id in waits]


def circle(tx: Tx, scope: Scope, from_id: str, to_id: str, kind: str = "DEPENDS_ON") -> list[Item]:
    """A shortest one: the way back from the second to the first."""
    before = {to_id: to_id}
    frontier = [to_id]
    while frontier and from_id not in before:
        frontier = [before.setdefault(r.to_id, r.from_id) and r.to_id for r in _waits(tx, scope, frontier, kind, within=False)
                    if r.to_id not in before]
    if from_id not in before:
        return []
    way = [from_id]
    while way[-1] != to_id:
        way.append(before[way[-1]])
    condition, values = rows.visible(scope)
    found = tx.all(f"{rows.SELECT_ITEM} WHERE i.id IN :ids AND {condition}", ids=way, **values)
    items = {row["id"]: rows.item(row) for row in found}
    return [items[node] for node in [from_id, *reversed(way)]]


def _waits(tx: Tx, scope: Scope, ids: Sequence[str], kind: str = "DEPENDS_ON", *, within: bool = True) -> list[Relation]:
    """What the items depend on (or are joined to in another way), in scope; `within`: of each other."""
    condition, values = rows.visible(scope)
    return [rows.relation(row) for row in tx.all(
        f"""SELECT r.* FROM relations AS r JOIN items AS i ON i.id = r.to_id AND {condition}
            WHERE r.library_id = :library_id AND r.from_id IN :ids AND r.kind = :kind
            {"AND r.to_id IN :ids" if within else ""} ORDER BY i.created_at, r.from_id, r.to_id""",
        ids=list(ids), kind=kind, **values)]


def _named(scope: Scope, ref: ItemRef) -> tuple[str, dict[str, Any]]:
    """The condition for the one item by any of its three names, within the scope."""
    condition, _ = rows.visible(scope)
    if ref.id is not None:
        return f"{condition} AND i.id = :named", {"named": ref.id}
    if ref.entity_type is None:
        return f"{condition} AND i.public_id = :named", {"named": ref.public_id}
    return f"{condition} AND i.public_id = :named AND i.entity_type = :named_type", {
        "named": ref.public_id, "named_type": ref.entity_type}


def _best(name: str) -> str:
    return f"{name}.explicit DESC, {name}.weight DESC, {name}.created_at DESC"
