"""Feeds that are followed: who visits which one when, and what was taken in."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from commonplace.database.columns import from_micros, from_optional_micros, micros
from commonplace.database.transaction import Tx
from commonplace.database.unit_of_work import Table, reads, writes
from commonplace.errors import NotFound
from commonplace.model import Json, Subscription, now
from commonplace.store import rows

_COLUMNS = (
    "library_id",
    "id",
    "url",
    "title",
    "person_id",
    "token_id",
    "folder_id",
    "newest",
    "created_at",
    "polled_at",
    "poll_at",
    "error",
    "validators",
)


class Feeds(Table):
    @writes
    def create(self, tx: Tx, feed: Subscription) -> Subscription:
        """The one that the subscriber has for this address and folder already, if there is one."""

        for known in _of(tx, feed.library_id):
            if (known.url, known.token_id, known.folder_id) == (
                feed.url,
                feed.token_id,
                feed.folder_id,
            ):
                return known
        tx.run(
            f"""INSERT INTO feeds ({", ".join(_COLUMNS)})
                VALUES ({", ".join(":" + c for c in _COLUMNS)})""",
            **{column: rows.column_value(column, getattr(feed, column)) for column in _COLUMNS}
            | {"validators": json.dumps(feed.validators)},
        )
        return feed

    @reads
    def list_feeds(self, tx: Tx, library_id: str, token_id: str | None) -> list[Subscription]:
        """The library's, or only those of one token."""
        found = _of(tx, library_id)
        return [feed for feed in found if token_id in (None, feed.token_id)]

    @writes
    def delete(self, tx: Tx, feed: Subscription) -> None:
        if not tx.run(
            "DELETE FROM feeds WHERE library_id = :library_id AND id = :id",
            library_id=feed.library_id,
            id=feed.id,
        ):
            raise NotFound("Feed not found")

    async def lease(self, seconds: int) -> Subscription | None:
        """One whose time has come, and which nobody else is given for `seconds`."""
        at = now()
        due = "SELECT * FROM feeds WHERE poll_at <= :now ORDER BY poll_at LIMIT 1"
        # Looked for without a write lock: idle workers must not stand in the writers' way.
        if await self._db.read(lambda tx: tx.one(due, now=micros(at))) is None:
            return None

        def work(tx: Tx) -> Subscription | None:
            row = tx.one(
                due + (" FOR UPDATE SKIP LOCKED" if tx.engine == "postgres" else ""),
                now=micros(at),
            )
            if row is None:
                return None
            tx.run(
                "UPDATE feeds SET poll_at = :until WHERE library_id = :library_id AND id = :id",
                until=micros(at + timedelta(seconds=seconds)),
                library_id=row["library_id"],
                id=row["id"],
            )
            return _feed(row)

        return await self._db.write(work)

    @reads
    def handled_entries(self, tx: Tx, feed: Subscription, tries: int) -> set[str]:
        """Entries that were taken in, or tried so often."""
        found = tx.all(
            """SELECT entry FROM feed_entries
               WHERE library_id = :library_id AND feed_id = :feed_id AND (ok = 1
               OR tries >= :tries)""",
            library_id=feed.library_id,
            feed_id=feed.id,
            tries=tries,
        )
        return {row["entry"] for row in found}

    @writes
    def record_entries(
        self, tx: Tx, feed: Subscription, entries: Sequence[str], *, ok: bool
    ) -> None:
        if (
            tx.one(
                "SELECT 1 FROM feeds WHERE library_id = :library_id AND id = :id",
                library_id=feed.library_id,
                id=feed.id,
            )
            is None
        ):
            return  # somebody ended the subscription in the meantime
        tx.many(
            """INSERT INTO feed_entries (library_id, feed_id, entry, tries, ok)
               VALUES (:library_id, :feed_id, :entry, 1, :ok)
               ON CONFLICT (library_id, feed_id, entry) DO UPDATE
               SET tries = feed_entries.tries + 1, ok = excluded.ok""",
            [
                {
                    "library_id": feed.library_id,
                    "feed_id": feed.id,
                    "entry": entry,
                    "ok": int(ok),
                }
                for entry in entries
            ],
        )

    @writes
    def record_poll(
        self,
        tx: Tx,
        feed: Subscription,
        *,
        title: str,
        error: str | None,
        poll_at: datetime,
        validators: Json,
    ) -> None:
        tx.run(
            """UPDATE feeds SET title = :title, error = :error, polled_at = :at,
               poll_at = :poll_at, validators = :validators
               WHERE library_id = :library_id AND id = :id""",
            title=title,
            error=error,
            at=micros(now()),
            validators=json.dumps(validators),
            poll_at=micros(poll_at),
            library_id=feed.library_id,
            id=feed.id,
        )


def _of(tx: Tx, library_id: str) -> list[Subscription]:
    return [
        _feed(row)
        for row in tx.all(
            "SELECT * FROM feeds WHERE library_id = :library_id ORDER BY created_at, id",
            library_id=library_id,
        )
    ]


def _feed(row: Any) -> Subscription:
    return Subscription(
        **{column: row[column] for column in _COLUMNS}
        | {
            "created_at": from_micros(row["created_at"]),
            "polled_at": from_optional_micros(row["polled_at"]),
            "poll_at": from_micros(row["poll_at"]),
            "validators": json.loads(row["validators"]),
        }
    )
