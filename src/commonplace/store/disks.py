"""Published items and saves. What is read here for others comes from `published` alone, never from an item's own
words, its content or its sections."""

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from commonplace.database import scope_sql
from commonplace.database.columns import from_micros, from_optional_micros, micros
from commonplace.database.transaction import Tx
from commonplace.database.unit_of_work import reads, writes
from commonplace.errors import NotFound
from commonplace.model import (
    NO_DISK,
    PRIVATE,
    PUBLISHED,
    Audience,
    DiskFilter,
    Item,
    ItemRef,
    Published,
    RedactedDisk,
    Scope,
    now,
)
from commonplace.search_index.index import IndexedTable
from commonplace.store.items import find

_PREVIEW = ""  # the audience of a view that nobody but the owner may see yet
_COLUMNS = """p.library_id, p.item_id, p.audience, p.published_at, p.shown, p.change, p.derived, p.summary,
              i.public_id, i.entity_type, i.created_at, o.id AS owner_id, o.name AS owner_name"""
# Without the previews that are kept beside them, which are for their owners alone.
_PUBLISHED = f"(SELECT * FROM published WHERE audience <> '{_PREVIEW}') AS p"
# A library has one owner who speaks for it: the first.
_FROM = f"""FROM {_PUBLISHED}
            JOIN items AS i ON i.library_id = p.library_id AND i.id = p.item_id
            JOIN people AS o ON o.id = (SELECT m.person_id FROM members AS m
            WHERE m.library_id = p.library_id AND m.role = 'owner' ORDER BY m.person_id
            LIMIT 1)"""
_SAVED = """JOIN saves AS s ON s.owner_id = p.library_id AND s.item_id = p.item_id
            AND s.library_id = :saver"""
_BASIS = (
    "content_id",
    "title",
    "url",
    "summary",
    "key_points",
    "tags",
    "category",
    "metadata",
    "in_kb",
    "word_count",
)


