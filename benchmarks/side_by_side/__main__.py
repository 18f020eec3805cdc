"""Commonplace and its peers at the same work on this machine; results as JSON, docs/lab/benchmarks.md made of them.

python -m benchmarks.side_by_side                                    # all peers, up to 100,000 notes
python -m benchmarks.side_by_side --only sqlite,qdrant --sizes 10000 # these take turns and replace their rows of the last result
python -m benchmarks.side_by_side --parts quality --data FOLDER      # likewise
python -m benchmarks.side_by_side --parts growth --growth 1000000
python -m benchmarks.side_by_side --parts report                     # docs/lab/benchmarks.md again, nothing is measured
python -m benchmarks.side_by_side --quick                            # ours and three engines; says what got slower
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

from . import compare, corpus, growth, limits, quality, report
from .drivers.http_ import Http, free_port
from .install import install
from .peers import OURS, PEERS, Peer
from .row import HERE, ROOT
from .turns import bound_of, measure

RESULTS = HERE.parent / "results"
LAST = RESULTS / "last.json"
PARTS = ("rows", "limits", "quality", "growth", "report")
QUICK = {"sqlite": 10_000, "mcp": 1_000, "usearch": 10_000, "tantivy": 10_000, "sqlite-vec": 10_000}


def main() -> None:
    given = _options()
    cache, begun = given.cache.resolve(), time.monotonic()
    os.environ.pop(
        "PYTHONDONTWRITEBYTECODE", None
    )  # what we run is compiled once, as what peers run was at their installation
    peers = [peer for peer in PEERS if not given.only or peer.key in given.only]
    sizes = given.sizes or ([1_000, 10_000] if given.quick else [1_000, 10_000, 100_000])
    groups = [
        (size, [peer for peer in peers if not given.quick or QUICK.get(peer.key) == size])
        for size in sizes
    ]
    known = json.loads(LAST.read_text()) if LAST.exists() else {"peers": {}}
    results: dict = {"peers": {}} if given.quick else known
    results["machine"] = machine()
    if set(given.parts) - {"report"}:
        corpus.make(cache / "work", max(sizes))
    if "rows" in given.parts or given.quick:
        _rows(results, groups, cache, given, begun)
    if "limits" in given.parts and not given.quick:
        results["limits"] = limits.measure(cache / "work") | {"measured": moment()}
        _keep(results, cache / "running.json")
    if "quality" in given.parts:
        judged = [
            peer for peer in peers if peer.kind == OURS or "failed" not in install(peer, cache)
        ]
        with Embedding() as embedding:
            quality.measure(
                given.data, judged, cache, embedding, results.setdefault("quality", {}), moment()
            )
    if "growth" in given.parts:
        results.setdefault("growth", {}).update(
            growth.measure(
                given.growth, given.engines, cache / "work", given.minutes * 60, moment()
            )
        )
    if given.quick:
        compare.show(results, known)
        return
    for file in (RESULTS / f"{results['machine']['date'][:10]}.json", LAST):
        _keep(results, file)
    report.write(results, ROOT / "docs")


def _rows(
    results: dict,
    groups: list[tuple[int, list[Peer]]],
    cache: Path,
    given: argparse.Namespace,
    begun: float,
) -> None:
    for peer in {peer.key: peer for _, peers in groups for peer in peers}.values():
        row = results["peers"].setdefault(peer.name, {"runs": {}})
        row |= {"kind": peer.kind, "remark": peer.remark, "install": install(peer, cache)}
    with Embedding() as embedding:
        for size, peers in groups:
            found, when = {peer.name: _unfit(peer, size, results) for peer in peers}, moment()
            # Ours before theirs: should time run out, it does so where it matters least.
            fit = [peer for peer in peers if not found[peer.name]]
            found |= measure(
                fit,
                size,
                cache,
                embedding,
                given.seconds,
                given.bound or bound_of(size),
                begun + 60 * given.minutes,
            )
            for name, run in found.items():
                runs = results["peers"][name]["runs"]
                # What was not tried this time takes away nothing that was.
                if "left_out" not in run or "left_out" in runs.get(str(size), run):
                    runs[str(size)] = run | {"measured": when}
            _keep(results, cache / "running.json")


def _unfit(peer: Peer, size: int, results: dict) -> dict:
    """Why it is not measured with as many, or nothing."""
    if failed := results["peers"][peer.name]["install"].get("failed"):
        return {"failed": f"cannot be installed here: {failed}"}
    return {"left_out": "for want of time it is not given as many"} if size > peer.largest else {}


def _keep(results: dict, file: Path) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")


def _options() -> argparse.Namespace:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "--quick",
        action="store_true",
        help="a few peers and 10,000 notes at most, compared with the last result",
    )
    options.add_argument(
        "--parts", type=_list(PARTS), default=["rows", "limits"], help=f"some of {', '.join(PARTS)}"
    )
    options.add_argument(
        "--only",
        type=_list([peer.key for peer in PEERS]),
        help=f"some of {', '.join(peer.key for peer in PEERS)}",
    )
    options.add_argument(
        "--sizes", type=lambda sizes: [int(n) for n in sizes.split(",")], help="numbers of notes"
    )
    options.add_argument(
        "--seconds",
        type=float,
        default=4.0,
        help="the longest that one kind of call is asked of a peer, in all rounds",
    )
    options.add_argument(
        "--bound", type=float, help="seconds that one peer may take with one number of notes"
    )
    options.add_argument(
        "--minutes",
        type=float,
        default=65.0,
        help="no part is begun after that; what growing may take, of all engines",
    )
    options.add_argument(
        "--data",
        type=Path,
        help="folder of retrieval sets: corpus.jsonl, queries.jsonl, qrels.tsv in a folder each",
    )
    options.add_argument("--growth", type=int, default=1_000_000, help="sections to grow to")
    options.add_argument(
        "--engines", type=_list(growth.ENGINES), default=list(growth.ENGINES), help="that are grown"
    )
    options.add_argument("--cache", type=Path, default=ROOT / ".cache" / "bench")
    given = options.parse_args()
    if "quality" in given.parts and not given.data:
        options.error("--parts quality needs --data FOLDER")
    return given


def _list(known: tuple[str, ...] | list[str]):
    def parts(text: str) -> list[str]:
        names = text.split(",")
        if unknown := set(names) - set(known):
            raise argparse.ArgumentTypeError(
                f"there is no {', '.join(sorted(unknown))}; there are {', '.join(known)}"
            )
        return names

    return parts


class Embedding:
    """The same vectors for the products that ask for them."""

    def __enter__(self) -> str:
        port = free_port()
        self._server = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.side_by_side.embedding_server", str(port)], cwd=ROOT
        )
        Http(port).wait("/v1/models", self._server)
        return f"http://127.0.0.1:{port}/v1"

    def __exit__(self, *_: object) -> None:
        self._server.terminate()
        self._server.wait()


def moment() -> dict:
    """Of what, when, and how busy the machine was: each row has its own."""
    code = ("src", "benchmarks/side_by_side", "pyproject.toml", "requirements.txt")
    revision, changed = (
        subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True).stdout.strip()
        for command in (("describe", "--always"), ("status", "--porcelain", "--", *code))
    )
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "revision": revision,
        "dirty": bool(changed),
        "load": round(os.getloadavg()[0], 1),
    }


def machine() -> dict:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "date": moment()["date"],
        "cores": os.cpu_count(),
        "memory_gib": round(memory),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }


if __name__ == "__main__":
    main()
