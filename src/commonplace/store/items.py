"""Write items, each with everything that belongs to it, in one transaction."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from typing import Any

from commonplace.database import Tx, usage, writes
from commonplace.errors import NotFound
from commonplace.model import (
    Annotation,
    Candidate,
    Capture,
    Content,
    Did,
    Entry,
    EventType,
    Item,
    ItemChange,
    ItemRef,
    Job,
    Outcome,
    Relation,
    Scope,
    Section,
    Upload,
    new_public_id,
    now,
)
from commonplace.store import (
    candidates,
    captures,
    contents,
    duplicates,
    item_folders,
    item_queries,
    rows,
    versions,
)
from commonplace.store.events import log
from commonplace.store.files import uploads
from commonplace.store.jobs import insert_jobs
from commonplace.store.relations import (
    drop_relations,
    put_relations,
    superseded_by,
    update_superseded,
)
from commonplace.store.trash import entries, moves
from commonplace.store.undo import journal


class Items(item_queries.ItemQueries):
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
        """Add an item; return it and True.

        If the scope holds one with this content and type (and title, for texts), return that and
        False, unless `once` is False. Without a `folder_id` the item goes to `item.folders`.
        `beside` is a change to another item. `accepts` is the pending candidate that becomes this
        item. `upload` is the file that it is made of, with the answer to give for it.

        Conflict: the key has another text by now, the other item is at another revision, the
        candidate was decided, or the upload was finished. NotFound: a relation leads out of scope.
        """
        content_id, same = contents.put_content(tx, item.library_id, content, item.created_at)
        seen = (
            duplicates.find_same(tx, scope, replace(content, id=content_id), item) if once else None
        )
        if seen is not None:
            contents.drop_unused_content(tx, item.library_id, content_id)
            return seen, False
        if not same:
            raise contents.source_conflict()
        item = replace(
            item, content_id=content_id, folders=(folder_id,) if folder_id else item.folders
        )
        self._insert(tx, [Entry(item, content, tuple(sections), tuple(jobs))], stamp, scope.actor)
        if item.ingest_status is None:
            journal.note(tx, scope, Did.ADDED, item.id, revision=item.revision)
        if beside:
            self._update(tx, scope, beside.item_id, beside.changes, beside.expected_revision)
        put_relations(tx, scope, relations, new=item.id)
        if capture:
            captures.insert_capture(tx, capture)
        if accepts:
            candidates.accept_candidate(tx, scope, accepts, item.id)
        if upload:
            answer = upload.answer and upload.answer | {"content_id": item.content_id}
            uploads.finish_upload(tx, upload, item.id, answer)
        return item, True

    def _insert(self, tx: Tx, entries: Sequence[Entry], stamp: str, actor: str | None) -> None:
        """Insert new items of one library, whose contents are there."""
        items = [entry.item for entry in entries]
        usage.record(tx, items[0].library_id, items=len(items))
        tx.insert(
            "items",
            ", ".join(rows.WRITTEN_COLUMNS),
            list(map(rows.item_values, items)),
        )
        pairs = [
            (item.library_id, folder_id, item.id) for item in items for folder_id in item.folders
        ]
        if pairs:
            item_folders.require_folders(
                tx, items[0].library_id, {folder_id for _, folder_id, _ in pairs}
            )
            tx.insert("folder_items", "library_id, folder_id, item_id", pairs)
        self._index.insert(tx, [(entry.item, entry.sections) for entry in entries], stamp)
        insert_jobs(tx, [job for entry in entries for job in entry.jobs])
        log.record_added(tx, items, actor)

    @writes
    def import_entries(
        self, tx: Tx, entries: Sequence[Entry], *, scope: Scope, stamp: str
    ) -> list[Outcome]:
        """Insert or update many items (see Entry). Unknown ones are written together."""
        unknown = duplicates.unknown_entries(tx, scope, entries)
        new = [
            replace(entry, item=replace(entry.item, content_id=entry.content.id))
            for entry, is_unknown in zip(entries, unknown, strict=True)
            if is_unknown
        ]
        if new:
            contents.insert_contents(
                tx,
                scope.library_id,
                [(entry.content, entry.item.created_at) for entry in new],
            )
            self._insert(tx, new, stamp, scope.actor)
        return [
            Outcome.ADDED if is_unknown else self._import(tx, entry, scope, stamp)
            for entry, is_unknown in zip(entries, unknown, strict=True)
        ]

    def _import(self, tx: Tx, entry: Entry, scope: Scope, stamp: str) -> Outcome:
        library_id = entry.item.library_id
        content_id, _ = contents.put_content(tx, library_id, entry.content, entry.item.created_at)
        item = replace(entry.item, content_id=content_id)
        known = before = item_queries.find_by_id(tx, scope, item.id)
        if before is None and entry.once:
            before = duplicates.find_imported(tx, scope, entry.content, entry)
        if before is None:
            if item_queries.is_public_id_taken(tx, library_id, item.public_id):
                item = replace(item, public_id=new_public_id())
            self._insert(tx, [replace(entry, item=item)], stamp, scope.actor)
            return Outcome.ADDED
        changes = duplicates.changed_by_import(item, before) if known else {}
        if changes.keys() & {"content_id", "title", "in_kb"}:
            self._update(tx, scope, before.id, changes, None, entry.sections, stamp, entry.jobs)
        elif changes:
            self._update(tx, scope, before.id, changes)
        contents.drop_unused_content(tx, library_id, before.content_id if changes else content_id)
        return (
            Outcome.CHANGED
            if self._file(tx, before, item.folders, scope.actor) or changes
            else Outcome.UNCHANGED
        )

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
        """Change fields; `sections` replace the old ones, and a new title needs new ones.

        `dropped` relations start or end at the item, and may lead out of scope; missing ones are
        ignored.
        """
        updated = self._update(
            tx, scope, item_id, changes, expected_revision, sections, stamp, jobs
        )
        drop_relations(tx, scope, dropped)
        put_relations(tx, scope, relations)
        return updated

    def _update(
        self,
        tx: Tx,
        scope: Scope,
        item_id: str,
        changes: dict[str, Any],
        expected_revision: int | None = None,
        sections: Sequence[Section] | None = None,
        stamp: str = "",
        jobs: Sequence[Job] = (),
    ) -> Item:
        before = item_queries.find_at(tx, scope, item_id, expected_revision)
        after = replace(before, **changes, revision=before.revision + 1, updated_at=now())
        columns = [*changes, "revision", "updated_at"]
        columns += rows.FACT_COLUMNS if "metadata" in changes else ()
        tx.run(
            f"""UPDATE items SET {", ".join(f"{c} = :{c}" for c in columns)}, {rows.CHANGED}
                WHERE library_id = :library_id AND id = :id""",
            library_id=after.library_id,
            id=after.id,
            **{c: rows.column(getattr(after, c)) for c in columns},
        )
        if "status" in changes:
            update_superseded(tx, after.library_id, superseded_by(tx, after.library_id, after.id))
        if after.content_id != before.content_id:
            versions.keep_version(tx, before, after)
        if sections is not None:
            self._index.replace(tx, after, sections, stamp)
        insert_jobs(tx, jobs)
        log.record_updated(tx, before, after, scope.actor)
        journal.note_update(tx, scope, before, after)
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
        extends: Capture | None = None,
    ) -> Item:
        """Give the item, and the content's key, this content. Other items keep theirs.

        `extends`: the item's capture, grown.
        """
        before = item_queries.find(tx, scope, ItemRef(id=item_id), lock=True)
        content_id = contents.replace_content(tx, before.library_id, content, now())
        changes = {**changes, "content_id": content_id}
        after = self._update(tx, scope, item_id, changes, expected_revision, sections, stamp, jobs)
        contents.drop_unused_content(tx, before.library_id, before.content_id)
        if extends:
            captures.extend_capture(tx, extends)
        return after

    @writes
    def keep_source(
        self,
        tx: Tx,
        scope: Scope,
        item_id: str,
        content: Content,
        word_count: int,
        *,
        expected_revision: int,
    ) -> Item:
        """Store a text that the source of an edited item has now, as a version of the item."""
        before = item_queries.find_at(tx, scope, item_id, expected_revision)
        content_id = contents.replace_content(tx, before.library_id, content, now())
        if not versions.keep_source(tx, before, replace(content, id=content_id), word_count, now()):
            contents.drop_unused_content(tx, before.library_id, content_id)
            return before
        return self._update(tx, scope, item_id, {})

    @writes
    def set_derived(self, tx: Tx, made: Sequence[Annotation]) -> None:
        """Store fields and key points derived from texts, without a new revision.

        Tags, category and metadata that somebody has changed since then stay.
        """
        keys = {a.item.id: {"library_id": a.item.library_id, "item_id": a.item.id} for a in made}
        for columns, same in groupby(made, lambda each: tuple(each.changes)):
            tx.many(
                f"""UPDATE items SET {", ".join(map(rows.unless_edited, columns))}, {rows.CHANGED}
                    WHERE library_id = :library_id AND id = :item_id""",
                [
                    {
                        **keys[each.item.id],
                        "revision": each.item.revision,
                        **{c: rows.column(value) for c, value in each.changes.items()},
                    }
                    for each in same
                ],
            )
        tx.many(
            """UPDATE sections SET key_points = :points
               WHERE library_id = :library_id AND item_id = :item_id AND position = :position""",
            [
                {**keys[each.item.id], "position": n, "points": rows.column(points)}
                for each in made
                for n, points in enumerate(each.key_points)
            ],
        )

    @writes
    def delete(
        self,
        tx: Tx,
        scope: Scope,
        item_id: str,
        *,
        expected_revision: int | None = None,
        permanent: bool = False,
    ) -> None:
        """Move an item to the trash, or only take it out of the scope's folders if it lies in
        others too. `permanent`: delete it for good."""
        item = item_queries.find_at(tx, scope, item_id, expected_revision)
        if scope.folders is None or all(
            map(scope.folders.issuperset, _folders_with_notes(tx, item))
        ):
            moves.delete_items(tx, self._index, scope, [item.id], permanent=permanent)
        else:
            self._unfile(tx, item, item.folders, scope.actor, log.MOVED)
            key = contents.detach_key(tx, item.library_id, item.content_id, private=True)
            forgotten = captures.forget_for_tokens_without_access(tx, item.library_id, item.id)
            if not permanent:
                moves.keep_for_scope(tx, scope, item, key, forgotten)

    @writes
    def restore(self, tx: Tx, scope: Scope, ref: ItemRef, since: datetime) -> Item:
        """Take an item out of the trash. NotFound: it was not in scope when it was deleted, or
        that was before `since`."""
        entry = entries.find_entry(tx, scope, ref, since)
        if entries.is_whole(tx, entry):
            moves.put_back(tx, self._index, scope, entry.id)
        else:
            item = item_queries.find(tx, Scope(scope.library_id), ItemRef(id=entry.id), lock=True)
            left = moves.leave_for_scope(tx, scope.library_id, item.id, scope.folders)
            self._file(tx, item, [folder_id for folder_id, _ in left], scope.actor, log.MOVED)
            moves.put_back_for_scope(tx, self._index, item, [kept for _, kept in left], scope.actor)
        journal.note(tx, scope, Did.RESTORED, entry.id)
        return item_queries.find(tx, scope, ItemRef(id=entry.id))

    @writes
    def file(
        self, tx: Tx, scope: Scope, ref: ItemRef, folder_ids: Sequence[str], *, token_id: str | None
    ) -> list[str]:
        """Put an item into folders; return those it was not in.

        A token may also file what it added and nobody has filed yet.
        """
        item = item_queries.find_own(tx, scope, ref, token_id, lock=True)
        item_folders.require_folders(tx, item.library_id, set(folder_ids))
        added = self._file(tx, item, folder_ids, scope.actor)
        if added:
            journal.note(tx, scope, Did.FILED, item.id, after={"folders": added})
        return added

    def _file(
        self,
        tx: Tx,
        item: Item,
        folder_ids: Sequence[str],
        actor: str | None,
        kind: str = EventType.CHANGED,
    ) -> list[str]:
        held = item_folders.folders_of(tx, Scope(item.library_id), [item.id]).get(item.id, ())
        added = [folder_id for folder_id in dict.fromkeys(folder_ids) if folder_id not in held]
        for item_id in item_folders.with_notes(tx, item.library_id, [item.id]) if added else ():
            filed = tx.column(
                """INSERT INTO folder_items (library_id, folder_id, item_id)
                   SELECT library_id, id, :item_id FROM folders
                   WHERE library_id = :library_id AND id IN :added ON CONFLICT DO NOTHING
                   RETURNING folder_id""",
                library_id=item.library_id,
                item_id=item_id,
                added=added,
            )
            self._index.refile(tx, item.library_id, item_id, added=filed)
            log.record(tx, kind, item.library_id, [item_id], actor)
        moves.leave_for_scope(tx, item.library_id, item.id, added)
        return added

    @writes
    def unfile(self, tx: Tx, scope: Scope, ref: ItemRef, folder_id: str) -> None:
        item = item_queries.find(tx, scope, ref, lock=True)
        if folder_id not in item.folders:
            raise NotFound("The item is not in that folder")
        self._unfile(tx, item, [folder_id], scope.actor)
        journal.note(tx, scope, Did.UNFILED, item.id, before={"folders": [folder_id]})

    def _unfile(
        self,
        tx: Tx,
        item: Item,
        folder_ids: Sequence[str],
        actor: str | None,
        kind: str = EventType.CHANGED,
    ) -> None:
        for item_id in item_folders.with_notes(tx, item.library_id, [item.id]):
            left = tx.column(
                """DELETE FROM folder_items WHERE library_id = :library_id
                   AND item_id = :item_id AND folder_id IN :folder_ids RETURNING folder_id""",
                library_id=item.library_id,
                item_id=item_id,
                folder_ids=list(folder_ids),
            )
            self._index.refile(tx, item.library_id, item_id, left=left)
            log.record_unfiled(tx, item.library_id, item_id, folder_ids, actor, kind=kind)


class QueuedItems(Items):
    """Items whose source is still to be read: each gets its text, or gives way to a duplicate."""

    @writes
    def complete_ingest(
        self,
        tx: Tx,
        scope: Scope,
        item: Item,
        content: Content,
        changes: dict[str, Any],
        *,
        sections: Sequence[Section],
        stamp: str,
        jobs: Sequence[Job],
    ) -> Item:
        """Give an unread item the text of its source.

        If the scope holds that text already, return the item that has it: it takes the place and
        the ids of the unread one, unless somebody has changed or related that. NotFound: the item
        was deleted. Conflict: it was changed, or the key has another text by now.
        """
        before = item_queries.find_at(tx, Scope(item.library_id), item.id, item.revision)
        if before.ingest_status is None:
            return before  # another worker was first
        content_id, same = contents.put_content(tx, item.library_id, content, now())
        read = replace(before, title=changes["title"], ingest_status=None)
        existing = duplicates.find_same(tx, scope, replace(content, id=content_id), read)
        if existing is not None and _is_untouched(tx, before):
            contents.drop_unused_content(tx, item.library_id, content_id)
            return self._merge(tx, before, existing)
        if not same:
            raise contents.source_conflict()
        done = {"content_id": content_id, "ingest_status": None, "status_reason": None}
        after = self._update(
            tx, Scope(item.library_id), item.id, changes | done, None, sections, stamp, jobs
        )
        contents.drop_unused_content(tx, item.library_id, before.content_id)
        return after

    def _merge(self, tx: Tx, queued: Item, there: Item) -> Item:
        """Replace an unread item by the one that has its text; its ids lead there from now on."""
        self._file(tx, there, queued.folders, None)
        whole = Scope(queued.library_id)
        moves.delete_items(tx, self._index, whole, [queued.id], permanent=True)
        log.record(tx, EventType.READY, there.library_id, [there.id], None)
        tx.insert(
            "aliases",
            "library_id, id, public_id, item_id",
            [(queued.library_id, queued.id, queued.public_id, there.id)],
        )
        return there


def _folders_with_notes(tx: Tx, item: Item) -> Iterable[tuple[str, ...]]:
    """Return the folders of an item and of each of its notes."""
    ids = item_folders.with_notes(tx, item.library_id, [item.id])
    return item_folders.folders_of(tx, Scope(item.library_id), ids).values()


def _is_untouched(tx: Tx, item: Item) -> bool:
    """Return whether nobody has changed or related an item."""
    return (
        item.revision == 1
        and tx.one(
            """SELECT 1 FROM relations
               WHERE library_id = :library_id AND (from_id = :id OR to_id = :id) LIMIT 1""",
            library_id=item.library_id,
            id=item.id,
        )
        is None
    )
