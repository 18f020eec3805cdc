"""What items said before: written when a text is replaced, read within the scope of the item."""

from typing import Any

from commonplace.database import scope_sql
from commonplace.database.columns import from_micros, micros
from commonplace.database.transaction import Tx
from commonplace.database.unit_of_work import Table, reads
from commonplace.errors import NotFound
from commonplace.model import Item, Scope, Version
from commonplace.store.contents import drop_unused_content

KEPT = 50  # of one item; an agent that writes every minute must not fill the disk
_SELECT = """SELECT v.*, {text} AS text
             FROM versions AS v
             JOIN items AS i ON i.library_id = v.library_id AND i.id = v.item_id {more}
             WHERE v.library_id = :library_id AND v.item_id = :item_id AND {condition}"""


class Versions(Table):
    """What items said before. Written by whatever replaces an item's text; gone with the item."""

    @reads
    def of_item(self, tx: Tx, scope: Scope, item_id: str) -> list[Version]:
        """Newest first, without their texts."""
        condition, values = scope_sql.visible(scope)
        found = tx.all(
            _SELECT.format(text="''", more="", condition=condition) + " ORDER BY v.revision DESC",
            item_id=item_id,
            **values,
        )
        return [_version(row) for row in found]

    @reads
    def get(self, tx: Tx, scope: Scope, item_id: str, revision: int) -> Version:
        condition, values = scope_sql.visible(scope)
        more = "JOIN contents AS c ON c.id = v.content_id"
        row = tx.one(
            _SELECT.format(text="c.text", more=more, condition=condition)
            + " AND v.revision = :revision",
            item_id=item_id,
            revision=revision,
            **values,
        )
        if row is None:
            raise NotFound("Version not found")
        return _version(row)


def keep_version(tx: Tx, before: Item, after: Item) -> None:
    """When the text is another one; of the oldest, those beyond KEPT go."""
    of_item = {"library_id": before.library_id, "item_id": before.id}
    tx.run(
        """INSERT INTO versions (library_id, item_id, revision, content_id, title, word_count,
           replaced_at) SELECT :library_id, :item_id, :revision, was.id, :title, :word_count,
           :at FROM contents AS was
           JOIN contents AS is_now ON is_now.id = :now_id
           WHERE was.id = :was_id AND was.text <> '' AND was.hash <> is_now.hash""",
        **of_item,
        revision=before.revision,
        title=before.title,
        word_count=before.word_count,
        at=micros(after.updated_at),
        was_id=before.content_id,
        now_id=after.content_id,
    )
    old = tx.all(
        """SELECT revision, content_id
           FROM versions
           WHERE library_id = :library_id AND item_id = :item_id
           ORDER BY revision DESC LIMIT 1000 OFFSET :kept""",
        **of_item,
        kept=KEPT,
    )
    for row in old:
        tx.run(
            """DELETE FROM versions
               WHERE library_id = :library_id AND item_id = :item_id AND revision = :revision""",
            **of_item,
            revision=row["revision"],
        )
        drop_unused_content(tx, row["content_id"])


def contents_of(tx: Tx, library_id: str, item_id: str) -> list[str]:
    """All that the item has said: what may be let go of with it."""
    return [
        row["content_id"]
        for row in tx.all(
            """SELECT content_id FROM items
               WHERE library_id = :library_id AND id = :item_id
               UNION SELECT content_id
               FROM versions
               WHERE library_id = :library_id AND item_id = :item_id""",
            library_id=library_id,
            item_id=item_id,
        )
    ]


def _version(row: Any) -> Version:
    return Version(
        row["item_id"],
        row["revision"],
        row["title"],
        row["word_count"],
        from_micros(row["replaced_at"]),
        row["text"],
    )
