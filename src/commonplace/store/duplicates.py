"""Find items that already hold what is about to be added or imported."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from commonplace.database import Tx, scope_sql
from commonplace.model import AUTHORED, BY_MODEL, Content, Entry, Item, Scope
from commonplace.store import item_folders, rows
from commonplace.store.contents import known_keys
from commonplace.store.people import directory

ADDED_AND_NOT_FILED = """i.library_id = :library_id AND i.created_by = :token_id AND NOT EXISTS (
    SELECT 1 FROM folder_items AS f WHERE f.library_id = i.library_id AND f.item_id = i.id)"""
# CROSS JOIN: SQLite then starts from the one content, not from all items of a type.
_BY_CONTENT = (
    rows.SELECT_ITEM.replace("FROM items", "FROM contents AS c CROSS JOIN items")
    + " WHERE c.library_id = :library_id AND i.library_id = c.library_id AND i.content_id = c.id"
)
# The item of a source, also if somebody has edited its text.
OF_SOURCE = "(c.id = :content_id OR (c.edit_of <> '' AND c.edit_of = :key))"
# Fields of an existing item that an import updates.
_IMPORTED = (
    "content_id",
    "entity_type",
    "title",
    "url",
    "summary",
    "key_points",
    "in_kb",
    "archived",
    "metadata",
    "word_count",
    "status",
    *AUTHORED,
    "auto_tags",
)


def find_same(tx: Tx, scope: Scope, content: Content, item: Item) -> Item | None:
    """Find the item that a new one would repeat.

    An address or a file is the same item under any title. Texts are the same if their words and
    titles are; so are files that tokens of different scopes have added.
    """
    find = partial(
        find_visible,
        tx,
        scope,
        item.created_by,
        item.entity_type,
        # A caller that waits for the text is never given an item that is still to be read.
        unread=item.ingest_status is not None,
    )
    of_source = {"content_id": content.id, "key": content.key}
    found = None if item.kind == "text" else find(OF_SOURCE, of_source)
    if found is not None or item.kind == "url" or not content.text:
        return found
    return find("c.hash = :hash AND i.title = :title", {"hash": content.hash, "title": item.title})


def find_visible(
    tx: Tx,
    scope: Scope,
    token_id: str | None,
    entity_type: str,
    wanted: str,
    values: dict[str, Any],
    *,
    unread: bool = False,
) -> Item | None:
    """Return the first `wanted` item that is in scope, or that the token added and nobody filed.

    Items whose source is still to be read count only if `unread`.
    """
    wanted = wanted if unread else f"{wanted} AND i.ingest_status IS NULL"
    row = tx.one(
        f"""{_BY_CONTENT} AND {wanted} AND i.entity_type = :entity_type
            AND (({scope_sql.visible(scope)}) OR ({ADDED_AND_NOT_FILED}))
            ORDER BY i.ingest_status IS NOT NULL, i.created_at LIMIT 1""",
        entity_type=entity_type,
        token_id=token_id,
        **scope_sql.within(scope),
        **values,
    )
    return (
        rows.item(row, item_folders.folders_of(tx, scope, [row["id"]]).get(row["id"], ()))
        if row
        else None
    )


# -- imports


def unknown_entries(tx: Tx, scope: Scope, entries: Sequence[Entry]) -> list[bool]:
    """Return for each entry whether item, content and text are all unknown."""
    items, contents = [entry.item for entry in entries], [entry.content for entry in entries]
    public_ids = [item.public_id for item in items]
    known = tx.column(
        """SELECT id FROM items WHERE library_id = :library_id AND id IN :ids
           UNION ALL SELECT public_id FROM items
           WHERE library_id = :library_id AND public_id IN :public_ids
           UNION ALL SELECT hash FROM contents
           WHERE library_id = :library_id AND hash IN :hashes""",
        library_id=scope.library_id,
        ids=[item.id for item in items],
        public_ids=public_ids,
        hashes=[content.hash for content in contents],
    )
    seen = {*known, *directory.taken_names(tx, public_ids)}
    seen |= known_keys(tx, scope.library_id, [content.key for content in contents])
    unknown = []
    for item, content in zip(items, contents, strict=True):
        names = (item.id, item.public_id, content.key, content.hash)
        unknown.append(seen.isdisjoint(names))
        seen.update(names)
    return unknown


def find_imported(tx: Tx, scope: Scope, content: Content, entry: Entry) -> Item | None:
    """Find an item with the text and title of an entry.

    It has no other path and, if the entry is dated, no other date.
    """
    if not content.text:
        return None
    item = entry.item
    found = tx.all(
        f"""{_BY_CONTENT} AND c.hash = :hash AND i.title = :title
            AND i.entity_type = :entity_type AND (:dated = 0 OR i.created_at = :at)
            AND i.ingest_status IS NULL AND {scope_sql.visible(scope)}
            ORDER BY i.created_at, i.id""",
        hash=content.hash,
        title=item.title,
        entity_type=item.entity_type,
        dated=int(entry.dated),
        at=item.created_at,
        **scope_sql.within(scope),
    )
    paths = (None, item.metadata.get("path"))
    return next((old for old in map(rows.item, found) if old.metadata.get("path") in paths), None)


def changed_by_import(item: Item, before: Item) -> dict[str, Any]:
    """Return the fields that an import changes.

    Fields derived from an unchanged text stay, unless the import brings its own.
    """
    changes = {c: getattr(item, c) for c in _IMPORTED if getattr(item, c) != getattr(before, c)}
    if "content_id" in changes:
        return changes
    kept = {c for c in ("summary", "key_points", "category") if not getattr(item, c)}
    if not item.tags and not before.own_tags:
        kept |= {"tags", "auto_tags"}
    metadata = item.metadata | {
        name: before.metadata[name] for name in BY_MODEL if name in before.metadata
    }
    changes = {c: value for c, value in changes.items() if c not in kept and c != "metadata"}
    return changes if metadata == before.metadata else changes | {"metadata": metadata}
