"""Published items and saves. Others read `published` alone, never an item's own fields, content
or sections."""

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from commonplace.database import Tx, as_json, from_micros, reads, scope_sql, writes
from commonplace.errors import NotFound
from commonplace.model import (
    NO_DISK,
    PRIVATE,
    PUBLISHED,
    Audience,
    DiskFilter,
    EventType,
    Item,
    ItemRef,
    Published,
    RedactedDisk,
    Scope,
    now,
)
from commonplace.search_index.index import IndexedTable
from commonplace.store import item_queries, rows
from commonplace.store.events import log

_PREVIEW = ""  # the audience of a view that only the owner may see
_COLUMNS = """p.library_id, p.item_id, p.audience, p.published_at, p.shown, p.change, p.derived,
              p.summary, i.public_id, i.entity_type, i.created_at, o.id AS owner_id,
              o.name AS owner_name"""
# Without previews, which are for their owners alone.
_PUBLISHED = f"(SELECT * FROM published WHERE audience <> '{_PREVIEW}') AS p"
# A library is represented by its first owner.
_FROM = f"""FROM {_PUBLISHED}
            JOIN items AS i ON i.library_id = p.library_id AND i.id = p.item_id
            JOIN people AS o ON o.id = (
                SELECT m.person_id FROM members AS m WHERE m.library_id = p.library_id
                AND m.role = 'owner' ORDER BY m.person_id LIMIT 1)"""
_SAVED = """JOIN saves AS s ON s.owner_id = p.library_id AND s.item_id = p.item_id
            AND s.library_id = :saver"""
_SAVE = "library_id = :saver AND owner_id = :owner_id AND item_id = :item_id"
_KEY = "library_id = :library_id AND item_id = :item_id"
# Fields that a view is derived from.
_BASIS = (
    "content_id",
    "title",
    "url",
    "summary",
    "key_points",
    "tags",
    "auto_tags",
    "category",
    "metadata",
    "in_kb",
    "word_count",
)


