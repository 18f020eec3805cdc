"""Graph traversal along relations: one statement a hop, within the scope at every hop.

From each item only the best relations are followed (explicit before derived, heavy before light,
new before old), and only the best items are expanded: a hub costs no more than other items.
"""

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from commonplace.database import Tx, from_micros, scope_sql
from commonplace.model import (
    Dependencies,
    Item,
    ItemFilter,
    ItemRef,
    Neighbour,
    Neighbourhood,
    Relation,
    Scope,
    TaskWeights,
    Ticket,
)
from commonplace.store import item_queries, rows

FAN = 30  # relations that are followed from one item, each way
FRONT = 40  # items that the walk goes on from after a hop
REACH = 1_000  # items that are kept of a hop
CHAIN = 2_000  # items that one may depend on
LEVELS = 50  # of what these depend on
SHORTLIST = 500  # open tasks compared if there are very many: 500 begun, and 500 that are not

_COLUMNS = ", ".join(f"i.{column}" for column in rows.ITEM_COLUMNS)
_ENDS = (("from_id", "to_id", "outgoing"), ("to_id", "from_id", "incoming"))


class Step(NamedTuple):
    """One relation that was followed from `via` to `node`."""

    node: str
    via: str
    direction: str
    kind: str
    explicit: int
    weight: float
    created_at: int

    def relation(self, library_id: str) -> Relation:
        ends = (self.via, self.node) if self.direction == "outgoing" else (self.node, self.via)
        return Relation(
            library_id,
            ends[0],
            self.kind,
            ends[1],
            self.weight,
            bool(self.explicit),
            from_micros(self.created_at),
        )


def neighbourhood(
    tx: Tx,
    scope: Scope,
    ref: ItemRef,
    depth: int,
    kinds: Sequence[str],
    where: ItemFilter,
    limit: int,
    offset: int,
) -> Neighbourhood:
    # All direct neighbours can be paged through; further away, the number is limited.
    first = max(2 * FAN, offset + limit + 1) if depth == 1 else 2 * FAN
    asked, wanted = scope_sql.matching(where)
    center = rows.item(item_queries.find_row(tx, scope, ref))
    # Distance and best step to each item, in the order to show them.
    met: dict[str, tuple[int, Step]] = {}
    followed: list[Step] = []
    front, cut = [center.id], False
    for distance in range(1, depth + 1):
        fan = first if distance == 1 else FAN
        steps = _steps(tx, scope, front, kinds, where if distance == depth else ItemFilter(), fan)
        hop = _best_ways(steps, {center.id, *met}, max(REACH, 2 * first))
        cut = cut or (
            len(hop) >= max(REACH, 2 * first)
            or (distance < depth and len(hop) > FRONT)
            or any(n >= fan for n in Counter((step.via, step.direction) for step in steps).values())
        )
        met |= {node: (distance, step) for node, step in hop.items()}
        followed += steps
        front = list(hop)[:FRONT]
    if asked != "TRUE" and depth > 1:  # items on the way need not match the filter
        kept = set(
            tx.column(
                f"""SELECT i.id FROM items AS i
                WHERE i.library_id = :library_id AND i.id IN :met AND {asked}""",
                library_id=scope.library_id,
                met=list(met),
                **wanted,
            )
        )
        met = {node: way for node, way in met.items() if node in kept}
    shown = dict(list(met.items())[offset : offset + limit])
    total = len(met)
    if cut and depth == 1:
        total, cut = tx.recall(_count, scope, center.id, tuple(kinds), where), False
    items = {
        row["id"]: rows.item(row)
        for row in tx.all(
            f"SELECT {_COLUMNS} FROM items AS i WHERE i.library_id = :library_id AND i.id IN :ids",
            library_id=scope.library_id,
            ids=[*{*shown, *(step.via for _, step in shown.values())}],
        )
    }
    reached = tuple(
        Neighbour(items[node], distance, step.kind, step.direction, items[step.via].entity_id)
        for node, (distance, step) in shown.items()
    )
    places = {node: place for place, node in enumerate((center.id, *shown))}
    relations = dict.fromkeys(
        step.relation(scope.library_id)
        for step in sorted(
            (step for step in followed if step.node in places and step.via in places),
            key=lambda step: (places[step.node], _rank(step)),
        )
    )
    return Neighbourhood(center, reached, tuple(relations), total, cut)


