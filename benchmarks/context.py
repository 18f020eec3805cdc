"""How long a context pack takes: `python benchmarks/context.py [entities] [--postgres URL]`. Prints cpu and wall time, in ms."""

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from pathlib import Path

from commonplace.app import open_app
from commonplace.core.items.drafts import Record
from commonplace.core.memory.context import Goal
from commonplace.model import Caller, Capability, Item, Kind, Relation, new_id, new_public_id
from commonplace.settings import Settings

TYPES = ["episode"] * 5 + [
    "decision",
    "claim",
    "pattern",
    "procedure",
    "plan",
    "idea",
    "task",
    "task",
    "document",
]
STATUSES = ["todo"] * 4 + ["done"] * 10 + ["doing", "blocked"]
SUBJECTS = (
    "cache invalidation",
    "token rotation",
    "schema migration",
    "queue retries",
    "image upload",
    "search ranking",
    "invoice export",
    "rate limiting",
    "password reset",
    "webhook delivery",
    "backup restore",
    "feature flags",
    "audit log",
    "mobile layout",
)
VERBS = (
    "failed under load",
    "was decided in the review",
    "takes two steps",
    "depends on the index",
    "needs a lock",
    "was moved to the worker",
    "broke after the upgrade",
    "is limited to ten a second",
    "must never run twice",
    "was measured again",
)


def entity(number: int, pick: random.Random, library_id: str) -> Record:
    kind = pick.choice(TYPES)
    subject = pick.choice(SUBJECTS)
    text = " ".join(
        f"The {pick.choice(SUBJECTS)} {pick.choice(VERBS)} in part {pick.randrange(999)}."
        for _ in range(pick.randrange(3, 14))
    )
    return Record(
        Item(
            new_id(),
            library_id,
            new_public_id(),
            "",
            kind,
            "text",
            f"{subject.capitalize()} {number}",
            summary=text[:160],
            status=pick.choice(STATUSES) if kind == "task" else "",
            priority="medium" if kind == "task" else "",
        ),
        text,
        once=False,
    )


async def main(count: int, postgres: str) -> None:
    pick = random.Random(7)
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            data_dir=Path(folder),
            embedder="static",
            database_url=postgres,
            database_schema=f"bench_{new_id()[:8]}",
        )
        async with open_app(settings) as app:
            person = await app.people.ensure_owner()
            caller = Caller(person.id, person.id, person.name, frozenset(Capability))
            records = [entity(n, pick, caller.library_id) for n in range(count)]
            projects = [
                Record(
                    Item(
                        new_id(),
                        caller.library_id,
                        new_public_id(),
                        "",
                        "project",
                        "text",
                        f"Project {n}",
                    ),
                    f"Project {n}.",
                )
                for n in range(20)
            ]
            for start in range(0, count, 500):
                await app.bulk_import.put(caller, records[start : start + 500])
            await app.bulk_import.put(caller, projects)
            await app.store.relations.put(
                caller.scope,
                [
                    Relation(
                        caller.library_id,
                        record.item.id,
                        Kind.BELONGS_TO,
                        pick.choice(projects).item.id,
                    )
                    for record in records
                ],
            )
            while await app.worker.run_once():
                pass
            for name, wish in {
                "whole library": {},
                "one project": {"project": projects[0].item.id},
            }.items():
                walls, cpus, sizes = [], [], []
                for n in range(40):
                    goal = Goal(
                        f"{pick.choice(SUBJECTS)} {pick.choice(VERBS)}, and {pick.choice(SUBJECTS)} {n}",
                        **wish,
                    )
                    wall, cpu = time.perf_counter(), time.process_time()
                    pack = await app.context.pack(caller, goal)
                    walls.append(1000 * (time.perf_counter() - wall))
                    cpus.append(1000 * (time.process_time() - cpu))
                    sizes.append(len(pack.packed.lines))
                print(
                    f"{count} entities, {name}: wall p50 {statistics.median(walls):.1f} ms, p95 {sorted(walls)[37]:.1f}; "
                    f"cpu p50 {statistics.median(cpus):.1f}; lines {statistics.median(sizes):.0f}"
                )
            await app.store.drop()  # type: ignore[attr-defined]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("count", nargs="?", type=int, default=10_000)
    parser.add_argument("--postgres", default="")
    given = parser.parse_args()
    asyncio.run(main(given.count, given.postgres))
