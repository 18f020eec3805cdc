"""Feed subscriptions: when to poll each, and which entries were handled."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from commonplace.database import Table, Tx, reads, writes
from commonplace.database.columns import micros
from commonplace.errors import NotFound
from commonplace.model import Json, Subscription, now
from commonplace.store import rows
from commonplace.store.queues import job_queues

_NEXT = "SELECT * FROM feeds WHERE library_id = :library_id ORDER BY poll_at LIMIT 2"
_OF_LIBRARY = "SELECT * FROM feeds WHERE library_id = :library_id ORDER BY created_at, id"


class Feeds(Table):
    @writes
    def create(self, tx: Tx, feed: Subscription) -> Subscription:
        """Subscribe, or return the subscriber's subscription to this address and folder."""
        for known in rows.every(tx, Subscription, _OF_LIBRARY, library_id=feed.library_id):
            if (known.url, known.token_id, known.folder_id) == (
                feed.url,
                feed.token_id,
                feed.folder_id,
            ):
                return known
        rows.insert(tx, "feeds", feed)
        job_queues.note(tx, feed.library_id, job_queues.FEED, feed.poll_at)
        return feed

    @reads
    def list_feeds(self, tx: Tx, library_id: str, token_id: str | None) -> list[Subscription]:
        """Return the library's subscriptions, or those of one token."""
        return [
            feed
            for feed in rows.every(tx, Subscription, _OF_LIBRARY, library_id=library_id)
            if token_id in (None, feed.token_id)
        ]

    @writes
    def delete(self, tx: Tx, feed: Subscription) -> None:
        if not tx.run(
            "DELETE FROM feeds WHERE library_id = :library_id AND id = :id",
            library_id=feed.library_id,
            id=feed.id,
        ):
            raise NotFound("Feed not found")

    async def lease(self, seconds: int) -> Subscription | None:
        """Return a feed that is due, and that no other worker gets for `seconds`."""
        # Looked for without a write lock: idle workers must not block writers.
        libraries = await self._db.read(job_queues.due, job_queues.FEED, now())
        return await self._lease(libraries, seconds) if libraries else None

    @writes
    def _lease(self, tx: Tx, libraries: Sequence[str], seconds: int) -> Subscription | None:
        at = now()
        until = at + timedelta(seconds=seconds)
        for library_id in job_queues.lock_due(tx, libraries, job_queues.FEED, at):
            feeds = rows.every(tx, Subscription, _NEXT, library_id=library_id)
            due = feeds[0] if feeds and feeds[0].poll_at <= at else None
            if due:
                tx.run(
                    "UPDATE feeds SET poll_at = :until WHERE library_id = :library_id AND id = :id",
                    until=until,
                    library_id=library_id,
                    id=due.id,
                )
            times = [until if feed is due else feed.poll_at for feed in feeds]
            job_queues.reschedule(tx, library_id, job_queues.FEED, at, [*map(micros, times)])
            if due:
                return due
        return None

    @reads
    def handled_entries(self, tx: Tx, feed: Subscription, tries: int) -> set[str]:
        """Return the entries that were added, or tried `tries` times."""
        return set(
            tx.column(
                """SELECT entry FROM feed_entries WHERE library_id = :library_id
                   AND feed_id = :feed_id AND (ok = 1 OR tries >= :tries)""",
                library_id=feed.library_id,
                feed_id=feed.id,
                tries=tries,
            )
        )

    @writes
    def record_entries(
        self, tx: Tx, feed: Subscription, entries: Sequence[str], *, ok: bool
    ) -> None:
        key = {"library_id": feed.library_id, "feed_id": feed.id}
        if tx.one("SELECT 1 FROM feeds WHERE library_id = :library_id AND id = :feed_id", **key):
            tx.many(
                """INSERT INTO feed_entries (library_id, feed_id, entry, tries, ok)
                   VALUES (:library_id, :feed_id, :entry, 1, :ok)
                   ON CONFLICT (library_id, feed_id, entry)
                   DO UPDATE SET tries = feed_entries.tries + 1, ok = excluded.ok""",
                [{**key, "entry": entry, "ok": int(ok)} for entry in entries],
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
            at=now(),
            validators=rows.column(validators),
            poll_at=poll_at,
            library_id=feed.library_id,
            id=feed.id,
        )
        job_queues.note(tx, feed.library_id, job_queues.FEED, poll_at)
