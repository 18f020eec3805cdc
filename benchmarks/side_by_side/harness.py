"""Gives one peer the work and measures it, part by part, as it is told. Runs in the peer's own environment.

    python harness.py MODULE WORK_FOLDER SCRATCH_FOLDER COUNT SECONDS PIPE

Each message that comes by the pipe names a part and how it is to be done; what was found so far is the answer to it.
"""

import importlib
import os
import sys
import time
import traceback
from contextlib import suppress
from itertools import cycle, islice
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).parent))
from work import GROUPS, Work

ONE_BY_ONE, CLIENTS = 200, 16
LEAST, WARM = 0.2, 3  # seconds that many clients ask for in a round; calls before those that count
RESTING = (
    3.0  # seconds without work after which nothing more is under way: some put off what can wait
)


class Costs:
    """Wall time of each call, and what all processes of the peer spent on processors meanwhile."""

    def __init__(self, driver) -> None:
        self._driver, self._asking = driver, 0.0

    def of(self, call, arguments, most: float) -> dict:
        """With each argument once, unless that takes `most` seconds: who asks again finds what the first time left at hand."""
        before, began, spent, failed = self.processor(), time.perf_counter(), [], {}
        for argument in arguments:
            start = time.perf_counter()
            if spent and start - began > most:
                break
            try:
                call(argument)
            except Exception as error:  # a peer's failure is a result, not ours to raise
                failed = {"failed": _said(error)}
                break
            spent.append(1000 * (time.perf_counter() - start))
        return {"spent": spent, "cpu_ms": 1000 * (self.processor() - before), **failed}

    def together(self, mode: str, questions: range, lot: int, least: float) -> dict:
        """Lots of calls by many clients, until `least` seconds have passed."""
        start, done, failed = time.perf_counter(), 0, {}
        try:
            while not done or time.perf_counter() - start < least:
                self._driver.together(mode, list(islice(cycle(questions), lot)), CLIENTS)
                done += lot
        except Exception as error:
            failed = {"failed": _said(error)}
        return {"calls": done, "seconds": time.perf_counter() - start, **failed}

    def processor(self) -> float:
        """The clock of this process is a fine one; what the system tells of others comes in hundredths of a second, and takes long to ask."""
        began, total, within = time.process_time(), self._driver.besides(), False
        for process in self.processes():
            if process.pid == os.getpid():
                within = True
                continue
            with suppress(psutil.Error):
                times = process.cpu_times()
                total += times.user + times.system
        ended = time.process_time()
        self._asking += ended - began  # is not the peer's
        return total + (ended - self._asking if within else 0.0)

    def rest(self, patience: float) -> float:
        """Until its processes do nothing: some go on with what they were given after it is found. Seconds."""
        began = time.monotonic()
        while time.monotonic() < began + patience:
            before = self.processor()
            self._driver.idle(RESTING)
            if self.processor() - before < 0.1 * RESTING:
                break
        return time.monotonic() - began

    def processes(self) -> list:
        found = [psutil.Process(pid) for pid in self._driver.pids()]
        return found + [child for process in found for child in process.children(recursive=True)]

    def memory_mb(self) -> float:
        return sum(process.memory_info().rss for process in self.processes()) / 1e6


def summed(rounds: list[dict]) -> dict:
    """What a kind of call cost in all rounds, and in each."""
    failed = next(({"failed": turn["failed"]} for turn in rounds if "failed" in turn), {})
    if calls := sum(turn.get("calls", 0) for turn in rounds):
        return {
            "calls_per_s": calls / sum(turn["seconds"] for turn in rounds),
            "rounds": [
                turn["calls"] / turn["seconds"] if turn["calls"] else None for turn in rounds
            ],
            **failed,
        }
    spent = [ms for turn in rounds for ms in turn.get("spent", ())]
    if not spent:
        return failed or {"failed": "nothing was asked"}
    return {
        "p50": float(np.percentile(spent, 50)),
        "p95": float(np.percentile(spent, 95)),
        "calls": len(spent),
        "cpu_ms": sum(turn["cpu_ms"] for turn in rounds) / len(spent),
        "rounds": [
            float(np.percentile(turn["spent"], 50)) if turn["spent"] else None for turn in rounds
        ],
        **failed,
    }


