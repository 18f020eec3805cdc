"""On Postgres: the counts that searches rely on are exact whatever happens at once, and large libraries get and lose their
indexes without anything being missed."""

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from commonplace.database import Tx
from commonplace.errors import NotFound, StorageFailed
from commonplace.model import WRONG, Item, ItemFilter, ItemRef, Scope
from commonplace.ports import Matches, Question
from commonplace.search_index.postgres import counts, large_libraries, plans
from commonplace.store import Store
from commonplace.text.query_terms import parse_query
from tests.contract.large import count_terms_always
from tests.contract.library import STAMP, Library, cut, unit

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("place", ["postgres"], indirect=True),
]
DEFAULT = ItemFilter(not_statuses=(WRONG,))
VOCABULARY = [f"w{n}x" for n in range(40)]
_TRUE_SIZES = """SELECT w.library_id, f.folder_id, count(*) FROM section_words AS w
    CROSS JOIN LATERAL (
        SELECT :whole::uuid AS folder_id UNION ALL SELECT fi.folder_id::uuid FROM folder_items AS fi
        WHERE fi.library_id = w.library_id::text AND fi.item_id = w.item_id::text) AS f
    GROUP BY 1, 2"""
_TRUE_COUNTS = f"""SELECT w.library_id, s.folder_id, t.term, count(*) FROM section_words AS w
    CROSS JOIN LATERAL {counts.TERMS_OF}
    JOIN scope_sizes AS s ON s.library_id = w.library_id AND s.counted
         AND (s.folder_id = :whole::uuid OR EXISTS (
             SELECT 1 FROM folder_items AS fi WHERE fi.library_id = w.library_id::text
             AND fi.item_id = w.item_id::text AND fi.folder_id = s.folder_id::text))
    GROUP BY 1, 2, 3"""


async def differences(store: Store) -> dict[str, set[tuple[Any, ...]]]:
    def read(tx: Tx) -> dict[str, set[tuple[Any, ...]]]:
        def both(kept: str, true: str) -> set[tuple[Any, ...]]:
            return set(tx.tuples(kept)) ^ set(tx.tuples(true, whole=counts.WHOLE))

        return {
            "sizes": both(
                "SELECT library_id, folder_id, sections FROM scope_sizes WHERE sections <> 0",
                _TRUE_SIZES,
            ),
            "terms": both(
                "SELECT library_id, folder_id, term, sections FROM term_counts", _TRUE_COUNTS
            ),
            "counted": set(
                tx.tuples(
                    f"""SELECT library_id, folder_id, sections FROM scope_sizes
                        WHERE counted AND sections < {counts.COUNTED_UNTIL}
                        OR NOT counted AND sections >= {counts.COUNTED_FROM}"""
                )
            ),
        }

    return await store._db.read(read)


def text(dice: random.Random, parts: int) -> str:
    return "\n\n".join(
        " ".join(dice.choices(VOCABULARY, k=dice.randint(2, 9))) for _ in range(parts)
    )


async def change(
    library: Library, items: list[Item], folders: list[str], dice: random.Random
) -> None:
    store, scope = library.store, library.scope()
    operation = dice.choice(["add", "add", "delete", "file", "unfile", "edit", "drop", "both"])
    if operation == "add" or not items:
        folder = dice.choice([None, *folders]) if folders else None
        with suppress(NotFound):
            items.append(await library.add(text(dice, dice.randint(1, 4)), folder=folder))
        return
    item = dice.choice(items)
    with suppress(NotFound):
        if operation == "delete":
            items.remove(item)
            await store.items.delete(scope, item.id)
        elif operation == "edit":
            await store.items.update(
                scope,
                item.id,
                {"title": "changed"},
                expected_revision=None,
                sections=cut(text(dice, dice.randint(1, 3))),
                stamp=STAMP,
                jobs=(),
            )
        elif operation == "drop" and dice.random() < 0.3 and folders:
            folder = folders.pop(dice.randrange(len(folders)))
            await store.folders.delete(scope, folder, cascade_items=dice.random() < 0.5)
            folders.append(await library.folder(f"again {dice.random()}"))
        elif operation == "unfile" and folders:
            await store.items.unfile(scope, ItemRef(id=item.id), dice.choice(folders))
        elif folders:
            chosen = dice.sample(folders, min(len(folders), 1 + (operation == "both")))
            await store.items.file(scope, ItemRef(id=item.id), chosen, token_id=None)


