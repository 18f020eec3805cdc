"""Items whose source is still to be read: each becomes what its source said, or the item that has that already."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from commonplace.database.transaction import Tx
from commonplace.database.unit_of_work import writes
from commonplace.errors import Conflict
from commonplace.model import Content, Item, Job, Scope, Section, now
from commonplace.store.contents import drop_unused_content, put_content
from commonplace.store.duplicates import find_same
from commonplace.store.items import Items, delete_items, find_at


class Unread(Items):
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
        """Give an unread item what its source said. Where the scope already holds that, the answer is the item that is there:
        it takes the unread one's place, ids included, unless somebody has changed that one or related something to it.
        NotFound: it was deleted meanwhile. Conflict: it was changed, or the key stands for something else by now."""

        before = find_at(tx, Scope(item.library_id), item.id, item.revision)
        if before.ingest_status is None:
            return before  # another worker was first
        content_id, same = put_content(tx, content, now())
        read = replace(before, title=changes["title"], ingest_status=None)
        there = find_same(tx, scope, replace(content, id=content_id), read)
        if there is not None and _is_untouched(tx, before):
            drop_unused_content(tx, content_id)
            return self._merge(tx, before, there)
        if not same:
            raise Conflict(
                "The source was read by somebody else at the same moment, and said something else to them."
            )
        after = self._update(
            tx,
            Scope(item.library_id),
            item.id,
            {**changes, "content_id": content_id, "ingest_status": None, "status_reason": None},
            None,
            sections,
            stamp,
            jobs,
        )
        drop_unused_content(tx, before.content_id)
        return after

    def _merge(self, tx: Tx, queued: Item, there: Item) -> Item:
        """Put the item that is there in the place of a queued one, whose ids lead to it from now on."""
        self._file(tx, there, queued.folders)
        delete_items(tx, self._index, queued.library_id, [queued.id])
        tx.insert(
            "aliases",
            "library_id, id, public_id, item_id",
            [(queued.library_id, queued.id, queued.public_id, there.id)],
        )
        return there


def _is_untouched(tx: Tx, item: Item) -> bool:
    """Whether nobody has changed an item, related anything to it or asked to delete it since it was added."""
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