class Disks(IndexedTable):
    """A view is of a certain change of its item; every later change of the item makes it `stale`, whoever makes it."""

    @reads
    def preview(self, tx: Tx, item: Item) -> RedactedDisk | None:
        """The view that was derived of the item as it is now, published or not."""
        row = tx.one(
            """SELECT shown FROM published
               WHERE library_id = :library_id AND item_id = :item_id AND change = derived""",
            library_id=item.library_id,
            item_id=item.id,
        )
        return RedactedDisk.of(json.loads(row["shown"])) if row else None

    @writes
    def save_preview(self, tx: Tx, scope: Scope, item: Item, view: RedactedDisk) -> None:
        """Keep the view of an item for its owner alone. It goes with the item, and is old once the item has changed."""

        before = find(tx, scope, ItemRef(id=item.id), lock=True)
        if (
            before.visibility != PUBLISHED
        ):  # what was published meanwhile may have its owner's summary, which this one lacks
            _keep(tx, before, item, view, "ON CONFLICT DO NOTHING", audience=_PREVIEW, summary="")

    @writes
    def publish(
        self,
        tx: Tx,
        scope: Scope,
        item: Item,
        audience: Audience,
        view: RedactedDisk,
        summary: str = "",
    ) -> Published:
        """Seen by others from now on. `item`: as it was when the view was derived."""

        before = find(tx, scope, ItemRef(id=item.id), lock=True)
        key = {"library_id": before.library_id, "item_id": before.id}
        # It counts as a change: a view that was derived meanwhile may have another summary.
        _keep(
            tx,
            before,
            item,
            view,
            """ON CONFLICT (library_id, item_id) DO UPDATE
               SET published_at = CASE published.audience WHEN '' THEN excluded.published_at
               ELSE published.published_at END, audience = excluded.audience,
               summary = excluded.summary, change = published.change + 1""",
            audience=audience,
            summary=summary,
        )
        tx.run(
            """UPDATE items SET visibility = :visibility, updated_at = :at
               WHERE library_id = :library_id AND id = :item_id AND visibility <> :visibility""",
            visibility=PUBLISHED,
            at=micros(now()),
            **key,
        )
        return _one(tx, "p.library_id = :library_id AND p.item_id = :item_id", **key)

    @writes
    def unpublish(self, tx: Tx, scope: Scope, item_id: str) -> None:
        """Seen by no other from now on; saves stay, and count again when it is published again."""

        item = find(tx, scope, ItemRef(id=item_id), lock=True)
        tx.run(
            "DELETE FROM published WHERE library_id = :library_id AND item_id = :item_id",
            library_id=item.library_id,
            item_id=item.id,
        )
        tx.run(
            """UPDATE items SET visibility = :visibility, updated_at = :at
               WHERE library_id = :library_id AND id = :item_id AND visibility <> :visibility""",
            visibility=PRIVATE,
            at=micros(now()),
            library_id=item.library_id,
            item_id=item.id,
        )

    @writes
    def set_view(self, tx: Tx, published: Published, view: RedactedDisk) -> None:
        """The view of the change that `published` was read at."""
        _derive(tx, published.library_id, published.item_id, published.change, view)

    @writes
    def set_vector(self, tx: Tx, published: Published, stamp: str, vector: bytes) -> None:
        """Of the view that was derived for `published`."""
        tx.run(
            """UPDATE published SET vector = :vector, stamp = :stamp
               WHERE library_id = :library_id AND item_id = :item_id AND derived = :change""",
            vector=b64encode(vector).decode(),
            stamp=stamp,
            library_id=published.library_id,
            item_id=published.item_id,
            change=published.change,
        )

    @reads
    def find(self, tx: Tx, ref: ItemRef, saver: str | None) -> Published:
        """Of any library. NotFound: it is not there, or not published."""

        named = "i.id = :name" if ref.id is not None else "i.public_id = :name"
        found = _one(tx, named, name=ref.id or ref.public_id)
        if ref.entity_type not in (None, found.entity_type):
            raise NotFound(NO_DISK)
        saved = tx.one(
            """SELECT saved_at FROM saves
               WHERE library_id = :saver AND owner_id = :library_id AND item_id = :item_id""",
            saver=saver,
            library_id=found.library_id,
            item_id=found.item_id,
        )
        return replace(found, saved_at=from_micros(saved["saved_at"])) if saved else found

    @reads
    def of_items(self, tx: Tx, library_id: str, item_ids: Sequence[str]) -> dict[str, Published]:
        """Those of the library's items that are published."""
        found = tx.all(
            f"SELECT {_COLUMNS} {_FROM} WHERE p.library_id = :library_id AND p.item_id IN :ids",
            library_id=library_id,
            ids=list(item_ids),
        )
        return {row["item_id"]: _published(row) for row in found}

    @reads
    def list_saved(
        self, tx: Tx, saver: str, where: DiskFilter, *, limit: int, offset: int
    ) -> tuple[list[Published], int]:
        """What a library saved and is still published, saved last first; and how many there are in all."""

        asked, values = _matching(where)
        found = tx.all(
            f"""SELECT {_COLUMNS}, s.saved_at {_FROM} {_SAVED}
                WHERE {asked}
                ORDER BY s.saved_at DESC, p.item_id LIMIT :limit OFFSET :offset""",
            saver=saver,
            limit=limit,
            offset=offset,
            **values,
        )
        total = tx.one(
            f"SELECT count(*) AS n FROM {_PUBLISHED} {_SAVED} WHERE {asked}",
            saver=saver,
            **values,
        )
        return [_published(row) for row in found], total["n"] if total else 0

    @reads
    def list_stale(self, tx: Tx, saver: str) -> list[Published]:
        """What a library saved and has to be derived again."""
        found = tx.all(
            f"SELECT {_COLUMNS} {_FROM} {_SAVED} WHERE p.change <> p.derived", saver=saver
        )
        return [_published(row) for row in found]

    @writes
    def save(self, tx: Tx, saver: str, person_id: str, published: Published) -> Published:
        """Saving again changes nothing. NotFound: it is not published any more."""

        there = _one(
            tx,
            "p.library_id = :library_id AND p.item_id = :item_id",
            library_id=published.library_id,
            item_id=published.item_id,
        )
        tx.run(
            """INSERT INTO saves (library_id, owner_id, item_id, person_id, saved_at)
               VALUES (:saver, :owner_id, :item_id, :person_id, :at)
               ON CONFLICT DO NOTHING""",
            saver=saver,
            owner_id=there.library_id,
            item_id=there.item_id,
            person_id=person_id,
            at=micros(now()),
        )
        row = tx.one(
            """SELECT saved_at FROM saves
               WHERE library_id = :saver AND owner_id = :owner_id AND item_id = :item_id""",
            saver=saver,
            owner_id=there.library_id,
            item_id=there.item_id,
        )
        assert row is not None
        return replace(there, saved_at=from_micros(row["saved_at"]))

    @writes
    def unsave(self, tx: Tx, saver: str, ref: ItemRef) -> None:
        """Also of what is not published any more. NotFound: the library did not save it."""

        named = "i.id = :name" if ref.id is not None else "i.public_id = :name"
        row = tx.one(
            f"""SELECT s.owner_id, s.item_id, i.entity_type
                FROM saves AS s
                JOIN items AS i ON i.library_id = s.owner_id AND i.id = s.item_id
                WHERE s.library_id = :saver AND {named}""",
            saver=saver,
            name=ref.id or ref.public_id,
        )
        if row is None or ref.entity_type not in (None, row["entity_type"]):
            raise NotFound(NO_DISK)
        tx.run(
            """DELETE FROM saves
               WHERE library_id = :saver AND owner_id = :owner_id AND item_id = :item_id""",
            saver=saver,
            owner_id=row["owner_id"],
            item_id=row["item_id"],
        )

    @reads
    def owner(self, tx: Tx, library_id: str) -> tuple[str, str]:
        """Id and name of the person who speaks for the library."""
        row = tx.one(
            """SELECT o.id, o.name
               FROM members AS m
               JOIN people AS o ON o.id = m.person_id
               WHERE m.library_id = :library_id AND m.role = 'owner'
               ORDER BY m.person_id LIMIT 1""",
            library_id=library_id,
        )
        return (row["id"], row["name"]) if row else (library_id, "")

    @reads
    def vectors(self, tx: Tx, item: Item, stamp: str) -> list[bytes]:
        """Of the item's sections."""
        found = self._index.vectors(tx, item.library_id, [item.id])
        return [vector for made_by, vector in found.values() if made_by == stamp]

    @reads
    def names(self, tx: Tx, scope: Scope, section_ids: Sequence[int]) -> dict[int, tuple[str, str]]:
        """(public_id, title) of the items that the sections belong to, within the scope."""
        condition, values = scope_sql.visible(scope)
        found = tx.all(
            f"""SELECT s.id, i.public_id, i.title
                FROM sections AS s
                CROSS JOIN items AS i
                WHERE s.id IN :ids AND i.library_id = s.library_id || '' AND i.id = s.item_id
                AND {condition}""",
            ids=list(section_ids),
            **values,
        )
        return {row["id"]: (row["public_id"], row["title"]) for row in found}

    @reads
    def view_vector(self, tx: Tx, published: Published, stamp: str) -> bytes | None:
        row = tx.one(
            """SELECT vector FROM published
               WHERE library_id = :library_id AND item_id = :item_id AND stamp = :stamp""",
            library_id=published.library_id,
            item_id=published.item_id,
            stamp=stamp,
        )
        return b64decode(row["vector"]) if row and row["vector"] else None

    @reads
    def saved_vectors(
        self, tx: Tx, saver: str, stamp: str, limit: int
    ) -> list[tuple[str, str, bytes]]:
        """(public_id, title, vector of the view) of what a library saved last."""
        found = tx.all(
            f"""SELECT i.public_id, p.title, p.vector
                FROM {_PUBLISHED}
                JOIN items AS i ON i.library_id = p.library_id AND i.id = p.item_id {_SAVED}
                WHERE p.stamp = :stamp AND p.vector <> '' AND p.change = p.derived
                ORDER BY s.saved_at DESC LIMIT :limit""",
            saver=saver,
            stamp=stamp,
            limit=limit,
        )
        return [(row["public_id"], row["title"], b64decode(row["vector"])) for row in found]


