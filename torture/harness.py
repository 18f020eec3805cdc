"""Run parts round by round: seeds, time, failures, and the table at the end."""

import math
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Event, Lock

MOST_FAILURES = 10  # a part that fails this often has said enough
MOST_HEALTH_SECONDS = 1.0


class Broken(Exception):
    """A promise of the product that did not hold."""


def require(holds: object, broken: str) -> None:
    """Fail the round unless the promise holds. Unlike `assert`, stays under `python -O`."""
    if not holds:
        raise Broken(broken)


@dataclass
class Vitals:
    """What was measured of the servers of a part while it ran."""

    health: list[float] = field(default_factory=list)  # seconds of each /healthz
    peak_mb: float = 0.0
    grown_mb: float = 0.0

    @property
    def worst(self) -> float:
        return max(self.health, default=0.0)

    @property
    def p99(self) -> float:
        ordered = sorted(self.health)
        return ordered[int(len(ordered) * 0.99)] if ordered else 0.0


@dataclass(frozen=True)
class Round:
    seed: int
    random: Random
    folder: Path  # empty, and removed afterwards


@dataclass(frozen=True)
class Plan:
    """How much of everything: the same parts take seconds in the test suite and hours at night."""

    seed: int
    scale: float = 1.0  # of the default rounds
    minutes: float = 20.0
    rounds: int | None = None  # of each part, to replay one or to try a few
    outage_seconds: float = 60.0
    timed: bool = True  # whether slow answers fail; the test suite runs on machines of any speed


@dataclass(frozen=True)
class Stage:
    """What a part gets to set itself up."""

    folder: Path
    vitals: Vitals
    plan: Plan

    def require_calm(self, most_grown_mb: float = math.inf) -> None:
        """Require that /healthz was quick, at p99 as the machine may be busy, and memory stayed."""
        vitals = self.vitals
        require(
            vitals.p99 < MOST_HEALTH_SECONDS or not self.plan.timed,
            f"/healthz took {vitals.p99:.2f} s at p99, {vitals.worst:.2f} s at worst.",
        )
        require(
            vitals.grown_mb < most_grown_mb,
            f"The server's memory grew by {vitals.grown_mb:.0f} MB to {vitals.peak_mb:.0f} MB; "
            f"{most_grown_mb:.0f} MB are allowed.",
        )


Play = Callable[[Round], None]


@dataclass(frozen=True)
class Part:
    name: str
    rounds: int  # by default
    share: float  # of the time
    open: Callable[[Stage], AbstractContextManager[Play]]
    long_rounds: int = 0  # of the long run, where more time does not say it
    at_once: int = 1  # rounds side by side


@dataclass
class Outcome:
    part: Part
    wanted: int
    played: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)
    vitals: Vitals = field(default_factory=Vitals)


def run_part(part: Part, plan: Plan, seconds: float) -> Outcome:
    """Play a part's rounds until they are done, its time is up, or it has failed often enough."""
    long_run = part.long_rounds if plan.scale > 1 else 0
    wanted = plan.rounds or long_run or max(part.at_once, round(part.rounds * plan.scale))
    outcome = Outcome(part, wanted)
    began = time.monotonic()
    deadline = began + seconds
    lock, stop = Lock(), Event()
    seeds = iter(range(plan.seed, plan.seed + wanted))

    def fail(seed: int, rounds: int, error: BaseException) -> None:
        said = (
            str(error) if isinstance(error, Broken) else "".join(traceback.format_exception(error))
        )
        replay = f"make torture ONLY={part.name} SEED={seed} ROUNDS={rounds}"
        with lock:
            outcome.failures.append(said)
            print(
                f"FAILED {part.name}, seed {seed}: {said.strip()}\n  replay: {replay}", flush=True
            )

    def take_turns(play: Play) -> None:
        while len(outcome.failures) < MOST_FAILURES and not stop.is_set():
            with lock:
                seed = next(seeds, None)
                if seed is None or (outcome.played and time.monotonic() > deadline):
                    return
                outcome.played += 1
            folder = Path(tempfile.mkdtemp(prefix=f"{part.name}-", dir=stage.folder))
            try:
                play(Round(seed, Random(seed), folder))
            except Exception as error:
                fail(seed, 1, error)
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    with temporary_folder() as folder:
        stage = Stage(folder, outcome.vitals, plan)
        try:
            with part.open(stage) as play, ThreadPoolExecutor(part.at_once) as lanes:
                try:
                    for lane in [lanes.submit(take_turns, play) for _ in range(part.at_once)]:
                        lane.result()
                finally:
                    stop.set()  # when interrupted: the rounds under way are the last ones
        except Exception as error:
            fail(plan.seed, max(1, outcome.played), error)
    outcome.seconds = time.monotonic() - began
    return outcome


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder with a short path, since sockets are kept in it."""
    folder = Path(tempfile.mkdtemp(prefix="torture-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def print_table(outcomes: list[Outcome]) -> None:
    rows = [("part", "rounds", "failures", "worst /healthz", "p99", "peak server RSS", "time")]
    for each in outcomes:
        vitals = each.vitals
        rows.append(
            (
                each.part.name,
                f"{each.played} of {each.wanted}",
                str(len(each.failures)),
                f"{vitals.worst * 1000:.0f} ms" if vitals.health else "-",
                f"{vitals.p99 * 1000:.0f} ms" if vitals.health else "-",
                f"{vitals.peak_mb:.0f} MB (+{vitals.grown_mb:.0f})" if vitals.peak_mb else "-",
                f"{each.seconds:.0f} s",
            )
        )
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    for row in rows:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )
    sys.stdout.flush()
