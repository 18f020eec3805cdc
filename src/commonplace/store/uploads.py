"""Uploads: what was promised, until when, and what came of it."""

import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from commonplace.database import scope_sql
from commonplace.database.columns import as_json, from_micros, micros
from commonplace.database.transaction import Tx
from commonplace.database.unit_of_work import Table, reads, writes
from commonplace.errors import Conflict, NotFound
from commonplace.model import Json, Scope, Upload

NO_UPLOAD = "Upload not found"


class Uploads(Table):
    @writes
    def create(self, tx: Tx, upload: Upload) -> None:
        tx.run(
            """INSERT INTO uploads (library_id, id, owner, filename, content_type, size,
               created_at, expires_at, on_arrival)
               VALUES (:library_id, :id, :owner, :filename, :content_type, :size, :created_at,
               :expires_at, :on_arrival)""",
            library_id=upload.library_id,
            id=upload.id,
            owner=upload.owner,
            filename=upload.filename,
            content_type=upload.content_type,
            size=upload.size,
            created_at=micros(upload.created_at),
            expires_at=micros(upload.expires_at),
            on_arrival=None if upload.on_arrival is None else as_json(upload.on_arrival),
        )

    @reads
    def get(self, tx: Tx, upload_id: str) -> Upload:
        """Of any library: whoever asks has to check whose it is."""
        row = tx.one("SELECT * FROM uploads WHERE id = :id", id=upload_id)
        if row is None:
            raise NotFound(NO_UPLOAD)
        return _upload(row)

    @reads
    def of_item(self, tx: Tx, scope: Scope, item_id: str) -> Upload | None:
        """The file that an item in scope was made of."""
        condition, values = scope_sql.visible(scope)
        row = tx.one(
            f"""SELECT u.* FROM uploads AS u
                JOIN items AS i ON i.library_id = u.library_id AND i.id = u.item_id
                WHERE {condition} AND u.item_id = :item_id
                ORDER BY u.created_at LIMIT 1""",
            item_id=item_id,
            **values,
        )
        return _upload(row) if row else None

    @reads
    def list_awaited(self, tx: Tx) -> list[Upload]:
        """Those to be queued when their last byte arrives, and which have no item yet."""
        found = tx.all("SELECT * FROM uploads WHERE on_arrival IS NOT NULL AND item_id IS NULL")
        return [_upload(row) for row in found]

    @writes
    def finish(self, tx: Tx, upload: Upload, item_id: str, answer: Json | None = None) -> str:
        """Say which item came of it, and what was answered; the item that is there already, if another was first."""

        key = {"library_id": upload.library_id, "id": upload.id}
        with suppress(Conflict):
            finish_upload(tx, upload, item_id, answer)
        row = tx.one(
            "SELECT item_id FROM uploads WHERE library_id = :library_id AND id = :id", **key
        )
        if row is None:
            raise NotFound(NO_UPLOAD)
        return str(row["item_id"])

    @reads
    def list_disposable(self, tx: Tx, at: datetime, *, keep: bool) -> list[Upload]:
        """Whose bytes nobody needs: those that expired or whose item is gone; and, unless originals are kept, those
        that were read or written down."""
        found = tx.all(
            """SELECT u.* FROM uploads AS u
               LEFT JOIN items AS i ON i.library_id = u.library_id AND i.id = u.item_id
               WHERE (i.id IS NULL AND (u.expires_at < :at OR u.item_id IS NOT NULL))
               OR (i.id IS NOT NULL AND :keep = 0 AND i.ingest_status IS NULL
               AND coalesce(i.transcription_status, 'done') = 'done')""",
            at=micros(at),
            keep=int(keep),
        )
        return [_upload(row) for row in found]

    @writes
    def delete(self, tx: Tx, uploads: Sequence[Upload]) -> None:
        tx.run("DELETE FROM uploads WHERE id IN :ids", ids=[each.id for each in uploads])

    @writes
    def expire(self, tx: Tx, library_id: str) -> None:
        """All of a library's, now; none of them is queued any more."""
        tx.run(
            "UPDATE uploads SET expires_at = 0, on_arrival = NULL WHERE library_id = :library_id",
            library_id=library_id,
        )


def finish_upload(tx: Tx, upload: Upload, item_id: str, answer: Json | None) -> None:
    """Say which item came of an upload, once: Conflict when another call was first."""
    if not tx.run(
        """UPDATE uploads SET item_id = :item_id, answer = :answer
           WHERE library_id = :library_id AND id = :id AND item_id IS NULL""",
        item_id=item_id,
        answer=None if answer is None else as_json(answer),
        library_id=upload.library_id,
        id=upload.id,
    ):
        raise Conflict("The upload is finished already.")


def _upload(row: Any) -> Upload:
    return Upload(
        id=row["id"],
        library_id=row["library_id"],
        owner=row["owner"],
        filename=row["filename"],
        content_type=row["content_type"],
        size=row["size"],
        created_at=from_micros(row["created_at"]),
        expires_at=from_micros(row["expires_at"]),
        item_id=row["item_id"],
        on_arrival=_json(row["on_arrival"]),
        answer=_json(row["answer"]),
    )


def _json(column: str | None) -> Json | None:
    return None if column is None else json.loads(column)