class Peer:
    """One method for each part. `seconds`: the longest that one kind of call is asked, in all its rounds."""

    def __init__(self, driver, work: Work, scratch: Path, seconds: float) -> None:
        self.driver, self.work, self.scratch, self.seconds = driver, work, scratch, seconds
        self.costs, self.added, self.gone, self._rounds = Costs(driver), 0, [], {}
        self._idle, self._left = np.zeros(2), None
        self._taken: dict[str, float] = {}  # seconds that a kind of call took
        self.found: dict = {
            "over": driver.over,
            "answers": driver.answers,
            "durable": driver.durable,
            "own_vectors": driver.own_vectors,
            "modes": driver.modes,
            "scopes": driver.scopes,
            "count": len(work.texts),
        }

    def do(self, part: str, *how) -> None:
        """And how busy it was while others were asked, as a share of a core: that should be next to nothing."""
        if self._left is not None:
            self._idle += self._clocks() - self._left
            self.found["busy_at_rest"] = float(self._idle[0] / max(10.0, self._idle[1]))
        getattr(self, part)(*how)
        self._left = self._clocks() if "rested_s" in self.found else None

    def _clocks(self) -> np.ndarray:
        return np.array([self.costs.processor(), time.monotonic()])

    def open(self) -> None:
        self.before, start = self.costs.memory_mb(), time.perf_counter()
        self.driver.open(self.scratch, self.work)
        self.found["start_s"] = time.perf_counter() - start
        if hasattr(self.driver, "prepare"):
            self.driver.prepare()

    def add(self, turn: int, rounds: int) -> None:
        upto = min(ONE_BY_ONE * (turn + 1) // rounds, len(self.work.texts))
        self.added += self._turn(
            "add", self.costs.of(self.driver.add, range(self.added, upto), self.seconds / rounds)
        )

    def fill(self, patience: float) -> None:
        self.found["bulk"], self.found["kept"] = bulk(
            self.driver, self.costs, range(self.added, len(self.work.texts)), 0.6 * patience
        )
        if broken := self.found["bulk"].get("failed") or self.found["add"].get("failed"):
            raise RuntimeError(broken)
        self.found["rested_s"] = self.costs.rest(0.4 * patience)
        self.found["memory_mb"] = self.costs.memory_mb() - self.before

    def ask(self, kind: str, turn: int, rounds: int) -> None:
        """The same questions in the same round, whoever is asked. Reading a note is quick, so all are read in each."""
        mode, _, how = kind.partition("_")
        # Many clients take their time with the slowest: whoever had all that was meant for a kind has no more rounds of it.
        if "failed" in self.found.get(kind, {}) or self._taken.get(kind, 0.0) > self.seconds:
            return
        began = time.monotonic()
        questions, most = range(len(self.work.questions)), self.seconds / rounds
        lots = (
            [range(self.added)]
            if mode == "get"
            else [questions[place::rounds] for place in range(rounds)]
        )
        before, numbers = lots[(turn - 1) % len(lots)], lots[turn % len(lots)]

        def call(n: int) -> None:
            if mode == "get":
                self.driver.get(n)
            else:
                self.driver.search(mode, n, Work.group(n) if how == "scoped" else None)

        # Before it counts: what is loaded by the first, and what grew cold while others were asked.
        if how == "16":
            slow = self.found[mode].get("p50", 0.0) > 20
            if not slow:
                self.costs.together(mode, before, CLIENTS, 0.0)
            self._turn(
                kind,
                self.costs.together(mode, numbers, CLIENTS * (1 if slow else 4), min(LEAST, most)),
            )
        else:
            self.costs.of(call, before[:WARM], most)
            self._turn(kind, self.costs.of(call, numbers, most))
        self._taken[kind] = self._taken.get(kind, 0.0) + time.monotonic() - began

    def recall(self) -> None:
        if (
            "semantic" in self.driver.modes
            and not self.driver.own_vectors
            and self.found["kept"] == len(self.work.texts)
        ):
            questions = range(len(self.work.questions))[:100]
            self.found["recall"] = recall(self.driver, self.work, questions, None)
            if self.driver.scopes:
                self.found["recall_scoped"] = recall(self.driver, self.work, questions, GROUPS)

    def delete(self, turn: int, rounds: int) -> None:
        lot = range(0, self.added, 4)[turn::rounds]
        self.gone += lot[
            : self._turn("delete", self.costs.of(self.driver.delete, lot, self.seconds / rounds))
        ]

    def restart(self) -> None:
        self.found["deleted_still_found"] = still_found(self.driver, self.work, self.gone)
        self.found["memory_mb"] = max(self.found["memory_mb"], self.costs.memory_mb() - self.before)
        self.driver.close()
        self.found["disk_mb"] = (
            sum(
                f.stat().st_size
                for f in self.scratch.rglob("*")
                if f.is_file() and not f.is_symlink()
            )
            / 1e6
        )
        start = time.perf_counter()
        self.driver.open(self.scratch, self.work)
        self.driver.search(self.driver.modes[0], 0)
        self.found["restart_s"] = time.perf_counter() - start
        self.driver.close()

    def _turn(self, kind: str, cost: dict) -> int:
        """How many calls it was."""
        self._rounds.setdefault(kind, []).append(cost)
        self.found[kind] = summed(self._rounds[kind])
        return len(cost.get("spent", ()))


def bulk(driver, costs: Costs, notes: range, patience: float) -> tuple[dict, int]:
    """Until all of it is found: some answer before they are done."""
    before, began, done = costs.processor(), time.perf_counter(), 0
    try:
        for start in range(notes.start, notes.stop, driver.batch):
            lot = range(start, min(start + driver.batch, notes.stop))
            laying = time.perf_counter()
            driver.lay_out(lot)
            began += time.perf_counter() - laying
            driver.bulk(lot)
            done += len(lot)
            if time.perf_counter() - began > patience:
                break
        driver.settle(patience)
    except Exception as error:
        return {"failed": _said(error)}, notes.start + done
    seconds = time.perf_counter() - began
    if not done:
        return {}, notes.start
    return {
        "per_s": done / seconds,
        "cpu_ms": 1000 * (costs.processor() - before) / done,
    }, notes.start + done


def recall(driver, work: Work, questions: range, groups: "int | None") -> float:
    shares = []
    for q in questions:
        among = (
            None
            if groups is None
            else [n for n in range(len(work.texts)) if n % groups == q % groups]
        )
        true, worst = work.exact(q, among)
        found = driver.search(
            "semantic", q, *([] if groups is None else [f"group-{q % groups:03d}"])
        )[:10]
        near = work.vectors[[int(n) for n in found]] @ work.question_vectors[q] if found else []
        shares.append(
            sum(n in true or score >= worst - 2e-3 for n, score in zip(found, near, strict=True))
            / max(1, len(true))
        )
    return float(np.mean(shares))


def still_found(driver, work: Work, gone: list[int]) -> int:
    """How many of the deleted a search for their own words brings up."""
    dead, seen = set(gone), 0
    for n in gone[:20]:
        for mode in driver.modes:
            seen += any(
                found in dead
                for found in driver.search_text(mode, work.texts[n][:200], work.vectors[n])
            )
    return seen


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]


def main() -> None:
    module, folder, scratch, count, seconds, pipe = sys.argv[1:]
    told, driver = Connection(int(pipe)), importlib.import_module(module).Driver()
    peer = Peer(driver, Work.load(Path(folder), int(count)), Path(scratch), float(seconds))
    while "failed" not in peer.found:
        try:
            part, *how = told.recv()
        except EOFError:
            break
        try:
            peer.do(part, *how)
        except Exception as error:
            traceback.print_exc()
            peer.found["failed"] = _said(error)
        told.send(peer.found)
    servers = [
        psutil.Process(pid)
        for pid in driver.pids()
        if pid != os.getpid() and psutil.pid_exists(pid)
    ]
    for server in servers:  # what a failure left behind would be measured with the others
        server.terminate()
    psutil.wait_procs(servers, timeout=5)


if __name__ == "__main__":
    main()