class Disks(IndexedTable):
    """A view belongs to one change of its item; every later change makes it `stale`."""

    @reads
    def preview(self, tx: Tx, item: Item) -> RedactedDisk | None:
        """Return the view that was derived from the item as it is now, published or not."""
        shown = tx.scalar(
            f"SELECT shown FROM published WHERE {_KEY} AND change = derived",
            library_id=item.library_id,
            item_id=item.id,
        )
        return RedactedDisk.of(json.loads(shown)) if shown else None

    @writes
    def save_preview(self, tx: Tx, scope: Scope, item: Item, view: RedactedDisk) -> None:
        """Store the view of an item for its owner alone."""
        current = item_queries.find(tx, scope, ItemRef(id=item.id), lock=True)
        # One published meanwhile may have its owner's summary, which this view lacks.
        if current.visibility != PUBLISHED:
            _put(tx, current, item, view, _PREVIEW, "", "ON CONFLICT DO NOTHING")

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
        """Publish an item. `item` is what the view was derived from."""
        current = item_queries.find(tx, scope, ItemRef(id=item.id), lock=True)
        # Counts as a change: a view that was derived meanwhile may have another summary.
        _put(
            tx,
            current,
            item,
            view,
            audience,
            summary,
            """ON CONFLICT (library_id, item_id) DO UPDATE SET
               published_at = CASE published.audience WHEN '' THEN excluded.published_at
                              ELSE published.published_at END,
               audience = excluded.audience, summary = excluded.summary,
               change = published.change + 1""",
        )
        _set_visibility(tx, current, PUBLISHED)
        log.record(tx, EventType.PUBLISHED, current.library_id, [current.id], scope.actor)
        return _one(
            tx,
            "p.library_id = :library_id AND p.item_id = :item_id",
            library_id=current.library_id,
            item_id=current.id,
        )

    @writes
    def unpublish(self, tx: Tx, scope: Scope, item_id: str) -> None:
        """Hide an item from others. Saves stay, and count again when it is published again."""
        item = item_queries.find(tx, scope, ItemRef(id=item_id), lock=True)
        tx.run(f"DELETE FROM published WHERE {_KEY}", library_id=item.library_id, item_id=item.id)
        _set_visibility(tx, item, PRIVATE)
        log.record(tx, EventType.CHANGED, item.library_id, [item.id], scope.actor)

    @writes
    def set_view(self, tx: Tx, published: Published, view: RedactedDisk) -> None:
        """Store the view of the change that `published` was read at."""
        _set_view(tx, published.library_id, published.item_id, published.change, view)

    @writes
    def set_vector(self, tx: Tx, published: Published, stamp: str, vector: bytes) -> None:
        """Store the vector of the view that was derived for `published`."""
        tx.run(
            f"""UPDATE published SET vector = :vector, stamp = :stamp
                WHERE {_KEY} AND derived = :change""",
            vector=b64encode(vector).decode(),
            stamp=stamp,
            library_id=published.library_id,
            item_id=published.item_id,
            change=published.change,
        )

    @reads
    def find(self, tx: Tx, ref: ItemRef, saver: str | None) -> Published:
        """Return a disk of any library. NotFound: it does not exist, or is not published."""
        found = _one(tx, _named(ref), name=ref.id or ref.public_id)
        if ref.entity_type not in (None, found.entity_type):
            raise NotFound(NO_DISK)
        return _with_saved_at(tx, found, saver)

    @reads
    def of_items(self, tx: Tx, library_id: str, item_ids: Sequence[str]) -> dict[str, Published]:
        """Return those of the library's items that are published."""
        return {
            row["item_id"]: _published(row)
            for row in tx.all(
                f"SELECT {_COLUMNS} {_FROM} WHERE p.library_id = :library_id AND p.item_id IN :ids",
                library_id=library_id,
                ids=list(item_ids),
            )
        }

    @reads
    def list_saved(
        self, tx: Tx, saver: str, where: DiskFilter, *, limit: int, offset: int
    ) -> tuple[list[Published], int]:
        """Return disks that a library saved and that are still published, last saved first, and
        their total."""
        condition, values = _matching(where)
        found = tx.all(
            f"""SELECT {_COLUMNS}, s.saved_at {_FROM} {_SAVED} WHERE {condition}
                ORDER BY s.saved_at DESC, p.item_id LIMIT :limit OFFSET :offset""",
            saver=saver,
            limit=limit,
            offset=offset,
            **values,
        )
        total = tx.scalar(
            f"SELECT count(*) FROM {_PUBLISHED} {_SAVED} WHERE {condition}", saver=saver, **values
        )
        return [_published(row, from_micros(row["saved_at"])) for row in found], total

    @reads
    def list_stale(self, tx: Tx, saver: str) -> list[Published]:
        """Return disks that a library saved and whose view is stale."""
        return [
            _published(row)
            for row in tx.all(
                f"SELECT {_COLUMNS} {_FROM} {_SAVED} WHERE p.change <> p.derived", saver=saver
            )
        ]

    @writes
    def save(self, tx: Tx, saver: str, person_id: str, published: Published) -> Published:
        """Save a disk; saving again changes nothing. NotFound: it is not published any more."""
        current = _one(
            tx,
            "p.library_id = :library_id AND p.item_id = :item_id",
            library_id=published.library_id,
            item_id=published.item_id,
        )
        tx.run(
            """INSERT INTO saves (library_id, owner_id, item_id, person_id, saved_at)
               VALUES (:saver, :owner_id, :item_id, :person_id, :at) ON CONFLICT DO NOTHING""",
            saver=saver,
            owner_id=current.library_id,
            item_id=current.item_id,
            person_id=person_id,
            at=now(),
        )
        return _with_saved_at(tx, current, saver)

    @writes
    def unsave(self, tx: Tx, saver: str, ref: ItemRef) -> None:
        """Delete a save, also of an unpublished disk. NotFound: the library did not save it."""
        row = tx.one(
            f"""SELECT s.owner_id, s.item_id, i.entity_type FROM saves AS s
                JOIN items AS i ON i.library_id = s.owner_id AND i.id = s.item_id
                WHERE s.library_id = :saver AND {_named(ref)}""",
            saver=saver,
            name=ref.id or ref.public_id,
        )
        if row is None or ref.entity_type not in (None, row["entity_type"]):
            raise NotFound(NO_DISK)
        tx.run(
            f"DELETE FROM saves WHERE {_SAVE}",
            saver=saver,
            owner_id=row["owner_id"],
            item_id=row["item_id"],
        )

    @reads
    def owner(self, tx: Tx, library_id: str) -> tuple[str, str]:
        """Return id and name of the person who represents the library."""
        row = tx.one(
            """SELECT o.id, o.name FROM members AS m JOIN people AS o ON o.id = m.person_id
               WHERE m.library_id = :library_id AND m.role = 'owner'
               ORDER BY m.person_id LIMIT 1""",
            library_id=library_id,
        )
        return (row["id"], row["name"]) if row else (library_id, "")

    @reads
    def view_vector(self, tx: Tx, published: Published, stamp: str) -> bytes | None:
        vector = tx.scalar(
            f"SELECT vector FROM published WHERE {_KEY} AND stamp = :stamp",
            library_id=published.library_id,
            item_id=published.item_id,
            stamp=stamp,
        )
        return b64decode(vector) if vector else None

    @reads
    def saved_vectors(
        self, tx: Tx, saver: str, stamp: str, limit: int
    ) -> list[tuple[str, str, bytes]]:
        """Return (public id, title, vector of the view) of the disks that a library saved last."""
        return [
            (public_id, title, b64decode(vector))
            for public_id, title, vector in tx.tuples(
                f"""SELECT i.public_id, p.title, p.vector FROM {_PUBLISHED}
                    JOIN items AS i ON i.library_id = p.library_id AND i.id = p.item_id {_SAVED}
                    WHERE p.stamp = :stamp AND p.vector <> '' AND p.change = p.derived
                    ORDER BY s.saved_at DESC LIMIT :limit""",
                saver=saver,
                stamp=stamp,
                limit=limit,
            )
        ]


