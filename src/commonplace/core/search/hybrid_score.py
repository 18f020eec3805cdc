"""Blend keyword and vector scores."""

import numpy as np

from commonplace.model import Mode, Scored
from commonplace.ports import Matches


def blend(
    mode: Mode, found: Matches, weights: tuple[float, float], limit: int | None = None
) -> list[Scored]:
    """Return the best `limit` sections, or all. Scores are 0 to 1, best first, ties ordered by id.

    A section missing on one side scores 0 there. Cosines are not stretched to 0..1: that would
    drown the keyword side (docs/lab/retrieval.md).
    """
    of_meaning, of_keyword = (weight / sum(weights) for weight in weights)
    by_keyword = found.keyword / max(float(found.keyword.max(initial=0.0)), 1e-30)
    # fmax turns NaN into 0
    by_meaning = np.minimum(np.fmax(found.cosines, 0.0), 1.0)
    ids = found.ids
    if mode is Mode.HYBRID:
        scores = of_meaning * by_meaning + of_keyword * by_keyword
    else:
        known, scores = (
            (found.keyword > 0, by_keyword)
            if mode is Mode.KEYWORD
            else (~np.isnan(found.cosines), by_meaning)
        )
        ids, scores = ids[known], scores[known]
    if limit is not None and limit < len(scores):  # a full sort would dominate the cost
        likely = scores >= np.partition(scores, -limit)[-limit]
        ids, scores = ids[likely], scores[likely]
    best = np.lexsort((ids, -scores))[:limit]
    return list(map(Scored, ids[best].tolist(), scores[best].tolist()))