def _best_ways(steps: Iterable[Step], seen: set[str], most: int) -> dict[str, Step]:
    """Return the best step to each item that was not seen yet, best item first."""
    ways: dict[str, Step] = {}
    for step in sorted(
        steps, key=lambda step: (_rank(step), step.via, step.direction == "incoming", step.kind)
    ):
        if step.node not in seen:
            ways.setdefault(step.node, step)
    return dict(sorted(ways.items(), key=lambda way: (_rank(way[1]), way[0]))[:most])


def _rank(step: Step) -> tuple[int, float, int]:
    """Order as the index of relations does."""
    return -step.explicit, -step.weight, -step.created_at


def _steps(
    tx: Tx, scope: Scope, front: Sequence[str], kinds: Sequence[str], where: ItemFilter, fan: int
) -> list[Step]:
    """Return the best relations of each item of the front, both ways, in an index's order."""
    asked, wanted = scope_sql.matching(where)
    ways = []
    for near, far, direction in _ENDS:
        best = (
            f"FROM relations AS r WHERE r.{near} = h.id"
            f" AND {_followed(scope, far, bool(kinds), asked)}"
            f" ORDER BY r.explicit DESC, r.weight DESC, r.created_at DESC, r.{far} LIMIT :fan"
        )
        joined = (
            f"CROSS JOIN LATERAL (SELECT r.* {best}) AS b"
            if tx.engine == "postgres"
            else f"JOIN relations AS b ON b.rowid IN (SELECT r.rowid {best})"
        )
        ways.append(f"""SELECT b.{far}, h.id, '{direction}', b.kind, b.explicit, b.weight,
                        b.created_at FROM items AS h {joined}
                        WHERE h.library_id = :library_id AND h.id IN :front""")
    return [
        Step._make(row)
        for row in tx.tuples(
            " UNION ALL ".join(ways),
            front=list(front),
            fan=fan,
            **scope_sql.within(scope),
            **wanted,
            **({"kinds": list(kinds)} if kinds else {}),
        )
    ]


def _followed(scope: Scope, far: str, of_kinds: bool, asked: str) -> str:
    condition = "r.library_id = :library_id"
    if of_kinds:
        # An expression, or the index by kind would be used, and all of it sorted.
        condition += " AND r.kind || '' IN :kinds"
    return f"{condition} AND {_seen(scope, far, asked)}"


def _seen(scope: Scope, end: str, asked: str = "TRUE") -> str:
    """Return the condition for an end of `relations AS r` that is in scope and matches.

    Foreign keys ensure that it exists.
    """
    if not scope.kb_only and asked == "TRUE" and scope.folders is None:
        return "TRUE"
    if not scope.kb_only and asked == "TRUE":
        return scope_sql.in_scope_folders("r.library_id", f"r.{end}")
    return f"""EXISTS (SELECT 1 FROM items AS i WHERE i.id = r.{end}
               AND {scope_sql.visible(scope)} AND {asked})"""


def _count(tx: Tx, scope: Scope, center: str, kinds: tuple[str, ...], where: ItemFilter) -> int:
    """Count all neighbours of a hub: the slowest part of a page, and the same for the next."""
    asked, wanted = scope_sql.matching(where)
    ways = " UNION ".join(
        f"SELECT r.{far} AS node FROM relations AS r WHERE r.{near} = :center"
        f" AND {_followed(scope, far, bool(kinds), asked)}"
        for near, far, _ in _ENDS
    )
    return int(
        tx.scalar(
            f"SELECT count(*) FROM ({ways}) AS w",
            center=center,
            **scope_sql.within(scope),
            **wanted,
            **({"kinds": list(kinds)} if kinds else {}),
        )
    )


