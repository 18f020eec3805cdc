"""Search within a scope: hybrid search by keyword and vector, blended; entities, each with its best
passage; projects by id, title or repository."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

import numpy as np

from commonplace.core.people.authorization import READ, Service, verb
from commonplace.core.search import time_boost
from commonplace.core.search.corrections import Found, newest_first, with_standing
from commonplace.core.search.relevance import is_weak
from commonplace.core.search.scoring import blend
from commonplace.core.search.similarity import DEFAULT, Scale, SimilarityScale
from commonplace.errors import EmbeddingFailed, Invalid, NotFound
from commonplace.model import (
    EMBED,
    WRONG,
    Caller,
    EntityType,
    Hit,
    Item,
    ItemFilter,
    ItemRef,
    Mode,
    Passage,
    Scope,
    Scored,
    SearchResult,
    now,
)
from commonplace.model.workflow import parse_statuses, with_article
from commonplace.ports import Embedder, Matches, Question
from commonplace.settings import Settings
from commonplace.store import Store
from commonplace.store.jobs import COUNTED
from commonplace.text import query_terms
from commonplace.text.time_expressions import Times, find_times

CANDIDATES = 200
SPARE = 4
EMBEDDED_CHARACTERS = 2_000
RECHECK_SECONDS = 2.0
QUICK_SECONDS = 0.05

NOTHING = Matches(np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, np.float32))

OTHER_EMBEDDER = (
    "Vectors are from another embedder. "
    "Results are by keyword only until you run `commonplace reindex`."
)


@dataclass(eq=False)
class Search(Service):
    _embedder: Embedder
    _settings: Settings
    _similarity: SimilarityScale
    clock: Callable[[], datetime] = now
    _known: dict[Scope, tuple[float, str | None]] = field(default_factory=dict, init=False)

    async def warm(self) -> None:
        """Load the model and the first person's index, so that the first search is fast."""
        vector = await self._embedder.query("ready")
        await self._similarity.scale()
        if person := await self._store.people.first():
            await self._store.sections.matches(
                Scope(person.id), Question(None, vector, self._embedder.stamp, 1)
            )

    @verb(READ)
    async def search(
        self,
        caller: Caller,
        query: str,
        *,
        limit: int = 8,
        mode: Mode = Mode.HYBRID,
        where: ItemFilter | None = None,
    ) -> SearchResult:
        """Search within a scope. `where` limits the items. Items marked wrong are only found by
        that status."""
        return await self.find(caller, query, limit, mode, where or ItemFilter())

    async def find(
        self, caller: Caller, query: str, limit: int, mode: Mode, where: ItemFilter
    ) -> SearchResult:
        """Search for a caller who is authorized already."""
        if WRONG not in where.statuses:
            where = replace(where, not_statuses=(*where.not_statuses, WRONG))
        times = find_times(query, self.clock())
        question, scale, degraded = await self._question(times.rest or query, mode, strict=True)
        # As of an earlier time, half may have been superseded.
        limit_loaded = limit if where.as_of is None else 2 * limit
        most = limit_loaded + SPARE  # another process may delete some before they are loaded
        if times != Times():
            matches, ranked = await self._ranked(caller, question, scale, mode, times, where, most)
            found = await self._load(caller, ranked)
        else:

            def choose(these: Matches) -> list[Scored]:
                nonlocal matches
                matches = these
                return self._blend(mode, question, scale, these, most)

            matches = NOTHING
            found = await self._store.sections.search(
                caller.scope, question, choose, limit_loaded, where
            )
        closest = found
        found = await newest_first(self._store, caller.scope, where, found)
        found = with_standing(found, where.as_of or self.clock())
        if question.vector is not None and not matches.complete:
            degraded = await self._degraded(caller.scope)
        known = ~np.isnan(matches.cosines)
        cosines = dict(
            zip(matches.ids[known].tolist(), matches.cosines[known].tolist(), strict=True)
        )

        def hits_of(found: Found) -> tuple[Hit, ...]:
            return tuple(
                Hit(n + 1, score, p, cosines.get(p.section_id))
                for n, (score, p) in enumerate(found[:limit])
            )

        hits = hits_of(found)
        # A replacement answers what the memory answered whose place it took.
        weak = not hits or is_weak(times.rest or query, hits_of(closest), scale)
        return SearchResult(query, mode, hits, degraded, weak)

    async def _load(self, caller: Caller, ranked: Sequence[Scored]) -> list[tuple[float, Passage]]:
        found = {
            passage.section_id: passage
            for passage in await self._store.sections.passages(
                caller.scope, [one.section_id for one in ranked]
            )
        }
        return [(one.score, found[one.section_id]) for one in ranked if one.section_id in found]

    async def rank(
        self,
        caller: Caller,
        query: str,
        mode: Mode,
        limit: int | None = None,
        where: ItemFilter | None = None,
    ) -> tuple[list[Scored], str | None]:
        """Return scored sections, best first, and why the answer may be incomplete."""
        times = find_times(query, self.clock())
        question, scale, degraded = await self._question(times.rest or query, mode)
        matches, ranked = await self._ranked(caller, question, scale, mode, times, where, limit)
        if question.vector is not None and not matches.complete:
            degraded = await self._degraded(caller.scope)
        return ranked, degraded

    async def _ranked(
        self,
        caller: Caller,
        question: Question,
        scale: Scale,
        mode: Mode,
        times: Times,
        where: ItemFilter | None,
        limit: int | None = None,
    ) -> tuple[Matches, list[Scored]]:
        """Return what was found, and its best sections, best first."""
        find = partial(self._store.sections.matches, caller.scope, question)
        found = await find(where)
        if times == Times():
            return found, self._blend(mode, question, scale, found, limit)
        # What is from the time that the question names may not be among the best of all times.
        inside = [await find(each) for each in time_boost.filters(where or ItemFilter(), times)]
        found = time_boost.join([found, *inside])
        scored = self._blend(mode, question, scale, found)
        dated = await self._store.sections.dates(caller.scope, found.ids.tolist())
        return found, time_boost.reorder(scored, dated, times)[:limit]

    def _blend(
        self,
        mode: Mode,
        question: Question,
        scale: Scale,
        found: Matches,
        limit: int | None = None,
    ) -> list[Scored]:
        semantic = self._settings.semantic_weight
        return blend(
            mode if question.vector is not None else Mode.KEYWORD,
            found,
            (semantic, 1 - semantic),
            limit,
            vector=question.vector,
            rescale=scale.to_default,
        )

    async def _question(
        self, query: str, mode: Mode, *, strict: bool = False
    ) -> tuple[Question, Scale, str | None]:
        """Return the query for the index, the scale of cosines with it, and why its meaning is
        left out if it should be there.

        `strict`: fail instead if there is nothing but its meaning.
        """
        vector, scale, degraded = None, DEFAULT, None
        if mode is not Mode.KEYWORD:
            try:
                vector = await self._embedder.query(
                    query_terms.for_embedding(query[:EMBEDDED_CHARACTERS])
                )
                scale = await self._similarity.scale()
            except EmbeddingFailed as error:
                if strict and mode is Mode.SEMANTIC:
                    raise
                degraded = (
                    f"The embedder did not answer ({error.message}). Results are by keyword only."
                )
        semantic = mode is Mode.SEMANTIC and vector is not None
        words = None if semantic else query_terms.parse_query(query)
        return Question(words, vector, self._embedder.stamp, CANDIDATES), scale, degraded

    async def _degraded(self, scope: Scope) -> str | None:
        """Say why sections of the scope lack vectors. Cached for a moment: it changes slowly."""
        at = time.monotonic()
        known = self._known.get(scope)
        if known is None or at > known[0]:
            if len(self._known) > 10_000:
                self._known.clear()
            # Only within the scope: other items' state must not be revealed.
            stale = await self._store.sections.has_other_stamp(self._embedder.stamp, scope)
            said = (
                OTHER_EMBEDDER
                if stale
                else incomplete(*await self._store.jobs.count_open(EMBED, scope))
            )
            # The slower the check, the more rarely it runs.
            slow = max(1.0, (time.monotonic() - at) / QUICK_SECONDS)
            known = self._known[scope] = (at + RECHECK_SECONDS * slow, said)
        return known[1]


def incomplete(items: int, reason: str | None) -> str | None:
    """Say how many items wait for vectors, and why; None if none do."""
    if not items:
        return None
    number = f"{items:,}" if items <= COUNTED else f"more than {COUNTED:,}"
    who, they = ("1 item is", "it is") if items == 1 else (f"{number} items are", "they are")
    why = f"waiting for the embedder ({reason.rstrip('.')})" if reason else "still being embedded"
    return f"Semantic search is incomplete: {who} {why}. Until then {they} found by keyword only."


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
    if not found and (address := _repository(text)):
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

    async def search(self, caller: Caller, query: EntityQuery) -> SearchResult:
        """Return the best hit of each item."""
        found = await self._search.search(
            caller,
            query.text,
            limit=CANDIDATES,
            where=await resolve_filter(self._store, caller.scope, query.where, query.project),
        )
        best: dict[str, Hit] = {}
        for hit in found.hits:
            best.setdefault(hit.passage.item_id, hit)
        return replace(found, hits=tuple(best.values()))
