"""What pages of the web app cost at 10,000 items in 40 folders: bytes, and milliseconds on the processor and on the clock.

python benchmarks/web_pages.py
"""

import asyncio
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import httpx

from commonplace.app import make_asgi, open_app
from commonplace.core.items.drafts import Record
from commonplace.model import Caller, Capability, Item, Role, new_id, new_public_id
from commonplace.settings import Settings

ITEMS, FOLDERS, TIMES = 10_000, 40, 15


async def main() -> None:
    with TemporaryDirectory() as folder:
        async with open_app(Settings(data_dir=Path(folder), embedder="static")) as app:
            asgi = make_asgi(app)
            async with asgi.api.router.lifespan_context(asgi.api):
                person = await app.people.ensure_owner()
                owner = Caller(
                    person.id, person.id, person.name, frozenset(Capability), role=Role.OWNER
                )
                folders = [
                    (await app.folders.create(owner, f"Folder {n:02}")).id for n in range(FOLDERS)
                ]
                for start in range(0, ITEMS, 1000):
                    await app.bulk_import.put(
                        owner, [record(owner, folders, n) for n in range(start, start + 1000)]
                    )
                cookies = {
                    "commonplace_8642": await app.accounts.open_session(person.id, "benchmark")
                }
                async with httpx.AsyncClient(
                    transport=httpx.ASGITransport(asgi),
                    base_url="http://127.0.0.1:8642",
                    cookies=cookies,
                    headers={"Accept": "text/html"},
                ) as client:
                    for name, path in {
                        "first page": "/",
                        "a folder": f"/?folder={folders[1]}",
                        "a tag": "/?tag=tag7",
                        "words in titles": "/?q=note+77",
                        "by title": "/?order=title",
                        "page 300": "/?page=300",
                        "people": "/people",
                        "account": "/account",
                        "captures": "/review/captures",
                        "health": "/health",
                        "search": "/search?q=note",
                    }.items():
                        print(await measured(client, name, path))


def record(owner: Caller, folders: list[str], n: int) -> Record:
    item = Item(
        id=new_id(),
        library_id=owner.library_id,
        public_id=new_public_id(),
        content_id="",
        entity_type="document",
        kind="text",
        title=f"Note {n}",
        tags=("some", f"tag{n % 50}"),
        summary=f"What note {n} is about.",
        in_kb=False,
        folders=(folders[n % FOLDERS],) if n % 3 else (),
    )
    return Record(item, f"The text of note {n}.", once=False)


async def measured(client: httpx.AsyncClient, name: str, path: str) -> str:
    on_processor, on_clock = [], []
    for _ in range(TIMES + 1):
        began = time.process_time(), time.perf_counter()
        answer = await client.get(path)
        answer.raise_for_status()
        on_processor.append(time.process_time() - began[0])
        on_clock.append(time.perf_counter() - began[1])
    return (
        f"{name:16} {len(answer.content) / 1000:5.1f} KB {median(on_processor[1:]) * 1000:6.1f} ms on the processor "
        f"{median(on_clock[1:]) * 1000:6.1f} on the clock"
    )


asyncio.run(main())
