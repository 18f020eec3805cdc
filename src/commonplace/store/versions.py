"""Earlier texts of items: written when a text is replaced, read within the scope of the item."""

from datetime import datetime, timedelta

from commonplace.database import Table, Tx, reads, scope_sql, writes
from commonplace.model import Content, Item, Scope, Version
from commonplace.store import contents, rows

KEPT = 100  # of one item; an agent that writes every minute must not fill the disk
KEPT_FOR = timedelta(days=365)
_SELECT = """SELECT v.*, {text} AS text FROM versions AS v
             JOIN items AS i ON i.library_id = v.library_id AND i.id = v.item_id {join}
             WHERE v.library_id = :library_id AND v.item_id = :item_id AND {condition}"""


class Versions(Table):
    @reads
    def of_item(self, tx: Tx, scope: Scope, item_id: str) -> list[Version]:
        """Return an item's versions without their texts, newest first."""
        sql = _SELECT.format(text="''", join="", condition=scope_sql.visible(scope))
        return rows.every(
            tx,
            Version,
            f"{sql} ORDER BY v.revision DESC",
            item_id=item_id,
            **scope_sql.within(scope),
        )

    @reads
    def get(self, tx: Tx, scope: Scope, item_id: str, revision: int) -> Version:
        join = "JOIN contents AS c ON c.library_id = v.library_id AND c.id = v.content_id"
        sql = _SELECT.format(text="c.text", join=join, condition=scope_sql.visible(scope))
        return rows.require(
            tx,
            Version,
            f"{sql} AND v.revision = :revision",
            item_id=item_id,
            revision=revision,
            **scope_sql.within(scope),
        )

    @writes
    def prune(self, tx: Tx, before: datetime) -> None:
        """Delete versions whose text was replaced before a time."""
        for library_id, content_id in tx.tuples(
            "DELETE FROM versions WHERE replaced_at < :before RETURNING library_id, content_id",
            before=before,
        ):
            contents.drop_unused_content(tx, library_id, content_id)


def keep_version(tx: Tx, before: Item, after: Item) -> None:
    """Store the text that an item had, if it has changed, and delete versions beyond KEPT."""
    tx.run(
        """INSERT INTO versions (library_id, item_id, revision, content_id, title, word_count,
                                 replaced_at)
           SELECT :library_id, :item_id, :revision, was.id, :title, :word_count, :at
           FROM contents AS was JOIN contents AS is_now ON is_now.library_id = was.library_id
           WHERE was.library_id = :library_id AND is_now.id = :now_id AND was.id = :was_id
           AND was.text <> '' AND was.hash <> is_now.hash""",
        library_id=before.library_id,
        item_id=before.id,
        revision=before.revision,
        title=before.title,
        word_count=before.word_count,
        at=after.updated_at,
        was_id=before.content_id,
        now_id=after.content_id,
    )
    _drop_oldest(tx, before)


def keep_source(tx: Tx, item: Item, content: Content, word_count: int, at: datetime) -> bool:
    """Store a text that the source of an edited item has now as a version of the item, unless it
    has such a version. The item gets another revision."""
    known = tx.one(
        """SELECT 1 FROM versions AS v JOIN contents AS c
           ON c.library_id = v.library_id AND c.id = v.content_id
           WHERE v.library_id = :library_id AND v.item_id = :item_id AND c.hash = :hash""",
        library_id=item.library_id,
        item_id=item.id,
        hash=content.hash,
    )
    if known:
        return False
    title = content.about.get("title") or item.title
    tx.insert(
        "versions",
        "library_id, item_id, revision, content_id, title, word_count, replaced_at",
        [(item.library_id, item.id, item.revision, content.id, title, word_count, rows.column(at))],
    )
    _drop_oldest(tx, item)
    return True


def _drop_oldest(tx: Tx, item: Item) -> None:
    for content_id in tx.column(
        """DELETE FROM versions WHERE library_id = :library_id AND item_id = :item_id
           AND revision IN (
               SELECT v.revision FROM versions AS v
               WHERE v.library_id = :library_id AND v.item_id = :item_id
               ORDER BY v.revision DESC LIMIT 1000 OFFSET :kept)
           RETURNING content_id""",
        library_id=item.library_id,
        item_id=item.id,
        kept=KEPT,
    ):
        contents.drop_unused_content(tx, item.library_id, content_id)


def contents_of(tx: Tx, library_id: str, item_id: str) -> list[str]:
    """Return the ids of an item's contents, old and new, which may be deleted with it."""
    return tx.column(
        """SELECT content_id FROM items WHERE library_id = :library_id AND id = :item_id
           UNION SELECT content_id FROM versions
           WHERE library_id = :library_id AND item_id = :item_id""",
        library_id=library_id,
        item_id=item_id,
    )
