"""Hybrid search: keyword and vector search within a scope, blended, best first."""

import time
from dataclasses import replace

from commonplace.core.people.authorization import READ, Access, verb
from commonplace.core.search.hybrid_score import blend
from commonplace.core.search.superseded import newest_first
from commonplace.errors import EmbeddingFailed
from commonplace.model import (
    EMBED,
    WRONG,
    Caller,
    Hit,
    ItemFilter,
    Mode,
    Scope,
    Scored,
    SearchResult,
)
from commonplace.ports import Embedder, Matches, Question
from commonplace.settings import Settings
from commonplace.store import Store
from commonplace.store.jobs import COUNTED
from commonplace.text import query_terms

CANDIDATES = 200
SPARE = 4
EMBEDDED_CHARACTERS = 2_000
RECHECK_SECONDS = 2.0
QUICK_SECONDS = 0.05

OTHER_EMBEDDER = (
    "Vectors are from another embedder. "
    "Results are by keyword only until you run `commonplace reindex`."
)


class Search:
    def __init__(
        self, store: Store, embedder: Embedder, access: Access, settings: Settings
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._access = access
        self._weights = (settings.semantic_weight, 1 - settings.semantic_weight)
        self._known: dict[Scope, tuple[float, str | None]] = {}
        self._stale: tuple[float, bool] = (0.0, False)

    async def warm(self) -> None:
        """Load the model and the first person's index, so that the first search is fast."""
        vector = await self._embedder.query("ready")
        for person in (await self._store.people.all())[:1]:
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
        where = _true(where or ItemFilter())
        question, degraded = await self._question(query, mode)
        complete = True

        def choose(matches: Matches) -> list[Scored]:
            nonlocal complete
            complete = matches.complete
            # A few more than asked for: another process may delete some before they are loaded.
            return self._blend(mode, question, matches, limit + SPARE)

        found = await self._store.sections.search(caller.scope, question, choose, limit, where)
        found = await newest_first(self._store, caller.scope, where, found)
        if question.vector is not None and not complete:
            degraded = await self._degraded(caller.scope)
        return SearchResult(
            query,
            mode,
            tuple(Hit(n + 1, score, p) for n, (score, p) in enumerate(found[:limit])),
            degraded,
        )

    async def rank(
        self,
        caller: Caller,
        query: str,
        mode: Mode,
        limit: int | None = None,
        where: ItemFilter | None = None,
    ) -> tuple[list[Scored], str | None]:
        """Return scored sections, best first, and why the answer may be incomplete."""
        question, degraded = await self._question(query, mode)
        found = await self._store.sections.matches(caller.scope, question, where)
        if question.vector is not None and not found.complete:
            degraded = await self._degraded(caller.scope)
        return self._blend(mode, question, found, limit), degraded

    def _blend(
        self, mode: Mode, question: Question, found: Matches, limit: int | None = None
    ) -> list[Scored]:
        return blend(
            mode if question.vector is not None else Mode.KEYWORD, found, self._weights, limit
        )

    async def _question(self, query: str, mode: Mode) -> tuple[Question, str | None]:
        """Return the query for the index, and why its meaning is left out if it should be there."""
        vector, degraded = None, None
        if mode is not Mode.KEYWORD:
            try:
                vector = await self._embedder.query(
                    query_terms.for_embedding(query[:EMBEDDED_CHARACTERS])
                )
            except EmbeddingFailed as error:
                degraded = (
                    f"The embedder did not answer ({error.message}). Results are by keyword only."
                )
        semantic = mode is Mode.SEMANTIC and vector is not None
        words = None if semantic else query_terms.parse_query(query)
        return Question(words, vector, self._embedder.stamp, CANDIDATES), degraded

    async def _degraded(self, scope: Scope) -> str | None:
        """Say why sections of the scope lack vectors. Cached for a moment: it changes slowly."""
        at = time.monotonic()
        if at > self._stale[0]:
            stale = await self._store.sections.has_other_stamp(self._embedder.stamp)
            self._stale = (at + (RECHECK_SECONDS if stale else 300), stale)
        known = self._known.get(scope)
        if known is None or at > known[0]:
            if len(self._known) > 10_000:
                self._known.clear()
            # Only within the scope: other items' state must not be revealed.
            stale = self._stale[1] and await self._store.sections.has_other_stamp(
                self._embedder.stamp, scope
            )
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


def _true(where: ItemFilter) -> ItemFilter:
    return (
        where
        if WRONG in where.statuses
        else replace(where, not_statuses=(*where.not_statuses, WRONG))
    )
