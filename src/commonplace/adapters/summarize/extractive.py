"""The default transformer: the lead, key sentences, tags and a category. Deterministic."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain

from commonplace.model import Transformed
from commonplace.settings import Settings
from commonplace.text import prose
from commonplace.text.instructions import addresses_machine, without_orders
from commonplace.text.language import detect, stop_words
from commonplace.thread_pool import ThreadPool

_POINTS, _LEAD, _ITEMS = 6, 2, 20
_LONG_TITLE = 100  # characters; a longer first line is cut to make a title
_BRIEF = 400  # characters of a text that is its own summary, whatever it is
_POINT_CHARS, _SUMMARY_CHARS = 200, 280  # of one sentence
_READ = 2_000  # sentences; of longer texts, evenly spread ones say what the text is about


class LocalTransformer:
    def __init__(self, settings: Settings) -> None:
        self._thread = ThreadPool(1, "transform")

    async def transform(self, title: str, sections: Sequence[str]) -> Transformed:
        return await self._thread.run(lambda: summarize(title, sections))

    async def close(self) -> None:
        self._thread.close()


def summarize(title: str, sections: Sequence[str]) -> Transformed:
    """Summarize a text: its first two statements, else its key points. Every section gets key
    points."""
    start = "\n\n".join(sections[:8])
    silent = stop_words(detect(start))
    by_section = [
        [each for each in prose.sentences(section) if not addresses_machine(each)]
        for section in sections
    ]
    flat = list(dict.fromkeys(chain.from_iterable(by_section)))
    flat = flat[:: len(flat) // _READ + 1]
    counts = Counter(chain.from_iterable(map(prose.words, flat)))
    best = prose.key_points(flat, counts, silent, min(_POINTS, (len(flat) + 1) // 2))
    lead = [
        each
        for each in prose.lead(start, 2 * _LEAD)
        if not addresses_machine(each) and not _repeats(each, title)
    ]
    items = best[:_LEAD] or list(filter(prose.is_readable, flat[:_ITEMS]))
    told = " ".join(prose.cut(each, _SUMMARY_CHARS) for each in lead[:_LEAD])
    told = told or prose.cut(
        "; ".join([*(each.rstrip(".;") for each in items[:-1]), *items[-1:]]), _SUMMARY_CHARS
    )
    return Transformed(
        summary=told or _beginning(sections[: len(start) < _BRIEF], _SUMMARY_CHARS),
        key_points=tuple(prose.cut(each, _POINT_CHARS) for each in best),
        section_points=tuple(
            tuple(
                prose.cut(each, _POINT_CHARS)
                for each in prose.key_points(own, counts, silent, min(3, 1 + len(text) // 450))
            )
            or tuple(filter(None, [_beginning([text], _POINT_CHARS)]))
            for own, text in zip(by_section, sections, strict=True)
        ),
        tags=prose.tags(title, flat, silent) if silent else (),
        category=prose.category(counts | Counter(prose.words(title))),
    )


def _repeats(sentence: str, title: str) -> bool:
    """Whether the title says it already, as that of a note with its first line as title."""
    said, named = (text.casefold().rstrip(".!?…: ") for text in (sentence, title))
    return said in named or (len(named) >= _LONG_TITLE and said.startswith(named))


def _beginning(texts: Sequence[str], limit: int) -> str:
    return without_orders(next((prose.cut(text, limit) for text in texts if text.strip()), ""))
