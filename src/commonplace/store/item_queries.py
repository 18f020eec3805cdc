"""Read items, always through a scope."""

from collections.abc import Collection, Sequence
from typing import Any

import orjson

from commonplace.database import Tx, reads, reads_inline, scope_sql
from commonplace.database.columns import json_value
from commonplace.errors import Conflict, NotFound
from commonplace.model import (
    Content,
    Folder,
    FullItem,
    Item,
    ItemFilter,
    ItemRef,
    Kind,
    Order,
    Scope,
)
from commonplace.search_index.index import IndexedTable
from commonplace.store import contents, duplicates, item_folders, rows
from commonplace.store.people import directory

NO_ITEM = "Item not found"
LARGE = 1_000  # items of a project or epic; from here on each item is asked for it
_WITH_TEXT = rows.SELECT_ITEM.replace(
    " FROM items AS i",
    ", c.text, c.about, c.segments FROM items AS i JOIN contents AS c"
    " ON c.library_id = i.library_id AND c.id = i.content_id",
)
# What a list is ordered by, and whether the highest is first. Of equals, the newest is first.
_ORDERS = {
    Order.NEWEST: ("i.created_at", True),
    Order.OLDEST: ("i.created_at", False),
    Order.CHANGED: ("i.updated_at", True),
    Order.TITLE: ("lower(i.title)", False),
    Order.LONGEST: ("i.word_count", True),
}


class ItemQueries(IndexedTable):
    @reads_inline
    def get(self, tx: Tx, scope: Scope, ref: ItemRef, *, token_id: str | None = None) -> Item:
        """Return an item in scope, or one that the token added and nobody has filed yet."""
        return find_own(tx, scope, ref, token_id)

    @reads_inline
    def get_with_sections(self, tx: Tx, scope: Scope, ref: ItemRef) -> FullItem:
        row = find_row(tx, scope, ref, select=_WITH_TEXT)
        key = {"library_id": row["library_id"], "item_id": row["id"]}
        sections = tx.all(
            """SELECT * FROM sections WHERE library_id = :library_id AND item_id = :item_id
               ORDER BY position""",
            **key,
        )
        found = tx.all(
            """SELECT d.id, d.library_id, d.name, d.created_at, NULL AS parent_id,
                      0 AS item_count
               FROM folder_items AS f CROSS JOIN folders AS d
               WHERE f.library_id = :library_id AND f.item_id = :item_id
               AND d.library_id = f.library_id AND d.id = f.folder_id""",
            **key,
        )
        folders = tuple(
            rows.value(Folder, each)
            for each in sorted(found, key=lambda each: str(each["id"]))
            if scope.folders is None or each["id"] in scope.folders
        )
        return FullItem(
            rows.item(row, tuple(folder.id for folder in folders)),
            row["text"],
            tuple(map(rows.section, sections)),
            folders,
            source_title=json_value(row["about"]).get("title"),
            segments=tuple(orjson.loads(row["segments"])),
        )

    async def get_many(self, scope: Scope, item_ids: Collection[str]) -> dict[str, Item]:
        """Return items by id, in one query; those out of scope or deleted are left out."""
        return await self._get_many(scope, item_ids) if item_ids else {}

    @reads
    def _get_many(self, tx: Tx, scope: Scope, item_ids: Collection[str]) -> dict[str, Item]:
        return {
            item.id: item
            for item in _with_folders(
                tx,
                scope,
                tx.all(
                    f"{rows.SELECT_ITEM} WHERE i.id IN :ids AND {scope_sql.visible(scope)}",
                    ids=list(item_ids),
                    **scope_sql.within(scope),
                ),
            )
        }

    @reads_inline
    def text(self, tx: Tx, item: Item) -> str:
        text = tx.scalar(
            "SELECT text FROM contents WHERE library_id = :library_id AND id = :id",
            library_id=item.library_id,
            id=item.content_id,
        )
        if text is None:
            raise NotFound(NO_ITEM)
        return str(text)

    @reads
    def texts(self, tx: Tx, items: Sequence[Item]) -> dict[str, str]:
        """Return texts of items of one library, by item id, in one query; those of deleted items
        are left out."""
        if not items:
            return {}
        found = dict(
            tx.tuples(
                "SELECT id, text FROM contents WHERE library_id = :library_id AND id IN :ids",
                library_id=items[0].library_id,
                ids=[item.content_id for item in items],
            )
        )
        return {item.id: found[item.content_id] for item in items if item.content_id in found}

    @reads_inline
    def find_by_key(
        self, tx: Tx, scope: Scope, key: str, entity_type: str, *, token_id: str | None = None
    ) -> tuple[Content | None, Item | None]:
        """Return the content of a key, and the item that has it, or an edited text of it: one in
        scope, or one that the token added and nobody has filed."""
        content = contents.get_content_by_key(tx, scope.library_id, key)
        of_source = {"content_id": content and content.id, "key": content.key if content else key}
        return content, duplicates.find_visible(
            tx, scope, token_id, entity_type, duplicates.OF_SOURCE, of_source
        )

    @reads
    def list_page(
        self,
        tx: Tx,
        scope: Scope,
        where: ItemFilter,
        *,
        limit: int,
        offset: int,
        order: Order = Order.NEWEST,
        count: bool = True,
    ) -> tuple[list[Item], int]:
        """Return a page of items in this order, and their total, or 0 without `count`."""
        condition, values = _matching(tx, scope, where)
        column, falls = _ORDERS[order]
        found = tx.all(
            f"""{rows.SELECT_ITEM} WHERE {condition}
                ORDER BY {column} {"DESC" if falls else "ASC"}, i.id DESC
                LIMIT :limit OFFSET :offset""",
            limit=limit,
            offset=offset,
            **values,
        )
        return _with_folders(tx, scope, found), tx.recall(_total, scope, where) if count else 0

    @reads
    def beside(
        self, tx: Tx, scope: Scope, where: ItemFilter, order: Order, item: Item
    ) -> tuple[Item | None, Item | None]:
        """Return the items before and after one in a list, whether or not the list has it."""
        return _beside(tx, scope, where, order, item, -1), _beside(tx, scope, where, order, item, 1)

    @reads
    def count_before(
        self, tx: Tx, scope: Scope, where: ItemFilter, order: Order, item: Item
    ) -> int:
        """Return how many items of a list come before one."""
        condition, values = _matching(tx, scope, where)
        there, values = _past(tx, order, item, -1, values)
        return int(
            tx.scalar(f"SELECT count(*) FROM items AS i WHERE {condition} AND {there}", **values)
        )


