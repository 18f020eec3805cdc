"""Into the trash and out of it: deleted items are the rows that they had, where no query finds
them."""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from commonplace.database import Tx, usage
from commonplace.database.columns import as_json
from commonplace.errors import Conflict, Invalid, NotFound
from commonplace.model import (
    SUPERSEDED,
    Did,
    EventType,
    Item,
    ItemRef,
    Json,
    Relation,
    Scope,
    new_public_id,
    now,
)
from commonplace.search_index.index import SectionIndex
from commonplace.store import (
    captures,
    contents,
    disks,
    item_folders,
    item_queries,
    rows,
    versions,
)
from commonplace.store.events import log
from commonplace.store.queues import job_queues
from commonplace.store.relations import (
    is_replaced,
    put_relations,
    relink_around,
    superseded_by,
    update_superseded,
)
from commonplace.store.section_rows import count_trashed, put_section_rows, section_rows
from commonplace.store.trash import kept_rows
from commonplace.store.trash.kept_rows import Row
from commonplace.store.undo import journal

_SECTIONS = "sections"
# Not rows of tables: what deleting the item did to others, and restoring it undoes.
_BRIDGE, _CORRECTION, _KEY = "bridge", "correction", "key"
_NAME = re.compile("[a-z_]+")


# -- into the trash


def delete_items(
    tx: Tx,
    index: SectionIndex,
    scope: Scope,
    item_ids: Sequence[str],
    *,
    permanent: bool = False,
) -> None:
    """Move items with their notes to the trash. `permanent`: delete them for good, and contents
    that nothing needs any more."""
    library_id = scope.library_id
    deleted = item_folders.with_notes(tx, library_id, item_ids, lock=True)
    if not permanent:
        disks.note_unpublished(tx, scope, deleted)
    kept = list(kept_rows.rows_of(tx, library_id, deleted, ("items", "folder_items")))
    found = {row.item_id: row.stored for row in kept if row.source == "items"}
    deleted = [item_id for item_id in deleted if item_id in found]
    folders: dict[str, list[str]] = {item_id: [] for item_id in found}
    for row in kept[len(found) :]:
        folders[row.item_id].append(row.stored["folder_id"])
    log.record_deleted(
        tx,
        library_id,
        [(item_id, bool(row["in_kb"]), folders[item_id]) for item_id, row in found.items()],
        scope.actor,
    )
    disks.drop_saves(tx, library_id, {item_id: row["public_id"] for item_id, row in found.items()})
    if permanent:
        journal.forget(tx, library_id, deleted)
        usage.record(tx, library_id, items=-len(deleted))
        sources = set(kept_rows.TABLES)
    else:
        _insert_entries(tx, scope, found, folders)
        kept += kept_rows.rows_of(
            tx, library_id, deleted, kept_rows.tables_with(tx, library_id, deleted)
        )
        sections = [
            Row(row["item_id"], _SECTIONS, row)
            for row in section_rows(tx, index, library_id, deleted)
        ]
        kept_rows.keep(tx, library_id, [*kept, *sections])
        usage.record(tx, library_id, sections=len(sections))
        sources = {row.source for row in kept}
    undone: list[Row] = []
    for item_id in deleted:
        held = (
            versions.contents_of(tx, library_id, item_id)
            if "versions" in sources
            else [found[item_id]["content_id"]]
        )
        if not permanent:
            undone += _keys_freed(tx, library_id, item_id, held)
        superseded: list[str] = []
        if "relations" in sources:
            superseded = superseded_by(tx, library_id, item_id)
            bridges = relink_around(tx, library_id, item_id)
            if not permanent:
                undone += [Row(item_id, _BRIDGE, bridge) for bridge in bridges]
                undone += _corrections(tx, library_id, item_id, superseded)
        index.remove(tx, library_id, item_id)
        tx.run(
            "DELETE FROM items WHERE library_id = :library_id AND id = :id",
            library_id=library_id,
            id=item_id,
        )
        update_superseded(tx, library_id, superseded)
        for content_id in held if permanent else ():  # the trash needs its contents
            contents.drop_unused_content(tx, library_id, content_id)
    kept_rows.keep(tx, library_id, undone)


