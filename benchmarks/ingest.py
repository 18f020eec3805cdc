"""Addresses and large files, through the whole program: how fast, and in how much memory.

    python benchmarks/ingest.py pages                       # 200 pages of a local web server, two at a time
    python benchmarks/ingest.py upload --megabytes 500      # peak memory of a server that a file is sent to
    python benchmarks/ingest.py speech --minutes 180        # peak memory of a server that writes a recording down

`pages` compares the time until all vectors are there with the time that the embedder alone takes for the same passages.
Processor time includes the processes that read the pages. The files are made in a temporary folder and removed.
"""

import argparse
import asyncio
import html
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import wave
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
from bulk_import import texts

from commonplace.app import open_app
from commonplace.core.items.drafts import Draft
from commonplace.core.services import Services
from commonplace.model import Caller
from commonplace.settings import Settings
from commonplace.text import chunking

RATE = 16_000
MENU = "<nav>" + "".join(f'<a href="/{n}">Chapter {n}</a> ' for n in range(30)) + "</nav>"
SAID = (
    "Knowledge grows when people share it. A library keeps what a town has learned, and lends it to everybody who asks. "
    "The river was high in spring, and the ferry left an hour late."
)


def pages(count: int, characters: int) -> dict[str, bytes]:
    """Articles with a menu and a footer around them."""
    made = {}
    for number, text in enumerate(texts(count)):
        paragraphs = "".join(
            f"<p>{html.escape(part)}</p>"
            for part in text[:characters].split("\n\n")
            if part.strip()
        )
        made[f"/{number}"] = (
            f"<html lang=en><head><title>Article {number}</title></head><body>{MENU}<article><h1>Article "
            f"{number}</h1>{paragraphs}</article><footer>All rights reserved</footer></body></html>"
        ).encode()
    return made


