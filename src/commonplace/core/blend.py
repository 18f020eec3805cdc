"""Brings the scores of the two kinds of search together."""

from collections.abc import Sequence

from commonplace.model import Mode, Scored


def blend(mode: Mode, keyword: Sequence[Scored], semantic: Sequence[Scored],
          weights: tuple[float, float], limit: int | None = None) -> list[Scored]:
    """The best `limit`, or all. Scores from 0 to 1, best first; equal scores in the order of their ids.

    A section that one side does not know has 0 there. Cosines stay as they are: stretched to fill 0..1 they drown the
    keyword side (docs/retrieval.md).
    """
    of_meaning, of_keyword = weights
    by_keyword = _relative(keyword)
    by_meaning = {section: 0.0 if score < 0 else min(score, 1.0) for section, score in semantic}
    if mode is Mode.KEYWORD:
        scores = by_keyword
    elif mode is Mode.SEMANTIC:
        scores = by_meaning
    else:
        total = of_meaning + of_keyword
        of_meaning, of_keyword = of_meaning / total, of_keyword / total
        scores = {section: of_meaning * by_meaning.get(section, 0.0) + of_keyword * by_keyword.get(section, 0.0)
                  for section in by_keyword.keys() | by_meaning.keys()}
    ranked = sorted((-score, section) for section, score in scores.items())
    return [Scored(section, -worse) for worse, section in ranked[:limit]]


def _relative(scored: Sequence[Scored]) -> dict[int, float]:
    best = max((score for _, score in scored), default=0.0)
    return {section: score / best for section, score in scored} if best > 0 else {}