def keep_for_scope(
    tx: Tx, scope: Scope, item: Item, key: str | None, forgotten: Sequence[tuple[str, Json]]
) -> None:
    """Show an item in the trash of those who saw it in its folders only. Others keep it.

    `key`: that its text had. `forgotten`: rows that were deleted, each with the name of its table.
    """
    tx.run(
        """INSERT INTO trash_folders (library_id, item_id, folder_id, entity_type, title, in_kb,
                                      deleted_at, deleted_by, forgotten)
           SELECT i.library_id, i.id, d.id, i.entity_type, i.title, i.in_kb, :at, :actor,
                  CAST(:forgotten AS TEXT)
           FROM items AS i JOIN folders AS d ON d.library_id = i.library_id AND d.id IN :folders
           WHERE i.library_id = :library_id AND i.id = :item_id
           ON CONFLICT DO NOTHING""",
        library_id=scope.library_id,
        item_id=item.id,
        folders=sorted(item.folders),
        at=now(),
        actor=scope.actor,
        forgotten=json.dumps({"key": key, "rows": forgotten}, ensure_ascii=False),
    )


def leave_for_scope(
    tx: Tx, library_id: str, item_id: str, folder_ids: Collection[str] | None
) -> list[tuple[str, str]]:
    """Take an item out of the trash of those who see these folders, or all.

    Return the folders with what was forgotten when it was deleted from them.
    """
    condition = "" if folder_ids is None else "AND folder_id IN :folders"
    return tx.tuples(
        f"""DELETE FROM trash_folders WHERE library_id = :library_id AND item_id = :item_id
            {condition} RETURNING folder_id, forgotten""",
        library_id=library_id,
        item_id=item_id,
        folders=sorted(folder_ids or ()),
    )


def put_back_for_scope(
    tx: Tx, index: SectionIndex, item: Item, forgotten: Sequence[str], actor: str | None
) -> None:
    """Finish restoring an item that others kept, for those who see it again."""
    read = list(map(json.loads, forgotten))
    kept = [(table, row) for each in read for table, row in each["rows"]]
    for each in read:
        if each["key"] is not None:
            contents.attach_key(tx, item.library_id, item.content_id, each["key"])
    owners = {row["owner"] for _, row in kept}
    without = captures.owners_without_access(tx, item.library_id, item.id, owners)
    for table, row in kept:
        named = {row[column] for column in kept_rows.TABLES[table] if row[column] is not None}
        if row["owner"] in without or named - _live(tx, item.library_id, named):
            continue
        if table == "captures":
            captures.recall_key(tx, row)
        else:
            _put_row(tx, table, row)
    # With new numbers, as if it had been deleted for all: an order by them must not tell.
    ids = item_folders.with_notes(tx, item.library_id, [item.id])
    sections = list(section_rows(tx, index, item.library_id, ids))
    for each in ids:
        note = item_queries.find(tx, Scope(item.library_id), ItemRef(id=each))
        index.replace(tx, note, (), "")
    put_section_rows(tx, index, sections)
    log.record(tx, EventType.RESTORED, item.library_id, ids, actor)


def _insert_entries(
    tx: Tx, scope: Scope, found: Mapping[str, Json], folders: Mapping[str, Sequence[str]]
) -> None:
    library_id = scope.library_id
    # An import has brought back an item of the trash, which is deleted again.
    purge(tx, library_id, list(found))
    tx.insert(
        "trash",
        "library_id, item_id, public_id, deleted_with, entity_type, title, in_kb, folders, "
        "deleted_at, deleted_by",
        [
            (
                library_id,
                item_id,
                row["public_id"],
                _root(found, item_id),
                row["entity_type"],
                row["title"],
                row["in_kb"],
                as_json(sorted(folders[item_id])),
                rows.column(now()),
                scope.actor,
            )
            for item_id, row in found.items()
        ],
    )
    for item_id in found:
        if _root(found, item_id) is None:
            journal.note(tx, scope, Did.DELETED, item_id)


def _keys_freed(tx: Tx, library_id: str, item_id: str, content_ids: Sequence[str]) -> Iterator[Row]:
    """Free the keys of texts that are nobody else's: adding one again makes a new content, which
    does not tell that there was one."""
    for content_id in content_ids:
        key = contents.detach_key(tx, library_id, content_id, only_of=item_id)
        if key is not None:
            yield Row(item_id, _KEY, {"content_id": content_id, "key": key})


