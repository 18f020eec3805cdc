"""Real `commonplace` processes: commands, servers, what they say and how they feel."""

import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx
import psutil

from tests.interfaces.command import COMMAND
from torture.harness import Broken, Vitals, require

ROOT = Path(__file__).parents[1]
START_SECONDS = 60.0
CALL_SECONDS = 60.0
COMMAND_SECONDS = 200.0  # a job of a worker that was killed waits for its lease, two minutes
NO_LIMITS = {
    f"rate_{name}": "0"
    for name in ("requests_per_minute", "reads_per_hour", "writes_per_hour", "deletes_per_hour")
}
MCP_HEADERS = {
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2025-11-25",
}


# The `commonplace` command, which also saves the index of a small library to disk.
EARLY_CHECKPOINTS = [
    *COMMAND[:-1],
    f"from commonplace import store; store.CHECKPOINT_SECTIONS = 10\n{COMMAND[-1]}",
]


@dataclass
class Place:
    """One installation: a data folder, its settings, and its owner's token once there is one."""

    data_dir: Path
    settings: dict[str, str] = field(default_factory=dict)
    token: str = ""
    extra_env: dict[str, str] = field(default_factory=dict)
    program: list[str] = field(default_factory=lambda: COMMAND)

    def env(self) -> dict[str, str]:
        plain = {k: v for k, v in os.environ.items() if not k.startswith("COMMONPLACE_")}
        settings = {
            "embedder": "static",
            **NO_LIMITS,
            **self.settings,
            "data_dir": str(self.data_dir),
        }
        return {
            **plain,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            **self.extra_env,
            **{f"COMMONPLACE_{name.upper()}": value for name, value in settings.items()},
        }

    def start(self, *arguments: object, **options: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self.program, *map(str, arguments)],
            env=self.env(),
            text=True,
            start_new_session=True,
            **options,
        )

    def run(self, *arguments: object, stdin: str = "", before: list[str] | None = None) -> "Said":
        """A command, to its end."""
        try:
            done = subprocess.run(
                [*(before or []), *self.program, *map(str, arguments)],
                env=self.env(),
                text=True,
                input=stdin,
                capture_output=True,
                timeout=COMMAND_SECONDS,
            )
        except subprocess.TimeoutExpired as error:
            raise Broken(
                f"`commonplace {arguments[0]}` did not end in {COMMAND_SECONDS:.0f} s: "
                f"{str(error.stderr or '')[-500:]}"
            ) from None
        said = Said(
            f"commonplace {' '.join(map(str, arguments))}",
            done.returncode,
            done.stdout,
            done.stderr,
        )
        require(
            "Traceback" not in said.err, f"`{said.what}` shows a traceback:\n{said.err[-1500:]}"
        )
        return said

    def json(self, *arguments: object, stdin: str = "") -> Any:
        return json.loads(self.run(*arguments, "--json", stdin=stdin).well())

    @contextmanager
    def serve(self, *, quiet: bool = True) -> Iterator["Server"]:
        """A server that answers. `quiet`: a traceback in its log fails the round."""
        with tempfile.TemporaryFile("a+") as log:  # appended to, whatever is read meanwhile
            process = self.start(
                "serve", "--port", "0", "--json", stdout=subprocess.PIPE, stderr=log
            )
            server = Server(process, log)
            try:
                server.greet(self)
                yield server
            finally:
                server.stop()
            if quiet:
                server.require_quiet()


@dataclass(frozen=True)
class Said:
    what: str
    code: int
    out: str
    err: str

    def well(self) -> str:
        require(
            self.code == 0,
            f"`{self.what}` ended with {self.code}: {self.err[-1500:] or self.out[-500:]}",
        )
        return self.out

    def refused(self) -> str:
        """What it says, which must be a sentence."""
        require(self.code != 0, f"`{self.what}` claims success: {self.out[-500:]}")
        said = self.err.strip()
        require(" " in said, f"`{self.what}` ends with {self.code} and does not say why: {said!r}")
        return said


