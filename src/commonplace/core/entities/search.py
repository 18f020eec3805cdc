"""Entity search: each entity appears once, with its best passage."""

from dataclasses import dataclass, field

from commonplace.core.entities.entities import Entities
from commonplace.core.search.search import CANDIDATES, Search
from commonplace.model import Caller, Hit, ItemFilter


@dataclass(frozen=True, slots=True)
class EntityQuery:
    text: str
    project: str | None = None  # its id, title or repository
    where: ItemFilter = field(default_factory=ItemFilter)


@dataclass(eq=False)
class EntitySearch:
    _search: Search
    _entities: Entities

    async def search(self, caller: Caller, query: EntityQuery) -> tuple[list[Hit], str | None]:
        """Return hits, best first, and why the answer may be incomplete."""
        found = await self._search.search(
            caller,
            query.text,
            limit=CANDIDATES,
            where=await self._entities.resolve_filter(caller, query.where, query.project),
        )
        best: dict[str, Hit] = {}
        for hit in found.hits:
            best.setdefault(hit.passage.item_id, hit)
        return list(best.values()), found.degraded