def _root(found: Mapping[str, Any], item_id: str) -> str | None:
    """Return the item that a note is deleted with; None if it is no note, or deleted alone."""
    root, seen = item_id, {item_id}
    while (above := found[root]["annotates"]) in found and above not in seen:
        seen.add(above)
        root = above
    return None if root == item_id else root


def _corrections(
    tx: Tx, library_id: str, item_id: str, superseded: Collection[str]
) -> Iterator[Row]:
    """Yield what is said of items that this one replaces, and that hold again without it."""
    for row in tx.all(
        """SELECT id, metadata FROM items
           WHERE library_id = :library_id AND id IN :ids AND status = :status""",
        library_id=library_id,
        ids=sorted(superseded),
        status=SUPERSEDED,
    ):
        if told := json.loads(row["metadata"]).get(_CORRECTION):
            yield Row(item_id, _CORRECTION, {_CORRECTION: told}, row["id"])


# -- out of it


def put_back(tx: Tx, index: SectionIndex, scope: Scope, item_id: str) -> None:
    """Write the rows of an item in the trash, and of its notes, again."""
    library_id = scope.library_id
    ids = _entries_to_take(tx, library_id, [item_id])
    if item_id not in ids:
        raise NotFound(f"{ItemRef(id=item_id).missing[:-1]} in the trash.")
    if _live(tx, library_id, ids):
        raise Conflict(
            "An import has added this item again. Delete that one before you restore this one."
        )
    kept: dict[str, list[Row]] = {}
    for row in tx.all(
        """SELECT item_id, other_id, source, stored FROM trash_rows
           WHERE library_id = :library_id AND item_id IN :ids""",
        library_id=library_id,
        ids=ids,
    ):
        stored = json.loads(row["stored"])
        kept.setdefault(row["source"], []).append(
            Row(row["item_id"], row["source"], stored, row["other_id"])
        )
    others = {row.other_id for each in kept.values() for row in each if row.other_id}
    annotated = {row.stored["annotates"] for row in kept["items"] if row.stored["annotates"]}
    there = {*ids, *_live(tx, library_id, others | annotated)}
    for row in kept["items"]:
        _put_item(tx, row.stored, there)
    for table in kept_rows.TABLES:
        for row in kept.get(table, ()) if table not in ("items", "relations") else ():
            if row.other_id is None or row.other_id in there:
                _put_row(tx, table, row.stored)
    put_section_rows(tx, index, (row.stored for row in kept.get(_SECTIONS, ())))
    for row in kept.get(_KEY, ()):
        contents.attach_key(tx, library_id, row.stored["content_id"], row.stored["key"])
    _put_relations(tx, scope, kept, there)
    waiting = [
        Row(row.other_id, row.source, row.stored, row.item_id)
        for each in kept.values()
        for row in each
        if row.other_id and row.other_id not in there
    ]
    usage.record(tx, library_id, sections=-count_trashed(tx, library_id, ids))
    tx.run(
        "DELETE FROM trash WHERE library_id = :library_id AND item_id IN :ids",
        library_id=library_id,
        ids=ids,
    )
    # What is about another item in the trash comes back with that.
    in_trash = set(
        tx.column(
            "SELECT item_id FROM trash WHERE library_id = :library_id AND item_id IN :ids",
            library_id=library_id,
            ids=sorted(row.item_id for row in waiting),
        )
    )
    kept_rows.keep(tx, library_id, [row for row in waiting if row.item_id in in_trash])
    for each in ids:
        index.refile(tx, library_id, each)
    log.record(tx, EventType.RESTORED, library_id, ids, scope.actor)


def _live(tx: Tx, library_id: str, item_ids: Collection[str]) -> set[str]:
    return set(
        tx.column(
            "SELECT id FROM items WHERE library_id = :library_id AND id IN :ids",
            library_id=library_id,
            ids=sorted(item_ids),
        )
    )


def _put_item(tx: Tx, row: Json, there: Collection[str]) -> None:
    if item_queries.is_public_id_taken(tx, row["library_id"], row["public_id"]):
        row["public_id"] = new_public_id()
    if row["annotates"] not in there:
        row["annotates"] = None
    _put_row(tx, "items", row)