class Server:
    def __init__(self, process: subprocess.Popen[str], log: Any) -> None:
        self.process, self._log = process, log
        self.address = self.token = ""
        self.client = httpx.Client()

    def greet(self, place: Place) -> None:
        line = first_line(self.process)
        require(line, f"The server did not start: {self.log()[-1500:]}")
        said = json.loads(line)
        place.token = place.token or said["token"] or ""
        self.address, self.token = said["address"], place.token
        self.client = httpx.Client(
            base_url=self.address,
            timeout=CALL_SECONDS,
            headers={"Authorization": f"Bearer {self.token}"},
        )

    def log(self) -> str:
        self._log.seek(0)
        said: str = self._log.read()
        return said

    def require_quiet(self) -> None:
        said = self.log()
        at = said.find("Traceback")
        require(at < 0, f"The server's log has a traceback:\n{said[max(0, at - 300) : at + 3000]}")

    def kill(self) -> None:
        """kill -9, and nothing that the server started outlives it."""
        kill_alone(self.process)

    def stop(self) -> None:
        self.client.close()
        end(self.process)

    def watch(self, vitals: Vitals) -> AbstractContextManager[None]:
        """Measure /healthz and memory while something is done to the server."""
        return _watched(self, vitals)

    # -- what most parts ask for

    def add(self, text: str, title: str = "A text") -> httpx.Response:
        return self.client.post(
            "/api/v1/ingest", json={"kind": "text", "title": title, "text": text}
        )

    def search(self, query: str, mode: str = "keyword") -> list[dict[str, Any]]:
        answer = self.client.post("/api/v1/search", json={"query": query, "mode": mode})
        require(
            answer.status_code == 200, f"Search answers {answer.status_code}: {answer.text[:500]}"
        )
        body = answer.json()
        hits: list[dict[str, Any]] = body["hits"] if "hits" in body else body["results"]
        return hits

    def upload(self, name: str, media_type: str, content: bytes) -> httpx.Response:
        """The answer to finalizing, or to the first step that was refused."""
        promised = self.client.post(
            "/api/v1/uploads/signed-url",
            json={"filename": name, "content_type": media_type, "size": len(content)},
        )
        if not promised.is_success:
            return promised
        sent = self.client.put(promised.json()["url"], content=content)
        if not sent.is_success:
            return sent
        return self.client.post(
            "/api/v1/uploads/finalize-document", json={"upload_id": promised.json()["upload_id"]}
        )

    def call_tool(self, name: str, arguments: Any) -> httpx.Response:
        return self.client.post(
            "/mcp",
            headers=MCP_HEADERS,
            json={
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": name, "arguments": arguments},
            },
        )


@contextmanager
def _watched(server: Server, vitals: Vitals) -> Iterator[None]:
    before = psutil.Process(server.process.pid).memory_info().rss / 1e6
    with tempfile.TemporaryFile("w+") as out:
        prober = subprocess.Popen(
            [sys.executable, "-m", "torture.prober", server.address, str(server.process.pid)],
            stdout=out,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
        )
        try:
            yield
        finally:
            prober.terminate()
            prober.wait()
            out.seek(0)
            samples = [line.split() for line in out if line.endswith("\n")]
            vitals.health += [float(seconds) for seconds, _ in samples]
            peak = max((float(memory) for _, memory in samples), default=before)
            vitals.peak_mb = max(vitals.peak_mb, peak)
            vitals.grown_mb = max(vitals.grown_mb, peak - before)


def kill_alone(process: subprocess.Popen[str], seconds: float = 10) -> None:
    """kill -9 of one process. Those it started must end by themselves."""
    try:
        children = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        children = []
    process.kill()
    process.wait()
    if process.stdout:
        process.stdout.close()
    _, left = psutil.wait_procs(children, timeout=seconds)
    for child in left:
        child.kill()
    require(not left, f"{len(left)} processes outlive the one that started them.")


def first_line(process: subprocess.Popen[str]) -> str:
    """The first line of its output, or "" when it ends or is silent for too long."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], START_SECONDS)
    return process.stdout.readline() if ready else ""


def end(process: subprocess.Popen[str]) -> None:
    """Stop a process if it still runs, in order or by force."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.stdout:
        process.stdout.close()


def in_words(answer: httpx.Response) -> str:
    """The message of a refusal, which must be in the one shape of errors."""
    try:
        body: Mapping[str, Any] = answer.json()
        code, message = body["error"], body["message"]
    except (ValueError, KeyError, TypeError):
        raise Broken(f"{answer.status_code} is not said in words: {answer.text[:500]!r}") from None
    require(
        code != "internal_error" or answer.status_code != 500, f"An unforeseen failure: {message}"
    )
    return str(message)


class Words:
    """Words that no text has had before, so that what is searched for tells one item."""

    def __init__(self, seed: int) -> None:
        self._seed, self._count = seed, 0

    def next(self) -> str:
        self._count += 1
        return f"w{self._seed}x{self._count}"

    def __iter__(self) -> Self:
        return self

    __next__ = next
