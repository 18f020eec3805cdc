"""Contents: the texts of sources, who transcribes one, and each person's transcription quota."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from commonplace.database import Table, Tx, reads, reads_inline, usage, writes
from commonplace.errors import Conflict, NotFound
from commonplace.model import Content, EventType, Item, Job, Json, digest, is_shared, now
from commonplace.store import rows, sources
from commonplace.store.events import log
from commonplace.store.files import source_files
from commonplace.store.queues import job_queues

_ITEMS_OF = "library_id IN :libraries AND content_id = :content_id"
_JOBS_OF = f"""library_id IN :libraries AND kind = 'transcribe' AND (library_id, item_id) IN
              (SELECT library_id, id FROM items WHERE {_ITEMS_OF})"""
OWN_KEY = "past:"  # of a text that its source has no longer, with its id
_OWN_KEY = f"key = '{OWN_KEY}' || id"
_ONE = "library_id = :library_id AND id = :id"
_NOT_STORED: dict[str, Any] = {"redirected": (), "canonical": None, "files": ()}
_COLUMNS = ("id", "key", "edit_of", "hash", "text", "url", "segments", "about", "created_at")


class Contents(Table):
    """Texts of sources. While one worker transcribes a recording, other jobs for it wait."""

    @reads_inline
    def get(self, tx: Tx, library_id: str, content_id: str) -> Content:
        found = _get(tx, library_id, content_id)
        if found is None:
            raise NotFound("Item not found")
        return found

    @reads
    def find_id(self, tx: Tx, library_id: str, key: str) -> str | None:
        """Return the id of the content of a key."""
        found = get_content_by_key(tx, library_id, key)
        return found.id if found else None

    @reads
    def existing_keys(self, tx: Tx, library_id: str, keys: Sequence[str]) -> set[str]:
        """Return those of the keys that have a content, in the library or as a public source."""
        return known_keys(tx, library_id, keys)

    @writes
    def redirect(self, tx: Tx, key: str, content: Content) -> None:
        """Make the key of another address lead to this source."""
        sources.put_aliases(tx, content.key, [key])

    @writes
    def renew(self, tx: Tx, library_id: str, content: Content) -> None:
        """Store what the source of an unchanged text says of itself now, and its files."""
        tx.run(
            f"UPDATE contents SET about = :about WHERE {_ONE}",
            about=rows.column(content.about),
            library_id=library_id,
            id=content.id,
        )
        source_files.attach(tx, library_id, content.id, content.files)
        sources.put_aliases(tx, content.key, content.redirected)

    @writes
    def claim(self, tx: Tx, item: Item, job_id: str, until: datetime) -> bool:
        """Let the job transcribe the item's content, alone, until then; or extend its claim."""
        content = _get(tx, item.library_id, item.content_id)
        if content is None:
            return False
        claimed = tx.run(
            """INSERT INTO transcribing AS t (key, job_id, until) VALUES (:key, :job_id, :until)
               ON CONFLICT (key) DO UPDATE SET job_id = excluded.job_id, until = excluded.until
               WHERE t.job_id = :job_id OR t.until < :now OR t.until > :ahead""",
            key=content.key,
            job_id=job_id,
            until=until,
            now=now(),
            ahead=now() + job_queues.AHEAD,
        )
        # Read after the claim: another job may have stored the text meanwhile.
        if not claimed or not tx.one(
            f"SELECT 1 FROM contents WHERE {_ONE} AND text = ''",
            library_id=item.library_id,
            id=content.id,
        ):
            _release(tx, content.key, job_id)
            return False
        tx.run(
            f"""UPDATE items SET transcription_status = 'running'
                WHERE {_ITEMS_OF} AND transcription_status = 'queued'""",
            **_holders(tx, item.library_id, content),
        )
        return True

    @writes
    def set_progress(self, tx: Tx, item: Item, share: float) -> None:
        """Show the progress of a transcription on all jobs that wait for it."""
        if content := _get(tx, item.library_id, item.content_id):
            tx.run(
                f"UPDATE jobs SET progress = :share WHERE state <> 'done' AND {_JOBS_OF}",
                share=share,
                **_holders(tx, item.library_id, content),
            )

    @writes
    def set_text(
        self, tx: Tx, item: Item, text: str, segments: Sequence[Json], about: Json
    ) -> None:
        """Store the text of a recording in all libraries that have it, and wake the jobs that wait
        for it."""
        content = _get(tx, item.library_id, item.content_id)
        if content is None:
            return
        if content.shared:
            sources.set_hash(tx, content.key, content.id, digest(text))
        holders = _holders(tx, item.library_id, content)
        for library_id in tx.column(
            """UPDATE contents SET text = :text, hash = :hash, segments = :segments,
               about = :about WHERE library_id IN :libraries AND id = :content_id AND text = ''
               RETURNING library_id""",
            text=text,
            hash=digest(text),
            segments=rows.column(segments),
            about=rows.column(about),
            **holders,
        ):
            usage.record(tx, library_id, size=_size(text), accepted=True)
        _release(tx, content.key)
        _wake_waiting(tx, holders)

    @writes
    def release(self, tx: Tx, item: Item, job_id: str) -> None:
        """Give up a claim, so that another job may try."""
        content = _get(tx, item.library_id, item.content_id)
        if content and _release(tx, content.key, job_id):
            _wake_waiting(tx, _holders(tx, item.library_id, content))

    @writes
    def fail(self, tx: Tx, item: Item, error: str) -> None:
        """Fail all jobs that wait for a transcription, and show the error on their items."""
        content = _get(tx, item.library_id, item.content_id)
        if content is None:
            return
        holders = _holders(tx, item.library_id, content)
        _release(tx, content.key)
        for library_id, item_id in tx.tuples(
            f"""UPDATE items SET transcription_status = 'failed', status_reason = :error
                WHERE {_ITEMS_OF} AND transcription_status IN ('queued', 'running')
                RETURNING library_id, id""",
            error=error,
            **holders,
        ):
            log.record(tx, EventType.FAILED, library_id, [item_id], None)
        tx.run(
            f"""UPDATE jobs SET state = 'failed', error = :error, leased_by = NULL,
                leased_until = NULL, updated_at = :at
                WHERE state IN ('queued', 'running') AND {_JOBS_OF}""",
            error=error,
            at=now(),
            **holders,
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
            """INSERT INTO transcriptions (library_id, id, person_id, month, seconds)
               VALUES (:library_id, :id, :person_id, :month, :seconds)""",
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


def _row(library_id: str, new: Content, at: datetime) -> dict[str, object]:
    written = {c: rows.column(at if c == "created_at" else getattr(new, c)) for c in _COLUMNS}
    return {"library_id": library_id, **written}


def _get(tx: Tx, library_id: str, content_id: str) -> Content | None:
    row = tx.one(f"SELECT * FROM contents WHERE {_ONE}", library_id=library_id, id=content_id)
    return rows.value(Content, row, **_NOT_STORED) if row else None


def known_keys(tx: Tx, library_id: str, keys: Sequence[str]) -> set[str]:
    """Return those of the keys that have a content, in the library or as a public source."""
    own = tx.column(
        "SELECT key FROM contents WHERE library_id = :library_id AND key IN :keys",
        library_id=library_id,
        keys=list(keys),
    )
    return {*own, *sources.known(tx, [key for key in keys if is_shared(key)])}


def insert_contents(tx: Tx, library_id: str, new: Sequence[tuple[Content, datetime]]) -> None:
    """Insert contents that neither the library nor a source has."""
    for content, _ in new:
        if content.shared:
            sources.take(tx, library_id, content)
    size = sum(_size(content.text) for content, _ in new)
    usage.record(tx, library_id, size=size)
    tx.insert(
        "contents",
        ", ".join(("library_id", *_COLUMNS)),
        [tuple(_row(library_id, *each).values()) for each in new],
    )


def put_content(
    tx: Tx, library_id: str, new: Content, at: datetime, *, newest: bool = False
) -> tuple[str, bool]:
    """Insert a content unless its key exists; return the key's content id, and whether the
    text is the same. `newest`: a public source has this text from now on."""
    same = True
    if new.shared:
        new, same = _shared(tx, library_id, new, newest)
    row = _row(library_id, new, at)
    if tx.run(
        f"""INSERT INTO contents ({", ".join(row)})
            VALUES ({", ".join(f":{name}" for name in row)})
            ON CONFLICT (library_id, key) DO NOTHING""",
        **row,
    ):
        usage.record(tx, library_id, size=_size(new.text))
        source_files.attach(tx, library_id, new.id, new.files)
        return new.id, same
    # The update that changes nothing locks the row: of two adds of one source, the second waits
    # and finds the first's item. So does a deletion.
    found = tx.one(
        """UPDATE contents SET key = key WHERE library_id = :library_id AND key = :key
           RETURNING id, text = :text AS same""",
        library_id=library_id,
        key=new.key,
        text=new.text,
    )
    if found is None:
        raise source_conflict()  # it was deleted in between
    if new.shared and found["id"] != new.id:  # the library has an older text of it
        sources.note_holder(tx, library_id, new.key, found["id"])
        same = True
    same = same and bool(found["same"])
    if same:
        source_files.attach(tx, library_id, found["id"], new.files)
    return str(found["id"]), same


def _shared(tx: Tx, library_id: str, new: Content, newest: bool) -> tuple[Content, bool]:
    """Return a public source's text with the id that it has in all libraries, and whether the
    source has this text."""
    content_id, same = sources.take(tx, library_id, new, newest=newest)
    if content_id != new.id:
        new = replace(new, id=content_id)
        # The library may have this text as an earlier one, under a key of its own.
        tx.run(
            f"UPDATE contents SET key = :key WHERE {_ONE} AND {_OWN_KEY}",
            key=new.key,
            library_id=library_id,
            id=content_id,
        )
    sources.put_aliases(tx, new.key, new.redirected)
    return new, same


def get_content_by_key(tx: Tx, library_id: str, key: str) -> Content | None:
    """Return the library's content of a key, or a public source that another library has."""
    if found := _by_key(tx, library_id, key):
        return found
    source = sources.find(tx, key) if is_shared(key) else None
    if source is None:
        return None
    if source.key != key and (found := _by_key(tx, library_id, source.key)):
        return found
    return _get(tx, source.library_id, source.content_id)


def _by_key(tx: Tx, library_id: str, key: str) -> Content | None:
    row = tx.one(
        "SELECT * FROM contents WHERE library_id = :library_id AND key = :key",
        library_id=library_id,
        key=key,
    )
    return rows.value(Content, row, **_NOT_STORED) if row else None


def replace_content(tx: Tx, library_id: str, new: Content, at: datetime) -> str:
    """Make the library's key lead to a new content; return its id.

    The old one gets a key of its own: the item keeps it as a version. Other libraries keep theirs.
    """
    held = _by_key(tx, library_id, new.key)
    moved = [new.key] if held and held.text != new.text else []
    moved += new.redirected  # it did not redirect when it was read before
    for key in moved:
        tx.run(
            f"UPDATE contents SET {_OWN_KEY} WHERE library_id = :library_id AND key = :key",
            library_id=library_id,
            key=key,
        )
    for key in new.redirected:
        sources.leave(tx, library_id, key)
    content_id, same = put_content(tx, library_id, new, at, newest=new.key in moved or not held)
    if not same:
        raise source_conflict()
    return content_id


def source_conflict() -> Conflict:
    return Conflict(
        "Another request fetched the source at the same time and got another text. Try again."
    )


def detach_key(
    tx: Tx,
    library_id: str,
    content_id: str,
    *,
    private: bool = False,
    only_of: str | None = None,
) -> str | None:
    """Give a text a key of its own, so that adding it again does not lead to this content. Return
    the key that it had.

    `only_of`: an item; nothing is done if others have the text too.
    `private`: only a text that no source has. It stays where a caller who deleted it does not see
    it, and everybody sees a source.
    """
    one = {"library_id": library_id, "id": content_id}
    unshared = """ AND NOT EXISTS (SELECT 1 FROM items AS i WHERE i.library_id = :library_id
                       AND i.content_id = :id AND i.id <> :item_id)"""
    key = tx.scalar(
        f"SELECT key FROM contents WHERE {_ONE} AND NOT {_OWN_KEY}{unshared if only_of else ''}",
        item_id=only_of,
        **one,
    )
    if key is None or (private and is_shared(key)):
        return None
    tx.run(f"UPDATE contents SET {_OWN_KEY} WHERE {_ONE}", **one)
    if is_shared(key):
        sources.leave(tx, library_id, key)
    return str(key)


def attach_key(tx: Tx, library_id: str, content_id: str, key: str) -> None:
    """Give a text its key again, unless another one has it by now."""
    attached = tx.run(
        f"""UPDATE contents SET key = :key WHERE {_ONE} AND {_OWN_KEY}
            AND NOT EXISTS (SELECT 1 FROM contents AS other
                            WHERE other.library_id = :library_id AND other.key = :key)""",
        library_id=library_id,
        id=content_id,
        key=key,
    )
    content = _get(tx, library_id, content_id)
    if attached and content and content.shared:
        sources.take(tx, library_id, content)
        sources.note_holder(tx, library_id, key, content_id)


def drop_unused_content(tx: Tx, library_id: str, content_id: str) -> None:
    unused = "".join(
        f""" AND NOT EXISTS (SELECT 1 FROM {table} AS x
                             WHERE x.library_id = :library_id AND x.content_id = :id)"""
        for table in ("items", "versions", "trash_rows")
    )
    for key, size in tx.tuples(
        f"DELETE FROM contents WHERE {_ONE}{unused} RETURNING key, octet_length(text)",
        library_id=library_id,
        id=content_id,
    ):
        usage.record(tx, library_id, size=-size)
        source_files.release(tx, library_id, content_id)
        if is_shared(key):
            sources.leave(tx, library_id, key)


def _size(text: str) -> int:
    return len(text.encode())


def _holders(tx: Tx, library_id: str, content: Content) -> dict[str, Any]:
    """Return the libraries that have a content, as values of a statement."""
    libraries = sources.holders(tx, content.key, content.id) if content.shared else []
    return {"libraries": libraries or [library_id], "content_id": content.id}


def _release(tx: Tx, key: str, job_id: str | None = None) -> bool:
    """End a claim, or only that of one job; return whether there was one."""
    own = "" if job_id is None else "AND job_id = :job_id"
    return bool(tx.run(f"DELETE FROM transcribing WHERE key = :key {own}", key=key, job_id=job_id))


def _wake_waiting(tx: Tx, holders: dict[str, Any]) -> None:
    at = now()
    for library_id, kind in tx.tuples(
        f"""UPDATE jobs SET run_after = :at
            WHERE state = 'queued' AND run_after > :at AND {_JOBS_OF} RETURNING library_id, kind""",
        at=at,
        **holders,
    ):
        job_queues.note(tx, library_id, kind, at)


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