def _beside(
    tx: Tx, scope: Scope, where: ItemFilter, order: Order, item: Item, way: int
) -> Item | None:
    condition, values = _matching(tx, scope, where)
    there, values = _past(tx, order, item, way, values)
    column, falls = _ORDERS[order]
    row = tx.one(
        f"""{rows.SELECT_ITEM} WHERE {condition} AND {there}
            ORDER BY {column} {"DESC" if falls == (way > 0) else "ASC"},
                     i.id {"DESC" if way > 0 else "ASC"} LIMIT 1""",
        **values,
    )
    return rows.item(row) if row else None


def _past(
    tx: Tx, order: Order, item: Item, way: int, values: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Return the condition for what comes after an item in this order (`way` 1), or before (-1)."""
    column, falls = _ORDERS[order]
    past, tie = "<" if falls == (way > 0) else ">", "<" if way > 0 else ">"
    at = tx.scalar(
        f"SELECT {column} FROM items AS i WHERE i.library_id = :library_id AND i.id = :id",
        library_id=item.library_id,
        id=item.id,
    )
    # The first bound is what an index can use.
    return (
        f"{column} {past}= :at_value AND ({column} {past} :at_value OR i.id {tie} :at_id)",
        values | {"at_value": at, "at_id": item.id},
    )


def find(tx: Tx, scope: Scope, ref: ItemRef, *, lock: bool = False) -> Item:
    """Return the item with this id, public id or entity id. NotFound: deleted or out of scope."""
    row = find_row(tx, scope, ref, lock=lock)
    return rows.item(row, item_folders.folders_of(tx, scope, [row["id"]]).get(row["id"], ()))


def find_by_id(tx: Tx, scope: Scope, item_id: str) -> Item | None:
    """Return an item in scope, without its folders, for this transaction to change."""
    row = _by_ref(
        tx, scope_sql.visible(scope), scope_sql.within(scope), ItemRef(id=item_id), lock=True
    )
    return rows.item(row) if row else None


def find_at(tx: Tx, scope: Scope, item_id: str, expected_revision: int | None) -> Item:
    """Return an item for this transaction to change. Conflict: it is at another revision."""
    item = find(tx, scope, ItemRef(id=item_id), lock=True)
    if expected_revision not in (None, item.revision):
        raise Conflict(
            f"The item is at revision {item.revision}, not {expected_revision}; "
            "read it again first.",
            revision=item.revision,
        )
    return item


def is_public_id_taken(tx: Tx, library_id: str, public_id: str) -> bool:
    """Return whether an item of the library has the public id, or a disk of any library."""
    own = tx.one(
        "SELECT 1 FROM items WHERE library_id = :library_id AND public_id = :public_id",
        library_id=library_id,
        public_id=public_id,
    )
    return own is not None or bool(directory.taken_names(tx, [public_id]))


def find_own(
    tx: Tx, scope: Scope, ref: ItemRef, token_id: str | None, *, lock: bool = False
) -> Item:
    """Return an item in scope, or one that the token added and nobody has filed yet."""
    try:
        return find(tx, scope, ref, lock=lock)
    except NotFound:
        values = {"library_id": scope.library_id, "token_id": token_id}
        row = token_id and _by_ref(tx, duplicates.ADDED_AND_NOT_FILED, values, ref, lock=lock)
        if not row:
            raise
        return rows.item(row)


def find_row(tx: Tx, scope: Scope, ref: ItemRef, **how: Any) -> Any:
    """Return the row of an item in scope. `how`: lock, select."""
    row = _by_ref(tx, scope_sql.visible(scope), scope_sql.within(scope), ref, **how)
    if row is None:
        raise NotFound(ref.missing)
    return row


def _by_ref(
    tx: Tx,
    condition: str,
    values: dict[str, Any],
    ref: ItemRef,
    *,
    lock: bool = False,
    select: str = rows.SELECT_ITEM,
) -> Any | None:
    # SQLite has one writer at a time; on Postgres those who change one item take turns.
    end = " FOR NO KEY UPDATE OF i" if lock and tx.engine == "postgres" else ""
    column, name = ("id", ref.id) if ref.id is not None else ("public_id", ref.public_id)
    row = tx.one(f"{select} WHERE {condition} AND i.{column} = :name{end}", name=name, **values)
    if row is None:
        row = tx.one(
            f"""{select} WHERE {condition} AND i.id =
                (SELECT a.item_id FROM aliases AS a
                 WHERE a.library_id = :library_id AND a.{column} = :name){end}""",
            name=name,
            **values,
        )
    return row if row and ref.entity_type in (None, row["entity_type"]) else None


def _with_folders(tx: Tx, scope: Scope, found: Sequence[Any]) -> list[Item]:
    folders = item_folders.folders_of(tx, scope, [row["id"] for row in found])
    return [rows.item(row, folders.get(row["id"], ())) for row in found]


def _matching(tx: Tx, scope: Scope, where: ItemFilter) -> tuple[str, dict[str, Any]]:
    """Return the condition for items that are in scope and match the filter."""
    large = any(
        len(
            tx.tuples(
                """SELECT 1 FROM relations WHERE library_id = :library_id AND to_id = :id
                   AND kind = :kind LIMIT :most""",
                library_id=scope.library_id,
                id=parent_id,
                kind=kind,
                most=LARGE,
            )
        )
        == LARGE
        for kind, parent_id in ((Kind.BELONGS_TO, where.project_id), (Kind.PART_OF, where.epic_id))
        if parent_id
    )
    matching, values = scope_sql.matching(where, probed=large)
    return f"{scope_sql.visible(scope)} AND {matching}", scope_sql.within(scope) | values


def _total(tx: Tx, scope: Scope, where: ItemFilter) -> int:
    condition, values = _matching(tx, scope, where)
    return int(tx.scalar(f"SELECT count(*) FROM items AS i WHERE {condition}", **values))
