"""Commonplace and its peers at the same work on this machine; results as JSON, docs/benchmarks.md made of them.

    python -m benchmarks.side_by_side                          # all, up to 100,000 notes
    python -m benchmarks.side_by_side --minutes 15 --only Chroma,usearch
    python -m benchmarks.side_by_side --quick                  # ours and three engines; says what got slower
"""

import argparse
import datetime
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from . import compare, corpus, growth, quality, report
from .drivers.http_ import Http, free_port
from .install import install, python_of
from .peers import OURS, PEERS, Peer

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LAST = HERE.parent / "results" / "last.json"
QUICK = ("Commonplace, store on SQLite", "Commonplace over MCP", "usearch", "tantivy", "sqlite-vec")


def main() -> None:
    given = _options()
    cache, begun = given.cache.resolve(), time.monotonic()
    peers = [peer for peer in PEERS if (peer.name in given.only if given.only else not given.quick or peer.name in QUICK)]
    counts = given.counts or ([1_000, 10_000] if given.quick else [1_000, 10_000, 100_000])
    corpus.make(cache / "work", max(counts))
    results: dict = json.loads(given.onto.read_text()) if given.onto else {"machine": machine(), "peers": {}}
    for peer in peers:
        runs = results["peers"].get(peer.name, {}).get("runs", {})
        results["peers"][peer.name] = {"kind": peer.kind, "remark": peer.remark, "install": install(peer, cache), "runs": runs}
    with Embedding() as embedding:
        for count in counts:
            for peer in peers:
                left = given.minutes * 60 - (time.monotonic() - begun)
                results["peers"][peer.name]["runs"][str(count)] = _run(peer, count, cache, embedding, given.seconds, left, results)
                _keep(results, cache / "running.json")
    if given.data:
        results["quality"] = quality.measure(given.data, [p for p in peers if "failed" not in results["peers"][p.name]["install"]], cache)
    if given.growth:
        results["growth"] = growth.measure(given.growth, cache / "work")
    if given.quick:
        compare.show(results, json.loads(LAST.read_text()) if LAST.exists() else {"peers": {}})
        return
    for file in (LAST.with_name(f"{results['machine']['date'][:10]}.json"), LAST):
        _keep(results, file)
    report.write(results, ROOT / "docs")


def _keep(results: dict, file: Path) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")


def _options() -> argparse.Namespace:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="a few peers and 10,000 notes at most, compared with the last result")
    options.add_argument("--only", type=lambda names: names.split(";"), help="names of peers, with ; between them")
    options.add_argument("--counts", type=lambda counts: [int(n) for n in counts.split(",")])
    options.add_argument("--seconds", type=float, default=10.0, help="the longest that one kind of call is asked; adding may take 4 x that")
    options.add_argument("--minutes", type=float, default=120.0, help="no run is begun after that")
    options.add_argument("--data", type=Path, help="folder of retrieval sets: corpus.jsonl, queries.jsonl, qrels.tsv in a folder each")
    options.add_argument("--growth", type=int, default=0, help="sections to grow to")
    options.add_argument("--onto", type=Path, help="a result that this one is added to: other peers or numbers of notes")
    options.add_argument("--cache", type=Path, default=ROOT / ".cache" / "bench")
    return options.parse_args()


def _run(peer: Peer, count: int, cache: Path, embedding: str, seconds: float, left: float, results: dict) -> dict:
    told = results["peers"][peer.name]["install"]
    smaller = [run for run in results["peers"][peer.name]["runs"].values() if "failed" in run]
    if "failed" in told:
        return {"failed": f"cannot be installed here: {told['failed']}"}
    if not peer.driver:
        return {"left_out": "no driver"}
    if count > peer.largest or smaller:
        return {"left_out": "too slow for as many" if count > peer.largest else "failed with fewer"}
    if left < 10:
        return {"left_out": "no time was left"}
    print(f"{time.strftime('%H:%M:%S')} {peer.name}, {count} notes ...", file=sys.stderr, flush=True)
    # Not under the cache folder: Postgres may run as another user, and its socket's path must be short.
    scratch = Path(tempfile.mkdtemp(prefix="bench-"))
    apart = peer.apart or peer.kind == OURS
    python = Path(sys.executable) if apart else python_of(peer, cache)
    env = os.environ | peer.environment | {
        "PYTHONPATH": str(ROOT / "src") if apart else "", "BENCH_EMBEDDING": embedding,
        "BENCH_PEER": str(python_of(peer, cache).parent), "BENCH_WHERE": str(cache / "work")}
    command = [python, HERE / "harness.py", peer.driver, cache / "work", scratch, count, "--seconds", seconds]
    child = subprocess.Popen([str(part) for part in command], env=env, cwd=scratch, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, start_new_session=True)
    bound = min(left, 25 * seconds)
    try:
        out, err = child.communicate(timeout=bound)
    except subprocess.TimeoutExpired:
        _end(child)
        return {"failed": f"not done within {bound:.0f} s"}
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    line = next((line for line in out.splitlines() if line.startswith("RESULT ")), None)
    result = json.loads(line[7:]) if line else {"failed": (err.strip() or f"exit code {child.returncode}")[-300:]}
    if "failed" in result:
        print(f"  {result['failed']}\n{err[-1500:]}", file=sys.stderr)
    return result


def _end(child: subprocess.Popen) -> None:
    """With all that it started, servers included."""
    import psutil
    family = [*psutil.Process(child.pid).children(recursive=True), psutil.Process(child.pid)]
    for process in family:
        process.kill()
    psutil.wait_procs(family, timeout=10)
    child.communicate()


class Embedding:
    """The same vectors for the products that ask for them."""

    def __enter__(self) -> str:
        port = free_port()
        self._server = subprocess.Popen([sys.executable, "-m", "benchmarks.side_by_side.embedding_server", str(port)], cwd=ROOT)
        Http(port).wait("/v1/models", self._server)
        return f"http://127.0.0.1:{port}/v1"

    def __exit__(self, *_: object) -> None:
        self._server.terminate()
        self._server.wait()


def machine() -> dict:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    revision = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    return {"date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"), "cores": os.cpu_count(),
            "memory_gib": round(memory), "python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}",
            "load_before": round(os.getloadavg()[0], 1), "revision": revision}


main()
