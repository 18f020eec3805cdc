"""A soft preference for what was added or published at the time that a question names.

Nothing is hidden by it: what is from another time only loses a share of its score.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from commonplace.model import Dated, ItemFilter, Scored
from commonplace.ports import Matches
from commonplace.text.stems import terms
from commonplace.text.time_expressions import Event, Times, Window, find_date

SHARE = 0.4  # of its score that an item of another time loses
SLACK = 0.5  # of a time's length, before and after it
NEAR = 0.3  # how much of the preference is for that
MOST_WINDOWS = 3
_LEAST_SLACK = timedelta(hours=12)  # a question's day need not be the day in UTC


def filters(where: ItemFilter, times: Times) -> list[ItemFilter]:
    """Return the filters that find what may be from each of the times."""
    return [
        replace(where, dated_from=window.start, dated_to=window.end)
        for window in times.windows[:MOST_WINDOWS]
    ]


def join(found: Sequence[Matches]) -> Matches:
    """Return the sections of several searches for the same question, each once."""
    ids, places = np.unique(np.concatenate([each.ids for each in found]), return_index=True)
    keyword, cosines = (
        np.concatenate([getattr(each, name) for each in found])[places]
        for name in ("keyword", "cosines")
    )

    def vectors(chosen: NDArray[np.intp]) -> NDArray[np.float16]:
        # Each part is asked for what was chosen of it: others of its sections may have no vector.
        wanted, start = places[chosen], 0
        own, read = list[NDArray[np.intp]](), list[NDArray[np.float16]]()
        for part in found:
            (at,) = np.nonzero((start <= wanted) & (wanted < start + len(part.ids)))
            if len(at) and part.vectors:
                own.append(at)
                read.append(part.vectors(wanted[at] - start))
            start += len(part.ids)
        return np.concatenate(read)[np.argsort(np.concatenate(own))]

    return Matches(ids, keyword, cosines, found[0].complete, vectors)


def reorder(scored: Sequence[Scored], dated: Sequence[Dated], times: Times) -> list[Scored]:
    """Return the sections best first, those from another time with less of their score."""
    items = {each.section_id: each for each in dated}
    windows = times.windows or _around(scored, items, times.event)
    close = {
        section_id: max((_closeness(each, window) for window in windows), default=0.0)
        for section_id, each in items.items()
    }
    if not any(close.values()):
        return list(scored)
    weighed = [
        Scored(one.section_id, one.score * (1 - SHARE * (1 - close.get(one.section_id, 0.0))))
        for one in scored
    ]
    return sorted(weighed, key=lambda one: (-one.score, one.section_id))


def _closeness(each: Dated, window: Window) -> float:
    if window.start is None or window.end is None:
        slack = _LEAST_SLACK
    else:
        slack = max(_LEAST_SLACK, (window.end - window.start) * SLACK)
    spans = _spans(each)
    if any(_meet(span, window, timedelta()) for span in spans):
        return 1.0
    return NEAR if any(_meet(span, window, slack) for span in spans) else 0.0


def _spans(each: Dated) -> list[Window]:
    """Return when an item is from: the date in its title, else when it was added and published."""
    if (named := find_date(each.title)) is not None:
        return [named]
    return [Window(at, at) for at in (each.created_at, each.published_at) if at is not None]


def _meet(span: Window, window: Window, slack: timedelta) -> bool:
    assert span.start is not None and span.end is not None
    return (window.start is None or span.end >= window.start - slack) and (
        window.end is None or span.start < window.end + slack
    )


def _around(scored: Sequence[Scored], items: dict[int, Dated], event: Event | None) -> list[Window]:
    """Return the time before or after an event: that of the best section whose title names it."""
    wanted = set(terms(" ".join(event.words))) if event else set()
    for one in scored if event and wanted else ():
        each = items.get(one.section_id)
        if each is not None and wanted <= set(terms(each.title)):
            at = _spans(each)[-1]
            return [Window(None, at.start) if event and event.before else Window(at.end, None)]
    return []
