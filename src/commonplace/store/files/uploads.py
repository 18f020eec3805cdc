"""Uploads: files that were announced, and the items they became."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from commonplace.database import Table, Tx, reads, scope_sql, usage, writes
from commonplace.errors import Conflict
from commonplace.model import Json, Scope, Upload
from commonplace.store import rows
from commonplace.store.people import directory

_OF_ITEM = "ON i.library_id = u.library_id AND i.id = u.item_id"


class Uploads(Table):
    @writes
    def create(self, tx: Tx, upload: Upload) -> None:
        directory.put_names(tx, upload.library_id, [upload.id])
        rows.insert(tx, "uploads", upload)
        usage.record(tx, upload.library_id, size=upload.size)

    @reads
    def get(self, tx: Tx, upload_id: str) -> Upload:
        """Return an upload of any library: the caller checks whose it is."""
        return rows.require(
            tx,
            Upload,
            "SELECT * FROM uploads WHERE library_id = :library_id AND id = :id",
            library_id=directory.find_library(tx, upload_id),
            id=upload_id,
        )

    @reads
    def original_of(self, tx: Tx, scope: Scope, item_id: str) -> Upload | None:
        """Return the file that an item in scope was made of, if it was kept."""
        return rows.first(
            tx,
            Upload,
            f"""SELECT u.* FROM uploads AS u JOIN items AS i {_OF_ITEM}
                WHERE {scope_sql.visible(scope)} AND u.item_id = :item_id AND u.has_file = 1
                ORDER BY u.created_at, u.id LIMIT 1""",
            item_id=item_id,
            **scope_sql.within(scope),
        )

    @reads
    def keys(self, tx: Tx) -> dict[str, str]:
        """Return the keys of all files, with the ids of their uploads."""
        found = rows.every(tx, Upload, "SELECT * FROM uploads WHERE has_file = 1")
        return {upload.key: upload.id for upload in found}

    @reads
    def kept_bytes(self, tx: Tx, library_id: str) -> int:
        """Return the size of all originals of a library."""
        return int(
            tx.scalar(
                f"""SELECT coalesce(sum(u.size), 0) FROM uploads AS u JOIN items AS i {_OF_ITEM}
                    WHERE u.library_id = :library_id AND u.has_file = 1""",
                library_id=library_id,
            )
        )

    @reads
    def list_awaited(self, tx: Tx) -> list[Upload]:
        """Return uploads to be queued when their last byte arrives, and that have no item yet."""
        return rows.every(
            tx, Upload, "SELECT * FROM uploads WHERE on_arrival IS NOT NULL AND item_id IS NULL"
        )

    @writes
    def finish(self, tx: Tx, upload: Upload, item_id: str, answer: Json | None = None) -> str:
        """Record the item made of an upload, and the answer; return the first item recorded."""
        with suppress(Conflict):
            finish_upload(tx, upload, item_id, answer)
        return str(
            rows.require(
                tx,
                Upload,
                "SELECT * FROM uploads WHERE library_id = :library_id AND id = :id",
                library_id=upload.library_id,
                id=upload.id,
            ).item_id
        )

    @writes
    def reassign(self, tx: Tx, upload: Upload, item_id: str) -> None:
        """Make an upload that of another item, which had its text already."""
        tx.run(
            """UPDATE uploads SET item_id = :item_id
               WHERE library_id = :library_id AND id = :id""",
            item_id=item_id,
            library_id=upload.library_id,
            id=upload.id,
        )

    @writes
    def forget_files(self, tx: Tx, upload_ids: Sequence[str]) -> None:
        """Record that the bytes of uploads were deleted."""
        for upload_id in upload_ids:
            for library_id, size in tx.tuples(
                """UPDATE uploads SET has_file = 0
                   WHERE library_id = :library_id AND id = :id AND has_file = 1
                   RETURNING library_id, size""",
                library_id=directory.find_library(tx, upload_id),
                id=upload_id,
            ):
                usage.record(tx, library_id, size=-size)

    @reads
    def list_disposable(self, tx: Tx, at: datetime, *, keep: bool) -> list[Upload]:
        """Return uploads that expired, or whose bytes are not needed: their item is gone, or has
        another file that is its original. Items in the trash may come back.

        Unless originals are kept (`keep`), also those that were read or transcribed.
        """
        return rows.every(
            tx,
            Upload,
            f"""SELECT u.* FROM uploads AS u LEFT JOIN items AS i {_OF_ITEM}
                WHERE (i.id IS NULL AND (u.expires_at < :at OR u.item_id IS NOT NULL)
                       AND NOT EXISTS (SELECT 1 FROM trash AS t WHERE t.library_id = u.library_id
                                       AND t.item_id = u.item_id))
                   OR (i.id IS NOT NULL AND u.has_file = 0 AND u.expires_at < :at)
                   OR (i.id IS NOT NULL AND u.has_file = 1 AND i.ingest_status IS NULL
                       AND coalesce(i.transcription_status, 'done') = 'done'
                       AND (:keep = 0 OR EXISTS
                           (SELECT 1 FROM uploads AS o
                            WHERE o.library_id = u.library_id AND o.item_id = u.item_id
                              AND o.has_file = 1 AND (o.created_at < u.created_at
                                OR (o.created_at = u.created_at AND o.id < u.id)))))""",
            at=at,
            keep=int(keep),
        )

    @writes
    def delete(self, tx: Tx, uploads: Sequence[Upload]) -> None:
        for upload in uploads:
            for size in tx.column(
                """DELETE FROM uploads WHERE library_id = :library_id AND id = :id
                   RETURNING size * has_file""",
                library_id=upload.library_id,
                id=upload.id,
            ):
                usage.record(tx, upload.library_id, size=-size)
            directory.drop_names(tx, upload.library_id, [upload.id])

    @writes
    def expire(self, tx: Tx, library_id: str) -> None:
        """Expire all uploads of a library now; none is queued any more."""
        tx.run(
            """UPDATE uploads SET expires_at = 0, on_arrival = NULL
               WHERE library_id = :library_id""",
            library_id=library_id,
        )


def finish_upload(tx: Tx, upload: Upload, item_id: str, answer: Json | None) -> None:
    """Record the item made of an upload. Conflict: another call was first."""
    if not tx.run(
        """UPDATE uploads SET item_id = :item_id, answer = :answer
           WHERE library_id = :library_id AND id = :id AND item_id IS NULL""",
        item_id=item_id,
        answer=rows.column(answer),
        library_id=upload.library_id,
        id=upload.id,
    ):
        raise Conflict("The upload is finished already.")
