"""Items: written whole in one transaction, read only through a scope."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from commonplace.database import scope_sql
from commonplace.database.transaction import Tx
from commonplace.database.unit_of_work import reads, reads_inline, writes
from commonplace.errors import Conflict, NotFound
from commonplace.model import (
    Annotation,
    Candidate,
    Capture,
    Content,
    Entry,
    FullItem,
    Item,
    ItemChange,
    ItemFilter,
    ItemRef,
    Job,
    Kind,
    Order,
    Outcome,
    Relation,
    Scope,
    Section,
    Upload,
    new_public_id,
    now,
)
from commonplace.search_index.index import IndexedTable, SectionIndex
from commonplace.store import rows
from commonplace.store.annotations import with_notes
from commonplace.store.candidates import accept_candidate
from commonplace.store.captures import forget_for_tokens_without_access, insert_capture
from commonplace.store.contents import (
    detach_key,
    drop_unused_content,
    get_content_by_key,
    insert_contents,
    put_content,
    replace_content,
)
from commonplace.store.duplicates import ADDED_AND_NOT_FILED, find_same, find_visible
from commonplace.store.import_diff import changed_by_import, find_imported, unknown_entries
from commonplace.store.item_folders import folders_of, put_in_folder, require_folders
from commonplace.store.jobs import insert_jobs
from commonplace.store.relation_rules import relink_around, superseded_by, update_superseded
from commonplace.store.relations import drop_relations, put_relations
from commonplace.store.uploads import finish_upload
from commonplace.store.versions import contents_of, keep_version

NO_ITEM = "Item not found"
_WITH_TEXT = rows.SELECT_ITEM.replace(
    " FROM items AS i", ", c.text FROM items AS i JOIN contents AS c ON c.id = i.content_id"
)


class Items(IndexedTable):
    @writes
    def add(
        self,
        tx: Tx,
        item: Item,
        content: Content,
        sections: Sequence[Section],
        *,
        scope: Scope,
        folder_id: str | None,
        stamp: str,
        jobs: Sequence[Job],
        relations: Sequence[Relation] = (),
        capture: Capture | None = None,
        once: bool = True,
        beside: ItemChange | None = None,
        accepts: Candidate | None = None,
        upload: Upload | None = None,
    ) -> tuple[Item, bool]:
        """All of it in one transaction, also what becomes of another item `beside` it. What the scope already holds with this
        content and type (and, for texts, title): that, and False, unless it need not be there `once` only. Conflict: by now the
        key stands for a content that says something else, or the other item is at another revision. NotFound: a relation leads
        out of the scope. Without a `folder_id` the item is filed in `item.folders`. `accepts`: the pending candidate that
        becomes this item; Conflict if it was decided already. `upload`: the file that it is made of, with the answer
        to give for it from now on; Conflict if it was finished already."""

        kept, created = self._add(tx, item, content, sections, scope, folder_id, stamp, jobs, once)
        if created:
            if beside:
                self._update(
                    tx,
                    scope,
                    beside.item_id,
                    beside.changes,
                    beside.expected_revision,
                    None,
                    stamp,
                    (),
                )
            put_relations(tx, scope, relations, new=kept.id)
            if capture:
                insert_capture(tx, capture)
            if accepts:
                accept_candidate(tx, accepts, kept.id)
            if upload:
                answer = upload.answer and upload.answer | {"content_id": kept.content_id}
                finish_upload(tx, upload, kept.id, answer)
        return kept, created

    def _add(
        self,
        tx: Tx,
        item: Item,
        content: Content,
        sections: Sequence[Section],
        scope: Scope,
        folder_id: str | None,
        stamp: str,
        jobs: Sequence[Job],
        once: bool,
    ) -> tuple[Item, bool]:
        content_id, same = put_content(tx, content, item.created_at)
        seen = find_same(tx, scope, replace(content, id=content_id), item) if once else None
        if seen is not None:
            drop_unused_content(tx, content_id)
            return seen, False
        if not same:
            raise Conflict(
                "The source was read by somebody else at the same moment, and said something else to them."
            )
        item = replace(
            item, content_id=content_id, folders=(folder_id,) if folder_id else item.folders
        )
        self._insert(tx, [Entry(item, content, tuple(sections), tuple(jobs))], stamp)
        return item, True

    def _insert(self, tx: Tx, entries: Sequence[Entry], stamp: str) -> None:
        """What is new, of one library; their contents are there."""
        items = [entry.item for entry in entries]
        tx.insert("items", ", ".join(rows.ITEM_COLUMNS), list(map(rows.item_values, items)))
        filed = [
            (item.library_id, folder_id, item.id) for item in items for folder_id in item.folders
        ]
        if filed:
            require_folders(tx, items[0].library_id, {folder_id for _, folder_id, _ in filed})
            tx.insert("folder_items", "library_id, folder_id, item_id", filed)
        self._index.insert(tx, [(entry.item, entry.sections) for entry in entries], stamp)
        insert_jobs(tx, [job for entry in entries for job in entry.jobs])

    @reads_inline
    def find_by_key(
        self, tx: Tx, scope: Scope, key: str, entity_type: str, *, token_id: str | None = None
    ) -> tuple[Content | None, Item | None]:
        """What the key stands for, and the item that has it: in scope, or added by the token and not filed yet."""

        content = get_content_by_key(tx, key)
        if content is None:
            return None, None
        return content, find_visible(
            tx, scope, token_id, entity_type, "c.id = :content_id", content_id=content.id
        )

    @writes
    def import_entries(
        self, tx: Tx, entries: Sequence[Entry], *, scope: Scope, stamp: str
    ) -> list[Outcome]:
        """Many, in one transaction: new, or brought up to date (see Entry)."""
        return self._put_all(tx, entries, scope, stamp) if entries else []

    def _put_all(self, tx: Tx, entries: Sequence[Entry], scope: Scope, stamp: str) -> list[Outcome]:
        """What nothing is known of is written in one go, whatever else there is one by one."""
        are_fresh = unknown_entries(tx, scope, entries)
        new = [
            replace(entry, item=replace(entry.item, content_id=entry.content.id))
            for entry, is_fresh in zip(entries, are_fresh, strict=True)
            if is_fresh
        ]
        if new:
            insert_contents(tx, [(entry.content, entry.item.created_at) for entry in new])
            self._insert(tx, new, stamp)
        return [
            Outcome.ADDED if is_fresh else self._put(tx, entry, scope, stamp)
            for entry, is_fresh in zip(entries, are_fresh, strict=True)
        ]

    def _put(self, tx: Tx, entry: Entry, scope: Scope, stamp: str) -> Outcome:
        content = replace(
            entry.content, id=put_content(tx, entry.content, entry.item.created_at)[0]
        )
        item = replace(entry.item, content_id=content.id)
        known = _by_ref(tx, *scope_sql.visible(scope), ItemRef(id=item.id), lock=True)
        before = (
            rows.item(known)
            if known
            else find_imported(tx, scope, content, entry)
            if entry.once
            else None
        )
        if before is None:
            if tx.one("SELECT 1 FROM items WHERE public_id = :public_id", public_id=item.public_id):
                item = replace(item, public_id=new_public_id())
            self._insert(tx, [replace(entry, item=item)], stamp)
            return Outcome.ADDED
        changes = changed_by_import(item, before) if known else {}
        if changes:
            recut = bool(changes.keys() & {"content_id", "title", "in_kb"})
            self._update(
                tx,
                scope,
                before.id,
                changes,
                None,
                entry.sections if recut else None,
                stamp,
                entry.jobs if recut else (),
            )
        drop_unused_content(tx, before.content_id if changes else content.id)
        return (
            Outcome.CHANGED
            if self._file(tx, before, item.folders) or changes
            else Outcome.UNCHANGED
        )

    @reads_inline
    def get(self, tx: Tx, scope: Scope, ref: ItemRef, *, token_id: str | None = None) -> Item:
        """`token_id`: also what this token added and nobody has filed yet."""
        return _find_own(tx, scope, ref, token_id)

    @reads_inline
    def get_with_sections(self, tx: Tx, scope: Scope, ref: ItemRef) -> FullItem:
        return _whole(tx, scope, ref)

    async def get_many(self, scope: Scope, item_ids: Collection[str]) -> dict[str, Item]:
        """By id, in one query; what is out of scope or gone by now is left out."""

        def work(tx: Tx) -> dict[str, Item]:
            condition, values = scope_sql.visible(scope)
            found = tx.all(
                f"{rows.SELECT_ITEM} WHERE i.id IN :ids AND {condition}",
                ids=list(item_ids),
                **values,
            )
            folders = folders_of(tx, scope, [row["id"] for row in found])
            return {row["id"]: rows.item(row, folders.get(row["id"], ())) for row in found}

        return await self._db.read(work) if item_ids else {}

    @reads_inline
    def text(self, tx: Tx, item: Item) -> str:
        return _text(tx, item)

    @reads
    def texts(self, tx: Tx, items: Sequence[Item]) -> dict[str, str]:
        """By the items' ids, in one query; those that are gone by now are left out."""
        found = (
            tx.all(
                "SELECT id, text FROM contents WHERE id IN :ids",
                ids=[item.content_id for item in items],
            )
            if items
            else []
        )
        by_content = {row["id"]: str(row["text"]) for row in found}
        return {
            item.id: by_content[item.content_id] for item in items if item.content_id in by_content
        }

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
        """In this order, and how many there are in all; 0 when they need not be counted."""
        return _page(tx, scope, where, limit, offset, order, count)

    @writes
    def update(
        self,
        tx: Tx,
        scope: Scope,
        item_id: str,
        changes: dict[str, Any],
        *,
        expected_revision: int | None,
        sections: Sequence[Section] | None,
        stamp: str,
        jobs: Sequence[Job],
        relations: Sequence[Relation] = (),
        dropped: Sequence[Relation] = (),
    ) -> Item:
        """Change fields; `sections` (when not None) replace those that are there. A new title needs new ones. Relations
        come and go in the same transaction; those to be `dropped` begin or end at the item, and may lead out of the scope; one
        that is not there is as good as dropped."""

        updated = self._update(
            tx, scope, item_id, changes, expected_revision, sections, stamp, jobs
        )
        drop_relations(tx, dropped)
        put_relations(tx, scope, relations)
        return updated

    def _update(
        self,
        tx: Tx,
        scope: Scope,
        item_id: str,
        changes: dict[str, Any],
        expected_revision: int | None,
        sections: Sequence[Section] | None,
        stamp: str,
        jobs: Sequence[Job],
    ) -> Item:
        before = find_at(tx, scope, item_id, expected_revision)
        after = replace(before, **changes, revision=before.revision + 1, updated_at=now())
        columns = [*changes, "revision", "updated_at"]
        tx.run(
            f"""UPDATE items SET {", ".join(f"{c} = :{c}" for c in columns)}
                WHERE library_id = :library_id AND id = :id""",
            library_id=after.library_id,
            id=after.id,
            **{c: rows.column_value(c, getattr(after, c)) for c in columns},
        )
        if "status" in changes:
            update_superseded(tx, after.library_id, superseded_by(tx, after.library_id, after.id))
        if after.content_id != before.content_id:
            keep_version(tx, before, after)
        if sections is not None:
            self._index.remove(tx, after.library_id, after.id)
            self._index.insert(tx, [(after, sections)], stamp)
        insert_jobs(tx, jobs)
        return after

    @writes
    def replace_content(
        self,
        tx: Tx,
        scope: Scope,
        item_id: str,
        content: Content,
        changes: dict[str, Any],
        *,
        sections: Sequence[Section],
        stamp: str,
        jobs: Sequence[Job],
        expected_revision: int | None = None,
    ) -> Item:
        """From now on the content's key stands for this content, and the item has it. Others keep what they have."""

        before = find(tx, scope, ItemRef(id=item_id), lock=True)
        content_id = replace_content(tx, content, now())
        after = self._update(
            tx,
            scope,
            item_id,
            {**changes, "content_id": content_id},
            expected_revision,
            sections,
            stamp,
            jobs,
        )
        drop_unused_content(tx, before.content_id)
        return after

    @writes
    def set_derived(self, tx: Tx, made: Sequence[Annotation]) -> None:
        """Change what was made of texts. Not a revision of anybody's; and what people choose themselves (tags, category,
        metadata) stays where somebody has changed the item since it was read."""

        for columns, same in groupby(made, lambda each: tuple(each.changes)):
            tx.many(
                f"""UPDATE items SET {", ".join(map(rows.unless_chosen, columns))}
                    WHERE library_id = :library_id AND id = :item_id""",
                [
                    {
                        **_of(each.item),
                        "revision": each.item.revision,
                        **{c: rows.column_value(c, value) for c, value in each.changes.items()},
                    }
                    for each in same
                ],
            )
        tx.many(
            """UPDATE sections SET key_points = :points
               WHERE library_id = :library_id AND item_id = :item_id AND position = :position""",
            [
                {
                    **_of(each.item),
                    "position": n,
                    "points": rows.column_value("key_points", points),
                }
                for each in made
                for n, points in enumerate(each.key_points)
            ],
        )

    @writes
    def delete(
        self, tx: Tx, scope: Scope, item_id: str, *, expected_revision: int | None = None
    ) -> None:
        """What also lies in a folder out of the scope is taken out of the scope's own, and stays there."""

        item = find_at(tx, scope, item_id, expected_revision)
        if scope.folders is None or all(
            map(
                scope.folders.issuperset,
                folders_of(
                    tx, Scope(item.library_id), with_notes(tx, item.library_id, [item.id])
                ).values(),
            )
        ):
            delete_items(tx, self._index, item.library_id, [item.id])
        else:
            self._unfile(tx, item, item.folders)
            detach_key(tx, item.content_id)
            forget_for_tokens_without_access(tx, item.library_id, item.id)

    @writes
    def file(
        self, tx: Tx, scope: Scope, ref: ItemRef, folder_ids: Sequence[str], *, token_id: str | None
    ) -> list[str]:
        """Folders it was not in before. A token may also file what it added and nobody has filed yet."""

        item = _find_own(tx, scope, ref, token_id, lock=True)
        require_folders(tx, item.library_id, set(folder_ids))
        return self._file(tx, item, folder_ids)

    def _file(self, tx: Tx, item: Item, folder_ids: Sequence[str]) -> list[str]:
        """Folders it was not in before."""
        held = {
            row["folder_id"]
            for row in tx.all(
                """SELECT folder_id FROM folder_items
                   WHERE library_id = :library_id AND item_id = :item_id""",
                library_id=item.library_id,
                item_id=item.id,
            )
        }
        added = [folder_id for folder_id in dict.fromkeys(folder_ids) if folder_id not in held]
        for item_id in with_notes(tx, item.library_id, [item.id]) if added else ():
            for folder_id in added:
                put_in_folder(tx, item.library_id, item_id, folder_id)
            self._index.refile(tx, item.library_id, item_id)
        return added

    @writes
    def unfile(self, tx: Tx, scope: Scope, ref: ItemRef, folder_id: str) -> None:
        item = find(tx, scope, ref, lock=True)
        if folder_id not in item.folders:
            raise NotFound("The item is not in that folder")
        self._unfile(tx, item, [folder_id])

    def _unfile(self, tx: Tx, item: Item, folder_ids: Sequence[str]) -> None:
        for each in with_notes(tx, item.library_id, [item.id]):
            tx.run(
                """DELETE FROM folder_items
                   WHERE library_id = :library_id AND item_id = :item_id
                   AND folder_id IN :folder_ids""",
                library_id=item.library_id,
                item_id=each,
                folder_ids=list(folder_ids),
            )
            self._index.refile(tx, item.library_id, each)


