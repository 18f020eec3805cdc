"""Published items and saves. Others read `published` alone, never an item's own fields, content
or sections."""

import json
from base64 import b64decode, b64encode
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from commonplace.database import Tx, as_json, from_micros, reads, scope_sql, writes
from commonplace.errors import Conflict, NotFound
from commonplace.model import (
    NO_DISK,
    PRIVATE,
    PUBLISHED,
    Audience,
    Did,
    DiskFilter,
    EventType,
    Item,
    ItemRef,
    Json,
    Published,
    RedactedDisk,
    Scope,
    new_id,
    new_public_id,
    now,
)
from commonplace.search_index.index import IndexedTable
from commonplace.store import item_queries, rows
from commonplace.store.events import log
from commonplace.store.people import directory
from commonplace.store.undo import journal

_PREVIEW = ""  # the audience of a view that only the owner may see
_COLUMNS = """p.library_id, p.item_id, p.audience, p.published_at, p.shown, i.changes AS change,
              p.derived, p.summary, i.public_id, i.entity_type, i.created_at"""
# Without previews, which are for their owners alone.
_PUBLISHED = f"(SELECT * FROM published WHERE audience <> '{_PREVIEW}') AS p"
_ITEM = "JOIN items AS i ON i.library_id = p.library_id AND i.id = p.item_id"
_FROM = f"FROM {_PUBLISHED} {_ITEM}"
_OF_ITEMS = "p.library_id IN :libraries AND p.item_id IN :ids"
# A library is represented by its first owner.
_OWNERS = """SELECT m.library_id, o.id, o.name FROM members AS m
             JOIN people AS o ON o.id = m.person_id
             WHERE m.library_id IN :libraries AND m.role = 'owner'
             ORDER BY m.library_id, m.person_id DESC"""
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
            f"""SELECT p.shown FROM published AS p {_ITEM} WHERE p.library_id = :library_id
                AND p.item_id = :item_id AND i.changes = p.derived""",
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
        before = published_rows(tx, current.library_id, [current.id])
        current = _register(tx, current)
        # A view that was derived meanwhile may have another summary.
        tx.run(
            f"UPDATE items SET {rows.CHANGED} WHERE library_id = :library_id AND id = :item_id",
            library_id=current.library_id,
            item_id=current.id,
        )
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
               audience = excluded.audience, summary = excluded.summary""",
        )
        _set_visibility(tx, current, PUBLISHED)
        log.record(tx, EventType.PUBLISHED, current.library_id, [current.id], scope.actor)
        [after] = published_rows(tx, current.library_id, [current.id])
        journal.note(
            tx, scope, Did.PUBLISHED, current.id, before=next(iter(before), None), after=after
        )
        return _one(tx, current.library_id, "p.item_id = :name", current.id)

    @writes
    def unpublish(self, tx: Tx, scope: Scope, item_id: str) -> None:
        """Hide an item from others. Saves stay, and count again when it is published again."""
        item = item_queries.find(tx, scope, ItemRef(id=item_id), lock=True)
        note_unpublished(tx, scope, [item.id])
        tx.run(f"DELETE FROM published WHERE {_KEY}", library_id=item.library_id, item_id=item.id)
        _set_visibility(tx, item, PRIVATE)
        log.record(tx, EventType.CHANGED, item.library_id, [item.id], scope.actor)

    @writes
    def put_back(
        self, tx: Tx, scope: Scope, item_id: str, before: Json | None, after: Json | None
    ) -> None:
        """Undo a change of what is published. Conflict: it was changed since."""
        item = item_queries.find(tx, scope, ItemRef(id=item_id), lock=True)
        key = {"library_id": item.library_id, "item_id": item.id}
        present = next(iter(published_rows(tx, item.library_id, [item.id])), None)
        if _said(present) != _said(after):
            raise Conflict(f"The published page of “{item.title}” was changed since.")
        tx.run(f"DELETE FROM published WHERE {_KEY}", **key)
        if before is not None:
            _register(tx, item)
            tx.insert("published", ", ".join(before), [tuple(before.values())])
        _set_visibility(tx, item, PRIVATE if before is None else PUBLISHED)
        kind = EventType.CHANGED if before is None else EventType.PUBLISHED
        log.record(tx, kind, item.library_id, [item.id], scope.actor)

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
        name = ref.id or ref.public_id
        found = _one(tx, directory.find_library(tx, name), _named(ref), name)
        if ref.entity_type not in (None, found.entity_type):
            raise NotFound(NO_DISK)
        return _with_saved_at(tx, found, saver)

    @reads
    def of_items(self, tx: Tx, library_id: str, item_ids: Sequence[str]) -> dict[str, Published]:
        """Return those of the library's items that are published."""
        return {each.item_id: each for each in _all(tx, {(library_id, id) for id in item_ids})}

    @reads
    def list_saved(
        self, tx: Tx, saver: str, where: DiskFilter, *, limit: int, offset: int
    ) -> tuple[list[Published], int]:
        """Return disks that a library saved and that are still published, last saved first, and
        their total."""
        saved = _saved(tx, saver)
        condition, values = _matching(where)
        shown = {
            (library_id, item_id)
            for library_id, item_id in tx.tuples(
                f"""SELECT p.library_id, p.item_id FROM {_PUBLISHED}
                    WHERE {_OF_ITEMS} AND {condition}""",
                **_values(saved),
                **values,
            )
        }
        page = [key for key in saved if key in shown][offset : offset + limit]
        found = {(each.library_id, each.item_id): each for each in _all(tx, page)}
        return [
            replace(found[key], saved_at=from_micros(saved[key])) for key in page if key in found
        ], len(shown & saved.keys())

    @reads
    def list_stale(self, tx: Tx, saver: str) -> list[Published]:
        """Return disks that a library saved and whose view is stale."""
        return _all(tx, _saved(tx, saver), "AND i.changes <> p.derived")

    @writes
    def save(self, tx: Tx, saver: str, person_id: str, published: Published) -> Published:
        """Save a disk; saving again changes nothing. NotFound: it is not published any more."""
        current = _one(tx, published.library_id, "p.item_id = :name", published.item_id)
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
        name = ref.id or ref.public_id
        owner_id = directory.find_library(tx, name)
        row = tx.one(
            f"""SELECT i.id, i.entity_type FROM items AS i
                WHERE i.library_id = :owner_id AND {_named(ref)}""",
            owner_id=owner_id,
            name=name,
        )
        if (
            row is None
            or ref.entity_type not in (None, row["entity_type"])
            or not tx.run(
                f"DELETE FROM saves WHERE {_SAVE}",
                saver=saver,
                owner_id=owner_id,
                item_id=row["id"],
            )
        ):
            raise NotFound(NO_DISK)

    @reads
    def owner(self, tx: Tx, library_id: str) -> tuple[str, str]:
        """Return id and name of the person who represents the library."""
        return _owners(tx, [library_id]).get(library_id, (library_id, ""))

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
        saved = _saved(tx, saver)
        found = {
            (library_id, item_id): (public_id, title, vector)
            for library_id, item_id, public_id, title, vector in tx.tuples(
                f"""SELECT p.library_id, p.item_id, i.public_id, p.title, p.vector {_FROM}
                    WHERE {_OF_ITEMS} AND p.stamp = :stamp AND p.vector <> ''
                    AND i.changes = p.derived""",
                stamp=stamp,
                **_values(saved),
            )
        }
        newest = [found[key] for key in saved if key in found][:limit]
        return [(public_id, title, b64decode(vector)) for public_id, title, vector in newest]


