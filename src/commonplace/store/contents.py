"""Contents: the texts of sources, who transcribes one, and each person's transcription quota."""

from collections.abc import Sequence
from datetime import datetime

from commonplace.database import Table, Tx, reads, reads_inline, writes
from commonplace.errors import Conflict, NotFound
from commonplace.model import Content, EventType, Job, Json, digest, now
from commonplace.store import jobs, rows
from commonplace.store.events import log

_JOBS_OF = """kind = 'transcribe' AND (library_id, item_id) IN
              (SELECT library_id, id FROM items WHERE content_id = :content_id)"""
_OWN_KEY = "key = 'past:' || id"
_COLUMNS = ("id", "key", "edit_of", "hash", "text", "url", "segments", "about", "created_at")


class Contents(Table):
    """Texts of sources. While one worker transcribes a recording, other jobs for it wait."""

    @reads_inline
    def get(self, tx: Tx, content_id: str) -> Content:
        row = tx.one("SELECT * FROM contents WHERE id = :id", id=content_id)
        if row is None:
            raise NotFound("Item not found")
        return rows.value(Content, row, redirected=())

    @reads
    def existing_keys(self, tx: Tx, keys: Sequence[str]) -> set[str]:
        """Return those of the keys that have a content."""
        return set(tx.column("SELECT key FROM contents WHERE key IN :keys", keys=list(keys)))

    @writes
    def redirect(self, tx: Tx, key: str, content_id: str) -> None:
        """Make the key lead to this content."""
        put_redirects(tx, content_id, [key])

    @writes
    def claim(self, tx: Tx, content_id: str, job_id: str, until: datetime) -> bool:
        """Let the job transcribe the content, alone, until then; or extend its claim."""
        claimed = tx.run(
            """UPDATE contents SET claimed_by = :job_id, claimed_until = :until
               WHERE id = :id AND text = '' AND (claimed_by IS NULL OR claimed_by = :job_id
               OR claimed_until < :now OR claimed_until > :ahead)""",
            id=content_id,
            job_id=job_id,
            until=until,
            now=now(),
            ahead=now() + jobs.AHEAD,
        )
        if claimed:
            tx.run(
                """UPDATE items SET transcription_status = 'running'
                   WHERE content_id = :id AND transcription_status = 'queued'""",
                id=content_id,
            )
        return bool(claimed)

    @writes
    def set_progress(self, tx: Tx, content_id: str, share: float) -> None:
        """Show the progress of a transcription on all jobs that wait for it."""
        tx.run(
            f"UPDATE jobs SET progress = :share WHERE state <> 'done' AND {_JOBS_OF}",
            share=share,
            content_id=content_id,
        )

    @writes
    def set_text(
        self, tx: Tx, content_id: str, text: str, segments: Sequence[Json], about: Json
    ) -> None:
        """Store the text of a recording, and wake the jobs that wait for it."""
        tx.run(
            """UPDATE contents SET text = :text, hash = :hash, segments = :segments,
               about = :about, claimed_by = NULL, claimed_until = NULL
               WHERE id = :id AND text = ''""",
            id=content_id,
            text=text,
            hash=digest(text),
            segments=rows.column(segments),
            about=rows.column(about),
        )
        _wake_waiting(tx, content_id)

    @writes
    def release(self, tx: Tx, content_id: str, job_id: str) -> None:
        """Give up a claim, so that another job may try."""
        if tx.run(
            """UPDATE contents SET claimed_by = NULL, claimed_until = NULL
               WHERE id = :id AND claimed_by = :job_id""",
            id=content_id,
            job_id=job_id,
        ):
            _wake_waiting(tx, content_id)

    @writes
    def fail(self, tx: Tx, content_id: str, error: str) -> None:
        """Fail all jobs that wait for a transcription, and show the error on their items."""
        tx.run(
            "UPDATE contents SET claimed_by = NULL, claimed_until = NULL WHERE id = :id",
            id=content_id,
        )
        for library_id, item_id in tx.tuples(
            """UPDATE items SET transcription_status = 'failed', status_reason = :error
               WHERE content_id = :id AND transcription_status IN ('queued', 'running')
               RETURNING library_id, id""",
            id=content_id,
            error=error,
        ):
            log.record(tx, EventType.FAILED, library_id, [item_id], None)
        tx.run(
            f"""UPDATE jobs SET state = 'failed', error = :error, leased_by = NULL,
                leased_until = NULL, updated_at = :at
                WHERE state IN ('queued', 'running') AND {_JOBS_OF}""",
            error=error,
            at=now(),
            content_id=content_id,
        )


class Quotas(Table):
    """Seconds of speech transcribed for each person, by month."""

    @reads
    def used_seconds(self, tx: Tx, library_id: str, person_id: str, month: str) -> float:
        return _used(tx, library_id, person_id, month)

    @writes
    def reserve(
        self, tx: Tx, job: Job, person_id: str, month: str, seconds: float, cap: float
    ) -> bool:
        """Reserve seconds for a job, in place of those it had; False if they exceed the cap.

        A `cap` of 0 is no cap.
        """
        if tx.engine == "postgres":  # SQLite has one writer; here, one per person
            tx.one("SELECT 1 FROM people WHERE id = :id FOR NO KEY UPDATE", id=person_id)
        key = {"library_id": job.library_id, "id": job.id}
        tx.run("DELETE FROM transcriptions WHERE library_id = :library_id AND id = :id", **key)
        if cap and _used(tx, job.library_id, person_id, month) + seconds > cap:
            return False
        tx.run(
            "INSERT INTO transcriptions VALUES (:library_id, :id, :person_id, :month, :seconds)",
            person_id=person_id,
            month=month,
            seconds=seconds,
            **key,
        )
        return True

    @writes
    def set_seconds(self, tx: Tx, job: Job, seconds: float) -> None:
        """Correct a reservation to the recording's length; 0 if the job failed."""
        tx.run(
            """UPDATE transcriptions SET seconds = :seconds
               WHERE library_id = :library_id AND id = :id""",
            seconds=seconds,
            library_id=job.library_id,
            id=job.id,
        )