@pytest.mark.slow
@pytest.mark.parametrize("thresholds", [(12, 6), (1, 1), (2_000, 1_000)])
async def test_counts_equal_a_recount_after_any_changes_at_once(
    ann: Library,
    open_store: Callable[[], Awaitable[Store]],
    monkeypatch: pytest.MonkeyPatch,
    thresholds: tuple[int, int],
) -> None:
    monkeypatch.setattr(counts, "COUNTED_FROM", thresholds[0])
    monkeypatch.setattr(counts, "COUNTED_UNTIL", thresholds[1])
    libraries = [ann, Library(await open_store(), ann.id)]
    items: list[Item] = []
    folders = [await ann.folder(f"f{n}") for n in range(3)]

    async def run(library: Library, seed: int) -> None:
        dice = random.Random(seed)
        for _ in range(60):
            await change(library, items, folders, dice)

    for round in range(2):
        await asyncio.gather(*(run(libraries[n % 2], 10 * round + n) for n in range(6)))
        assert not any((await differences(ann.store)).values())
    await asyncio.gather(
        *(ann.store.items.delete(ann.scope(), item.id) for item in items), return_exceptions=True
    )
    found = await differences(ann.store)
    assert not any(found.values())


async def fill(library: Library, folder: str, number: int, start: int = 0) -> list[Item]:
    dice, random_vectors = random.Random(start), np.random.default_rng(start)
    return [
        await library.add(
            f"quartz {text(dice, 1)} n{n}x",
            title=f"t{n}",
            folder=folder if n % 2 else None,
            vectors=[unit(random_vectors.normal(size=16))],
        )
        for n in range(start, start + number)
    ]


def small_thresholds(monkeypatch: pytest.MonkeyPatch) -> None:
    count_terms_always(monkeypatch)
    monkeypatch.setattr(counts, "LARGE", 30)
    monkeypatch.setattr(counts, "NO_LONGER_LARGE", 15)
    monkeypatch.setattr(large_libraries, "_LOT", 4)


async def indexes(store: Store) -> list[str]:
    return await store._db.read(
        lambda tx: tx.column(
            """SELECT relname::text FROM pg_class WHERE relname ^@ 'nearest_'
               AND relnamespace = current_schema()::regnamespace"""
        )
    )


async def state(library: Library) -> tuple[int, str | None, int]:
    return await library.store._db.read(
        lambda tx: tx.tuples(
            """SELECT keyed, nearest, (SELECT count(keys) FROM section_words AS w
                                       WHERE w.library_id = s.library_id)
               FROM scope_sizes AS s WHERE library_id = :id AND folder_id = :whole""",
            id=library.id,
            whole=counts.WHOLE,
        )[0]
    )