def _of(item: Item) -> dict[str, str]:
    return {"library_id": item.library_id, "item_id": item.id}


def find(tx: Tx, scope: Scope, ref: ItemRef, *, lock: bool = False) -> Item:
    """The item by any of its three names, or NotFound: gone and out of scope read the same."""
    row = _by_ref(tx, *scope_sql.visible(scope), ref, lock=lock)
    if row is None:
        raise NotFound(NO_ITEM)
    return rows.item(row, folders_of(tx, scope, [row["id"]]).get(row["id"], ()))


def find_at(tx: Tx, scope: Scope, item_id: str, expected_revision: int | None) -> Item:
    """To be changed by this transaction; Conflict when somebody was there since it was read."""
    item = find(tx, scope, ItemRef(id=item_id), lock=True)
    if expected_revision not in (None, item.revision):
        raise Conflict(
            f"The item is at revision {item.revision}, not {expected_revision}; read it again first.",
            revision=item.revision,
        )
    return item


def _whole(tx: Tx, scope: Scope, ref: ItemRef) -> FullItem:
    row = _by_ref(tx, *scope_sql.visible(scope), ref, select=_WITH_TEXT)
    if row is None:
        raise NotFound(NO_ITEM)
    of_item = {"library_id": row["library_id"], "item_id": row["id"]}
    sections = tx.all(
        """SELECT * FROM sections
           WHERE library_id = :library_id AND item_id = :item_id
           ORDER BY position""",
        **of_item,
    )
    filed = tx.all(
        """SELECT d.id, d.library_id, d.name, d.created_at, 0 AS item_count
           FROM folder_items AS f
           CROSS JOIN folders AS d
           WHERE f.library_id = :library_id AND f.item_id = :item_id
           AND d.library_id = f.library_id AND d.id = f.folder_id""",
        **of_item,
    )
    folders = tuple(
        rows.folder(each)
        for each in sorted(filed, key=lambda each: str(each["id"]))
        if scope.folders is None or each["id"] in scope.folders
    )
    item = rows.item(row, tuple(folder.id for folder in folders))
    return FullItem(item, row["text"], tuple(map(rows.section, sections)), folders)