def dependencies(tx: Tx, scope: Scope, ref: ItemRef, where: ItemFilter) -> Dependencies:
    asked, wanted = scope_sql.matching(where)
    center = item_queries.find_row(tx, scope, ref)["id"]
    # CROSS JOIN: SQLite then goes from link to link, never through all relations for each.
    found = tx.all(
        f"""
        WITH RECURSIVE chain (node) AS (
            SELECT :center
            UNION SELECT i.id FROM chain CROSS JOIN relations AS r CROSS JOIN items AS i
                  WHERE r.library_id = :library_id AND r.from_id = chain.node
                  AND r.kind = 'DEPENDS_ON' AND i.id = r.to_id AND {scope_sql.visible(scope)})
        SELECT {_COLUMNS}, CASE WHEN {asked} THEN 1 ELSE 0 END AS asked
        FROM (SELECT node FROM chain LIMIT :bound) AS c CROSS JOIN items AS i
        WHERE i.library_id = :library_id AND i.id = c.node
        ORDER BY i.created_at, i.id""",
        center=center,
        bound=CHAIN + 1,
        **wanted,
        **scope_sql.within(scope),
    )
    items = {row["id"]: rows.item(row) for row in found}
    relations = rows.every(
        tx,
        Relation,
        # An expression: else SQLite looks for each of them with each of them.
        f"""SELECT r.* FROM relations AS r
            JOIN items AS i ON i.id = r.to_id AND {scope_sql.visible(scope)}
            WHERE r.library_id = :library_id AND r.from_id IN :ids
            AND r.kind = 'DEPENDS_ON' AND r.to_id || '' IN :ids
            ORDER BY i.created_at, r.from_id, r.to_id""",
        ids=list(items),
        **scope_sql.within(scope),
    )
    return Dependencies(
        items[center],
        tuple(items.values()),
        tuple(relations),
        frozenset(row["id"] for row in found if row["asked"]),
        len(items) > CHAIN,
    )


def tickets(
    tx: Tx,
    scope: Scope,
    where: ItemFilter,
    project_id: str | None,
    assignee: str | None,
    worth: TaskWeights | None,
) -> tuple[list[Ticket], list[tuple[Any, ...]], int | None]:
    """Read only the columns that tasks are ranked by, from an index that has them all."""
    asked, values = scope_sql.matching(where)
    values |= scope_sql.within(scope)
    inside, mine, theirs = "TRUE", "TRUE", "TRUE"
    if project_id is not None:
        inside = """EXISTS (SELECT 1 FROM relations AS p WHERE p.library_id = :library_id
                    AND p.from_id = i.id AND p.kind = 'BELONGS_TO' AND p.to_id = :project_id)"""
        mine = """i.id || '' IN (SELECT from_id FROM relations WHERE library_id = :library_id
                  AND to_id = :project_id AND kind = 'BELONGS_TO')"""  # faster for very many
        values["project_id"] = project_id
    if assignee is not None:
        theirs = f"(i.assignees = '[]' OR {scope_sql.list_contains('i.assignees', 'theirs')})"
        values["theirs"] = scope_sql.list_element(assignee)
    is_open = f"{scope_sql.visible(scope)} AND {asked} AND i.entity_type IN ('task', 'epic')"
    read = f"""SELECT i.id, i.entity_type, i.status, i.priority, i.due_date, i.created_at,
               {inside}, {theirs}
               FROM items AS i
               WHERE {is_open}"""
    if (
        worth
        and tx.scalar(f"SELECT count(*) FROM items AS i WHERE {is_open}", **values) > 2 * SHORTLIST
    ):
        best = f"ORDER BY points DESC, coalesce(due_date, '9'), created_at, id LIMIT {SHORTLIST}"
        first = tx.tuples(
            f"""WITH mine AS MATERIALIZED (
                    SELECT i.id, i.entity_type, i.status, i.due_date, i.created_at,
                           {_points(worth)} AS points
                    FROM items AS i WHERE {is_open} AND {mine} AND {theirs})
                SELECT id, (SELECT count(*) FROM mine WHERE entity_type = 'task') FROM (
                    SELECT * FROM (SELECT * FROM mine WHERE status IN :begun {best}) AS b
                    UNION ALL
                    SELECT * FROM (SELECT * FROM mine WHERE NOT status IN :begun {best}) AS n
                ) AS f""",
            begun=list(worth.begun),
            **{f"due{n}": before for n, (before, _) in enumerate(worth.due)},
            **values,
        )
        return (
            *_with_needs(tx, read, is_open, [item_id for item_id, _ in first], values),
            first[0][1] if first else 0,
        )
    return list(map(Ticket._make, tx.tuples(read, **values))), dependency_pairs(tx, scope), None


def dependency_pairs(tx: Tx, scope: Scope) -> list[Any]:
    """Return (item, dependency) pairs, from an index of their own."""
    return tx.tuples(
        f"""SELECT r.from_id, r.to_id
            FROM relations AS r
            WHERE r.library_id = :library_id AND r.kind = 'DEPENDS_ON'
            AND {_seen(scope, "from_id")} AND {_seen(scope, "to_id")}
            ORDER BY r.from_id, r.to_id""",
        **scope_sql.within(scope),
    )