@contextmanager
def serving(content: dict[str, bytes]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = content[self.path]
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@dataclass
class Watch:
    wall: float = 0.0
    cpu: float = 0.0

    def __enter__(self) -> "Watch":
        self._began = time.perf_counter(), _cpu()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall, self.cpu = time.perf_counter() - self._began[0], _cpu() - self._began[1]


def _cpu() -> float:
    """Seconds of this process and of those that it started."""
    ticks = 0
    for task in Path("/proc/self/task").iterdir():
        for child in (task / "children").read_text().split():
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


async def add_all(app: Services, caller: Caller, urls: list[str], at_once: int) -> None:
    waiting = iter(urls)

    async def work() -> None:
        for url in waiting:
            await app.library.add(caller, Draft("url", url=url))

    await asyncio.gather(*(work() for _ in range(at_once)))
    while await app.worker.run_once():
        pass


async def measure_pages(
    data: Path, count: int, characters: int, embedder: str, at_once: int
) -> None:
    content = pages(count, characters)
    with serving(content) as host:
        async with open_app(
            Settings(data_dir=data, embedder=embedder, fetch_allow_hosts=host)
        ) as app:
            await app.people.ensure_owner()
            caller = await app.access.owner()
            assert isinstance(caller, Caller)
            await app.embedder.query("load the model")
            with Watch() as whole:
                await add_all(app, caller, [f"http://{host}{path}" for path in content], at_once)
            done, sections = await app.store.sections.coverage(caller.scope, app.embedder.stamp)
            assert done == sections > 0
            items, _ = await app.library.page(caller, where=_everything(), limit=count)
            documents = [
                [
                    chunking.embedding_text(item.title, section)
                    for section in await app.store.sections.of_item(item)
                ]
                for item in items
            ]
            with Watch() as alone:
                await app.embedder.documents(documents)
    print(
        f"{len(items)} pages, {sections} sections: {whole.wall:.1f} s, {whole.cpu:.1f} cpu-s; "
        f"embedder alone {alone.wall:.1f} s, {alone.cpu:.1f} cpu-s: "
        f"{alone.wall / whole.wall:.0%} of its rate by the clock, {alone.cpu / whole.cpu:.0%} by processor time"
    )


def _everything() -> Any:
    from commonplace.model import ItemFilter

    return ItemFilter()


# -- memory


@contextmanager
def server(data: Path, **settings: str) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    env = {
        **os.environ,
        "COMMONPLACE_DATA_DIR": str(data),
        "COMMONPLACE_PORT": "8699",
        **{f"COMMONPLACE_{name.upper()}": value for name, value in settings.items()},
    }
    run = [sys.executable, "-m", "commonplace"]
    made = subprocess.run(
        [*run, "token", "create", "--name", "benchmark", "--write", "--json"],
        env=env,
        check=True,
        capture_output=True,
        text=True,
    )
    process = subprocess.Popen([*run, "serve"], env=env, text=True, stdout=subprocess.DEVNULL)
    try:
        with httpx.Client(
            base_url="http://127.0.0.1:8699",
            timeout=120,
            headers={"Authorization": f"Bearer {json.loads(made.stdout)['token']}"},
        ) as client:
            while process.poll() is None:
                try:
                    if client.get("/readyz").status_code == 200:
                        break
                except httpx.TransportError:
                    time.sleep(0.2)
            yield process, client
    finally:
        process.terminate()
        process.wait()


def peak(pid: int) -> float:
    """The most that the process ever had in memory, in MB."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1000 if found else 0.0


def send(client: httpx.Client, file: Path) -> Any:
    size = file.stat().st_size
    promised = (
        client.post(
            "/api/v1/uploads/signed-url",
            json={"filename": file.name, "content_type": "audio/wav", "size": size},
        )
        .raise_for_status()
        .json()
    )
    with file.open("rb") as opened:
        client.put(
            promised["url"],
            content=iter(lambda: opened.read(1 << 20), b""),
            headers={"Content-Length": str(size)},
        ).raise_for_status()
    return (
        client.post("/api/v1/uploads/finalize", json={"upload_id": promised["upload_id"]})
        .raise_for_status()
        .json()
    )


def measure_upload(folder: Path, megabytes: int) -> None:
    file = folder / "long.wav"
    with wave.open(str(file), "wb") as out:
        out.setparams((1, 2, RATE, 0, "NONE", ""))
        for _ in range(megabytes):
            out.writeframes(os.urandom(1_000_000))
    with server(folder / "data", workers="0") as (process, client):
        before = peak(process.pid)
        began = time.perf_counter()
        status = send(client, file)["status"]
        print(
            f"{megabytes} MB sent and finished ({status}) in {time.perf_counter() - began:.1f} s; the server's peak: "
            f"{before:.0f} MB before, {peak(process.pid):.0f} MB after"
        )


def measure_speech(folder: Path, minutes: int, embedder: str) -> None:
    spoken, file = folder / "said.wav", folder / "long.wav"
    subprocess.run(["espeak-ng", "-v", "en-us", "-w", str(spoken), SAID], check=True)
    with wave.open(str(spoken)) as said, wave.open(str(file), "wb") as out:
        out.setparams(said.getparams())
        sound, seconds = said.readframes(said.getnframes()), said.getnframes() / said.getframerate()
        for _ in range(round(minutes * 60 / seconds)):
            out.writeframes(sound)
    with server(folder / "data", embedder=embedder) as (process, client):
        before = peak(process.pid)
        item = send(client, file)["user_item_id"]
        began = time.perf_counter()
        while (found := client.get(f"/api/v1/items/{item}").json())["transcription_status"] in (
            "queued",
            "running",
        ):
            time.sleep(5)
        print(
            f"{minutes} minutes of speech ({found['transcription_status']}, {found['word_count']} words) in "
            f"{time.perf_counter() - began:.0f} s; the server's peak: {before:.0f} MB before, {peak(process.pid):.0f} MB after"
        )


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("what", choices=["pages", "upload", "speech"])
    options.add_argument("--pages", type=int, default=200)
    options.add_argument("--characters", type=int, default=4_000, help="of each page")
    options.add_argument("--at-once", type=int, default=2)
    options.add_argument("--embedder", default="local")
    options.add_argument("--megabytes", type=int, default=500)
    options.add_argument("--minutes", type=int, default=180)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if given.what == "pages":
            asyncio.run(
                measure_pages(
                    folder / "data", given.pages, given.characters, given.embedder, given.at_once
                )
            )
        elif given.what == "upload":
            measure_upload(folder, given.megabytes)
        else:
            measure_speech(folder, given.minutes, given.embedder)


if __name__ == "__main__":
    main()
