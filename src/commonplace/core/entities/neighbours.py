"""How closely related items are, compared with what is usual around them.

A raw cosine says little: in a library about one subject all items are similar, and long overviews
are similar to everything. So a pair counts by how far it stands out from the nearest neighbours of
both ends (CSLS, Conneau et al. 2018): twice its similarity, less both means. Similarity by meaning
and by words are added. Only items in scope are compared, so that others influence no score.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commonplace.core.search.similarity import SimilarityScale
from commonplace.model import SUPERSEDED, WRONG, ItemFilter, Scope
from commonplace.ports import Embedder, Profile
from commonplace.store import Store

# Measured on the development library (docs/lab/quality.md).
BAR = 0.1  # the score from which items count as related
CLEAR = 1.0  # the score of near duplicates, shown as 1
SHOWN_BAR = 0.75  # what the bar is shown as
POOL = 150  # nearest items compared with each other; bounds the work in a library of any size
USUAL = 10  # neighbours that say what is usual around an item
# What is usual at least, also where a small library has fewer neighbours: a share of the cosine of
# related texts, and a cosine of words.
USUAL_MEANING, USUAL_WORDS = 0.86, 0.16
LEAST_MEANING = 0.97  # of the cosine of related texts: below it, words alone make no link
RELATED_COSINE = 0.465  # the cosine of related texts that the bar was measured with
UNSEEN = 50  # items imagined beside the real ones, so that words shared by a few count as rare

Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Neighbourhood:
    """An item, which comes first, and those nearest to it, with the scores of all pairs."""

    items: Sequence[Profile]
    scores: Matrix  # -inf: not related

    def best(self, place: int, among: Sequence[int], most: int) -> list[int]:
        """Return the places of the closest related items, best first."""
        row = self.scores[place]
        found = [other for other in among if other != place and row[other] >= BAR]
        return sorted(found, key=lambda other: (-row[other], self.items[other].item_id))[:most]

    def weight(self, place: int, other: int = 0) -> float:
        """Return the score as it is shown: the bar is .75."""
        above = (float(self.scores[place, other]) - BAR) / (CLEAR - BAR)
        return round(SHOWN_BAR + (1 - SHOWN_BAR) * min(1.0, above), 4)


@dataclass(eq=False)
class Neighbours:
    _store: Store
    _embedder: Embedder
    _similarity: SimilarityScale

    async def of_item(
        self, scope: Scope, item_id: str, others: Sequence[Profile] = ()
    ) -> Neighbourhood | None:
        """Return the neighbourhood of an item, which may itself be out of scope; None if it has no
        vectors."""
        own = await self._store.sections.profiles(
            Scope(scope.library_id), [item_id], self._embedder.stamp
        )
        return await self.around(scope, own[0], others) if own else None

    async def around(
        self, scope: Scope, profile: Profile, others: Sequence[Profile] = ()
    ) -> Neighbourhood:
        """`others`: profiles from elsewhere, of which the nearest take part."""
        others = sorted(others, key=lambda one: -float(one.mean @ profile.mean))[:POOL]
        stamp = self._embedder.stamp
        near = await self._store.sections.nearest_items(
            scope,
            (profile.head, profile.mean),
            stamp,
            POOL,
            where=ItemFilter(not_statuses=(WRONG, SUPERSEDED)),
        )
        known = {profile.item_id, *(other.item_id for other in others)}
        found = await self._store.sections.profiles(
            scope, [item_id for item_id in near if item_id not in known], stamp
        )
        items = [profile, *found, *others]
        _, _, related, *_ = (await self._similarity.scale()).cosines
        return Neighbourhood(items, await asyncio.to_thread(_scores, items, related))


def _scores(items: Sequence[Profile], related: float) -> Matrix:
    heads, means = (np.array([getattr(one, name) for one in items]) for name in ("head", "mean"))
    meaning = (heads @ heads.T + means @ means.T) / 2
    scores = _standing_out(meaning, USUAL_MEANING * related) * (RELATED_COSINE / related)
    worded = np.array([len(one.terms) > 0 for one in items])
    by_words = _standing_out(_word_cosines(items), USUAL_WORDS)
    scores += np.where(worded[:, None] & worded, by_words, 0)
    scores[meaning < LEAST_MEANING * related] = -np.inf
    return scores


def _standing_out(similarity: Matrix, least: float) -> Matrix:
    """Return twice the similarity of each pair, less what is usual around both ends."""
    others = similarity.copy()
    np.fill_diagonal(others, least)
    nearest = np.full((len(others), USUAL), least, np.float32)
    most = min(USUAL, len(others))
    nearest[:, :most] = np.maximum(np.sort(others, axis=1)[:, -most:], least)
    usual = nearest.mean(axis=1)
    standing_out: Matrix = 2 * similarity - usual[:, None] - usual
    return standing_out


def _word_cosines(items: Sequence[Profile]) -> Matrix:
    """Return the cosines of the items' sets of words, weighted by rarity among these items."""
    lengths = [len(one.terms) for one in items]
    _, columns, counts = np.unique(
        np.concatenate([one.terms for one in items]), return_inverse=True, return_counts=True
    )
    size = len(items) + UNSEEN
    weights = np.sqrt(np.log1p((size - counts + 0.5) / (counts + 0.5))).astype(np.float32)
    rows = np.repeat(np.arange(len(items)), lengths)
    norms = np.sqrt(np.bincount(rows, weights[columns] ** 2, minlength=len(items)))
    # Words of a single item only count in its length.
    shared = counts > 1
    kept = shared[columns]
    table = np.zeros((len(items), int(shared.sum())), np.float32)
    table[rows[kept], (np.cumsum(shared) - 1)[columns[kept]]] = weights[columns[kept]]
    table /= np.maximum(norms, 1e-9)[:, None]
    cosines: Matrix = table @ table.T
    return cosines