def published_rows(tx: Tx, library_id: str, item_ids: Collection[str]) -> list[Json]:
    """Return the rows of those of the items that are published."""
    return [
        dict(row)
        for row in tx.all(
            f"""SELECT * FROM {_PUBLISHED}
                WHERE p.library_id = :library_id AND p.item_id IN :ids""",
            library_id=library_id,
            ids=sorted(item_ids),
        )
    ]


def note_unpublished(tx: Tx, scope: Scope, item_ids: Collection[str]) -> None:
    """Record that items are not published any more."""
    if scope.step is None:
        return
    for row in published_rows(tx, scope.library_id, item_ids):
        journal.note(tx, scope, Did.PUBLISHED, row["item_id"], before=row)


def _said(row: Json | None) -> Json | None:
    """Return what somebody chose of a published row."""
    return row and {name: row[name] for name in ("audience", "summary", "published_at")}


def _register(tx: Tx, item: Item) -> Item:
    """Make an item's ids lead to its library. If its public id is that of another library's disk
    already, the item gets a new one, and the old one still leads to it in its own library."""
    library_id, public_id = item.library_id, item.public_id
    if directory.find_library(tx, public_id) not in (None, library_id):
        tx.insert(
            "aliases",
            "library_id, id, public_id, item_id",
            [(library_id, new_id(), public_id, item.id)],
        )
        public_id = new_public_id()
        tx.run(
            """UPDATE items SET public_id = :public_id
               WHERE library_id = :library_id AND id = :item_id""",
            public_id=public_id,
            library_id=library_id,
            item_id=item.id,
        )
    directory.put_names(tx, library_id, [item.id, public_id])
    return replace(item, public_id=public_id)


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
                                   tags, shown, vector, stamp, derived, summary)
            VALUES (:library_id, :item_id, :audience, :at, '', '', '[]', '', '', '', 0, :summary)
            {otherwise}""",
        audience=audience,
        at=now(),
        summary=summary,
        **key,
    )
    change = tx.scalar(
        "SELECT changes FROM items WHERE library_id = :library_id AND id = :item_id", **key
    )
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


def _one(tx: Tx, library_id: str | None, condition: str, name: str | None) -> Published:
    row = tx.one(
        f"SELECT {_COLUMNS} {_FROM} WHERE p.library_id = :library_id AND {condition}",
        library_id=library_id,
        name=name,
    )
    if row is None or library_id is None:
        raise NotFound(NO_DISK)
    return _published(row, _owners(tx, [library_id]))


def _all(tx: Tx, items: Collection[tuple[str, str]], condition: str = "") -> list[Published]:
    """Return those of the items, each a library and an id, that are published."""
    found = [
        row
        for row in tx.all(
            f"SELECT {_COLUMNS} {_FROM} WHERE {_OF_ITEMS} {condition}", **_values(items)
        )
        if (row["library_id"], row["item_id"]) in items
    ]
    owners = _owners(tx, {row["library_id"] for row in found}) if found else {}
    return [_published(row, owners) for row in found]


def _values(items: Collection[tuple[str, str]]) -> dict[str, list[str]]:
    return {
        "libraries": sorted({library_id for library_id, _ in items}),
        "ids": sorted({item_id for _, item_id in items}),
    }


def _saved(tx: Tx, saver: str) -> dict[tuple[str, str], int]:
    """Return when a library saved each item, last saved first."""
    return {
        (owner_id, item_id): saved_at
        for owner_id, item_id, saved_at in tx.tuples(
            """SELECT owner_id, item_id, saved_at FROM saves WHERE library_id = :saver
               ORDER BY saved_at DESC, item_id""",
            saver=saver,
        )
    }


def _owners(tx: Tx, library_ids: Collection[str]) -> dict[str, tuple[str, str]]:
    """Return id and name of the person who represents each library."""
    found = tx.tuples(_OWNERS, libraries=sorted(library_ids))
    return {library_id: (person_id, name) for library_id, person_id, name in found}


def _with_saved_at(tx: Tx, published: Published, saver: str | None) -> Published:
    saved_at = tx.scalar(
        f"SELECT saved_at FROM saves WHERE {_SAVE}",
        saver=saver,
        owner_id=published.library_id,
        item_id=published.item_id,
    )
    return replace(published, saved_at=from_micros(saved_at)) if saved_at is not None else published


def _published(row: Any, owners: Mapping[str, tuple[str, str]]) -> Published:
    owner_id, owner_name = owners.get(row["library_id"], (row["library_id"], ""))
    return rows.value(
        Published,
        row,
        view=RedactedDisk.of(json.loads(row["shown"])),
        stale=row["change"] != row["derived"],
        saved_at=None,
        own_summary=row["summary"],
        owner_id=owner_id,
        owner_name=owner_name,
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


def drop_saves(tx: Tx, library_id: str, public_ids: Mapping[str, str]) -> None:
    """Delete other libraries' saves of items, given with their public ids, if they were ever
    published."""
    if directory.drop_names(tx, library_id, [*public_ids, *public_ids.values()]):
        tx.run(
            "DELETE FROM saves WHERE owner_id = :library_id AND item_id IN :ids",
            library_id=library_id,
            ids=list(public_ids),
        )
