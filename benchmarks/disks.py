"""What the tools of the disks door cost in a library of many disks, in process and without the HTTP around them.

    python benchmarks/disks.py --disks 10000                  # the static embedder, SQLite
    python benchmarks/disks.py --disks 10000 --database-url postgresql://...

Some of the disks are published, and some of another library's are saved. Figures are medians of one caller's calls, in wall and
in processor time (of this process: Postgres works in its own).
"""

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bulk_import import texts

from commonplace.app import open_app
from commonplace.core.items.drafts import Record
from commonplace.core.services import Services
from commonplace.model import (
    Caller,
    Capability,
    DiskFilter,
    DiskScope,
    Item,
    ItemFilter,
    Mode,
    new_id,
    new_public_id,
)
from commonplace.settings import Settings

QUESTIONS = [
    "how do I parse a date",
    "connection pool timeout",
    "what does os.path.join return",
    "raise ValueError when empty",
    "iterate over the lines of a file",
    "thread safety of the cache",
    "encode bytes as base64",
    "sort a list by key",
]

LONGEST = 3_000


async def fill(app: Services, me: Caller, disks: int) -> None:
    """Texts of the installed packages, cut to a page or two; over again, under other titles, when there are too few."""
    known = [text[:LONGEST] for text in texts(min(disks, 4_000))]
    for start in range(0, disks, 500):
        await app.bulk_import.put(
            me,
            [
                Record(
                    Item(
                        id=new_id(),
                        library_id=me.library_id,
                        public_id=new_public_id(),
                        content_id="",
                        entity_type="document",
                        kind="text",
                        title=f"{known[n % len(known)].splitlines()[0][2:80]} {n}",
                    ),
                    f"{known[n % len(known)]} {n}",
                )
                for n in range(start, min(start + 500, disks))
            ],
        )
    while any(
        [(await app.store.jobs.count_open(kind, me.scope))[0] for kind in ("embed", "transform")]
    ):
        await asyncio.sleep(0.2)


async def measure(name: str, call: Callable[[int], Awaitable[object]], times: int = 200) -> None:
    for n in range(5):
        await call(n)
    wall, spent = [], time.process_time()
    for n in range(times):
        start = time.perf_counter()
        await call(n)
        wall.append(time.perf_counter() - start)
    spent = time.process_time() - spent
    print(
        f"{name}: p50 {statistics.median(wall) * 1e3:.1f} ms, p95 {sorted(wall)[int(times * 0.95)] * 1e3:.1f} ms, "
        f"{spent / times * 1e3:.1f} cpu-ms a call"
    )


async def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--disks", type=int, default=10_000)
    options.add_argument("--published", type=int, default=200)
    options.add_argument("--database-url", default="")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            data_dir=Path(folder), embedder="static", database_url=chosen.database_url
        )
        async with open_app(settings, workers=1) as app:
            await app.people.ensure_owner()
            me = await app.access.owner()
            assert me is not None
            person = await app.people.create("Other", "other@example.org")
            other = Caller(person.id, person.id, person.name, frozenset(Capability))
            await fill(app, me, chosen.disks)
            await fill(app, other, max(10, chosen.published))
            items = (await app.library.page(me, ItemFilter(), limit=1000))[0]
            for item in items[: chosen.published]:
                await app.disks.publish(me, item.id)
            for item in (await app.library.page(other, ItemFilter(), limit=chosen.published))[0]:
                await app.disks.publish(other, item.id)
                await app.disks.save(me, item.id)
            total = (await app.disks.page(me, DiskScope.ALL, DiskFilter()))[1]
            print(f"{total} disks, {chosen.published} of them published, {chosen.published} saved")
            random.seed(1)
            ids = [item.public_id for item in random.sample(items, min(200, len(items)))]
            await measure(
                "list_disks all", lambda n: app.disks.page(me, DiskScope.ALL, DiskFilter())
            )
            await measure(
                "list_disks owned, by category",
                lambda n: app.disks.page(me, DiskScope.OWNED, DiskFilter("Technology")),
            )
            await measure(
                "list_disks saved", lambda n: app.disks.page(me, DiskScope.SAVED, DiskFilter())
            )
            await measure("get_disk", lambda n: app.disks.get(me, ids[n % len(ids)]))
            await measure(
                "search_knowledge", lambda n: app.disks.search(me, QUESTIONS[n % len(QUESTIONS)])
            )
            await measure(
                "search_knowledge_base, semantic",
                lambda n: app.search.search(
                    me, QUESTIONS[n % len(QUESTIONS)], limit=5, mode=Mode.SEMANTIC
                ),
            )
            await measure(
                "search_knowledge_base, hybrid",
                lambda n: app.search.search(me, QUESTIONS[n % len(QUESTIONS)], limit=5),
            )


if __name__ == "__main__":
    asyncio.run(main())