def _keep(
    tx: Tx,
    now_is: Item,
    item: Item,
    view: RedactedDisk,
    otherwise: str,
    *,
    audience: str,
    summary: str,
) -> None:
    """Write the view of an item, with what happens to the one that is there. An item that has changed since it was read gets
    the view of now, which whoever asks first has derived."""
    key = {"library_id": now_is.library_id, "item_id": now_is.id}
    tx.run(
        f"""INSERT INTO published (library_id, item_id, audience, published_at, title,
            category, tags, shown, vector, stamp, change, derived, summary)
            VALUES (:library_id, :item_id, :audience, :at, '', '', '[]', '', '', '', 1, 0,
            :summary) {otherwise}""",
        audience=audience,
        at=micros(now()),
        summary=summary,
        **key,
    )
    row = tx.one(
        "SELECT change FROM published WHERE library_id = :library_id AND item_id = :item_id", **key
    )
    assert row is not None
    same = all(getattr(now_is, name) == getattr(item, name) for name in _BASIS)
    _derive(tx, now_is.library_id, now_is.id, row["change"] if same else 0, view)


def _derive(tx: Tx, library_id: str, item_id: str, change: int, view: RedactedDisk) -> None:
    """An older view never replaces a newer one."""
    tx.run(
        """UPDATE published SET shown = :shown, title = :title, category = :category,
           tags = :tags, derived = :change, vector = '', stamp = ''
           WHERE library_id = :library_id AND item_id = :item_id AND derived <= :change""",
        shown=json.dumps(asdict(view), ensure_ascii=False),
        title=view.title,
        category=view.category,
        tags=json.dumps(view.tags, ensure_ascii=False),
        change=change,
        library_id=library_id,
        item_id=item_id,
    )


