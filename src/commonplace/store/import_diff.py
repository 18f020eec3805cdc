"""What imports bring: which of it is new, and what it changes in what is there."""

from collections.abc import Sequence
from typing import Any

from commonplace.database import scope_sql
from commonplace.database.columns import micros
from commonplace.database.transaction import Tx
from commonplace.model import Content, Entry, Item, Scope
from commonplace.store import rows
from commonplace.store.duplicates import BY_CONTENT

# What an import brings up to date in an item that is there already.
_BROUGHT = (
    "content_id",
    "entity_type",
    "title",
    "url",
    "summary",
    "key_points",
    "tags",
    "category",
    "in_kb",
    "archived",
    "metadata",
    "word_count",
    "status",
    "priority",
    "due_date",
    "languages",
    "technologies",
    "assignees",
)
_MADE = ("tags_derived", "ai_generated", "cost_usd")  # metadata of what was made of the text


def unknown_entries(tx: Tx, scope: Scope, entries: Sequence[Entry]) -> list[bool]:
    """Of which entries nothing is known: neither the item, nor its content, nor one that says the same."""
    items, contents = [entry.item for entry in entries], [entry.content for entry in entries]
    seen = {
        row["name"]
        for row in tx.all(
            """SELECT id AS name FROM items
               WHERE library_id = :library_id AND id IN :ids
               UNION ALL SELECT public_id
               FROM items
               WHERE public_id IN :public_ids
               UNION ALL SELECT key
               FROM contents
               WHERE key IN :keys
               UNION ALL SELECT hash
               FROM contents
               WHERE hash IN :hashes""",
            library_id=scope.library_id,
            ids=[item.id for item in items],
            public_ids=[item.public_id for item in items],
            keys=[content.key for content in contents],
            hashes=[content.hash for content in contents],
        )
    }
    found = []
    for item, content in zip(items, contents, strict=True):
        each = (item.id, item.public_id, content.key, content.hash)
        found.append(seen.isdisjoint(each))
        seen.update(each)
    return found


def find_imported(tx: Tx, scope: Scope, content: Content, entry: Entry) -> Item | None:
    """What says the same under one title and has neither another path nor, where the entry is dated, another date."""
    if not content.text:
        return None
    item, (condition, within) = entry.item, scope_sql.visible(scope)
    found = tx.all(
        f"""{BY_CONTENT} AND c.hash = :hash AND i.title = :title
            AND i.entity_type = :entity_type AND (:dated = 0 OR i.created_at = :at)
            AND i.ingest_status IS NULL AND {condition}
            ORDER BY i.created_at, i.id""",
        hash=content.hash,
        title=item.title,
        entity_type=item.entity_type,
        dated=int(entry.dated),
        at=micros(item.created_at),
        **within,
    )
    path = item.metadata.get("path")
    return next(
        (before for before in map(rows.item, found) if before.metadata.get("path") in (None, path)),
        None,
    )


def changed_by_import(item: Item, before: Item) -> dict[str, Any]:
    """What an import changes. What was made of the same text stays where the import does not bring its own."""
    changes = {c: getattr(item, c) for c in _BROUGHT if getattr(item, c) != getattr(before, c)}
    if "content_id" in changes:
        return changes
    stays = {c for c in ("summary", "key_points", "category") if not getattr(item, c)}
    if not item.tags and before.metadata.get("tags_derived"):
        stays.add("tags")
    made = {
        name: before.metadata[name]
        for name in _MADE
        if name in before.metadata and (name != "tags_derived" or "tags" in stays)
    }
    metadata = item.metadata | made
    return {
        c: value
        for c, value in (changes | {"metadata": metadata}).items()
        if c not in stays and (c != "metadata" or metadata != before.metadata)
    }