def _with_needs(
    tx: Tx, read: str, is_open: str, ids: Sequence[str], values: dict[str, Any]
) -> tuple[list[Ticket], list[tuple[Any, ...]]]:
    """Return these tickets with their dependencies, nearest first.

    Those too far away to know their own dependencies count as outside.
    """
    known, frontier, needed = dict.fromkeys(ids), list(ids), list[tuple[Any, ...]]()
    for _ in range(LEVELS):
        if not frontier or len(known) > 3 * SHORTLIST:
            break
        found = tx.tuples(
            f"""SELECT r.from_id, r.to_id
                FROM relations AS r
                JOIN items AS i ON i.id = r.to_id AND {is_open}
                WHERE r.library_id = :library_id AND r.from_id IN :ids
                AND r.kind = 'DEPENDS_ON'
                ORDER BY r.from_id, r.to_id LIMIT {10 * SHORTLIST}""",
            ids=frontier,
            **values,
        )
        needed += found
        frontier = list({need: None for _, need in found if need not in known})
        known |= dict.fromkeys(frontier)
    tickets, outside = (
        map(Ticket._make, tx.tuples(f"{read} AND i.id IN :ids", ids=list(known), **values)),
        set(frontier),
    )
    return [
        ticket._replace(inside=False) if ticket.id in outside else ticket for ticket in tickets
    ], needed


def _points(worth: TaskWeights) -> str:
    by_priority = " ".join(f"WHEN '{name}' THEN {points}" for name, points in worth.priorities)
    by_date = " ".join(
        f"WHEN i.due_date < :due{n} THEN {points}" for n, (_, points) in enumerate(worth.due)
    )
    return f"CASE i.priority {by_priority} ELSE {worth.otherwise} END + CASE {by_date} ELSE 0 END"


def find_cycle(
    tx: Tx, scope: Scope, from_id: str, to_id: str, kind: str = "DEPENDS_ON"
) -> list[Item]:
    """Return a shortest cycle: the way back from the second item to the first."""
    if from_id != to_id and not tx.one(
        """SELECT 1 FROM relations
           WHERE library_id = :library_id AND to_id = :from_id AND kind = :kind LIMIT 1""",
        library_id=scope.library_id,
        from_id=from_id,
        kind=kind,
    ):
        return []  # nothing leads there, as with every new item
    reached = f"""WITH RECURSIVE reached (node) AS (
                  SELECT :to_id UNION
                  SELECT i.id FROM reached CROSS JOIN relations AS r CROSS JOIN items AS i
                  WHERE r.library_id = :library_id AND r.from_id = reached.node
                  AND r.kind = :kind AND i.id = r.to_id AND {scope_sql.visible(scope)})"""
    asked = {"to_id": to_id, "kind": kind, **scope_sql.within(scope)}
    if not tx.one(
        f"{reached} SELECT 1 FROM reached WHERE node = :from_id LIMIT 1", from_id=from_id, **asked
    ):
        return []
    joined: dict[str, list[str]] = {}
    for node, end in tx.tuples(
        f"""{reached} SELECT r.from_id, r.to_id
            FROM reached
            CROSS JOIN relations AS r
            CROSS JOIN items AS i
            WHERE r.library_id = :library_id AND r.from_id = reached.node AND r.kind = :kind
            AND i.id = r.to_id AND {scope_sql.visible(scope)}
            ORDER BY i.created_at, r.from_id, r.to_id""",
        **asked,
    ):
        joined.setdefault(node, []).append(end)
    before, frontier = {to_id: to_id}, deque([to_id])
    while from_id not in before:
        node = frontier.popleft()
        for end in joined.get(node, ()):
            if end not in before:
                before[end] = node
                frontier.append(end)
    way = [from_id]
    while way[-1] != to_id:
        way.append(before[way[-1]])
    items = {
        row["id"]: rows.item(row)
        for row in tx.all(
            f"{rows.SELECT_ITEM} WHERE i.id IN :ids AND {scope_sql.visible(scope)}",
            ids=way,
            **scope_sql.within(scope),
        )
    }
    return [items[node] for node in [from_id, *reversed(way)]]
