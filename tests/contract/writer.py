"""A process that writes: `python -m tests.contract.writer DATA_DIR URL SCHEMA CLIENTS ROUNDS` (0 rounds: until killed).

It tells each acknowledged write on a line of its own: `+id` added, `?id` about to be deleted, `-id` deleted.
"""

import asyncio
import sys
from pathlib import Path

import numpy as np

from commonplace.model import ItemRef
from commonplace.settings import Settings
from commonplace.store import make_store
from tests.contract.library import STAMP, Library, cut, unit


def telling_word(item_id: str) -> str:
    """A word that this item's text has and no other's."""
    return "w" + item_id.replace("-", "")


async def client(library: Library, folder: str, name: str, rounds: int) -> None:
    random, done = np.random.default_rng(), 0
    while rounds == 0 or done < rounds:
        done += 1
        item = await library.add(
            f"draft {name} {done}\n\nsecond part",
            title=f"{name} {done}",
            folder=folder,
            job=True,
            vectors=[unit(random.normal(size=16)) for _ in range(2)],
        )
        await library.store.items.update(
            library.scope(),
            item.id,
            {"summary": "whole"},
            expected_revision=1,
            stamp=STAMP,
            sections=cut(f"{telling_word(item.id)} one\n\n{telling_word(item.id)} two"),
            jobs=(),
        )
        print(f"+{item.id}", flush=True)
        if done % 3 == 0:
            await library.store.items.unfile(library.scope(), ItemRef(id=item.id), folder)
        if done % 2 == 0:
            print(f"?{item.id}", flush=True)
            await library.store.items.delete(library.scope(), item.id)
            print(f"-{item.id}", flush=True)


async def main(data_dir: str, url: str, schema: str, clients: int, rounds: int) -> None:
    store = make_store(Settings(data_dir=Path(data_dir), database_url=url, database_schema=schema))
    await store.open()
    library = await Library.create(store, "writer")
    folder = await library.folder("shared")
    await asyncio.gather(*(client(library, folder, f"c{n}", rounds) for n in range(clients)))
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])))
