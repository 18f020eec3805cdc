"""How long `add` takes beyond embedding, with and without looking for what is alike, in a library of many sections.

    python benchmarks/adding.py --sections 100000                              # SQLite
    python benchmarks/adding.py --sections 100000 --database-url postgresql://...

The library is that of engine_search.py (`--keep FOLDER` shares it; what is added stays in it). With the `static` embedder, whose
own time is told too, so that what is left can be seen: validation, cutting, describing, conflicts, one transaction. A worker
runs beside it, as it does in a server.
"""

import argparse
import asyncio
import re
import tempfile
import time
from pathlib import Path

import numpy as np
from engine_search import fill, pieces

from commonplace.adapters.embed.wordllama import StaticEmbedder
from commonplace.app import open_app
from commonplace.core.entities.entities import Entities
from commonplace.core.entities.validation import NewEntity
from commonplace.model import Caller, Capability
from commonplace.settings import Settings
from commonplace.store import make_store


async def measure(
    entities: Entities, caller: Caller, texts: list[str], name: str, **how: bool
) -> None:
    walls, busy = [], []
    for text in texts:
        words = re.findall(r"\w+", text)
        new = NewEntity(" ".join(words[:8])[:200], text, technologies=("python",))
        began, worked = time.perf_counter(), time.process_time()
        await entities.add(caller, new, **how)
        walls.append(1000 * (time.perf_counter() - began))
        busy.append(1000 * (time.process_time() - worked))
    print(
        f"{name:>18}: {np.percentile(walls, 50):6.1f} / {np.percentile(walls, 95):6.1f} ms, "
        f"on the processor {np.percentile(busy, 50):.1f}",
        flush=True,
    )


async def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--sections", type=int, default=100_000)
    options.add_argument("--adds", type=int, default=100)
    options.add_argument("--database-url", default="")
    options.add_argument("--keep", type=Path)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        settings = Settings(
            data_dir=given.keep or Path(scratch),
            database_url=given.database_url,
            database_schema="benchmark",
            embedder="static",
        )
        store = make_store(settings)
        await store.open()
        people = await store.people.all()
        person = (
            people[0]
            if people
            else await fill(store, StaticEmbedder(settings), given.sections, 180)
        )
        await store.close()
        async with open_app(settings, workers=1) as app:
            caller = Caller(person.id, person.id, person.name, frozenset(Capability))
            known = list(pieces(3 * given.adds + 40))
            texts = [text for n, text in enumerate(known) if n >= 40]
            for n, warm in enumerate(known[:40]):
                await app.entities.add(
                    caller, NewEntity(f"Warm {n}", warm), check_conflicts=n % 2 == 0
                )
            third = given.adds
            print(f"{'postgres' if given.database_url else 'sqlite'}; p50 / p95 of a call")
            await measure(app.entities, caller, texts[:third], "conflicts", check_conflicts=True)
            await measure(
                app.entities,
                caller,
                texts[third : 2 * third],
                "skip_conflicts",
                check_conflicts=False,
            )
            spent = []
            for text in texts[2 * third :]:
                began = time.perf_counter()
                await app.embedder.documents([[text]])
                spent.append(1000 * (time.perf_counter() - began))
            print(
                f"{'embedding alone':>18}: {np.percentile(spent, 50):6.1f} ms, which `conflicts` includes"
            )


if __name__ == "__main__":
    asyncio.run(main())
