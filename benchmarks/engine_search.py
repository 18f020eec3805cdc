"""How long the store's part of a hybrid search takes, and how many of the true nearest it finds, on both engines.

    python benchmarks/engine_search.py --sections 100000                              # SQLite
    python benchmarks/engine_search.py --sections 100000 --database-url postgresql://...
    python benchmarks/engine_search.py --sections 20000 --embedder local --words 25   # recall on the default embedder's vectors

`hybrid` is the whole of it in one call: keyword, vectors with the cosines of the keyword hits, blending, twelve passages.
The text is the documentation and source of whatever Python packages are installed, cut into pieces of 180 words.
`--keep FOLDER` keeps the library for the next run.
"""

import argparse
import asyncio
import random
import re
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil

from commonplace.adapters.embed import make_embedder
from commonplace.core.search.search import CANDIDATES, blend
from commonplace.model import (
    WRONG,
    Content,
    Folder,
    Item,
    ItemFilter,
    ItemRef,
    Mode,
    Person,
    Scope,
    Section,
    new_id,
    new_public_id,
    now,
)
from commonplace.ports import Embedder, Question
from commonplace.settings import Settings
from commonplace.store import Store, make_store
from commonplace.text.query_terms import extra_terms, parse_query

PER_ITEM = 20
REPEATED = 3
TRUE = ItemFilter(not_statuses=(WRONG,))  # as every search asks
FOLDERS = {"0.5 %": 0.005, "2 %": 0.02, "30 %": 0.3}


def pieces(count: int, length: int = 180) -> Iterator[str]:
    seen: set[int] = set()
    for folder in ("stdlib", "purelib"):
        for path in sorted(Path(sysconfig.get_paths()[folder]).rglob("*")):
            if path.suffix in (".py", ".txt", ".md", ".rst", ".pyi") and path.is_file():
                words = re.split(
                    r"(?<=\s)(?=\S)", path.read_text(errors="ignore")[:400_000].replace("\0", " ")
                )
                for start in range(0, len(words), length):
                    text = "".join(words[start : start + length])
                    if hash(text) in seen or len(text) > 22 * length or len(text) < 3.3 * length:
                        continue
                    seen.add(hash(text))
                    yield text
                    if len(seen) == count:
                        return


async def fill(store: Store, embedder: Embedder, count: int, length: int) -> Person:
    person = Person(new_id(), "benchmark", "benchmark@example.com", now())
    await store.people.create(person)
    folders = [(Folder(new_id(), person.id, name, now()), share) for name, share in FOLDERS.items()]
    for folder, _ in folders:
        await store.folders.create(folder)
    texts, added, started = list(pieces(count, length)), 0, time.perf_counter()
    dice = random.Random(1)
    dice.shuffle(texts)
    for start in range(0, len(texts), PER_ITEM):
        batch = texts[start : start + PER_ITEM]
        vectors = (await embedder.documents([batch]))[0].astype(np.float16)
        item = Item(
            new_id(),
            person.id,
            new_public_id(),
            new_id(),
            "document",
            "text",
            f"Part {start // PER_ITEM}",
        )
        sections = [
            Section(
                n, text, extra=extra_terms(text), word_count=length, vector=vectors[n].tobytes()
            )
            for n, text in enumerate(batch)
        ]
        content = Content(item.content_id, f"{person.id}:{start}", "\n".join(batch))
        await store.items.add(
            item,
            content,
            sections,
            scope=Scope(person.id),
            folder_id=None,
            stamp=embedder.stamp,
            jobs=[],
        )
        await store.items.file(
            Scope(person.id),
            ItemRef(id=item.id),
            [f.id for f, share in folders if dice.random() < share],
            token_id=None,
        )
        added += len(batch)
        if added % 10_000 == 0:
            print(
                f"  {added} sections, {added / (time.perf_counter() - started):.0f}/s", flush=True
            )
    return person


def questions(count: int, seed: int) -> list[str]:
    """Runs of six words out of the texts themselves."""
    dice = random.Random(seed)
    texts = list(pieces(20_000))
    found = []
    while len(found) < count:
        words = re.findall(r"[A-Za-z][A-Za-z_.]+", dice.choice(texts))
        if len(words) > 20:
            start = dice.randrange(len(words) - 6)
            found.append(" ".join(words[start : start + 6]))
    return found