def _row(new: Content, at: datetime) -> dict[str, object]:
    return {c: rows.column(at if c == "created_at" else getattr(new, c)) for c in _COLUMNS}


def insert_contents(tx: Tx, new: Sequence[tuple[Content, datetime]]) -> None:
    tx.insert("contents", ", ".join(_COLUMNS), [tuple(_row(*each).values()) for each in new])


def put_content(tx: Tx, new: Content, at: datetime) -> tuple[str, bool]:
    """Insert a content unless its key exists; return the key's content id, and whether the
    text is the same."""
    # The update that changes nothing locks the row: of two adds of one source, the second waits
    # and finds the first's item. So does a deletion.
    [found] = tx.all(
        f"""INSERT INTO contents ({", ".join(_COLUMNS)})
            VALUES ({", ".join(f":{name}" for name in _COLUMNS)})
            ON CONFLICT (key) DO UPDATE SET key = excluded.key
            RETURNING id, text = :text AS same""",
        **_row(new, at),
    )
    put_redirects(tx, found["id"], new.redirected)
    return str(found["id"]), bool(found["same"])


def put_redirects(tx: Tx, content_id: str, keys: Sequence[str]) -> None:
    tx.many(
        """INSERT INTO redirects (key, content_id) VALUES (:key, :content_id)
           ON CONFLICT (key) DO UPDATE SET content_id = excluded.content_id""",
        [{"key": key, "content_id": content_id} for key in keys],
    )


def get_content_by_key(tx: Tx, key: str) -> Content | None:
    """Return the content of a key, or of an address that it redirected to."""
    row = tx.one("SELECT * FROM contents WHERE key = :key", key=key) or tx.one(
        """SELECT c.* FROM redirects AS r JOIN contents AS c ON c.id = r.content_id
           WHERE r.key = :key""",
        key=key,
    )
    return rows.value(Content, row, redirected=()) if row else None


def replace_content(tx: Tx, new: Content, at: datetime) -> str:
    """Make the key lead to a new content; return its id.

    The old one gets a key of its own: others have it, and the item keeps it as a version.
    """
    held = tx.one("SELECT id, text FROM contents WHERE key = :key", key=new.key)
    if held and held["text"] != new.text:
        tx.run(f"UPDATE contents SET {_OWN_KEY} WHERE id = :id", id=held["id"])
    for key in new.redirected:  # it did not redirect when it was read before
        tx.run(f"UPDATE contents SET {_OWN_KEY} WHERE key = :key", key=key)
    content_id, same = put_content(tx, new, at)
    if not same:
        raise source_conflict()
    if held:
        tx.run(
            "UPDATE redirects SET content_id = :new WHERE content_id = :old",
            new=content_id,
            old=held["id"],
        )
    return content_id


def source_conflict() -> Conflict:
    return Conflict(
        "Another request fetched the source at the same time and got another text. Try again."
    )


def detach_key(tx: Tx, content_id: str) -> str | None:
    """Give a text a key of its own, so that adding it again does not lead to this content.

    It stays where a caller who deleted it does not see it. Return the key that it had.
    """
    key = tx.scalar("SELECT key FROM contents WHERE id = :id AND url IS NULL", id=content_id)
    if key is not None:
        tx.run(f"UPDATE contents SET {_OWN_KEY} WHERE id = :id", id=content_id)
    return None if key is None else str(key)


def attach_key(tx: Tx, content_id: str, key: str) -> None:
    """Give a text its key again, unless another one has it by now."""
    tx.run(
        f"""UPDATE contents SET key = :key WHERE id = :id AND {_OWN_KEY}
            AND NOT EXISTS (SELECT 1 FROM contents AS other WHERE other.key = :key)""",
        id=content_id,
        key=key,
    )


def drop_unused_content(tx: Tx, content_id: str) -> None:
    tx.run(
        """DELETE FROM contents WHERE id = :id
           AND NOT EXISTS (SELECT 1 FROM items WHERE items.content_id = contents.id)
           AND NOT EXISTS (SELECT 1 FROM versions WHERE versions.content_id = contents.id)
           AND NOT EXISTS (SELECT 1 FROM trash_rows WHERE trash_rows.content_id = contents.id)""",
        id=content_id,
    )


def _wake_waiting(tx: Tx, content_id: str) -> None:
    tx.run(
        f"""UPDATE jobs SET run_after = :at
            WHERE state = 'queued' AND run_after > :at AND {_JOBS_OF}""",
        at=now(),
        content_id=content_id,
    )


def _used(tx: Tx, library_id: str, person_id: str, month: str) -> float:
    return float(
        tx.scalar(
            """SELECT coalesce(sum(seconds), 0) FROM transcriptions
               WHERE library_id = :library_id AND person_id = :person_id AND month = :month""",
            library_id=library_id,
            person_id=person_id,
            month=month,
        )
    )
