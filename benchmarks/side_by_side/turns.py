"""Peers with the same notes take turns: each kind of call is asked of all of them in short rounds, and only one works at a time.

Processors change their speed within minutes; so whatever is to be compared has to meet the same minutes.
"""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil

from .figures import MODES
from .install import root_of
from .peers import Peer
from .row import HERE, Row, environment, python_for

ROUNDS = 6
KINDS = (*(f"{mode}{how}" for mode in MODES for how in ("", "_16", "_scoped")), "get")
SPARE = 2 * 2**30  # bytes of memory that are left free
WORTH = 10.0  # seconds: with less, filling is not begun

# Seconds of its own that a peer may take with so many notes: what lets all of them be done in an hour.
BOUNDS = {
    1_000: 180.0,
    10_000: 160.0,
    100_000: 420.0,
}  # the slowest are given no more than a thousand
ASKING = 6  # kinds of calls at their longest: the time that is kept for asking each, whatever filling takes


def bound_of(size: int) -> float:
    return next((bound for most, bound in BOUNDS.items() if size <= most), 600.0)


def measure(
    peers: list[Peer],
    size: int,
    cache: Path,
    embedding: str,
    seconds: float,
    bound: float,
    ends: float,
) -> dict[str, dict]:
    """What was found of each, by its name. `ends`: when no part is begun any more."""
    with ExitStack() as cleared:

        def started() -> Iterator[Row]:
            for peer in peers:
                root = root_of(peer, cache)
                # Not under the cache folder: Postgres may run as another user, and its socket's path must be short.
                scratch = Path(
                    tempfile.mkdtemp(prefix="bench-", dir=root / "tmp" if root else None)
                )
                cleared.callback(shutil.rmtree, scratch, ignore_errors=True)
                command = (
                    python_for(peer, cache),
                    HERE / "harness.py",
                    f"drivers.{peer.driver}",
                    cache / "work",
                    scratch,
                    size,
                    seconds,
                )
                yield Row(
                    peer.name,
                    [str(part) for part in command],
                    environment(peer, cache, embedding, root),
                    scratch,
                    bound,
                )

        return take_turns(started(), ends, ASKING * seconds)


def take_turns(started: Iterable[Row], ends: float, asking: float) -> dict[str, dict]:
    """`started`: each is opened before the next is. Who is late or fails drops out, and the others go on."""
    rows: list[Row] = []

    def asked(part: str, *how: str, rounds: int = 1) -> None:
        called = " ".join(how) or part
        taking = [row for row in rows if row.there and _does(row.found, called)]
        for row in taking:
            if row.left < 0 or time.monotonic() > ends:
                row.missed.append(called)
        if taking:
            _say(f"{called}: {len(taking)}")
        for turn in range(rounds):
            first = turn % max(1, len(taking))
            for row in taking[first:] + taking[:first]:
                if row.there and called not in row.missed:
                    row.do(part, *how, *((turn, rounds) if rounds > 1 else ()))

    try:
        for row in started:
            _say(f"{row.name}, load {os.getloadavg()[0]:.1f}")
            rows.append(row)
            bound = row.left
            row.do("open", patience=bound)
            row.left = bound  # being ready is not what is measured
        asked("add", rounds=ROUNDS)
        for row in [row for row in rows if row.there]:
            # Of its own time, twice as much is kept: the slowest take longer than they are told to.
            left = min(
                row.left - 2 * asking,
                ends - time.monotonic() - asking * sum(row.there for row in rows),
            )
            if left < WORTH or psutil.virtual_memory().available < SPARE:
                row.leave_out(
                    "no time was left" if left < WORTH else "no memory was left beside the others"
                )
                continue
            _say(f"{row.name} is filled")
            row.do("fill", left, patience=left)
            row.left = max(
                row.left, asking
            )  # a lot may take longer than was meant, and is worth little unasked
        for kind in KINDS:
            asked("ask", kind, rounds=ROUNDS)
        asked("recall")
        asked("delete", rounds=ROUNDS)
        asked("restart")
    finally:
        for row in rows:
            row.end()
    return {row.name: row.result() for row in rows}


def _does(found: dict, kind: str) -> bool:
    mode, _, how = kind.partition("_")
    return (mode not in MODES or mode in found["modes"]) and (how != "scoped" or found["scopes"])


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)
