"""Both engines rank alike: the same best sections with the same scores, in every scope and filter, and as a plain reading of all
sections ranks them."""

import random
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from commonplace.core.search.scoring import blend
from commonplace.model import WRONG, Item, ItemFilter, ItemRef, Mode, Scope
from commonplace.ports import Matches, Question
from commonplace.search_index.bm25 import K1, PHRASED, damping, rarity
from commonplace.search_index.postgres import counts, plans
from commonplace.settings import Settings
from commonplace.store import Store, make_store
from commonplace.text.query_terms import parse_query
from commonplace.text.stems import pack_terms, terms
from tests.contract.large import count_terms_always
from tests.contract.library import STAMP, Library, cut, unit

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

ITEMS, PARTS, QUESTIONS, SHOWN = 120, 4, 200, 12
DEFAULT = ItemFilter(not_statuses=(WRONG,))
VOCABULARY = [f"w{n}x" for n in range(400)]


@dataclass(frozen=True)
class Both:
    """One library on both engines. Its sections have the same order, and other numbers."""

    libraries: list[Library]
    items: list[list[Item]]
    folders: list[list[str]]
    sections: list[list[int]]  # by engine: all, in the order that they were added
    texts: list[str]
    vectors: list[np.ndarray]

    def scopes(self, library: int) -> dict[str, Scope]:
        folders, own = self.folders[library], self.libraries[library]
        return {
            "whole": own.scope(),
            "folder": own.scope(folders[0]),
            "two folders": own.scope(*folders),
        }


FILTERS = {
    "none": DEFAULT,
    "also wrong": ItemFilter(),
    "type": ItemFilter(entity_types=("task",), not_statuses=(WRONG,)),
    "tag": ItemFilter(tag="red", not_statuses=(WRONG,)),
    "wrong only": ItemFilter(statuses=(WRONG,)),
}


async def grow(store: Store, dice: random.Random) -> tuple[Library, list[Item], list[str]]:
    library, random_vectors = await Library.create(store), np.random.default_rng(7)
    folders = [await library.folder("a"), await library.folder("b")]
    items = []
    for n in range(ITEMS):
        parts = [
            " ".join(
                VOCABULARY[min(int(dice.expovariate(0.012)), 399)]
                for _ in range(dice.randint(5, 60))
            )
            for _ in range(PARTS)
        ]
        item = await library.add(
            "\n\n".join(parts),
            title=f"{VOCABULARY[n]} title",
            folder=folders[0] if n % 3 else None,
            vectors=[unit(random_vectors.normal(size=16)) for _ in parts],
            entity_type="task" if n % 4 == 0 else "document",
            status=WRONG if n % 17 == 3 else "",
            tags=("red",) if n % 5 == 0 else (),
        )
        items.append(item)
        if n % 2:
            await store.items.file(
                library.scope(), ItemRef(id=item.id), [folders[1]], token_id=None
            )
    return library, items, folders


@pytest.fixture
async def both(data_dir: Path, postgres_url: str, new_schema: str) -> AsyncIterator[Both]:
    stores = [
        make_store(Settings(data_dir=data_dir)),
        make_store(Settings(database_url=postgres_url, database_schema=new_schema)),
    ]
    libraries, items, folders, sections = [], [], [], []
    for store in stores:
        await store.open()
        library, own, its_folders = await grow(store, random.Random(3))
        libraries.append(library)
        items.append(own)
        folders.append(its_folders)
        found = await store.sections.without_vectors(
            {library.id: [item.id for item in own]}, "none"
        )
        by_place = {(item_id, section.position): id for _, item_id, _, id, section in found}
        sections.append([by_place[item.id, n] for item in own for n in range(PARTS)])
    texts = [section.text for *_, section in found]
    yield Both(libraries, items, folders, sections, texts, [])
    for store in stores:
        await store.close()


def questions() -> list[Question]:
    dice, random_vectors = random.Random(11), np.random.default_rng(11)
    asked = []
    for n in range(QUESTIONS):
        words = [VOCABULARY[min(int(dice.expovariate(0.01)), 399)] for _ in range(n % 6 + 1)]
        text = " ".join(words) if n % 3 else "-".join(words)
        asked.append(Question(parse_query(text), unit(random_vectors.normal(size=16)), STAMP, 200))
    return asked


def shown(
    found: Matches, order: list[int], question: Question, mode: Mode
) -> list[tuple[int, float]]:
    """Return the best sections, by their place in the library, and their scores."""
    places = {section_id: place for place, section_id in enumerate(order)}
    best = blend(mode, found, (0.7, 0.3), SHOWN, vector=question.vector)
    return [(places[hit.section_id], hit.score) for hit in best]


def same(one: list[tuple[int, float]], other: list[tuple[int, float]]) -> bool:
    """Whether both have the same sections with the same scores; equal ones in any order."""
    if len(one) != len(other):
        return False
    scores = np.array([[score for _, score in each] for each in (one, other)])
    if np.abs(scores[0] - scores[1]).max(initial=0) > 1e-3:
        return False
    last = min(scores[0][-1], scores[1][-1]) if len(one) else 0
    sure = [{place for place, score in each if score > last + 1e-3} for each in (one, other)]
    return sure[0] <= {place for place, _ in other} and sure[1] <= {place for place, _ in one}


