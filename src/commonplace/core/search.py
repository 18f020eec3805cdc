"""Search: keyword and vector side by side within the scope, blended, best first."""

import time
from dataclasses import replace

from commonplace.core import words
from commonplace.core.access import READ, Access
from commonplace.core.blend import blend
from commonplace.core.embedding import EMBED
from commonplace.core.superseding import newest_first
from commonplace.errors import EmbeddingFailed
from commonplace.model import WRONG, Caller, Found, Hit, ItemFilter, Mode, Scope, Scored
from commonplace.ports import Embedder, Matches, Question, Store, Vector
from commonplace.settings import Settings

CANDIDATES = 200
SPARE = 4
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
        self._stale: dict[Scope, tuple[float, bool]] = {}

    async def warm(self) -> None:
        """Read what the first question after a start would wait for: the model, and the first person's library."""
        vector = await self._embedder.query("ready")
        for person in (await self._store.people.all())[:1]:
            await self._store.sections.matches(Scope(person.id), Question(None, vector, self._embedder.stamp, 1))

    async def search(self, caller: Caller, query: str, *, limit: int = 8, mode: Mode = Mode.HYBRID,
                     where: ItemFilter | None = None) -> Found:
        """`where`: only of these items. What was marked as wrong is found by asking for that status only."""
        await self._access.admit(caller, READ, "search")
        where = _true(where or ItemFilter())
        question, degraded = await self._question(caller, query, mode)
        # A few more than asked for: what another process is about to delete may be gone when it is loaded.
        found = await self._store.sections.search(
            caller.scope, question, lambda matches: self._blend(mode, question, matches, limit + SPARE), limit, where)
        found = await newest_first(self._store, caller.scope, where, found)
        return Found(query, mode, tuple(Hit(n + 1, score, p) for n, (score, p) in enumerate(found[:limit])), degraded)

    async def rank(self, caller: Caller, query: str, mode: Mode, limit: int | None = None,
                   where: ItemFilter | None = None) -> tuple[list[Scored], str | None]:
        """The best `limit` sections, or all, with their scores, and why the answer may be less than it should be."""
        question, degraded = await self._question(caller, query, mode)
        found = await self._store.sections.matches(caller.scope, question, where)
        return self._blend(mode, question, found, limit), degraded

    def _blend(self, mode: Mode, question: Question, found: Matches, limit: int | None = None) -> list[Scored]:
        return blend(mode if question.vector is not None else Mode.KEYWORD, found, self._weights, limit)

    async def _question(self, caller: Caller, query: str, mode: Mode) -> tuple[Question, str | None]:
        vector, degraded = (None, None) if mode is Mode.KEYWORD else await self._embed(caller, query)
        asked = None if mode is Mode.SEMANTIC and vector is not None else words.parse(query)
        return Question(asked, vector, self._embedder.stamp, CANDIDATES), degraded

    async def _embed(self, caller: Caller, query: str) -> tuple[Vector | None, str | None]:
        try:
            vector = await self._embedder.query(words.spoken(query[:EMBEDDED_CHARACTERS]))
        except EmbeddingFailed as error:
            return None, f"The embedder did not answer ({error.message}); found by words only."
        return vector, await self._degraded(caller.scope)

    async def _degraded(self, scope: Scope) -> str | None:
        """Looked up again after a moment only: it changes slowly and a search should cost one search."""
        at = time.monotonic()
        if len(self._waiting) > 10_000:
            self._waiting.clear()
            self._stale.clear()
        until, stale = self._stale.get(scope, (0.0, False))
        if at > until:
            stale = await self._store.sections.has_other_stamp(self._embedder.stamp, scope)
            self._stale[scope] = (at + (RECHECK_SECONDS if stale else 300), stale)
        if stale:
            return OTHER_EMBEDDER
        known = self._waiting.get(scope)
        if known is None or at > known[0]:
            known = self._waiting[scope] = (at + RECHECK_SECONDS, await self._store.jobs.is_open(scope, EMBED))
        return KEYWORDS_ONLY if known[1] else None


def _true(where: ItemFilter) -> ItemFilter:
    return where if WRONG in where.statuses else replace(where, not_statuses=(*where.not_statuses, WRONG))
