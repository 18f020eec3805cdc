"""The map of a library, cached until the library changes."""

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from commonplace.core.people.authorization import READ, Service, verb
from commonplace.model import ACTIVE, Caller, Scope
from commonplace.ports import Embedder

if TYPE_CHECKING:
    from commonplace.core.map.layout import Chart

MAPPED = 5_000  # the most items in one map
KEPT = 16  # cached maps, by scope


@dataclass(eq=False)
class LibraryMap(Service):
    _embedder: Embedder
    _charts: "dict[Scope, tuple[str, Chart]]" = field(default_factory=dict)
    _making: WeakValueDictionary[Scope, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    @verb(READ, "explore")
    async def chart(self, caller: Caller) -> "Chart":
        """Map the newest MAPPED items that the caller sees, by links and similarity, without notes
        on them."""
        scope = caller.scope
        async with self._making.setdefault(scope, asyncio.Lock()):
            state = await self._store.figures.state(scope.library_id)
            known = self._charts.pop(scope, None)
            if known is None or known[0] != state:
                known = state, await self._make(scope)
            self._charts[scope] = known
            while len(self._charts) > KEPT:
                del self._charts[next(iter(self._charts))]
            return known[1]

    async def _make(self, scope: Scope) -> "Chart":
        # igraph is slow to import, and most commands do not need it
        from commonplace.core.map.layout import lay_out

        items, total = await self._store.items.list_page(
            scope, replace(ACTIVE, notes=False), limit=MAPPED, offset=0
        )
        ids = [item.id for item in items]
        relations = await self._store.relations.of_items(scope, ids) if ids else []
        known, vectors = await self._store.sections.first_vectors(scope, ids, self._embedder.stamp)
        return await asyncio.to_thread(lay_out, items, relations, known, vectors, total)
