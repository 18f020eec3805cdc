"""How long it takes to look around in a large graph, on both engines: 100,000 items, 500,000 relations, hubs among them.

    python benchmarks/graph.py                                                        # SQLite
    python benchmarks/graph.py --database-url postgresql://...

`--keep FOLDER` keeps the library for the next run (with SQLite; the schema `benchmark_graph` stays on a server anyhow).
"""

import argparse
import asyncio
import random
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from commonplace.database.transaction import Tx
from commonplace.model import (
    Content,
    Folder,
    Item,
    ItemFilter,
    ItemRef,
    Person,
    Scope,
    new_id,
    new_public_id,
    now,
)
from commonplace.settings import Settings
from commonplace.store import Store, make_store, rows

TYPES = ("episode", "pattern", "decision", "task", "claim")
KINDS = ("RELATED_TO", "SUPPORTS", "REQUIRES", "DERIVED_FROM")
HUB = 10_000
FOLDER = 0.05


async def fill(store: Store, nodes: int, edges: int) -> Person:
    person = Person(new_id(), "benchmark", "benchmark@example.com", now())
    await store.people.create(person)
    folder = Folder(new_id(), person.id, "some", now())
    await store.folders.create(folder)
    text = Content(new_id(), f"{person.id}:one", "The text does not matter here.")
    one = Item(new_id(), person.id, new_public_id(), text.id, "episode", "text", "The hub")
    await store.items.add(
        one, text, [], scope=Scope(person.id), folder_id=folder.id, stamp="none", jobs=[]
    )
    dice = random.Random(1)
    items = [
        one,
        *(
            replace(
                one,
                id=new_id(),
                public_id=new_public_id(),
                title=f"Item {n}",
                entity_type=dice.choice(TYPES),
            )
            for n in range(nodes - 1)
        ),
    ]

    def relation(a: int, kind: str, b: int) -> dict[str, Any]:
        said = dice.random() < 0.3
        return {
            "library_id": person.id,
            "from_id": items[a].id,
            "kind": kind,
            "to_id": items[b].id,
            "explicit": int(said),
            "weight": 1.0 if said else round(dice.uniform(0.75, 1), 3),
            "created_at": dice.randrange(10**15),
        }

    found = {(0, KINDS[0], n) if n % 2 else (n, KINDS[0], 0) for n in range(1, HUB + 1)}
    while len(found) < edges:  # squares: some are joined far more often than others
        a, b = int(nodes * dice.random() ** 2), dice.randrange(nodes)
        if a != b:
            found.add((a, dice.choice(KINDS), b))

    def write(tx: Tx) -> None:
        tx.insert("items", ", ".join(rows.ITEM_COLUMNS), list(map(rows.item_values, items[1:])))
        tx.many(
            "INSERT INTO folder_items (library_id, folder_id, item_id) VALUES (:library_id, :folder_id, :item_id)",
            [
                {"library_id": person.id, "folder_id": folder.id, "item_id": item.id}
                for item in items[1:]
                if dice.random() < FOLDER
            ],
        )
        ordered = sorted(found, key=lambda _: dice.random())
        tx.many(
            """INSERT INTO relations (library_id, from_id, kind, to_id, weight, explicit, created_at)
                   VALUES (:library_id, :from_id, :kind, :to_id, :weight, :explicit, :created_at)""",
            [relation(*edge) for edge in ordered],
        )

    await store._db.write(write)
    await store._db.write(lambda tx: tx.run("ANALYZE"))
    return person


async def measure(store: Store, name: str, scope: Scope, starts: list[str], **how: Any) -> None:
    for start in starts[:3]:
        await store.relations.neighbourhood(scope, ItemRef(id=start), **how)
    spent, cpu = [], time.process_time()
    for start in starts:
        began = time.perf_counter()
        await store.relations.neighbourhood(scope, ItemRef(id=start), **how)
        spent.append(1000 * (time.perf_counter() - began))
    cpu = 1000 * (time.process_time() - cpu) / len(starts)
    print(
        f"{name:>44}: {np.percentile(spent, 50):6.1f} / {np.percentile(spent, 95):6.1f} ms, cpu {cpu:5.1f}",
        flush=True,
    )


async def starts_of(
    store: Store, person: Person, folder: Folder, count: int
) -> dict[str, list[str]]:
    """Where walks begin: anywhere, in the folder, at the hub, next to it."""

    def work(tx: Tx) -> dict[str, list[str]]:
        hub = tx.all("SELECT id FROM items WHERE title = 'The hub'")[0]["id"]
        every = [row["id"] for row in tx.all("SELECT id FROM items ORDER BY id")]
        inside = [
            row["item_id"]
            for row in tx.all(
                "SELECT item_id FROM folder_items WHERE folder_id = :f ORDER BY item_id",
                f=folder.id,
            )
        ]
        beside = [
            row["to_id"]
            for row in tx.all(
                "SELECT to_id FROM relations WHERE from_id = :hub ORDER BY to_id", hub=hub
            )
        ]
        dice = random.Random(2)
        return {
            "anywhere": dice.choices(every, k=count),
            "inside": dice.choices(inside, k=count),
            "hub": [hub] * count,
            "beside": dice.choices(beside, k=count),
        }

    return await store._db.read(work)


async def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--nodes", type=int, default=100_000)
    options.add_argument("--edges", type=int, default=500_000)
    options.add_argument("--walks", type=int, default=200)
    options.add_argument("--database-url", default="")
    options.add_argument("--keep", type=Path)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        store = make_store(
            Settings(
                data_dir=given.keep or Path(scratch),
                database_url=given.database_url,
                database_schema="benchmark_graph",
            )
        )
        await store.open()
        people = await store.people.all()
        person = people[0] if people else await fill(store, given.nodes, given.edges)
        whole, (folder,) = Scope(person.id), await store.folders.list_folders(Scope(person.id))
        some, starts = (
            Scope(person.id, frozenset({folder.id})),
            await starts_of(store, person, folder, given.walks),
        )
        print(f"{store._db.engine}; limit 50, p50 / p95")
        for depth in (1, 2, 3):
            for where in ("anywhere", "beside", "hub"):
                await measure(
                    store, f"depth {depth}, {where}", whole, starts[where], depth=depth, limit=50
                )
            await measure(
                store,
                f"depth {depth}, folder of {FOLDER:.0%}",
                some,
                starts["inside"],
                depth=depth,
                limit=50,
            )
            await measure(
                store,
                f"depth {depth}, folder of {FOLDER:.0%}, hub",
                some,
                starts["hub"],
                depth=depth,
                limit=50,
            )
            await measure(
                store,
                f"depth {depth}, one kind, one type, hub",
                whole,
                starts["hub"],
                depth=depth,
                limit=50,
                kinds=["RELATED_TO"],
                where=ItemFilter(entity_types=("pattern",)),
            )
        await store.close()


if __name__ == "__main__":
    asyncio.run(main())
