"""Counts over a library."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from commonplace.database import scope_sql
from commonplace.database.columns import micros
from commonplace.database.transaction import Tx
from commonplace.database.unit_of_work import Table, reads
from commonplace.model import Scope

_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Totals:
    items: int
    words: int
    sections: int
    characters: int  # of text, as kept
    by_type: dict[str, int]


class Statistics(Table):
    @reads
    def totals(self, tx: Tx, scope: Scope) -> Totals:
        condition, values = scope_sql.visible(scope)

        found = tx.all(
            f"""SELECT i.entity_type, count(*) AS n, sum(i.word_count) AS words
                FROM items AS i
                WHERE {condition}
                GROUP BY i.entity_type
                ORDER BY n DESC""",
            **values,
        )
        sections = tx.one(
            f"""SELECT count(*) AS n
                FROM sections AS s
                JOIN items AS i ON i.library_id = s.library_id AND i.id = s.item_id
                WHERE {condition}""",
            **values,
        )
        text = tx.one(
            f"""SELECT coalesce(sum(length(c.text)), 0) AS n
                FROM contents AS c
                WHERE c.id IN (SELECT i.content_id FROM items AS i WHERE {condition})""",
            **values,
        )
        assert sections and text
        return Totals(
            sum(row["n"] for row in found),
            sum(int(row["words"] or 0) for row in found),
            sections["n"],
            int(text["n"]),
            {row["entity_type"]: row["n"] for row in found},
        )

    @reads
    def added_by_day(self, tx: Tx, scope: Scope, since: datetime) -> dict[str, int]:
        """Items by the day (ISO, UTC) they were added."""
        condition, values = scope_sql.visible(scope)
        found = tx.all(
            f"""SELECT i.created_at / {_DAY} AS day, count(*) AS n
                FROM items AS i
                WHERE {condition} AND i.created_at >= :since
                GROUP BY i.created_at / {_DAY}""",
            since=micros(since),
            **values,
        )
        return {_day(row["day"]): row["n"] for row in found}

    @reads
    def calls_by_day(self, tx: Tx, library_id: str, since: datetime) -> dict[str, int]:
        """What tokens did, by day, as far as the activity logs reach back."""
        found = tx.all(
            f"""SELECT at / {_DAY} AS day, count(*) AS n
                FROM events
                WHERE library_id = :library_id AND at >= :since
                GROUP BY at / {_DAY}""",
            library_id=library_id,
            since=micros(since),
        )
        return {_day(row["day"]): row["n"] for row in found}

    @reads
    def state(self, tx: Tx, library_id: str) -> str:
        """The same as long as no item, relation, filing or vector of the library has changed."""

        parts = (
            """SELECT count(*) AS n, max(updated_at) AS at, sum(revision) AS more
               FROM items
               WHERE library_id = :library_id""",
            """SELECT count(*) AS n, max(created_at) AS at, sum(explicit) AS more
               FROM relations
               WHERE library_id = :library_id""",
            "SELECT max(seq) AS n, 0 AS at, 0 AS more FROM changes WHERE library_id = :library_id",
        )
        found = [tx.one(sql, library_id=library_id) for sql in parts]
        return " ".join(f"{row['n']}:{row['at']}:{row['more']}" for row in found if row)

    @reads
    def size(self, tx: Tx) -> int:
        """Bytes that the whole database takes."""

        row = tx.one(
            "SELECT page_count * page_size AS n FROM pragma_page_count(), pragma_page_size()"
            if tx.engine == "sqlite"
            else """SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) AS n
                    FROM pg_class AS c
                    WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace"""
        )
        return int(row["n"]) if row else 0


def _day(number: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=int(number))).date().isoformat()