def _text(tx: Tx, item: Item) -> str:
    row = tx.one("SELECT text FROM contents WHERE id = :id", id=item.content_id)
    if row is None:
        raise NotFound(NO_ITEM)
    return str(row["text"])


def delete_items(tx: Tx, index: SectionIndex, library_id: str, item_ids: Sequence[str]) -> None:
    """Items with all that hangs on them; a content nobody has any more goes too."""
    for item_id in with_notes(tx, library_id, item_ids):
        said = contents_of(tx, library_id, item_id)
        replaced = relink_around(tx, library_id, item_id)
        index.remove(tx, library_id, item_id)
        tx.run(
            "DELETE FROM items WHERE library_id = :library_id AND id = :id",
            library_id=library_id,
            id=item_id,
        )
        update_superseded(tx, library_id, replaced)
        for content_id in said:
            drop_unused_content(tx, content_id)


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
            f"""{select}
                WHERE {condition} AND i.id = (SELECT a.item_id FROM aliases AS a
                WHERE a.library_id = :library_id AND a.{column} = :name){end}""",
            name=name,
            **values,
        )
    return row if row and ref.entity_type in (None, row["entity_type"]) else None


def _find_own(
    tx: Tx, scope: Scope, ref: ItemRef, token_id: str | None, *, lock: bool = False
) -> Item:
    """What the scope sees; and, for a token of several folders, what it added itself and nobody has filed yet."""
    try:
        return find(tx, scope, ref, lock=lock)
    except NotFound:
        row = token_id and _by_ref(
            tx,
            ADDED_AND_NOT_FILED,
            {"library_id": scope.library_id, "token_id": token_id},
            ref,
            lock=lock,
        )
        if not row:
            raise
        return rows.item(row)


