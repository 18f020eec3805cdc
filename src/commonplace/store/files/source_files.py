"""Files that belong to texts, such as the raw pages that they were read from.

A row is written before its bytes are stored, and outlives them: bytes without a row would stay for
ever.
"""

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

from commonplace.database import Table, Tx, reads, scope_sql, usage, writes
from commonplace.model import Content, Item, Scope, SourceFile
from commonplace.store import rows, sources

_COLUMNS = tuple(each.name for each in fields(SourceFile) if each.name != "data")
_OF_ITEM = "ON i.library_id = f.library_id AND i.content_id = f.content_id"


class SourceFiles(Table):
    @writes
    def create(self, tx: Tx, files: Sequence[SourceFile]) -> None:
        tx.insert(
            "source_files",
            ", ".join(_COLUMNS),
            [tuple(rows.column(getattr(file, name)) for name in _COLUMNS) for file in files],
        )
        for file in files:
            usage.record(tx, file.library_id, size=file.size)

    @reads
    def of_item(self, tx: Tx, scope: Scope, item_id: str, role: str) -> list[SourceFile]:
        """Return the files of this role of the text of an item in scope."""
        found = tx.all(
            f"""SELECT f.* FROM source_files AS f JOIN items AS i {_OF_ITEM}
                WHERE {scope_sql.visible(scope)} AND i.id = :item_id AND f.role = :role
                ORDER BY f.created_at DESC, f.id""",
            item_id=item_id,
            role=role,
            **scope_sql.within(scope),
        )
        return list(map(read_file, found))

    @reads
    def picture(self, tx: Tx, item: Item) -> SourceFile | None:
        """Return the picture of an item, also if its text was edited since it was drawn."""
        found = tx.one(
            """SELECT * FROM source_files WHERE library_id = :library_id AND hash = :hash
               AND role = 'picture' AND content_id IS NOT NULL LIMIT 1""",
            library_id=item.library_id,
            hash=item.picture,
        )
        return read_file(found) if found else None

    @reads
    def of_text(self, tx: Tx, item: Item) -> list[SourceFile]:
        """Return all files of an item's text."""
        return _of_content(tx, item.library_id, item.content_id)

    @reads
    def elsewhere(self, tx: Tx, library_id: str, content: Content) -> list[SourceFile]:
        """Return the files of a public source in another library, unless this one has them."""
        if not content.shared or _of_content(tx, library_id, content.id):
            return []
        others = (
            _of_content(tx, each, content.id)
            for each in sources.copies(tx, content.key, content.id)
        )
        return next(filter(None, others), [])

    @reads
    def items_with(self, tx: Tx, role: str, after: tuple[str, str], limit: int) -> list[Item]:
        """Return items of all libraries whose text has a file of this role, in the order of library
        and id."""
        library_id, item_id = after
        found = tx.all(
            f"""{rows.SELECT_ITEM} WHERE EXISTS (SELECT 1 FROM source_files AS f
                  WHERE f.library_id = i.library_id AND f.content_id = i.content_id
                  AND f.role = :role)
                AND (i.library_id > :library_id
                     OR (i.library_id = :library_id AND i.id > :item_id))
                ORDER BY i.library_id, i.id LIMIT :limit""",
            role=role,
            library_id=library_id,
            item_id=item_id,
            limit=limit,
        )
        return list(map(rows.item, found))

    @reads
    def count_items(self, tx: Tx, role: str) -> int:
        """Count the items of all libraries whose text has a file of this role."""
        sql = f"SELECT count(*) FROM source_files AS f JOIN items AS i {_OF_ITEM}"
        return int(tx.scalar(f"{sql} WHERE f.role = :role", role=role))

    @reads
    def keys(self, tx: Tx) -> dict[str, SourceFile]:
        """Return all files by the keys of their bytes."""
        return {file.key: file for file in map(read_file, tx.all("SELECT * FROM source_files"))}

    @reads
    def kept_bytes(self, tx: Tx, library_id: str) -> int:
        """Return the size of all files of a library."""
        return int(
            tx.scalar(
                """SELECT coalesce(sum(size), 0) FROM source_files
                   WHERE library_id = :library_id AND content_id IS NOT NULL""",
                library_id=library_id,
            )
        )

    @reads
    def list_unused(self, tx: Tx, before: datetime) -> list[SourceFile]:
        """Return files that no text needs, and that were not stored just now for one."""
        found = tx.all(
            "SELECT * FROM source_files WHERE content_id IS NULL AND created_at < :before",
            before=before,
        )
        return list(map(read_file, found))

    @writes
    def expire(self, tx: Tx, library_id: str) -> None:
        """Let all files of a library that no text needs be deleted now."""
        tx.run(
            """UPDATE source_files SET created_at = 0
               WHERE library_id = :library_id AND content_id IS NULL""",
            library_id=library_id,
        )

    @writes
    def delete(self, tx: Tx, files: Sequence[SourceFile]) -> None:
        for file in files:
            if tx.run(
                "DELETE FROM source_files WHERE library_id = :library_id AND id = :id",
                library_id=file.library_id,
                id=file.id,
            ):
                usage.record(tx, file.library_id, size=-file.size)


def _of_content(tx: Tx, library_id: str, content_id: str) -> list[SourceFile]:
    found = tx.all(
        "SELECT * FROM source_files WHERE library_id = :library_id AND content_id = :content_id",
        library_id=library_id,
        content_id=content_id,
    )
    return list(map(read_file, found))


def read_file(row: Any) -> SourceFile:
    return rows.value(SourceFile, row, data=b"")


def attach(tx: Tx, library_id: str, content_id: str, files: Sequence[SourceFile]) -> None:
    """Give a text its files, in the place of those of the same role. One that is the same stays."""
    where = {"library_id": library_id, "content_id": content_id}
    for role in dict.fromkeys(file.role for file in files):
        held = tx.column(
            """SELECT hash FROM source_files
               WHERE library_id = :library_id AND content_id = :content_id AND role = :role""",
            role=role,
            **where,
        )
        new = [file for file in files if file.role == role]
        if sorted(held) == sorted(file.hash for file in new):
            continue
        _release(tx, "AND role = :role", role=role, **where)
        tx.run(
            """UPDATE source_files SET content_id = :content_id
               WHERE library_id = :library_id AND id IN :ids""",
            ids=[file.id for file in new],
            **where,
        )


def release(tx: Tx, library_id: str, content_id: str) -> None:
    """Let the files of a deleted text be deleted."""
    _release(tx, library_id=library_id, content_id=content_id)


def _release(tx: Tx, more: str = "", **where: str) -> None:
    tx.run(
        f"""UPDATE source_files SET content_id = NULL, created_at = 0
            WHERE library_id = :library_id AND content_id = :content_id {more}""",
        **where,
    )
