"""Search: keyword and vector side by side within the scope, blended, best first."""

import asyncio
import time
from dataclasses import replace

from commonplace.core import words
from commonplace.core.access import READ, Access
from commonplace.core.blend import blend
from commonplace.core.embedding import EMBED
from commonplace.core.superseding import newest_first
from commonplace.errors import EmbeddingFailed
from commonplace.model import WRONG, Caller, Found, Hit, ItemFilter, Mode, Passage, Scope, Scored
from commonplace.ports import Embedder, Store, Vector
from commonplace.settings import Settings

CANDIDATES = 200
EMBEDDED_CHARACTERS = 2_000
RECHECK_SECONDS = 2.0

KEYWORDS_ONLY = "Some vectors are still being made: until then those texts are found by their words only."
OTHER_EMBEDDER = "Vectors were made by another embedder: found by words only until `commonplace reindex` has run."


class Search:
    def __init__(self, store: Store, embedder: Embedder, access: Access, settings: Settings) -> None:
        self._store = store
        self._embedder = embedder
        self._access = access
        self._weights = (settings.semantic_weight, settings.keyword_weight)
        self._waiting: dict[Scope, tuple[float, bool]] = {}
        self._stale: tuple[float, bool] = (0.0, False)

    async def search(self, caller: Caller, query: str, *, limit: int = 8, mode: Mode = Mode.HYBRID,
                     where: ItemFilter | None = None) -> Found:
        """`where`: only of these items. What was marked as wrong is found by asking for that status only."""
        await self._access.admit(caller, READ, "search")
        where = _true(where or ItemFilter())
        # A few more than asked for: something may be deleted between finding and loading it.
        ranked, degraded = await self.rank(caller, query, mode, limit + 4, where)
        found = await newest_first(self._store, caller.scope, where, await self._load(caller, ranked))
        return Found(query, mode, tuple(Hit(n + 1, score, p) for n, (score, p) in enumerate(found[:limit])), degraded)

    async def rank(self, caller: Caller, query: str, mode: Mode, limit: int | None = None,
                   where: ItemFilter | None = None) -> tuple[list[Scored], str | None]:
        """Section ids with their scores, best first, and why the answer may be less than it should be."""
        vector, degraded = (None, None) if mode is Mode.KEYWORD else await self._embed(caller, query)
        keyword: list[Scored] = []
        if mode is not Mode.SEMANTIC or vector is None:
            keyword = await self._store.sections.keyword(caller.scope, words.parse(query), CANDIDATES, where)
        if vector is None:
            return blend(Mode.KEYWORD, keyword, [], self._weights, limit), degraded
        semantic = await self._store.sections.nearest(caller.scope, vector, self._embedder.stamp, CANDIDATES,
                                                      also=[found.section_id for found in keyword], where=where)
        return blend(mode, keyword, semantic, self._weights, limit), degraded

    async def _embed(self, caller: Caller, query: str) -> tuple[Vector | None, str | None]:
        try:
            vector, degraded = await asyncio.gather(self._embedder.query(words.spoken(query[:EMBEDDED_CHARACTERS])),
                                                    self._degraded(caller.scope))
        except EmbeddingFailed as error:
            return None, f"The embedder did not answer ({error.message}); found by words only."
        return vector, degraded

    async def _load(self, caller: Caller, ranked: list[Scored]) -> list[tuple[float, Passage]]:
        by_id = {p.section_id: p for p in await self._store.sections.passages(
            caller.scope, [found.section_id for found in ranked])} if ranked else {}
        return [(found.score, by_id[found.section_id]) for found in ranked if found.section_id in by_id]

    async def _degraded(self, scope: Scope) -> str | None:
        """Looked up again after a moment only: it changes slowly and a search should cost one search."""
        at = time.monotonic()
        if at > self._stale[0]:
            stale = await self._store.sections.has_other_stamp(self._embedder.stamp)
            self._stale = (at + (RECHECK_SECONDS if stale else 300), stale)
        if self._stale[1]:
            return OTHER_EMBEDDER
        known = self._waiting.get(scope)
        if known is None or at > known[0]:
            if len(self._waiting) > 10_000:
                self._waiting.clear()
            known = self._waiting[scope] = (at + RECHECK_SECONDS, await self._store.jobs.is_open(scope, EMBED))
        return KEYWORDS_ONLY if known[1] else None


def _true(where: ItemFilter) -> ItemFilter:
    return where if WRONG in where.statuses else replace(where, not_statuses=(*where.not_statuses, WRONG))
