"""How long it takes to say what to do next among very many open tasks: `python benchmarks/planning.py [--tasks 20000] [--postgres URL]`.

`--waiting 2`: every second of the tasks depends on one or two others. A tenth stand in one long chain. Prints cpu and wall time of this process, in ms.
"""

import argparse
import asyncio
import gc
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from commonplace.app import open_app
from commonplace.database.transaction import Tx
from commonplace.model import Caller, Capability, Content, Item, Scope, new_id, new_public_id
from commonplace.settings import Settings
from commonplace.store import Store, rows

STATUSES = ("todo", "todo", "todo", "backlog", "doing", "blocked", "review")
PRIORITIES = ("critical", "high", "medium", "medium", "low", "someday")


async def fill(store: Store, library_id: str, count: int, waiting: int) -> str:
    dice = random.Random(3)
    text = Content(new_id(), f"{library_id}:one", "The text does not matter here.")
    project = Item(new_id(), library_id, new_public_id(), text.id, "project", "text", "The project")
    await store.items.add(
        project, text, [], scope=Scope(library_id), folder_id=None, stamp="none", jobs=[]
    )
    tasks = [
        Item(
            new_id(),
            library_id,
            new_public_id(),
            text.id,
            "task",
            "text",
            f"Task {n}",
            status=dice.choice(STATUSES),
            priority=dice.choice(PRIORITIES),
            due_date=f"2026-{dice.randrange(1, 13):02}-15" if n % 3 else None,
            assignees=("ann",) if n % 4 else (),
            metadata={"notes": ["A word on how it went."]},
        )
        for n in range(count)
    ]
    waits = {
        (tasks[n].id, tasks[dice.randrange(n)].id)
        for n in range(1, count)
        if n % waiting == 0
        for _ in range(dice.randrange(1, 3))
    }
    waits |= {(tasks[n].id, tasks[n - 1].id) for n in range(1, count // 10)}

    def write(tx: Tx) -> None:
        tx.insert("items", ", ".join(rows.ITEM_COLUMNS), list(map(rows.item_values, tasks)))
        tx.many(
            """INSERT INTO relations (library_id, from_id, kind, to_id, weight, explicit, created_at)
                   VALUES (:library_id, :from_id, :kind, :to_id, 1.0, 1, 0)""",
            [
                {
                    "library_id": library_id,
                    "from_id": task.id,
                    "kind": "BELONGS_TO",
                    "to_id": project.id,
                }
                for task in tasks
            ]
            + [
                {"library_id": library_id, "from_id": a, "kind": "DEPENDS_ON", "to_id": b}
                for a, b in waits
            ],
        )

    await store._db.write(write)
    await store._db.write(lambda tx: tx.run("ANALYZE"))
    return project.id


async def measure(name: str, ask: Callable[[], Awaitable[Any]], times: int) -> None:
    await ask()
    cpu, wall = [], []
    for _ in range(times):
        began, worked = time.perf_counter(), time.process_time()
        await ask()
        wall.append(1000 * (time.perf_counter() - began))
        cpu.append(1000 * (time.process_time() - worked))
    print(
        f"{name:>24}: cpu {statistics.median(cpu):6.1f}, wall {statistics.median(wall):6.1f}",
        flush=True,
    )


async def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--tasks", type=int, default=20_000)
    options.add_argument("--waiting", type=int, default=10)
    options.add_argument("--times", type=int, default=10)
    options.add_argument("--postgres", default="")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            data_dir=Path(folder),
            embedder="static",
            database_url=given.postgres,
            database_schema=f"bench_{new_id()[:8]}",
        )
        async with open_app(settings) as app:
            person = await app.people.ensure_owner()
            assert isinstance(app.store, Store)
            project = await fill(app.store, person.id, given.tasks, given.waiting)
            gc.freeze()  # as the server does
            caller = Caller(person.id, person.id, person.name, frozenset(Capability))
            for name, asked in (("project", project), ("library", None)):
                await measure(
                    f"suggest, {name}",
                    lambda asked=asked: app.planning.suggest(caller, asked),
                    given.times,
                )
                await measure(
                    f"prioritize, {name}",
                    lambda asked=asked: app.planning.prioritize(caller, asked, limit=100),
                    given.times,
                )
                await measure(
                    f"detect_cycles, {name}",
                    lambda asked=asked: app.planning.cycles(caller, asked),
                    given.times,
                )
            await app.store.drop()


if __name__ == "__main__":
    asyncio.run(main())
