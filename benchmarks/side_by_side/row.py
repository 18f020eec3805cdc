"""One peer with one number of notes: the harness in a process of its own, and nothing left behind."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from multiprocessing import Pipe
from pathlib import Path

import psutil

from .figures import MODES
from .install import python_of
from .peers import OURS, Peer

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
READY = 60.0  # seconds that any part may take beyond what it was told


class Row:
    """Does one part at a time and tells after each what it found so far. Who fails, dies or is late is not asked again."""

    def __init__(
        self, name: str, command: list[str], env: dict[str, str], scratch: Path, bound: float
    ) -> None:
        self.name, self.left = name, bound  # seconds of its own time
        self.found: dict = {}
        self.missed: list[str] = []
        self._pipe, theirs = Pipe()
        self._log = scratch / "harness.log"
        with theirs, self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno())],
                env=env,
                cwd=scratch,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )

    @property
    def there(self) -> bool:
        return not self._pipe.closed

    def do(self, part: str, *how, patience: float = 0.0) -> None:
        began = time.monotonic()
        try:
            self._pipe.send((part, *how))
            if self._pipe.poll(patience + READY):
                self.found = self._pipe.recv()
            else:
                self.found["late"] = (
                    f"{how[0] if part == 'ask' else part} was not done within {patience + READY:.0f} s"
                )
        except (EOFError, OSError):
            self.end()
            self.found["failed"] = f"exit code {self._process.returncode}: {self._said(300)}"
        self.left -= time.monotonic() - began
        if self.there and self.found.keys() & {"late", "failed"}:
            self.end()

    def leave_out(self, why: str) -> None:
        self.end()
        self.found = {"left_out": why}

    def result(self) -> dict:
        told = self.found | ({"left": self.missed} if self.missed else {})
        if "left_out" not in told and ("failed" in told or not any(mode in told for mode in MODES)):
            told.setdefault("failed", told.get("late", "there was no time to ask it anything"))
            print(f"{self.name}: {told['failed']}\n{self._said(1500)}", file=sys.stderr)
        return told

    def end(self) -> None:
        """With all that it started, servers included."""
        if not self.there:
            return
        family = psutil.Process(self._process.pid).children(recursive=True)
        self._pipe.close()
        if "late" not in self.found:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(10)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(family, timeout=10)

    def _said(self, most: int) -> str:
        return self._log.read_text(errors="replace").strip()[-most:]


def python_for(peer: Peer, cache: Path) -> Path:
    """That runs the driver."""
    return Path(sys.executable) if _by_us(peer) else python_of(peer, cache)


def environment(peer: Peer, cache: Path, embedding: str, root: Path | None) -> dict[str, str]:
    return (
        os.environ
        | peer.environment
        | {
            "PYTHONPATH": str(ROOT / "src") if _by_us(peer) else "",
            "BENCH_EMBEDDING": embedding,
            "BENCH_PEER": str(python_of(peer, cache).parent),
            "BENCH_ROOT": str(root or ""),
        }
    )


def _by_us(peer: Peer) -> bool:
    return peer.apart or peer.kind == OURS
