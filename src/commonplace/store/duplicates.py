"""Finding the item that already has what is about to be added."""

from typing import Any

from commonplace.database import scope_sql
from commonplace.database.transaction import Tx
from commonplace.model import Content, Item, Scope
from commonplace.store import rows
from commonplace.store.item_folders import folders_of

ADDED_AND_NOT_FILED = """i.library_id = :library_id AND i.created_by = :token_id AND NOT EXISTS
                         (SELECT 1 FROM folder_items AS f WHERE f.library_id = i.library_id
                         AND f.item_id = i.id)"""
# CROSS JOIN: SQLite then starts from the one content, never from all items of a type that the library has.
BY_CONTENT = (
    rows.SELECT_ITEM.replace("FROM items", "FROM contents AS c CROSS JOIN items")
    + " WHERE i.content_id = c.id"
)


def find_same(tx: Tx, scope: Scope, content: Content, item: Item) -> Item | None:
    """An address or a file is one thing, whatever it is called. Two texts are the same when they say the same under one
    title; so are two files, which have contents of their own when tokens of different scopes brought them."""
    unread = (
        item.ingest_status is not None
    )  # reading within a call never ends at an item that is still to be read
    by_content = (
        None
        if item.kind == "text"
        else find_visible(
            tx,
            scope,
            item.created_by,
            item.entity_type,
            "c.id = :content_id",
            unread=unread,
            content_id=content.id,
        )
    )
    if by_content is not None or item.kind == "url" or not content.text:
        return by_content
    return find_visible(
        tx,
        scope,
        item.created_by,
        item.entity_type,
        "c.hash = :hash AND i.title = :title",
        unread=unread,
        hash=content.hash,
        title=item.title,
    )


def find_visible(
    tx: Tx,
    scope: Scope,
    token_id: str | None,
    entity_type: str,
    wanted: str,
    *,
    unread: bool = False,
    **values: Any,
) -> Item | None:
    """The first that is in scope, or was added by the same token and is not filed yet; also unread ones, if asked for."""
    condition, within = scope_sql.visible(scope)
    wanted = wanted if unread else f"{wanted} AND i.ingest_status IS NULL"
    row = tx.one(
        f"""{BY_CONTENT} AND {wanted} AND i.entity_type = :entity_type AND (({condition})
            OR ({ADDED_AND_NOT_FILED}))
            ORDER BY i.ingest_status IS NOT NULL, i.created_at LIMIT 1""",
        entity_type=entity_type,
        token_id=token_id,
        **within,
        **values,
    )
    return rows.item(row, folders_of(tx, scope, [row["id"]]).get(row["id"], ())) if row else None
