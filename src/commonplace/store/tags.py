"""The tags of a library: how many items have each, and other tags in their place."""

from collections.abc import Collection
from typing import Any

from commonplace.database import Tx, reads, scope_sql, writes
from commonplace.model import ItemFilter, Scope
from commonplace.model.tags import TagCount, replace_tags
from commonplace.store import item_queries
from commonplace.store.items import Items

_LISTS = {
    "sqlite": "json_each(i.tags) AS t",
    "postgres": "jsonb_array_elements_text(i.tags::jsonb) AS t(value)",
}


class Tags(Items):
    @reads
    def list_tags(self, tx: Tx, scope: Scope, counted: ItemFilter) -> list[TagCount]:
        """Return all tags in scope by name, with how many of the counted items have each."""
        return sorted(
            (TagCount(tag, int(count)) for tag, count in tx.recall(_counts, scope, counted)),
            key=lambda each: (each.name.casefold(), each.name),
        )

    @writes
    def replace_tags(
        self, tx: Tx, scope: Scope, tags: Collection[str], by: str | None, *, limit: int
    ) -> int:
        """Put one tag, or none, in the place of these, and return how many items had them: at most
        `limit`, so that other writers get their turn."""
        found = tx.column(
            f"""SELECT i.id FROM items AS i WHERE {scope_sql.visible(scope)}
                AND EXISTS (SELECT 1 FROM {_LISTS[tx.engine]} WHERE t.value IN :tags)
                ORDER BY i.id LIMIT :limit""",
            tags=sorted(tags),
            limit=limit,
            **scope_sql.within(scope),
        )
        for item_id in found:
            item = item_queries.find_by_id(tx, scope, item_id)
            if item is not None:
                self._update(tx, scope, item.id, replace_tags(item, tags, by))
        return len(found)


def _counts(tx: Tx, scope: Scope, counted: ItemFilter) -> list[Any]:
    matching, values = scope_sql.matching(counted)
    return tx.tuples(
        f"""SELECT t.value, sum(CASE WHEN {matching} THEN 1 ELSE 0 END)
            FROM items AS i CROSS JOIN {_LISTS[tx.engine]}
            WHERE {scope_sql.visible(scope)} GROUP BY t.value""",
        **scope_sql.within(scope),
        **values,
    )
