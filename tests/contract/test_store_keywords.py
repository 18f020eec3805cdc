"""Keyword ranking against BM25 written out plainly, while a library grows, shrinks and is refiled."""

import math
import random
from collections import Counter

import pytest

from commonplace.model import Item, ItemRef, Scored, Words, new_id
from commonplace.search_index import library_index, postings
from commonplace.search_index.bm25 import K1, MEAN_LENGTH, B
from commonplace.store import Store
from tests.contract.library import Library

pytestmark = pytest.mark.anyio
VOCABULARY = [f"w{n}x" for n in range(60)]


@pytest.fixture
async def grown(store: Store, ann: Library) -> "Grown":
    return Grown(store, ann, await ann.folder("Red"))


class Grown:
    """A library, and what a plain reading says of it."""

    def __init__(self, store: Store, library: Library, folder: str) -> None:
        self.store, self.library, self.folder = store, library, folder
        self.texts: dict[str, list[str]] = {}
        self.filed: set[str] = set()
        self.items: list[Item] = []
        self.dice = random.Random(5)

    async def add(self) -> None:
        # Low numbers are common, high ones rare.
        words = [
            VOCABULARY[min(int(self.dice.expovariate(0.12)), 59)]
            for _ in range(self.dice.randint(3, 40))
        ]
        filed = self.dice.random() < 0.3
        item = await self.library.add(
            " ".join(words), title="t", key=new_id(), folder=self.folder if filed else None
        )
        self.texts[item.id] = words
        self.items.append(item)
        self.filed |= {item.id} if filed else set()

    async def change(self) -> None:
        item = self.dice.choice(self.items)
        scope = self.library.scope()
        if self.dice.random() < 0.5:
            await self.store.items.delete(scope, item.id)
            self.items.remove(item)
            del self.texts[item.id]
            self.filed.discard(item.id)
        elif item.id not in self.filed:
            await self.store.items.file(scope, ItemRef(id=item.id), [self.folder], token_id=None)
            self.filed.add(item.id)

    def expected(self, words: list[str], *, in_folder: bool) -> dict[str, float]:
        """Counted over what the scope sees: nothing outside the folder changes a score inside."""
        seen = {
            item_id: text
            for item_id, text in self.texts.items()
            if not in_folder or item_id in self.filed
        }
        lengths = {item_id: len(text) + 1 for item_id, text in seen.items()}  # and the title
        scores: Counter[str] = Counter()
        for word in dict.fromkeys(words):
            having = {item_id: text.count(word) for item_id, text in seen.items() if word in text}
            idf = math.log1p((len(lengths) - len(having) + 0.5) / (len(having) + 0.5))
            for item_id, count in having.items():
                damped = K1 * (1 - B + B * lengths[item_id] / MEAN_LENGTH)
                scores[item_id] += idf * (K1 + 1) * count / (count + damped)
        return scores

    async def found(self, words: list[str], *, in_folder: bool) -> dict[str, float]:
        scope = self.library.scope(self.folder) if in_folder else self.library.scope()
        hits: list[Scored] = await self.store.sections.keyword(
            scope, Words(tuple((word,) for word in words)), 1000
        )
        items = {
            p.section_id: p.item_id
            for p in await self.store.sections.passages(scope, [h.section_id for h in hits])
        }
        assert [h.score for h in hits] == sorted((h.score for h in hits), reverse=True)
        return {items[hit.section_id]: hit.score for hit in hits}


async def test_scores_are_bm25_of_what_is_there_now(grown: Grown) -> None:
    for step in range(160):
        await grown.add()
        if step % 3 == 0:
            await grown.change()
        if step % 8 == 0:
            words = grown.dice.sample(VOCABULARY, 4)
            for in_folder in (False, True):
                expected = grown.expected(words, in_folder=in_folder)
                assert await grown.found(words, in_folder=in_folder) == pytest.approx(
                    expected, rel=1e-4
                )


async def test_common_words_kept_as_bits_and_dead_rows_read_anew_find_the_same(
    grown: Grown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "LARGE_RUN", 8)
    monkeypatch.setattr(library_index, "DEAD_ROWS", 5)
    for step in range(120):
        await grown.add()
        if step % 2 == 0:
            await grown.change()
        if step % 6 == 0:
            words = grown.dice.sample(VOCABULARY[:20], 3)
            for in_folder in (False, True):
                expected = grown.expected(words, in_folder=in_folder)
                assert await grown.found(words, in_folder=in_folder) == pytest.approx(
                    expected, rel=1e-4
                )


async def test_a_phrase_is_found_by_neighbours_only(grown: Grown) -> None:
    for text in ("alpha beta gamma", "beta alpha", "alpha gamma beta", "alpha\n\nbeta"):
        await grown.library.add(text)
    [hit] = await grown.store.sections.keyword(
        grown.library.scope(), Words((("alpha", "beta"),)), 10
    )
    [passage] = await grown.store.sections.passages(grown.library.scope(), [hit.section_id])
    assert passage.text == "alpha beta gamma"


async def test_texts_without_a_word_can_be_all_there_is(store: Store, ann: Library) -> None:
    await ann.add("?! ...", title="-")
    assert await store.sections.keyword(ann.scope(), Words((("otter",),)), 5) == []