LARGE = 1_000  # items that are joined to a project or an epic, from which on each is asked for it
_ORDERS = {
    Order.NEWEST: "i.created_at DESC",
    Order.OLDEST: "i.created_at",
    Order.CHANGED: "i.updated_at DESC",
    Order.TITLE: "lower(i.title)",
    Order.LONGEST: "i.word_count DESC",
}


def _page(
    tx: Tx, scope: Scope, where: ItemFilter, limit: int, offset: int, order: Order, count: bool
) -> tuple[list[Item], int]:
    (condition, values), (asked, wanted) = (
        scope_sql.visible(scope),
        scope_sql.matching(where, probed=_is_large(tx, scope, where)),
    )
    found = tx.all(
        f"""{rows.SELECT_ITEM}
            WHERE {condition} AND {asked}
            ORDER BY {_ORDERS[order]}, i.id DESC LIMIT :limit OFFSET :offset""",
        limit=limit,
        offset=offset,
        **values,
        **wanted,
    )
    folders = folders_of(tx, scope, [row["id"] for row in found])
    return [rows.item(row, folders.get(row["id"], ())) for row in found], tx.recall(
        _total, scope, where
    ) if count else 0


def _is_large(tx: Tx, scope: Scope, where: ItemFilter) -> bool:
    """Whether very many are joined to the project or epic that is asked for."""
    return any(
        len(
            tx.tuples(
                """SELECT 1 FROM relations
                   WHERE library_id = :library_id AND to_id = :id AND kind = :kind LIMIT :most""",
                library_id=scope.library_id,
                id=joined_to,
                kind=kind,
                most=LARGE,
            )
        )
        == LARGE
        for kind, joined_to in ((Kind.BELONGS_TO, where.project_id), (Kind.PART_OF, where.epic_id))
        if joined_to
    )


def _total(tx: Tx, scope: Scope, where: ItemFilter) -> int:
    (condition, values), (asked, wanted) = (
        scope_sql.visible(scope),
        scope_sql.matching(where, probed=_is_large(tx, scope, where)),
    )
    row = tx.one(
        f"SELECT count(*) AS n FROM items AS i WHERE {condition} AND {asked}", **values, **wanted
    )
    return row["n"] if row else 0