@pytest.mark.parametrize("plan", ["counting", "counted", "by keys"])
async def test_the_same_sections_come_first_on_both_engines(
    both: Both, monkeypatch: pytest.MonkeyPatch, plan: str
) -> None:
    if plan != "counting":
        count_terms_always(monkeypatch)
        await recount(both.libraries[1])
    if plan == "by keys":
        monkeypatch.setattr(counts, "LARGE", 100)
        monkeypatch.setattr(counts, "NO_LONGER_LARGE", 50)
        await both.libraries[1].store.sections.maintain(both.libraries[1].id, STAMP)
        monkeypatch.setattr(plans, "FEW_ROWS", 60)
        monkeypatch.setattr(plans, "EXACT_VECTORS", 100)
        # How rare a phrase is is told by these sections: here they are a tenth of all.
        monkeypatch.setattr(plans, "BEST", PHRASED)
    cases = [
        (scope, name)
        for scope in ("whole", "folder", "two folders")
        for name in (FILTERS if plan != "by keys" else ("none", "also wrong", "type"))
    ]
    differ: Counter[tuple[str, str, str]] = Counter()
    for n, question in enumerate(questions()):
        scope, name = cases[n % len(cases)]
        where = FILTERS[name]
        for case_scope, case_name in {(scope, name), (scope, "none"), ("whole", name)}:
            where = FILTERS[case_name]
            found = [
                await library.store.sections.matches(
                    both.scopes(engine)[case_scope], question, where
                )
                for engine, library in enumerate(both.libraries)
            ]
            assert found[0].complete or not found[1].complete
            for mode in (Mode.HYBRID, Mode.KEYWORD):
                ranked = [
                    shown(each, order, question, mode)
                    for each, order in zip(found, both.sections, strict=True)
                ]
                if not same(*ranked):
                    differ[case_scope, case_name, mode] += 1
    assert not differ


async def recount(library: Library) -> None:
    """Let the library cross the threshold, which was lowered after it had grown."""
    item = await library.add("nothing", title="crosses")
    for folder in await library.store.folders.list_folders(library.scope()):
        await library.store.items.file(
            library.scope(), ItemRef(id=item.id), [folder.id], token_id=None
        )
    await library.store.items.delete(library.scope(), item.id)


async def test_frequencies_are_the_same_on_both_engines(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list(dict.fromkeys(chain.from_iterable(terms(word) for word in VOCABULARY[:60])))
    for counted in (False, True):
        if counted:
            count_terms_always(monkeypatch)
            await recount(both.libraries[1])
        for name in ("whole", "folder", "two folders"):
            on_sqlite, on_postgres = [
                await library.store.sections.frequencies(both.scopes(engine)[name], asked)
                for engine, library in enumerate(both.libraries)
            ]
            assert on_sqlite == on_postgres


async def test_words_and_vectors_are_ranked_as_a_plain_reading_does(
    ann: Library, plan: None
) -> None:
    """Against numpy, whole and in a folder."""
    dice, random_vectors, folder = random.Random(5), np.random.default_rng(5), await ann.folder("a")
    known: dict[int, tuple[dict[int, float], float, np.ndarray, bool]] = {}
    for n in range(80):
        text = " ".join(
            VOCABULARY[min(int(dice.expovariate(0.05)), 399)] for _ in range(dice.randint(4, 50))
        )
        vector, filed = unit(random_vectors.normal(size=16)), n % 3 == 0
        item = await ann.add(
            text, title=f"t{n}", folder=folder if filed else None, vectors=[vector]
        )
        numbers, weights, _, length = pack_terms(f"t{n}", cut(text)[0])
        worth = dict(
            zip(
                np.frombuffer(numbers, np.uint32).tolist(),
                (np.frombuffer(weights, np.uint8) / 2).tolist(),
                strict=True,
            )
        )
        [section_id] = await ann.section_ids(item)
        known[section_id] = worth, float(damping(np.array([length], np.float32))[0]), vector, filed
    for question in questions()[:40]:
        for scope in (ann.scope(), ann.scope(folder)):
            inside = {
                section_id: each
                for section_id, each in known.items()
                if scope.folders is None or each[3]
            }
            assert question.words is not None and question.vector is not None
            asked = {
                terms(" ".join(phrase))[0] for phrase in question.words.phrases if len(phrase) == 1
            }
            scores: Counter[int] = Counter()
            for term in asked:
                having = [each for each in inside.values() if term in each[0]]
                for section_id, (worth, damped, _, _) in inside.items():
                    if term in worth:
                        scores[section_id] += (
                            rarity(len(having), len(inside))
                            * (K1 + 1)
                            * worth[term]
                            / (worth[term] + damped)
                        )
            single = Question(
                type(question.words)(tuple(p for p in question.words.phrases if len(p) == 1)),
                question.vector,
                STAMP,
                200,
            )
            found = await ann.store.sections.matches(scope, single, DEFAULT)
            assert set(found.ids.tolist()) == set(inside)
            for section_id, keyword, cosine in zip(
                found.ids.tolist(), found.keyword, found.cosines, strict=True
            ):
                assert keyword == pytest.approx(scores[section_id], abs=1e-3)
                assert cosine == pytest.approx(
                    float(known[section_id][2] @ question.vector), abs=2e-3
                )
