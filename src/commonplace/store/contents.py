"""Contents: what sources said, who is writing it down, and how much of that people may ask for."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from commonplace.database.columns import as_json, micros
from commonplace.database.transaction import Tx
from commonplace.database.unit_of_work import Table, reads, reads_inline, writes
from commonplace.errors import Conflict, NotFound
from commonplace.model import Content, Job, Json, digest, now
from commonplace.store.jobs import AHEAD

_JOBS_OF = """kind = 'transcribe' AND (library_id, item_id) IN (SELECT library_id, id
              FROM items WHERE content_id = :content_id)"""
_KEY_OF_ITS_OWN = "key = 'past:' || id"


class Contents(Table):
    """What sources said. While one worker writes down a recording, the others' jobs for it wait."""

    @reads_inline
    def get(self, tx: Tx, content_id: str) -> Content:
        row = tx.one("SELECT * FROM contents WHERE id = :id", id=content_id)
        if row is None:
            raise NotFound("Item not found")
        return content(row)

    @reads
    def existing_keys(self, tx: Tx, keys: Sequence[str]) -> set[str]:
        """Those that there is a content for."""
        found = tx.all("SELECT key FROM contents WHERE key IN :keys", keys=list(keys))
        return {row["key"] for row in found}

    @writes
    def redirect(self, tx: Tx, key: str, content_id: str) -> None:
        """From now on the key leads to this content."""
        put_redirects(tx, content_id, [key])

    @writes
    def claim(self, tx: Tx, content_id: str, job_id: str, until: datetime) -> bool:
        """Whether this job is the one that writes it down, until then; again to hold it longer."""

        claimed = tx.run(
            """UPDATE contents SET claimed_by = :job_id, claimed_until = :until
               WHERE id = :id AND text = '' AND (claimed_by IS NULL OR claimed_by = :job_id
               OR claimed_until < :now OR claimed_until > :ahead)""",
            id=content_id,
            job_id=job_id,
            until=micros(until),
            now=micros(now()),
            ahead=micros(now() + AHEAD),
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
        """Told to all jobs that wait for it."""
        tx.run(
            f"UPDATE jobs SET progress = :share WHERE state <> 'done' AND {_JOBS_OF}",
            share=share,
            content_id=content_id,
        )

    @writes
    def set_text(
        self, tx: Tx, content_id: str, text: str, segments: Sequence[Json], about: Json
    ) -> None:
        """It has its text; those who waited go on."""

        tx.run(
            """UPDATE contents SET text = :text, hash = :hash, segments = :segments,
               about = :about, claimed_by = NULL, claimed_until = NULL
               WHERE id = :id AND text = ''""",
            id=content_id,
            text=text,
            hash=digest(text),
            segments=as_json(segments),
            about=as_json(about),
        )
        _wake_waiting(tx, content_id)

    @writes
    def release(self, tx: Tx, content_id: str, job_id: str) -> None:
        """Another may try."""

        if tx.run(
            """UPDATE contents SET claimed_by = NULL, claimed_until = NULL
               WHERE id = :id AND claimed_by = :job_id""",
            id=content_id,
            job_id=job_id,
        ):
            _wake_waiting(tx, content_id)

    @writes
    def fail(self, tx: Tx, content_id: str, error: str) -> None:
        """It cannot be written down: all jobs that wait for it fail, and their items say so."""

        tx.run(
            "UPDATE contents SET claimed_by = NULL, claimed_until = NULL WHERE id = :id",
            id=content_id,
        )
        tx.run(
            """UPDATE items SET transcription_status = 'failed', status_reason = :error
               WHERE content_id = :id AND transcription_status IN ('queued', 'running')""",
            id=content_id,
            error=error,
        )
        tx.run(
            f"""UPDATE jobs SET state = 'failed', error = :error, leased_by = NULL,
                leased_until = NULL, updated_at = :at
                WHERE state IN ('queued', 'running') AND {_JOBS_OF}""",
            error=error,
            at=micros(now()),
            content_id=content_id,
        )


class Quotas(Table):
    """Seconds of speech that people had written down, by month."""

    @reads
    def used_seconds(self, tx: Tx, library_id: str, person_id: str, month: str) -> float:
        return _used(tx, library_id, person_id, month)

    @writes
    def reserve(
        self, tx: Tx, job: Job, person_id: str, month: str, seconds: float, cap: float
    ) -> bool:
        """Whether there is room for so many seconds more; 0: no cap. Asking again for one job replaces what it had."""

        if (
            tx.engine == "postgres"
        ):  # SQLite has one writer at a time; here those who ask for one person take turns
            tx.one("SELECT 1 FROM people WHERE id = :id FOR NO KEY UPDATE", id=person_id)
        tx.run(
            "DELETE FROM transcriptions WHERE library_id = :library_id AND id = :id",
            library_id=job.library_id,
            id=job.id,
        )
        if cap and _used(tx, job.library_id, person_id, month) + seconds > cap:
            return False
        tx.run(
            "INSERT INTO transcriptions VALUES (:library_id, :id, :person_id, :month, :seconds)",
            library_id=job.library_id,
            id=job.id,
            person_id=person_id,
            month=month,
            seconds=seconds,
        )
        return True

    @writes
    def set_seconds(self, tx: Tx, job: Job, seconds: float) -> None:
        """What it really was; 0 when nothing came of it."""
        tx.run(
            """UPDATE transcriptions SET seconds = :seconds
               WHERE library_id = :library_id AND id = :id""",
            seconds=seconds,
            library_id=job.library_id,
            id=job.id,
        )


def content(row: Any) -> Content:
    return Content(
        row["id"],
        row["key"],
        row["text"],
        row["url"],
        tuple(json.loads(row["segments"])),
        json.loads(row["about"]),
        row["hash"],
    )


def insert_contents(tx: Tx, new: Sequence[tuple[Content, datetime]]) -> None:
    tx.insert(
        "contents",
        "id, key, hash, text, url, segments, about, created_at",
        [
            (
                content.id,
                content.key,
                content.hash,
                content.text,
                content.url,
                as_json(content.segments),
                as_json(content.about),
                micros(at),
            )
            for content, at in new
        ],
    )


def put_content(tx: Tx, new: Content, at: datetime) -> tuple[str, bool]:
    """The id of the content with this key, which another may have put there first, and whether it says the same."""
    # The update that changes nothing locks the row: two adds of one source take turns, and the second finds the
    # first's item; a deletion at the same moment takes its turn too.
    found = tx.all(
        """INSERT INTO contents (id, key, hash, text, url, segments, about, created_at)
           VALUES (:id, :key, :hash, :text, :url, :segments, :about, :at)
           ON CONFLICT (key) DO UPDATE SET key = excluded.key
           RETURNING id, text = :text AS same""",
        id=new.id,
        key=new.key,
        hash=new.hash,
        text=new.text,
        url=new.url,
        segments=as_json(new.segments),
        about=as_json(new.about),
        at=micros(at),
    )
    content_id = str(found[0]["id"])
    put_redirects(tx, content_id, new.redirected)
    return content_id, bool(found[0]["same"])


def put_redirects(tx: Tx, content_id: str, keys: Sequence[str]) -> None:
    tx.many(
        """INSERT INTO redirects (key, content_id)
           VALUES (:key, :content_id)
           ON CONFLICT (key) DO UPDATE SET content_id = excluded.content_id""",
        [{"key": key, "content_id": content_id} for key in keys],
    )


def get_content_by_key(tx: Tx, key: str) -> Content | None:
    """What is kept under the key, or under the address that it redirected to."""
    row = tx.one("SELECT * FROM contents WHERE key = :key", key=key) or tx.one(
        """SELECT c.* FROM redirects AS r
           JOIN contents AS c ON c.id = r.content_id
           WHERE r.key = :key""",
        key=key,
    )
    return content(row) if row else None


def replace_content(tx: Tx, new: Content, at: datetime) -> str:
    """The content that the key stands for from now on. What it said before stays, under a key of its own: others have it,
    and the item itself keeps it as a version."""
    held = tx.one("SELECT id, text FROM contents WHERE key = :key", key=new.key)
    if held and held["text"] != new.text:
        tx.run(f"UPDATE contents SET {_KEY_OF_ITS_OWN} WHERE id = :id", id=held["id"])
    for key in new.redirected:  # it did not redirect when it was read before
        tx.run(f"UPDATE contents SET {_KEY_OF_ITS_OWN} WHERE key = :key", key=key)
    content_id, same = put_content(tx, new, at)
    if not same:
        raise Conflict(
            "The source was read by somebody else at the same moment, and said something else to them."
        )
    if held:
        tx.run(
            "UPDATE redirects SET content_id = :new WHERE content_id = :old",
            new=content_id,
            old=held["id"],
        )
    return content_id


def detach_key(tx: Tx, content_id: str) -> None:
    """A text that stays where somebody who deleted it does not look: adding it again must not lead them to it."""
    tx.run(f"UPDATE contents SET {_KEY_OF_ITS_OWN} WHERE id = :id AND url IS NULL", id=content_id)


def drop_unused_content(tx: Tx, content_id: str) -> None:
    tx.run(
        """DELETE FROM contents
           WHERE id = :id AND NOT EXISTS (SELECT 1 FROM items
           WHERE items.content_id = contents.id) AND NOT EXISTS (SELECT 1 FROM versions
           WHERE versions.content_id = contents.id)""",
        id=content_id,
    )


def _wake_waiting(tx: Tx, content_id: str) -> None:
    tx.run(
        f"""UPDATE jobs SET run_after = :at
            WHERE state = 'queued' AND run_after > :at AND {_JOBS_OF}""",
        at=micros(now()),
        content_id=content_id,
    )


def _used(tx: Tx, library_id: str, person_id: str, month: str) -> float:
    row = tx.one(
        """SELECT coalesce(sum(seconds), 0) AS seconds
           FROM transcriptions
           WHERE library_id = :library_id AND person_id = :person_id AND month = :month""",
        library_id=library_id,
        person_id=person_id,
        month=month,
    )
    return float(row["seconds"]) if row else 0.0
