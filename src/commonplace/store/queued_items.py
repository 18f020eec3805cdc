"""Items whose source is still to be read: each gets its text, or gives way to a duplicate."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from commonplace.database.transaction import Tx
from commonplace.database.unit_of_work import writes
from commonplace.model import Content, Item, Job, Scope, Section, now
from commonplace.store.contents import drop_unused_content, put_content, source_conflict
from commonplace.store.duplicates import find_same
from commonplace.store.item_queries import find_at
from commonplace.store.items import Items, delete_items


class QueuedItems(Items):
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
        before = find_at(tx, Scope(item.library_id), item.id, item.revision)
        if before.ingest_status is None:
            return before  # another worker was first
        content_id, same = put_content(tx, content, now())
        read = replace(before, title=changes["title"], ingest_status=None)
        existing = find_same(tx, scope, replace(content, id=content_id), read)
        if existing is not None and _is_untouched(tx, before):
            drop_unused_content(tx, content_id)
            return self._merge(tx, before, existing)
        if not same:
            raise source_conflict()
        done = {"content_id": content_id, "ingest_status": None, "status_reason": None}
        after = self._update(
            tx, Scope(item.library_id), item.id, changes | done, None, sections, stamp, jobs
        )
        drop_unused_content(tx, before.content_id)
        return after

    def _merge(self, tx: Tx, queued: Item, there: Item) -> Item:
        """Replace an unread item by the one that has its text; its ids lead there from now on."""
        self._file(tx, there, queued.folders)
        delete_items(tx, self._index, queued.library_id, [queued.id])
        tx.insert(
            "aliases",
            "library_id, id, public_id, item_id",
            [(queued.library_id, queued.id, queued.public_id, there.id)],
        )
        return there


def _is_untouched(tx: Tx, item: Item) -> bool:
    """Return whether nobody has changed, related or asked to delete an item."""
    return (
        item.revision == 1
        and tx.one(
            """SELECT 1 FROM relations
               WHERE library_id = :library_id AND (from_id = :id OR to_id = :id)
               UNION ALL SELECT 1
               FROM jobs
               WHERE library_id = :library_id AND item_id = :id AND kind = 'remove' LIMIT 1""",
            library_id=item.library_id,
            id=item.id,
        )
        is None
    )
