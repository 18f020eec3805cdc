"""Counts over a library."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from commonplace.database import Tx, from_micros, reads, reads_inline, scope_sql
from commonplace.model import EVERYTHING, ItemFilter, LibraryRow, Scope, Usage
from commonplace.search_index.index import IndexedTable

_DAY = 86_400_000_000
# Three numbers of each table that change with every write to it.
_STATE = (
    "SELECT count(*), max(updated_at), sum(revision) FROM items WHERE library_id = :library_id",
    "SELECT count(*), max(created_at), sum(explicit) FROM relations WHERE library_id = :library_id",
)
_SIZE = {
    "sqlite": "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
    "postgres": """SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class AS c
                   WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace""",
}


@dataclass(frozen=True, slots=True)
class Totals:
    items: int
    words: int
    sections: int
    characters: int  # of text, as stored
    by_type: dict[str, int]


class Statistics(IndexedTable):
    @reads
    def totals(self, tx: Tx, scope: Scope) -> Totals:
        found = tx.tuples(
            f"""SELECT i.entity_type, count(*) AS n, sum(i.word_count) FROM items AS i
                WHERE {scope_sql.visible(scope)} GROUP BY i.entity_type ORDER BY n DESC""",
            **scope_sql.within(scope),
        )
        sections = tx.scalar(
            f"""SELECT count(*) FROM sections AS s
                JOIN items AS i ON i.library_id = s.library_id AND i.id = s.item_id
                WHERE {scope_sql.visible(scope)}""",
            **scope_sql.within(scope),
        )
        return Totals(
            sum(count for _, count, _ in found),
            sum(int(words or 0) for *_, words in found),
            sections,
            int(
                tx.scalar(
                    f"""SELECT coalesce(sum(length(c.text)), 0) FROM contents AS c
                        WHERE c.library_id = :library_id AND c.id IN (
                            SELECT i.content_id FROM items AS i
                            WHERE {scope_sql.visible(scope)})""",
                    **scope_sql.within(scope),
                )
            ),
            {entity_type: count for entity_type, count, _ in found},
        )

    @reads
    def count_types(self, tx: Tx, scope: Scope, where: ItemFilter) -> dict[str, int]:
        """Count items by type, the most frequent first."""
        matching, values = scope_sql.matching(where)
        return dict(
            tx.tuples(
                f"""SELECT i.entity_type, count(*) AS n FROM items AS i
                    WHERE {scope_sql.visible(scope)} AND {matching}
                    GROUP BY i.entity_type ORDER BY n DESC""",
                **scope_sql.within(scope),
                **values,
            )
        )

    @reads
    def added_by_day(
        self, tx: Tx, scope: Scope, since: datetime, where: ItemFilter = EVERYTHING
    ) -> dict[str, int]:
        """Count items by the day they were added (ISO, UTC)."""
        matching, values = scope_sql.matching(where)
        return {
            _iso(day): count
            for day, count in tx.tuples(
                f"""SELECT i.created_at / {_DAY}, count(*) FROM items AS i
                    WHERE {scope_sql.visible(scope)} AND {matching} AND i.created_at >= :since
                    GROUP BY i.created_at / {_DAY}""",
                since=since,
                **scope_sql.within(scope),
                **values,
            )
        }

    @reads
    def calls_by_day(self, tx: Tx, library_id: str, since: datetime) -> dict[str, int]:
        """Count calls of tokens by day, as far as the activity logs reach back."""
        return {
            _iso(day): count
            for day, count in tx.tuples(
                f"""SELECT at / {_DAY}, count(*) FROM events
                    WHERE library_id = :library_id AND at >= :since GROUP BY at / {_DAY}""",
                library_id=library_id,
                since=since,
            )
        }

    @reads
    def state(self, tx: Tx, library_id: str) -> str:
        """Return a mark that changes with the library's items, relations, folders and vectors."""
        found = [tx.tuples(sql, library_id=library_id)[0] for sql in _STATE]
        found.append((self._index.changes(tx, library_id),))
        return " ".join(":".join(map(str, numbers)) for numbers in found)

    @reads_inline
    def usage(self, tx: Tx, library_id: str) -> tuple[Usage, Usage]:
        """Return what a library holds, its trash included, and what it may hold; 0: no limit."""
        row = tx.one(
            "SELECT items, sections, size FROM usage WHERE library_id = :library_id",
            library_id=library_id,
        )
        return (Usage(**row) if row else Usage()), tx.quota

    @reads
    def libraries(self, tx: Tx, after: str | None, limit: int) -> list[LibraryRow]:
        """Return libraries of all people, the newest first: those below an id, if one is given."""
        found = tx.all(
            f"""SELECT l.id, l.name, p.email, l.created_at,
                       (SELECT count(*) FROM members AS m WHERE m.library_id = l.id) AS members
                FROM libraries AS l JOIN people AS p ON p.id = l.id
                {"" if after is None else "WHERE l.id < :after"} ORDER BY l.id DESC LIMIT :limit""",
            limit=limit,
            **({} if after is None else {"after": after}),
        )
        ids = [row["id"] for row in found]
        held = {
            library_id: Usage(*counts)
            for library_id, *counts in tx.tuples(
                "SELECT library_id, items, sections, size FROM usage WHERE library_id IN :ids",
                ids=ids,
            )
        }
        jobs = {
            (library_id, state): count
            for library_id, state, count in tx.tuples(
                """SELECT library_id, state, count(*) FROM jobs
                   WHERE library_id IN :ids AND state <> 'done' GROUP BY library_id, state""",
                ids=ids,
            )
        }
        return [
            LibraryRow(
                row["id"],
                row["name"],
                row["email"],
                row["members"],
                from_micros(row["created_at"]),
                held.get(row["id"], Usage()),
                sum(jobs.get((row["id"], state), 0) for state in ("queued", "running")),
                jobs.get((row["id"], "failed"), 0),
            )
            for row in found
        ]

    @reads
    def size(self, tx: Tx) -> int:
        """Return the bytes that the whole database takes."""
        return int(tx.scalar(_SIZE[tx.engine]))


def _iso(day: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=int(day))).date().isoformat()