def _put(
    tx: Tx,
    current: Item,
    item: Item,
    view: RedactedDisk,
    audience: str,
    summary: str,
    otherwise: str,
) -> None:
    """Insert the view of an item. If the item has changed since it was read, the view is stale."""
    key = {"library_id": current.library_id, "item_id": current.id}
    tx.run(
        f"""INSERT INTO published (library_id, item_id, audience, published_at, title, category,
                                   tags, shown, vector, stamp, change, derived, summary)
            VALUES (:library_id, :item_id, :audience, :at, '', '', '[]', '', '', '', 1, 0,
                    :summary) {otherwise}""",
        audience=audience,
        at=now(),
        summary=summary,
        **key,
    )
    change = tx.scalar(f"SELECT change FROM published WHERE {_KEY}", **key)
    same = all(getattr(current, name) == getattr(item, name) for name in _BASIS)
    _set_view(tx, current.library_id, current.id, change if same else 0, view)


def _set_view(tx: Tx, library_id: str, item_id: str, change: int, view: RedactedDisk) -> None:
    """Store a view; an older one never replaces a newer one."""
    tx.run(
        f"""UPDATE published SET shown = :shown, title = :title, category = :category,
            tags = :tags, derived = :change, vector = '', stamp = ''
            WHERE {_KEY} AND derived <= :change""",
        shown=as_json(asdict(view)),
        title=view.title,
        category=view.category,
        tags=as_json(view.tags),
        change=change,
        library_id=library_id,
        item_id=item_id,
    )


def _set_visibility(tx: Tx, item: Item, visibility: str) -> None:
    tx.run(
        """UPDATE items SET visibility = :visibility, updated_at = :at
           WHERE library_id = :library_id AND id = :item_id AND visibility <> :visibility""",
        visibility=visibility,
        at=now(),
        library_id=item.library_id,
        item_id=item.id,
    )


def _named(ref: ItemRef) -> str:
    return "i.id = :name" if ref.id is not None else "i.public_id = :name"


def _one(tx: Tx, condition: str, **values: Any) -> Published:
    row = tx.one(f"SELECT {_COLUMNS} {_FROM} WHERE {condition}", **values)
    if row is None:
        raise NotFound(NO_DISK)
    return _published(row)


def _with_saved_at(tx: Tx, published: Published, saver: str | None) -> Published:
    saved_at = tx.scalar(
        f"SELECT saved_at FROM saves WHERE {_SAVE}",
        saver=saver,
        owner_id=published.library_id,
        item_id=published.item_id,
    )
    return replace(published, saved_at=from_micros(saved_at)) if saved_at is not None else published


def _published(row: Any, saved_at: Any = None) -> Published:
    return rows.value(
        Published,
        row,
        view=RedactedDisk.of(json.loads(row["shown"])),
        stale=row["change"] != row["derived"],
        saved_at=saved_at,
        own_summary=row["summary"],
    )


def _matching(where: DiskFilter) -> tuple[str, dict[str, Any]]:
    return scope_sql.join_asked(
        {
            "p.category = :w_category": (where.category is not None, where.category),
            scope_sql.list_contains("p.tags", "w_tag"): (
                where.tag is not None,
                scope_sql.list_element(where.tag),
            ),
            scope_sql.text_contains("w_text", where.text, "p.title", "p.tags"): (
                bool(where.text),
                scope_sql.like_pattern(where.text),
            ),
        }
    )
