"""Find projects by id, title or repository, and entities by a search: each once, with its best
passage."""

from dataclasses import dataclass, field, replace

from commonplace.core.search.search import CANDIDATES, Search
from commonplace.errors import Invalid, NotFound
from commonplace.model import Caller, EntityType, Hit, Item, ItemFilter, ItemRef, Scope
from commonplace.model.workflow import parse_statuses, with_article
from commonplace.store import Store

MOST = 10_000  # projects that are searched
_ACTIVE = ItemFilter(entity_types=(EntityType.PROJECT,), archived=False)


async def find_project(store: Store, scope: Scope, text: str) -> Item:
    """Return the project with this id, else the active one with this title, whatever its case, or
    this repository_url. Raises Invalid if there is none, or several."""
    text, shown = text.strip(), text.strip()[:100]
    try:
        item = await store.items.get(scope, ItemRef.parse(text))
    except NotFound:
        pass
    else:
        if item.entity_type != EntityType.PROJECT:
            raise Invalid(
                f"`project` must name a project; {shown!r} is {with_article(item.entity_type)}, "
                'not a project. Use explore(types=["project"]) to find projects',
                id=shown,
            )
        return item
    projects, _ = await store.items.list_page(scope, _ACTIVE, limit=MOST, offset=0, count=False)
    found = [each for each in projects if each.title.casefold() == text.casefold()]
    if not found and text:
        address = _repository(text)
        found = [p for p in projects if address == _repository(p.metadata.get("repository_url"))]
    if not found:
        raise Invalid(f"No project {shown!r}.", id=shown)
    if len(found) > 1:
        ids = [each.entity_id for each in found]
        raise Invalid(
            f"There are {len(ids)} projects {shown!r}. Name one by its id: {', '.join(ids)}.",
            ids=ids,
        )
    return found[0]


def _repository(url: object) -> str:
    """Return an address without scheme, `.git` and trailing slash, its host in lower case. Checked,
    because clients can write any metadata."""
    if not isinstance(url, str):
        return ""
    host, slash, path = url.strip().rpartition("://")[2].partition("/")
    return f"{host.lower()}{slash}{path.rstrip('/').removesuffix('.git')}".rstrip("/")


async def resolve_filter(
    store: Store, scope: Scope, where: ItemFilter, project: str | None
) -> ItemFilter:
    """Validate the filter's statuses and look up its project."""
    if project is not None:
        where = replace(where, project_id=(await find_project(store, scope, project)).id)
    return replace(where, statuses=parse_statuses(where.statuses)) if where.statuses else where


@dataclass(frozen=True, slots=True)
class EntityQuery:
    text: str
    project: str | None = None  # its id, title or repository
    where: ItemFilter = field(default_factory=ItemFilter)


@dataclass(eq=False)
class EntitySearch:
    _store: Store
    _search: Search

    async def search(self, caller: Caller, query: EntityQuery) -> tuple[list[Hit], str | None]:
        """Return hits, best first, and why the answer may be incomplete."""
        found = await self._search.search(
            caller,
            query.text,
            limit=CANDIDATES,
            where=await resolve_filter(self._store, caller.scope, query.where, query.project),
        )
        best: dict[str, Hit] = {}
        for hit in found.hits:
            best.setdefault(hit.passage.item_id, hit)
        return list(best.values()), found.degraded
