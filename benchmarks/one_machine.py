"""Start, first search, idle memory, calls, and searches during an import of a server on SQLite, of several revisions by turns.

    python benchmarks/one_machine.py --keep /tmp/one --code before=../before --code now=. --notes 10000
    python benchmarks/one_machine.py --keep /tmp/one --code before=../before --code now=. --notes 5000 --words 3600 \\
        --embedder static                                                 # 100,000 sections
    python benchmarks/one_machine.py ... --import-notes 2000              # also searches while these are imported

Each revision is a working tree and has a library of its own in the folder, which is built by its own `commonplace import`
and kept for the next run. Seconds are those of the processor, of the server and its children: they hold on a busy machine.
"""

import argparse
import json
import os
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import psutil
from engine_search import pieces

QUESTIONS = (
    "how do I parse a date",
    "connection pool timeout",
    "what does os.path.join return",
    "raise ValueError when empty",
    "iterate over the lines of a file",
    "thread safety of the cache",
    "encode bytes as base64",
    "sort a list by key",
)
IDLE_SECONDS = 8.0
CALLS = 100


class Code:
    """A working tree with its library."""

    def __init__(self, name: str, tree: Path, keep: Path, embedder: str) -> None:
        self.name, self.folder = name, keep / name
        self._env = os.environ | {
            "PYTHONPATH": str(tree.resolve() / "src"),
            "PYTHONPYCACHEPREFIX": str(keep / f"{name}-bytecode"),
            "COMMONPLACE_DATA_DIR": str(self.folder),
            "COMMONPLACE_EMBEDDER": embedder,
            "COMMONPLACE_RATE_READS_PER_HOUR": "0",
            "COMMONPLACE_RATE_REQUESTS_PER_MINUTE": "0",
            "COMMONPLACE_RATE_WRITES_PER_HOUR": "0",
            "COMMONPLACE_RATE_DELETES_PER_HOUR": "0",
        }
        self._env.pop("PYTHONDONTWRITEBYTECODE", None)

    def run(self, *arguments: str) -> str:
        return subprocess.run(
            [sys.executable, "-m", "commonplace", *arguments],
            env=self._env,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout

    def build(self, notes: Path) -> None:
        if (self.folder / "token").exists():
            return
        self.folder.mkdir(parents=True)
        made = self.run("token", "create", "--name", "benchmark", "--write", "--json")
        self.run("import", str(notes), "--json")
        (self.folder / "token").write_text(json.loads(made)["token"])
        with Server(self) as server:
            while server.waiting_jobs():
                time.sleep(1)
            server.search(QUESTIONS[0])

    def start(self, port: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "commonplace", "serve", "--port", str(port)],
            env=self._env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


class Server:
    def __init__(self, code: Code) -> None:
        self._code = code
        self._token = (code.folder / "token").read_text()

    def __enter__(self) -> "Server":
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self.process = self._code.start(self._port)
        while True:
            try:
                self._get("/healthz")
                return self
            except OSError:
                if self.process.poll() is not None:
                    raise SystemExit(f"{self._code.name} does not start") from None
                time.sleep(0.02)

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def search(self, question: str) -> float:
        """Return the milliseconds that it takes."""
        start = time.perf_counter()
        found = self.ask("POST", "/api/v1/search", {"query": question, "mode": "hybrid"})
        assert found["results"], found
        return 1000 * (time.perf_counter() - start)

    def waiting_jobs(self) -> int:
        lines = self._get("/metrics", token=True).decode().splitlines()
        return sum(
            int(float(line.split()[-1]))
            for line in lines
            if re.match(r'commonplace_jobs\{.*"(queued|running)"', line)
        )

    def ask(self, method: str, path: str, body: dict[str, object] | None = None) -> dict[str, list]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}{path}",
            json.dumps(body).encode() if body is not None else None,
            {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request) as answer:
            read = answer.read()
        return json.loads(read) if read else {}

    def _get(self, path: str, token: bool = False) -> bytes:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}{path}",
            headers={"Authorization": f"Bearer {self._token}"} if token else {},
        )
        with urllib.request.urlopen(request) as answer:
            return bytes(answer.read())

    def _processes(self) -> list[psutil.Process]:
        own = psutil.Process(self.process.pid)
        return [own, *own.children(recursive=True)]

    def cpu(self) -> float:
        """Seconds of the server and of children, of which some may have ended."""
        times = psutil.Process(self.process.pid).cpu_times()
        ended = times.children_user + times.children_system
        return sum(sum(p.cpu_times()[:2]) for p in self._processes()) + ended

    def memory(self) -> float:
        """Megabytes, each shared page by its share."""
        return sum(p.memory_full_info().pss for p in self._processes()) / 1e6