def _put_row(tx: Tx, table: str, row: Json) -> None:
    if table == "folder_items" and not tx.one(
        "SELECT 1 FROM folders WHERE library_id = :library_id AND id = :folder_id", **row
    ):
        return
    if not all(map(_NAME.fullmatch, row)):
        raise Invalid("The trash is damaged.")
    insert = partial(
        tx.run,
        f"""INSERT INTO {table} ({", ".join(row)}) VALUES ({", ".join(f":{c}" for c in row)})
            ON CONFLICT DO NOTHING""",
    )
    if table == "jobs":
        job_queues.note(tx, row["library_id"], row["kind"], now())
    if not insert(**row) and table == "captures":  # the key was used again meanwhile
        insert(**row | {"idempotency_key": None})


def _put_relations(
    tx: Tx, scope: Scope, kept: Mapping[str, Sequence[Row]], there: Collection[str]
) -> None:
    """Write relations again, unless what others have done meanwhile rules them out."""
    library_id = scope.library_id
    for bridge in kept.get(_BRIDGE, ()):
        tx.run(
            """DELETE FROM relations WHERE library_id = :library_id AND from_id = :from_id
               AND kind = :kind AND to_id = :to_id AND created_at = :created_at""",
            **bridge.stored,
        )
    everything = Scope(library_id)
    for row in kept.get("relations", ()):
        relation = rows.value(Relation, row.stored)
        if row.other_id in there and not is_replaced(tx, relation):
            try:
                put_relations(tx, everything, [relation])
            except Invalid:  # it would close a cycle
                continue
    touched = {row.item_id for row in kept["items"]}
    touched |= {row.stored["to_id"] for row in kept.get(_BRIDGE, ())}
    update_superseded(tx, library_id, touched)
    for row in kept.get(_CORRECTION, ()):
        _correct(tx, library_id, str(row.other_id), row.stored)


def _correct(tx: Tx, library_id: str, item_id: str, told: Json) -> None:
    metadata = tx.scalar(
        """SELECT metadata FROM items
           WHERE library_id = :library_id AND id = :id AND status = :status""",
        library_id=library_id,
        id=item_id,
        status=SUPERSEDED,
    )
    if metadata is not None and _CORRECTION not in json.loads(metadata):
        tx.run(
            f"""UPDATE items SET metadata = :metadata, {rows.CHANGED}
               WHERE library_id = :library_id AND id = :id""",
            metadata=as_json(json.loads(metadata) | told),
            library_id=library_id,
            id=item_id,
        )


def _entries_to_take(tx: Tx, library_id: str, item_ids: Sequence[str]) -> list[str]:
    """Return entries with their notes, which nobody else can take out of the trash now."""
    lock = " ORDER BY item_id FOR UPDATE" if tx.engine == "postgres" else ""
    return tx.column(
        f"""SELECT item_id FROM trash WHERE library_id = :library_id AND item_id IN (
                SELECT item_id FROM trash WHERE library_id = :library_id AND item_id IN :ids
                UNION ALL SELECT item_id FROM trash
                WHERE library_id = :library_id AND deleted_with IS NOT NULL
                AND deleted_with IN :ids){lock}""",
        library_id=library_id,
        ids=list(item_ids),
    )


def purge(tx: Tx, library_id: str, item_ids: Sequence[str]) -> None:
    """Delete entries with their notes, and contents that nothing needs any more."""
    ids = _entries_to_take(tx, library_id, item_ids)
    if not ids:
        return
    held = tx.column(
        """SELECT DISTINCT content_id FROM trash_rows WHERE library_id = :library_id
           AND item_id IN :ids AND content_id IS NOT NULL""",
        library_id=library_id,
        ids=ids,
    )
    usage.record(tx, library_id, items=-len(ids), sections=-count_trashed(tx, library_id, ids))
    tx.run(
        "DELETE FROM trash WHERE library_id = :library_id AND item_id IN :ids",
        library_id=library_id,
        ids=ids,
    )
    journal.forget(tx, library_id, ids)
    for content_id in held:
        contents.drop_unused_content(tx, library_id, content_id)
