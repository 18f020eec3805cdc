"""Brings the scores of the two kinds of search together."""

import numpy as np

from commonplace.model import Mode, Scored
from commonplace.ports import Matches


def blend(
    mode: Mode, found: Matches, weights: tuple[float, float], limit: int | None = None
) -> list[Scored]:
    """The best `limit`, or all. Scores from 0 to 1, best first; equal scores in the order of their ids.

    A section that one side does not know has 0 there. Cosines stay as they are: stretched to fill 0..1 they drown the
    keyword side (docs/lab/retrieval.md).
    """
    of_meaning, of_keyword = (weight / sum(weights) for weight in weights)
    by_keyword = found.keyword / max(float(found.keyword.max(initial=0.0)), 1e-30)
    by_meaning = np.minimum(
        np.fmax(found.cosines, 0.0), 1.0
    )  # fmax takes 0 for what is not a number
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
    if limit is not None and limit < len(scores):  # sorting all would take longer than all the rest
        likely = scores >= np.partition(scores, -limit)[-limit]
        ids, scores = ids[likely], scores[likely]
    best = np.lexsort((ids, -scores))[:limit]
    return list(map(Scored, ids[best].tolist(), scores[best].tolist()))
