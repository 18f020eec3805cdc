"""Scores of sections, from their keyword scores and their cosines."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from commonplace.model import Mode, Scored
from commonplace.ports import Matches, Vector

Scores = NDArray[np.float32]

# Feedback: the question's vector moves towards those of the best sections, weighted by a softmax.
RESCORED, TEACHERS = 50, 10  # sections
SHARPNESS, PULL = 0.02, 0.4


def blend(
    mode: Mode,
    found: Matches,
    weights: tuple[float, float],
    limit: int | None = None,
    *,
    vector: Vector | None = None,
    rescale: Callable[[Scores], Scores] = lambda cosines: cosines,
) -> list[Scored]:
    """Return the best `limit` sections, or all. Scores are 0 to 1, best first, ties ordered by id.

    A section missing on one side scores 0 there. `rescale` maps an embedder's cosines to those of
    the default one, which are not stretched to 0..1: that would drown the keyword side
    (docs/lab/retrieval.md). With the question's `vector`, a hybrid search uses feedback.
    """
    of_meaning, of_keyword = (weight / sum(weights) for weight in weights)
    by_keyword = found.keyword / max(float(found.keyword.max(initial=0.0)), 1e-30)

    def by_meaning(cosines: Scores) -> Scores:
        # fmax turns NaN into 0
        return np.minimum(np.fmax(rescale(cosines), 0.0), 1.0)

    ids = found.ids
    if mode is Mode.HYBRID:
        scores = of_meaning * by_meaning(found.cosines) + of_keyword * by_keyword
        if vector is not None and found.vectors is not None:
            best = np.lexsort((ids, -scores))[:RESCORED]
            if len(best := best[~np.isnan(found.cosines[best])]):
                vectors = found.vectors(best).astype(np.float32)
                cosines = vectors @ _taught(vector, vectors[:TEACHERS], scores[best[:TEACHERS]])
                scores[best] = of_meaning * by_meaning(cosines) + of_keyword * by_keyword[best]
    else:
        known, scores = (
            (found.keyword > 0, by_keyword)
            if mode is Mode.KEYWORD
            else (~np.isnan(found.cosines), by_meaning(found.cosines))
        )
        ids, scores = ids[known], scores[known]
    if limit is not None and limit < len(scores):  # a full sort would dominate the cost
        likely = scores >= np.partition(scores, -limit)[-limit]
        ids, scores = ids[likely], scores[likely]
    order = np.lexsort((ids, -scores))[:limit]
    return list(map(Scored, ids[order].tolist(), scores[order].tolist()))


def _taught(vector: Vector, teachers: NDArray[np.float32], scores: Scores) -> Vector:
    shares = np.exp((scores - scores.max()) / SHARPNESS)
    moved: Vector = vector + PULL * (shares / shares.sum()).astype(np.float32) @ teachers
    return moved / np.linalg.norm(moved)
