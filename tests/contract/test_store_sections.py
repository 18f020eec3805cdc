"""Keyword search, passages, coverage."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commonplace.database.postgres import PostgresTx
from commonplace.database.sqlite import SqliteTx
from commonplace.model import ItemFilter, ItemRef, Scope, Section, Words
from commonplace.settings import Settings
from commonplace.store import Store, make_store
from commonplace.text.query_terms import parse_query
from tests.contract.library import STAMP, Library, cut, packed, unit

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "query",
    [
        "os.path.join",
        "ERR_QUIC_7731",
        "-32605",
        "rate-limit",
        "O'Brien",
        "C:\\temp",
        "naïve",
        "NAIVE",
        "全文検索",
        "検索",
        "東京",
        "한국어",
        "getUserName",
        "user",
        "1.2.3",
        "running",
        "run",
        "“quoted”",
        "σίσυφος",
        "50%",
        "a:b",
        "it's & (or) | <->",
        'NEAR "x" OR y*',
    ],
)
async def test_what_a_text_says_is_found_as_it_is_written(ann: Library, query: str) -> None:
    text = (
        "os.path.join raised ERR_QUIC_7731 and code -32605 when O'Brien hit the rate-limit in C:\\temp. "
        "A naïve getUserName was running at version 1.2.3 “quoted” with 50% of a:b. "
        '東京で全文検索をする。 한국어 문서. Σίσυφος. it\'s & (or) | <-> NEAR "x" OR y*'
    )
    await ann.add(text, title="all of it")
    for n in range(6):
        await ann.add(f"nothing of that kind number {n} xx", title=f"none {n}", key=f"k{n}")
    assert (await ann.found(query))[:1] == ["all of it"]


async def test_an_exact_string_counts_more_than_its_parts_apart(ann: Library) -> None:
    await ann.add("path of the os to join", title="parts")
    await ann.add("call os.path.join now", title="exact")
    await ann.add("nothing to see", title="none")
    assert await ann.found("os.path.join") == ["exact", "parts"]
    only = await ann.store.sections.keyword(ann.scope(), Words((("os", "path", "join"),)), 10)
    assert len(only) == 1, "a phrase is found in order and together only"


async def test_rare_words_repeated_words_and_short_texts_count_more(ann: Library) -> None:
    for n in range(8):
        await ann.add(f"common common common filler {n}", title="common", key=f"k{n}")
    await ann.add(
        "rare and nothing else of note in a sentence that goes on for a while longer",
        title="rare, long",
    )
    await ann.add("rare word", title="rare, short")
    await ann.add("rare rare rare word that goes on", title="rare, often")
    found = await ann.found("common rare")
    assert set(found[:3]) == {"rare, long", "rare, short", "rare, often"}
    assert found.index("rare, short") < found.index("rare, long")
    assert found.index("rare, often") < found.index("rare, long")


async def test_titles_and_headings_are_searched(ann: Library) -> None:
    item = await ann.add("text", title="Granite handbook")
    await ann.store.items.update(
        ann.scope(),
        item.id,
        {},
        expected_revision=None,
        stamp=STAMP,
        jobs=(),
        sections=[Section(0, "text", heading="Rocks > Feldspar", word_count=1)],
    )
    assert await ann.found("handbook") == await ann.found("feldspar") == ["Granite handbook"]


async def test_scores_are_above_zero_best_first_and_limited(ann: Library) -> None:
    for n in range(12):
        await ann.add("quartz " * (n + 1) + "and more", title=str(n))
    hits = await ann.store.sections.keyword(ann.scope(), parse_query("quartz"), 5)
    assert len(hits) == 5
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] > 0


async def test_keywords_keep_to_the_scope(ann: Library, bob: Library) -> None:
    work, home = await ann.folder("work"), await ann.folder("home")
    await ann.add("quartz one", title="work", folder=work)
    await ann.add("quartz two", title="home", folder=home)
    await ann.add("quartz three", title="unfiled")
    await bob.add("quartz four", title="bob's")
    for scope, titles in [
        (ann.scope(), {"work", "home", "unfiled"}),
        (ann.scope(work), {"work"}),
        (ann.scope(work, home), {"work", "home"}),
        (bob.scope(), {"bob's"}),
        (bob.scope(work), set()),
        (Scope(ann.id, frozenset()), set()),
        (ann.scope(kb_only=True), {"work", "home", "unfiled"}),
    ]:
        assert set(await ann.found("quartz", scope)) == titles


async def test_a_text_cannot_talk_its_way_into_a_scope(ann: Library, bob: Library) -> None:
    work = await ann.folder("work")
    names = [ann.id, work]
    spelled = [f"{kind}{mark}{name}" for name in names for kind in "lf" for mark in ("", ":", "-")]
    spelled += [f"{kind}{name.replace('-', '')}" for name in names for kind in "lf"]
    await bob.add("quartz " + " ".join(spelled), title=" ".join(spelled))
    await ann.add("quartz " + " ".join(spelled), title="unfiled")
    assert await ann.found("quartz", ann.scope(work)) == []
    assert await ann.found("quartz") == ["unfiled"]


async def test_new_words_are_found_at_once_and_deleted_ones_no_more(
    ann: Library, open_store: Callable[[], Awaitable[Store]]
) -> None:
    for n in range(10):
        await ann.add(f"filler {n}", title=f"f{n}")
    other = Library(await open_store(), ann.id)
    assert await other.found("zirconium filler") != ["T"]
    item = await ann.add("zirconium", title="T")
    assert (await other.found("zirconium filler"))[0] == (await ann.found("zirconium"))[0] == "T"
    await ann.store.items.update(
        ann.scope(),
        item.id,
        {"title": "Hafnium"},
        expected_revision=None,
        sections=cut("tantalum"),
        stamp=STAMP,
        jobs=(),
    )
    assert await other.found("zirconium") == await ann.found("zirconium") == []
    assert await other.found("tantalum hafnium") == ["Hafnium"]
    await ann.store.items.delete(ann.scope(), item.id)
    assert await other.found("tantalum hafnium") == await ann.found("tantalum") == []


async def test_nothing_asked_is_nothing_found(ann: Library) -> None:
    await ann.add("text")
    for words in (Words(()), parse_query("!!! --- ..."), Words((("absent",),))):
        assert await ann.store.sections.keyword(ann.scope(), words, 10) == []


async def test_words_that_are_everywhere_are_still_found_when_nothing_else_is_asked(
    ann: Library,
) -> None:
    for n in range(6):
        await ann.add(f"everywhere else {n}", title=f"t{n}")
    assert len(await ann.found("everywhere")) == 6
    assert len(await ann.found("everywhere else")) == 6


async def test_huge_and_odd_texts_can_be_kept(ann: Library) -> None:
    await ann.add(
        "quartz " + "x" * 100_000 + " " + " ".join(f"word{n}" for n in range(20_000)), title="huge"
    )
    await ann.add("\\ ' \" \t %s :name ::cast \U0001f600 \u200b ' || quartz", title="odd")
    assert set(await ann.found("quartz")) == {"huge", "odd"}
    await ann.add("only marks: !!!", title="?!")
    assert await ann.found("marks") == ["?!"]


async def test_passages_carry_their_item_and_keep_to_the_scope(ann: Library, bob: Library) -> None:
    work = await ann.folder("work")
    item = await ann.add(
        "one two\n\nthree",
        title="T",
        folder=work,
        url="https://example.com",
        entity_type="decision",
    )
    secret, theirs = await ann.add("unfiled"), await bob.add("bob's")
    ids = [n for i in (item, secret) for n in await ann.section_ids(i)]
    ids += await bob.section_ids(theirs)
    passages = ann.store.sections.passages
    found = sorted(await passages(ann.scope(work), [*ids, 10**9]), key=lambda p: p.position)
    assert [(p.section_id, p.text, p.position, p.word_count) for p in found] == [
        (ids[0], "one two", 0, 2),
        (ids[1], "three", 1, 1),
    ]
    assert {(p.item_id, p.public_id, p.title, p.url, p.entity_type) for p in found} == {
        (item.id, item.public_id, "T", "https://example.com", "decision")
    }
    assert {p.section_id for p in await passages(ann.scope(), ids)} == set(ids[:3])
    assert {p.section_id for p in await passages(bob.scope(), ids)} == {ids[3]}
    assert await passages(ann.scope(), []) == []


async def test_a_section_comes_back_as_it_was_cut(ann: Library) -> None:
    item = await ann.add("x")
    cut_so = [
        Section(0, "texté", "A > B", "extra words", 1, ("k1", "ключ"), {"page": 3}),
        Section(1, "more", word_count=1),
    ]
    await ann.store.items.update(
        ann.scope(), item.id, {}, expected_revision=None, sections=cut_so, stamp=STAMP, jobs=()
    )
    assert await ann.store.sections.of_item(item) == cut_so
    passage = (await ann.store.sections.passages(ann.scope(), (await ann.section_ids(item))[:1]))[0]
    assert (passage.heading, passage.key_points, passage.locator) == (
        "A > B",
        ("k1", "ключ"),
        {"page": 3},
    )


async def test_coverage_counts_within_the_scope_by_stamp(ann: Library, bob: Library) -> None:
    work, vector = await ann.folder("work"), unit(range(1, 17))
    await ann.add("a\n\nb", vectors=[vector, vector], folder=work)
    await ann.add("c")
    await bob.add("d", vectors=[vector])
    coverage = ann.store.sections.coverage
    assert await coverage(ann.scope(), STAMP) == (2, 3)
    assert await coverage(ann.scope(work), STAMP) == (2, 2)
    assert await coverage(ann.scope(), "other") == (0, 3)
    assert await coverage(Scope(ann.id, frozenset()), STAMP) == (0, 0)


async def test_what_lacks_a_vector_is_listed_in_order(ann: Library) -> None:
    vector = unit(range(1, 17))
    items = [await ann.add(f"first {n}\n\nsecond {n}", title=f"t{n}") for n in range(3)]
    done = (await ann.section_ids(items[1]))[0]
    await ann.store.sections.set_vectors(STAMP, {ann.id: [(done, packed(vector))]})
    listed = await ann.store.sections.without_vectors({ann.id: [i.id for i in items[:2]]}, STAMP)
    assert [(item_id, title, section.text) for _, item_id, title, _, section in listed] == sorted(
        [
            (items[0].id, "t0", "first 0"),
            (items[0].id, "t0", "second 0"),
            (items[1].id, "t1", "second 1"),
        ],
        key=lambda row: row[0],
    )
    assert await ann.store.sections.without_vectors({}, STAMP) == []


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    statements: list[str] = []
    with monkeypatch.context() as patch:
        for tx in (SqliteTx, PostgresTx):
            for name in ("all", "tuples", "one", "run", "many"):
                original = getattr(tx, name)

                def count(
                    self: Any, sql: str, *args: Any, _original: Any = original, **values: Any
                ) -> Any:
                    statements.append(sql)
                    return _original(self, sql, *args, **values)

                patch.setattr(tx, name, count)
        yield statements


async def test_reads_take_as_many_statements_for_many_as_for_few(
    ann: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, vector = await ann.folder("f"), unit(range(1, 17))
    most = {"page": 3, "passages": 1, "keyword": 5, "nearest": 5, "folders": 3}
    for many in (2, 40):
        for n in range(many):
            item = await ann.add(f"quartz {n}", title=f"{many} {n}", vectors=[vector])
            await ann.store.items.file(ann.scope(), ItemRef(id=item.id), [folder], token_id=None)
        ids = [
            hit.section_id
            for hit in await ann.store.sections.nearest(ann.scope(), vector, STAMP, 100)
        ]
        assert len(ids) >= many
        reads: dict[str, Callable[[], Awaitable[object]]] = {
            "page": lambda: ann.store.items.list_page(
                ann.scope(folder), ItemFilter(), limit=100, offset=0
            ),
            "passages": lambda ids=ids: ann.store.sections.passages(ann.scope(folder), ids),  # type: ignore[misc]
            "keyword": lambda: ann.store.sections.keyword(
                ann.scope(folder), parse_query("quartz 1 2 3"), 100
            ),
            "nearest": lambda: ann.store.sections.nearest(ann.scope(folder), vector, STAMP, 100),
            "folders": lambda: ann.store.folders.list_folders(ann.scope(folder)),
        }
        for name, read in reads.items():
            with counted(monkeypatch) as statements:
                await read()
            assert len(statements) <= most[name], (name, statements)
            assert statements or name == "nearest", f"{name} was not counted"


async def test_sqlite_reads_only_the_sections_that_are_asked_for(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not all of their library: its planner does not know how many a library has."""
    store = make_store(Settings(data_dir=data_dir))
    await store.open()
    library = await Library.create(store)
    item = await library.add("one text", vectors=[unit([1.0, 0.0])])
    ids, plans = await library.section_ids(item), list[str]()
    before = SqliteTx.tuples

    def explained(tx: SqliteTx, sql: str, /, **values: Any) -> list[tuple[Any, ...]]:
        if "sections AS s" in sql:
            plans.append(before(tx, f"EXPLAIN QUERY PLAN {sql}", **values)[0][3])
        return before(tx, sql, **values)

    monkeypatch.setattr(SqliteTx, "tuples", explained)
    assert len(await store.sections.passages(library.scope(), ids)) == 1
    assert len(await store.sections.dates(library.scope(), ids)) == 1
    asked = [np.array([1.0, 0.0], np.float32)]
    assert await store.sections.nearest_items(library.scope(), asked, STAMP, 1) == [item.id]
    await store.close()
    assert plans == ["SEARCH s USING INTEGER PRIMARY KEY (rowid=?)"] * 3