async def measure(
    store: Store, embedder: Embedder, scope: Scope, name: str, asked: list[str]
) -> None:
    vectors = [await embedder.query(text) for text in asked]
    spent: dict[str, list[float]] = {"keyword": [], "nearest": [], "hybrid": []}
    worked: list[float] = []
    in_postgres: list[float] = []
    for text, vector in zip(asked, vectors, strict=True):
        words = parse_query(text)
        question = Question(words, vector, embedder.stamp, CANDIDATES)
        marks = [time.perf_counter()]
        await store.sections.keyword(scope, words, CANDIDATES, TRUE)
        marks.append(time.perf_counter())
        await store.sections.nearest(scope, vector, embedder.stamp, CANDIDATES, TRUE)
        marks.append(time.perf_counter())
        busy, of_backends = time.process_time(), backends(store)
        for _ in range(REPEATED):  # the kernel counts a backend's time in hundredths of a second
            await store.sections.search(
                scope,
                question,
                lambda found, vector=vector: blend(
                    Mode.HYBRID, found, (0.7, 0.3), 12, vector=vector
                ),
                12,
                TRUE,
            )
        marks.append(marks[-1] + (time.perf_counter() - marks[-1]) / REPEATED)
        worked.append(1000 * (time.process_time() - busy) / REPEATED)
        in_postgres.append(1000 * (backends(store) - of_backends) / REPEATED)
        for part, start, end in zip(spent, marks, marks[1:], strict=False):
            spent[part].append(1000 * (end - start))
    figures = "  ".join(
        f"{part} {np.percentile(ms, 50):6.1f} / {np.percentile(ms, 95):6.1f}"
        for part, ms in spent.items()
    )
    print(
        f"{name:>8}: {figures}  "
        f"cpu-ms of hybrid: here {np.mean(worked):.1f}, in Postgres {np.mean(in_postgres):.1f}   recall@10 {await recall(store, embedder, scope, vectors):.4f}",
        flush=True,
    )


def backends(store: Store) -> float:
    """Return the processor time of Postgres' processes for this store, on this machine."""
    pool = getattr(store._db, "_pool", None)
    if pool is None:
        return 0.0
    pids = {connection.info.backend_pid for connection in pool._pool}
    return sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in pids)


async def recall(
    store: Store, embedder: Embedder, scope: Scope, vectors: list[np.ndarray]
) -> float:
    ids, matrix = await everything(store, embedder, scope)
    kept = []
    for vector in vectors:
        scores = matrix @ vector
        best = {ids[n] for n in np.argsort(-scores, kind="stable")[:10]}
        worst = float(np.sort(scores)[-10])
        found = (await store.sections.nearest(scope, vector, embedder.stamp, 10))[:10]
        # Twins score the same: one in the other's place is no miss.
        kept.append(
            sum(hit.section_id in best or hit.score >= worst - 1e-3 for hit in found)
            / min(10, len(ids))
        )
    return float(np.mean(kept))


async def everything(
    store: Store, embedder: Embedder, scope: Scope
) -> tuple[list[int], np.ndarray]:
    column = "vector" if store._db.engine == "sqlite" else "embedding::text AS vector"
    where = (
        ""
        if scope.folders is None
        else " AND item_id IN (SELECT item_id FROM folder_items WHERE folder_id IN :f)"
    )
    found = await store._db.read(
        lambda tx: [
            (r["section_id"], r["vector"])
            for r in tx.all(
                f"SELECT section_id, {column} FROM vectors WHERE stamp = :stamp{where}",
                stamp=embedder.stamp,
                f=sorted(scope.folders or ()),
            )
        ]
    )
    rows = [
        np.frombuffer(v, np.float16)
        if isinstance(v, bytes)
        else np.array(v[1:-1].split(","), np.float32)
        for _, v in found
    ]
    return [section_id for section_id, _ in found], np.array(rows, np.float32)


async def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--sections", type=int, default=100_000)
    options.add_argument("--queries", type=int, default=200)
    options.add_argument("--database-url", default="")
    options.add_argument("--embedder", default="static")
    options.add_argument(
        "--words",
        type=int,
        default=180,
        help="of a section; the local embedder takes its time over long ones",
    )
    options.add_argument("--keep", type=Path)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        store = make_store(
            Settings(
                data_dir=given.keep or Path(scratch),
                database_url=given.database_url,
                database_schema="benchmark",
            )
        )
        await store.open()
        embedder = make_embedder(
            Settings(data_dir=given.keep or Path(scratch), embedder=given.embedder)
        )
        people = await store.people.all()
        person = people[0] if people else await fill(store, embedder, given.sections, given.words)
        whole = Scope(person.id)
        folders = await store.folders.list_folders(whole)
        print(
            f"{store._db.engine}, {(await store.sections.coverage(whole, embedder.stamp))[1]} sections; p50 / p95 in ms"
        )
        for warm in (True, False):
            for name, scope in [
                ("library", whole),
                *((f.name, Scope(person.id, frozenset({f.id}))) for f in folders),
            ]:
                if warm:
                    await store.sections.nearest(
                        scope, await embedder.query("warm"), embedder.stamp, 10
                    )
                else:
                    await measure(store, embedder, scope, name, questions(given.queries, 7))
        await store.close()


if __name__ == "__main__":
    asyncio.run(main())