def write_notes(folder: Path, count: int, words: int) -> None:
    texts = [text for _, text in zip(range(count), pieces(count, words), strict=False)]
    random.Random(1).shuffle(texts)
    for number, text in enumerate(texts):
        file = folder / f"part {number % 20}" / f"{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        title = " ".join(re.findall(r"[A-Za-z]{3,}", text)[:6])
        file.write_text(f"# {title}\n\n{text}", "utf-8", "ignore")


def started(code: Code) -> dict[str, float]:
    with Server(code) as server:
        listening = server.cpu()
        server.search(QUESTIONS[0])
        answered = server.cpu()
        time.sleep(IDLE_SECONDS)
        idle, rss = server.memory(), psutil.Process(server.process.pid).memory_info().rss / 1e6
        later = server.cpu()
        spent = [server.search(question) for question in QUESTIONS * 8]
        each = (server.cpu() - later) / len(spent)
        calls = called(server)
        return {
            "until it listens, cpu-s": listening,
            "first search, cpu-s": answered - listening,
            "until the first answer, cpu-s": answered,
            f"in the {IDLE_SECONDS:.0f} s after, cpu-s": later - answered,
            "idle memory, MB (pss)": idle,
            "idle memory, MB (rss)": rss,
            "a search, cpu-ms": 1000 * each,
            **calls,
        }


def called(server: Server) -> dict[str, float]:
    """Add, get and delete notes; what a call of each takes, its jobs included."""
    dice, added = random.Random(time.time_ns()), []
    found = {}

    def note() -> None:
        text = " ".join(f"word{dice.randrange(5_000)}" for _ in range(60))
        body = {"kind": "text", "title": text[:40], "text": text}
        added.append(server.ask("POST", "/api/v1/ingest", body)["user_item_id"])

    for name, call in {
        "an add, cpu-ms": note,
        "a get, cpu-ms": lambda: server.ask("GET", f"/api/v1/items/{added[0]}"),
        "a delete, cpu-ms": lambda: server.ask("DELETE", f"/api/v1/items/{added.pop()}"),
    }.items():
        if call is note:
            for _ in range(10):
                call()
            settle(server)
        before = server.cpu()
        for _ in range(CALLS):
            call()
        settle(server)
        found[name] = 1000 * (server.cpu() - before) / CALLS
    return found


def settle(server: Server) -> None:
    while server.waiting_jobs():
        time.sleep(0.2)


def importing(code: Code, notes: Path) -> dict[str, float]:
    """Searches with nothing else, then while the same server takes and describes many notes."""
    with Server(code) as server:
        server.search(QUESTIONS[0])
        quiet = [server.search(question) for question in QUESTIONS * 20]
        before = server.cpu()
        run = subprocess.Popen(
            [sys.executable, "-m", "commonplace", "import", str(notes), "--json"],
            env=code._env,
            stdout=subprocess.DEVNULL,
        )
        busy: list[float] = []
        while run.poll() is None or server.waiting_jobs():
            busy += [server.search(question) for question in QUESTIONS]
        found = {"quiet": quiet, "during an import": busy}
        return {
            f"search p{share}, {name}, ms": statistics.quantiles(spent, n=100)[share - 1]
            for name, spent in found.items()
            for share in (50, 95)
        } | {"searches during it": len(busy), "cpu-s of the server": server.cpu() - before}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--code", action="append", required=True, help="NAME=TREE")
    options.add_argument("--keep", type=Path, required=True)
    options.add_argument("--notes", type=int, default=10_000)
    options.add_argument("--words", type=int, default=60, help="of a note")
    options.add_argument("--embedder", default="local")
    options.add_argument("--turns", type=int, default=4)
    options.add_argument("--import-notes", type=int, default=0)
    given = options.parse_args()
    keep = given.keep.resolve() / f"{given.notes}-{given.words}-{given.embedder}"
    keep.mkdir(parents=True, exist_ok=True)
    codes = [
        Code(name, Path(tree), keep, given.embedder)
        for name, tree in (part.split("=") for part in given.code)
    ]
    if not (keep / "notes").exists():
        write_notes(keep / "notes", given.notes, given.words)
    for code in codes:
        code.build(keep / "notes")
    found: dict[str, dict[str, list[float]]] = {}

    def add(name: str, figures: dict[str, float]) -> None:
        for figure, value in figures.items():
            found.setdefault(figure, {}).setdefault(name, []).append(value)

    for _ in range(given.turns):
        for code in codes:
            add(code.name, started(code))
    if given.import_notes:
        with tempfile.TemporaryDirectory() as folder:
            write_notes(Path(folder), given.import_notes, 200)
            for code in codes:
                add(code.name, importing(code, Path(folder)))
    first = codes[0].name
    for figure, values in found.items():
        base = statistics.median(values[first])
        print(
            f"{figure:>34}: "
            + "   ".join(
                f"{name} {statistics.median(of):.3f} ({statistics.median(of) / base:.2f} of {first})"
                for name, of in values.items()
            )
        )


if __name__ == "__main__":
    main()