async def test_nothing_is_missed_while_a_library_becomes_large_and_small_again(
    ann: Library, bob: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_thresholds(monkeypatch)
    folder = await ann.folder("a")
    question = Question(parse_query("quartz"), unit(range(1, 17)), STAMP, 200)
    await bob.add("quartz", vectors=[unit(range(1, 17))])

    async def found() -> tuple[int, int]:
        sections = ann.store.sections
        matches = await sections.matches(ann.scope(), question, DEFAULT)
        inside = await sections.matches(ann.scope(folder), question, DEFAULT)
        assert (matches.keyword > 0).all() and not np.isnan(matches.cosines).any()
        return len(matches.ids), len(inside.ids)

    items = await fill(ann, folder, 29)
    assert await ann.store.jobs.has_new_jobs("index", items[0].created_at) is False
    items += await fill(ann, folder, 4, 29)
    [job] = await ann.store.jobs.lease("worker", "index", limit=5, seconds=60)
    assert (job.library_id, job.item_id) == (ann.id, None)
    assert await found() == (33, 16)

    # It breaks off half-way, with writes in between.
    give = large_libraries._give_lot_keys

    def break_off(*args: Any) -> None:
        give(*args)
        raise ConnectionError

    with monkeypatch.context() as broken:
        broken.setattr(large_libraries, "_give_lot_keys", break_off)
        with pytest.raises(ConnectionError):
            await ann.store.sections.maintain(ann.id, STAMP)
    assert await state(ann) == (1, None, 0)
    items += await fill(ann, folder, 2, 33)
    assert await found() == (35, 17)
    await asyncio.gather(
        ann.store.sections.maintain(ann.id, STAMP), ann.store.items.delete(ann.scope(), items[0].id)
    )
    items.pop(0)
    assert await state(ann) == (2, STAMP, 34)
    assert [name.split("_")[1] for name in await indexes(ann.store)] == [ann.id.replace("-", "")]
    assert await found() == (34, 17)
    items += await fill(ann, folder, 6, 35)
    assert await found() == (40, 20)

    for item in items[14:]:
        await ann.store.items.delete(ann.scope(), item.id)
    assert (await found())[0] == 14
    await ann.store.sections.maintain(ann.id, STAMP)
    assert await state(ann) == (0, None, 0) and await indexes(ann.store) == []
    assert (await found())[0] == 14
    assert not any((await differences(ann.store)).values())


async def test_an_index_that_is_being_made_is_not_given_up_for_another(
    ann: Library, bob: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_thresholds(monkeypatch)
    for library in (ann, bob):
        await fill(library, await library.folder("a"), 31)
    holding, letting_go = threading.Event(), threading.Event()

    def hold(tx: Tx) -> None:
        tx.one("SELECT 1 FROM vectors LIMIT 1")
        holding.set()
        letting_go.wait(30)

    # A long read, which the first one has to wait for.
    reader = asyncio.create_task(ann.store._db.read(hold))
    await asyncio.to_thread(holding.wait, 30)
    first = asyncio.create_task(ann.store.sections.maintain(ann.id, STAMP))
    while not await ann.store._db.read(large_libraries._is_building):
        assert not first.done()
    try:
        with pytest.raises(StorageFailed):
            await asyncio.wait_for(bob.store.sections.maintain(bob.id, STAMP), 20)
    finally:
        letting_go.set()
    await asyncio.gather(reader, first)
    await bob.store.sections.maintain(bob.id, STAMP)
    assert [(await state(library))[1] for library in (ann, bob)] == [STAMP, STAMP]
    assert len(await indexes(ann.store)) == 2


async def test_another_embedder_gets_another_index(
    ann: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_thresholds(monkeypatch)
    items = await fill(ann, await ann.folder("a"), 31)
    await ann.store.sections.maintain(ann.id, STAMP)
    [before] = await indexes(ann.store)
    ids = [id for item in items for id in await ann.section_ids(item)]
    other = "it's:another/8"
    await ann.store.sections.set_vectors(
        other, {ann.id: [(id, unit(range(1, 9)).astype(np.float16).tobytes()) for id in ids]}
    )
    assert await ann.store.sections.has_other_stamp(STAMP, ann.scope())
    assert not await ann.store.sections.has_other_stamp(other, ann.scope())
    await ann.store.sections.maintain(ann.id, other)
    [after] = await indexes(ann.store)
    assert before != after
    near = await ann.store.sections.nearest(ann.scope(), unit(range(1, 9)), other, 50)
    assert len(near) == 31
    assert await ann.store.sections.nearest(ann.scope(), unit(range(1, 17)), STAMP, 50) == []
    for item in items:
        await ann.store.items.delete(ann.scope(), item.id)
    await ann.store.sections.maintain(ann.id, other)
    assert await indexes(ann.store) == []


async def scores(library: Library, folder: str) -> dict[str, list[float]]:
    """Of several questions in a folder."""
    found: dict[str, list[float]] = {}
    for word in VOCABULARY[:8]:
        question = Question(parse_query(f"{word} quartz"), unit(range(1, 17)), STAMP, 50)
        matches: Matches = await library.store.sections.matches(
            library.scope(folder), question, DEFAULT
        )
        found[word] = sorted([*matches.keyword.tolist(), *matches.cosines.tolist()])
    return found


@pytest.mark.parametrize("plan", ["counting", "counted", "by keys"])
async def test_rows_out_of_scope_change_no_score(
    ann: Library, bob: Library, monkeypatch: pytest.MonkeyPatch, plan: str
) -> None:
    if plan != "counting":
        small_thresholds(monkeypatch)
    if plan == "counted":
        monkeypatch.setattr(counts, "LARGE", 10**6)
    if plan == "by keys":
        monkeypatch.setattr(plans, "EXACT_VECTORS", 0)
    seen, hidden = await ann.folder("seen"), await ann.folder("hidden")
    await fill(ann, seen, 64)
    if plan == "by keys":
        await ann.store.sections.maintain(ann.id, STAMP)
    before = await scores(ann, seen)
    for library in (ann, bob):
        for n in range(12):
            await library.add(
                "\n\n".join(" ".join(["quartz", *VOCABULARY, str(n)]) for _ in range(20)),
                title=f"hidden {n}",
                folder=hidden if library is ann else None,
                vectors=[unit(range(1, 17))] * 20,
            )
    assert await scores(ann, seen) == before


async def test_plans_use_the_indexes_that_they_are_made_for(
    ann: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_thresholds(monkeypatch)
    folder = await ann.folder("a")
    for n in range(8):
        texts = "\n\n".join(f"quartz {m} n{n * 150 + m}x" for m in range(150))
        vectors = [unit(v) for v in np.random.default_rng(n).normal(size=(150, 16))]
        await ann.add(texts, title=f"t{n}", folder=folder if n % 2 else None, vectors=vectors)
    await ann.store.sections.maintain(ann.id, STAMP)
    asked: list[tuple[str, dict[str, Any]]] = []

    def explain(tx: Tx) -> str:
        seen = tx.tuples

        def tuples(statement: str, /, **values: Any) -> list[tuple[Any, ...]]:
            if "section_words AS w" in statement:
                asked.append((statement, values))
            return seen(statement, **values)

        tx.run("ANALYZE")
        # For so few rows it would read and sort all.
        tx.run("SET LOCAL enable_seqscan = off")
        tx.run("SET LOCAL enable_sort = off")
        tx.tuples = tuples  # type: ignore[method-assign]
        plans.matches(
            tx,
            ann.scope(),
            Question(parse_query("n7x n450x"), unit(range(1, 17)), STAMP, 20),
            DEFAULT,
        )
        statement, values = asked[-1]
        return "\n".join(row[0] for row in seen(f"EXPLAIN {statement}", **values))

    plan = await ann.store._db.write(explain)
    assert "section_words_keys" in plan and "nearest_" in plan
    assert "BitmapAnd" not in plan and "Seq Scan on section_words" not in plan


async def test_a_small_scope_is_read_once_instead_of_vector_by_vector(ann: Library) -> None:
    folder = await ann.folder("a")
    for n in range(4):
        vectors = [unit(v) for v in np.random.default_rng(n).normal(size=(100, 16))]
        texts = "\n\n".join(f"quartz {m} n{n * 100 + m}x" for m in range(100))
        await ann.add(texts, title=f"t{n}", folder=folder, vectors=vectors)

    def explain(tx: Tx, scope: Scope) -> str:
        plans_of: list[str] = []
        seen = tx.tuples

        def tuples(statement: str, /, **values: Any) -> list[tuple[Any, ...]]:
            if "section_words AS w" in statement:
                plans_of.append("\n".join(row[0] for row in seen(f"EXPLAIN {statement}", **values)))
            return seen(statement, **values)

        tx.tuples = tuples  # type: ignore[method-assign]
        question = Question(parse_query("n7x n450x"), unit(range(1, 17)), STAMP, 20)
        plans.matches(tx, scope, question, DEFAULT)
        return plans_of[-1]

    for scope in (ann.scope(), ann.scope(folder)):
        plan = await ann.store._db.write(explain, scope)
        assert "Full Join" in plan