def _one(tx: Tx, condition: str, **values: Any) -> Published:
    row = tx.one(f"SELECT {_COLUMNS} {_FROM} WHERE {condition}", **values)
    if row is None:
        raise NotFound(NO_DISK)
    return _published(row)


def _published(row: Any) -> Published:
    saved_at = row["saved_at"] if "saved_at" in row.keys() else None  # noqa: SIM118 (a row of SQLite's is no mapping)
    return Published(
        library_id=row["library_id"],
        item_id=row["item_id"],
        public_id=row["public_id"],
        entity_type=row["entity_type"],
        owner_id=row["owner_id"],
        owner_name=row["owner_name"],
        audience=Audience(row["audience"]),
        view=RedactedDisk.of(json.loads(row["shown"])),
        stale=row["change"] != row["derived"],
        change=row["change"],
        created_at=from_micros(row["created_at"]),
        published_at=from_micros(row["published_at"]),
        saved_at=from_optional_micros(saved_at),
        own_summary=row["summary"],
    )


def _matching(where: DiskFilter) -> tuple[str, dict[str, Any]]:
    asked = {
        "p.category = :w_category": ("w_category", where.category, where.category),
        scope_sql.list_contains("p.tags", "w_tag"): (
            "w_tag",
            where.tag,
            scope_sql.list_element(where.tag),
        ),
        scope_sql.text_contains("w_text", where.text, "p.title", "p.tags"): (
            "w_text",
            where.text or None,
            scope_sql.like_pattern(where.text),
        ),
    }
    wanted = {
        sql: (name, value) for sql, (name, given, value) in asked.items() if given is not None
    }
    return " AND ".join(wanted) or "TRUE", dict(wanted.values())
