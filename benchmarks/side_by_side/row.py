"""One peer with one number of notes: the harness in a process of its own, within a bound of time, and nothing left behind."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .figures import MODES
from .install import python_of, root_of
from .peers import OURS, Peer

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


# Seconds that a peer may take with so many notes: what lets all of them be done in forty minutes.
READY = 60.0  # more to start and to be prepared, which is not what is measured
BOUNDS = {1_000: 110.0, 10_000: 160.0, 100_000: 330.0}


def bound_of(size: int) -> float:
    return next((bound for most, bound in BOUNDS.items() if size <= most), 600.0)


def measure(peer: Peer, size: int, cache: Path, embedding: str, seconds: float, bound: float, told: dict) -> dict:
    """`told`: how installing it went."""
    if "failed" in told:
        return {"failed": f"cannot be installed here: {told['failed']}"}
    if size > peer.largest:
        return {"left_out": "too slow for as many"}
    if bound < 10:
        return {"left_out": "no time was left"}
    print(f"{time.strftime('%H:%M:%S')} {peer.name}, {size:,} notes, load {os.getloadavg()[0]:.1f} ...", end=" ", file=sys.stderr, flush=True)
    root, began = root_of(peer, cache), time.monotonic()
    # Not under the cache folder: Postgres may run as another user, and its socket's path must be short.
    scratch = Path(tempfile.mkdtemp(prefix="bench-", dir=root / "tmp" if root else None))
    try:
        return _within(_command(peer, size, cache, scratch, seconds, bound), environment(peer, cache, embedding, root), scratch, bound)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        print(f"{time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


def _command(peer: Peer, size: int, cache: Path, scratch: Path, seconds: float, bound: float) -> list[str]:
    return [str(part) for part in (python_for(peer, cache), HERE / "harness.py", peer.driver, cache / "work", scratch, size,
                                   "--seconds", seconds, "--bound", 0.9 * bound)]


def python_for(peer: Peer, cache: Path) -> Path:
    """That runs the driver."""
    return Path(sys.executable) if _by_us(peer) else python_of(peer, cache)


def environment(peer: Peer, cache: Path, embedding: str, root: Path | None) -> dict[str, str]:
    return os.environ | peer.environment | {
        "PYTHONPATH": str(ROOT / "src") if _by_us(peer) else "", "BENCH_EMBEDDING": embedding,
        "BENCH_PEER": str(python_of(peer, cache).parent), "BENCH_ROOT": str(root or "")}


def _by_us(peer: Peer) -> bool:
    return peer.apart or peer.kind == OURS


def _within(command: list[str], env: dict[str, str], scratch: Path, bound: float) -> dict:
    child = subprocess.Popen(command, env=env, cwd=scratch, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, errors="replace", start_new_session=True)
    late = ""
    try:
        out, err = child.communicate(timeout=bound + READY)
    except subprocess.TimeoutExpired:
        _end(child)
        out, err = child.communicate()
        late = f"not done within {bound + READY:.0f} s"
    # What it found so far is printed after each part.
    lines = [line for line in out.splitlines() if line.startswith("RESULT ")]
    result: dict = json.loads(lines[-1][7:]) if lines else {}
    if late:
        result["late"] = late
    elif child.returncode:
        result["failed"] = f"exit code {child.returncode}: {err.strip()[-300:]}"
    if "failed" in result or not any(mode in result for mode in MODES):
        result.setdefault("failed", late or "there was no time to ask it anything")
        print(f"\n  {result['failed']}\n{err[-1500:]}", file=sys.stderr)
    return result


def _end(child: subprocess.Popen[str]) -> None:
    """With all that it started, servers included."""
    import psutil
    family = [*psutil.Process(child.pid).children(recursive=True), psutil.Process(child.pid)]
    for process in family:
        process.kill()
    psutil.wait_procs(family, timeout=10)
