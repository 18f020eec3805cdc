"""Pictures of the web app for the docs: `.venv/bin/python tools/screenshots.py` writes docs/pictures/web-*.png."""

import asyncio
import io
import os
import re
import socket
from pathlib import Path
from tempfile import TemporaryDirectory

import uvicorn
from PIL import Image
from playwright.async_api import async_playwright

from commonplace.app import make_asgi, open_app
from commonplace.core.entities.validation import NewEntity
from commonplace.core.items.library import Draft
from commonplace.core.services import Services
from commonplace.model import Caller
from commonplace.settings import Settings

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
NOTES = {
    "Why rivers wander": (
        "Geography",
        "A bend grows because the water on its outside runs faster and takes the bank away, while on the "
        "inside it lays down sand. In the end the neck is cut through, and the old bend stays behind as an ox-bow lake.",
    ),
    "Sourdough, third attempt": (
        "Kitchen",
        "Seventy-five percent hydration, two folds an hour apart, and a night in the cold. The crumb "
        "opened at last; the crust wants five minutes more without the lid.",
    ),
    "Commonplace books": (
        "Reading",
        "For four centuries readers copied what they wanted to keep into one book, under headings of their "
        "own. Locke printed a method of indexing them in 1706, so that a passage could be found again by its first letters.",
    ),
    "Deciding on the queue": (
        "Engineering",
        "Jobs are rows, written in the same transaction as what they are about. A crash leaves neither a "
        "job without its item nor an item without its job, and running one twice is harmless.",
    ),
    "Night trains to Lisbon": (
        "Travel",
        "The night train stopped in 2020. By day it takes three trains and fourteen hours from Madrid, through "
        "cork oaks and along the Tagus, and nobody who has done it regrets the time.",
    ),
    "How owls hear": (
        "Reading",
        "A barn owl's ears sit at different heights. A sound that comes from below reaches one of them a little "
        "louder, and by that difference alone the owl strikes a mouse under snow.",
    ),
}


async def stock(app: Services, owner: Caller) -> str:
    folders = {
        name: await app.library.create_folder(owner, name)
        for name in sorted({folder for folder, _ in NOTES.values()})
    }
    items = {}
    for title, (folder, text) in NOTES.items():
        items[title] = (
            await app.library.add(owner, Draft("text", title, f"# {title}\n\n{text}"))
        ).item
        await app.library.file(owner, items[title].id, [folders[folder].id])
    await app.entities.add(
        owner,
        NewEntity(
            "One queue for both engines",
            "Rows, leased",
            "decision",
            related_to=(items["Deciding on the queue"].entity_id,),
        ),
        sync=True,
    )
    read = items["Commonplace books"]
    await app.annotations.add(
        owner,
        read.id,
        "The index was two letters: the first, and the first vowel after it.",
        position=0,
        quote="a passage could be found again by its first letters",
    )
    return read.public_id


async def stock_docs(app: Services, owner: Caller) -> None:
    """Our own pages, part by part: enough for a map."""
    for file in sorted(PICTURES.parent.rglob("*.md")):
        for part in re.split(r"^#+ (?=.+\n)", file.read_text(), flags=re.MULTILINE)[1:]:
            title, _, text = part.partition("\n")
            if len(text.split()) > 30:
                await app.library.add(
                    owner, Draft("text", title.replace("`", "").strip("# ")[:120], text)
                )


async def main() -> None:
    with TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        async with (
            open_app(
                Settings(data_dir=Path(folder), embedder="static", port=port), workers=1
            ) as app,
            async_playwright() as play,
        ):
            person = await app.people.ensure_owner()
            await app.store.accounts.rename(person.id, "Ada", "ada@example.org")
            owner = await app.access.owner()
            assert owner
            item = await stock(app, owner)
            server = uvicorn.Server(
                uvicorn.Config(
                    make_asgi(app), log_config=None, lifespan="on", timeout_graceful_shutdown=1
                )
            )
            serving = asyncio.create_task(server.serve([listener]))
            browser = await play.chromium.launch(
                executable_path="/usr/bin/chromium-headless-shell",
                args=["--no-sandbox"] if os.geteuid() == 0 else [],
            )
            page = await browser.new_page(
                base_url=f"http://127.0.0.1:{port}", viewport={"width": 1180, "height": 720}
            )
            await page.goto("/")
            await page.get_by_role("button", name="Open my library").click()
            for name, path, scheme in (
                ("library", "/", "light"),
                ("search", "/search?q=how do readers find a passage again", "light"),
                ("reader", f"/items/{item}", "dark"),
                ("map", "/graph", "light"),
            ):
                if name == "map":
                    await stock_docs(app, owner)
                await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
                await page.goto(path, wait_until="networkidle")
                picture = Image.open(io.BytesIO(await page.screenshot())).convert("RGB")
                picture.quantize(96).save(PICTURES / f"web-{name}.png", optimize=True)
            await browser.close()
            server.should_exit = True
            await serving


asyncio.run(main())
