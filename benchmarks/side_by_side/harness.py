"""Gives one peer the work and measures it. Runs in the peer's own environment; prints one JSON object.

    python harness.py DRIVER WORK_FOLDER SCRATCH_FOLDER COUNT [--seconds N] [--bound N]

What was found so far is printed after each part: who ends a run that takes too long keeps that.
"""

import argparse
import importlib
import json
import os
import sys
import time
import traceback
from itertools import cycle
from pathlib import Path

import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).parent))
from work import GROUPS, Work

ONE_BY_ONE, CLIENTS = 200, 16
LEAST = 0.4  # seconds that reading calls are repeated for: a few of a tenth of a millisecond say little
RESTING = 3.0  # seconds without work after which nothing more is under way: some put off what can wait


class Costs:
    """Wall time of each call, and what all processes of the peer spent on processors meanwhile."""

    def __init__(self, driver, patience: float) -> None:
        self._driver, self._patience = driver, patience

    def of(self, call, arguments, again: bool = True) -> dict:
        before, began, spent, failed = self.processor(), time.perf_counter(), [], None
        for n, argument in enumerate(cycle(arguments) if again else arguments):
            start = time.perf_counter()
            if start - began > (self._patience if n < len(arguments) else LEAST):
                break
            try:
                call(argument)
            except Exception as error:  # a peer's failure is a result, not ours to raise
                failed = _said(error)
                break
            spent.append(1000 * (time.perf_counter() - start))
        if not spent:
            return {"failed": failed or "nothing was asked"}
        return {"p50": float(np.percentile(spent, 50)), "p95": float(np.percentile(spent, 95)), "calls": len(spent),
                "cpu_ms": 1000 * (self.processor() - before) / len(spent), **({"failed": failed} if failed else {})}

    def together(self, mode: str, questions: list[int], alone: float) -> dict:
        """Calls a second with many clients; as many as take about a second or two. `alone`: ms of one."""
        start, done, lot = time.perf_counter(), 0, CLIENTS * (4 if alone < 50 else 1)
        try:
            while time.perf_counter() - start < min(2.0, self._patience):
                self._driver.together(mode, (questions * 4)[:lot], CLIENTS)
                done += lot
        except Exception as error:
            return {"failed": _said(error)}
        return {"calls_per_s": done / (time.perf_counter() - start)}

    def processor(self) -> float:
        """The clock of this process is a fine one; what the system tells of others comes in hundredths of a second."""
        total = self._driver.besides()
        for process in self.processes():
            if process.pid == os.getpid():
                total += time.process_time()
                continue
            try:
                times = process.cpu_times()
                total += times.user + times.system
            except psutil.Error:
                pass
        return total

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


def run(driver, work: Work, scratch: Path, patience: float, bound: float, result: dict) -> None:
    costs, count, ends = Costs(driver, patience), len(work.texts), 0.0
    result |= {"over": driver.over, "answers": driver.answers, "durable": driver.durable, "own_vectors": driver.own_vectors,
               "modes": driver.modes, "count": count}

    def begin(part: str) -> None:
        _tell(result)
        print(f"{time.strftime('%H:%M:%S')} {part}", file=sys.stderr, flush=True)

    def late(part: str) -> bool:
        begin(part)
        if time.monotonic() > ends:
            result.setdefault("left", []).append(part)
            return True
        return False

    before, start = costs.memory_mb(), time.perf_counter()
    driver.open(scratch, work)
    result["start_s"] = time.perf_counter() - start
    if hasattr(driver, "prepare"):
        driver.prepare()
    ends = time.monotonic() + bound
    begin("add")
    result["add"] = costs.of(driver.add, range(min(ONE_BY_ONE, count)), again=False)
    added = result["add"].get("calls", 0)
    begin("bulk")
    result["bulk"], result["kept"] = bulk(driver, costs, range(added, count), max(patience, 0.6 * (ends - time.monotonic())))
    ends = max(ends, time.monotonic() + 6 * patience)  # a lot may take longer than was meant, and is worth little unasked
    if broken := result["bulk"].get("failed") or result["add"].get("failed"):
        raise RuntimeError(broken)
    result["rested_s"] = costs.rest(0.6 * (ends - time.monotonic()))
    result["memory_mb"] = costs.memory_mb() - before
    questions = list(range(len(work.questions)))
    for mode in driver.modes:
        if late(mode):
            continue
        costs.of(lambda q, mode=mode: driver.search(mode, q), questions[:5], again=False)  # whatever is loaded by the first
        result[mode] = costs.of(lambda q, mode=mode: driver.search(mode, q), questions)
        result[f"{mode}_16"] = costs.together(mode, questions, result[mode].get("p50", 0.0))
        if driver.scopes and not late(f"{mode} in a scope"):
            result[f"{mode}_scoped"] = costs.of(lambda q, mode=mode: driver.search(mode, q, Work.group(q)), questions)
    if "semantic" in driver.modes and not driver.own_vectors and result["kept"] == count and not late("recall"):
        result["recall"] = recall(driver, work, questions[:100], None)
        if driver.scopes:
            result["recall_scoped"] = recall(driver, work, questions[:100], GROUPS)
    if not late("get"):
        result["get"] = costs.of(driver.get, range(added))
    if not late("delete"):
        gone = list(range(0, added, 4))
        result["delete"] = costs.of(driver.delete, gone, again=False)
        result["deleted_still_found"] = still_found(driver, work, gone[:result["delete"].get("calls", 0)])
    result["memory_mb"] = max(result["memory_mb"], costs.memory_mb() - before)
    begin("restart")
    driver.close()
    result["disk_mb"] = sum(f.stat().st_size for f in scratch.rglob("*") if f.is_file() and not f.is_symlink()) / 1e6
    start = time.perf_counter()
    driver.open(scratch, work)
    driver.search(driver.modes[0], 0)
    result["restart_s"] = time.perf_counter() - start
    driver.close()


def _tell(result: dict) -> None:
    print("\nRESULT " + json.dumps(result), flush=True)


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
    return {"per_s": done / seconds, "cpu_ms": 1000 * (costs.processor() - before) / done}, notes.start + done


def recall(driver, work: Work, questions: list[int], groups: "int | None") -> float:
    shares = []
    for q in questions:
        among = None if groups is None else [n for n in range(len(work.texts)) if n % groups == q % groups]
        true, worst = work.exact(q, among)
        found = driver.search("semantic", q, *([] if groups is None else [f"group-{q % groups:03d}"]))[:10]
        near = work.vectors[[int(n) for n in found]] @ work.question_vectors[q] if found else []
        shares.append(sum(n in true or score >= worst - 2e-3 for n, score in zip(found, near, strict=True)) / max(1, len(true)))
    return float(np.mean(shares))


def still_found(driver, work: Work, gone: list[int]) -> int:
    """How many of the deleted a search for their own words brings up."""
    dead, seen = set(gone), 0
    for n in gone[:20]:
        for mode in driver.modes:
            seen += any(found in dead for found in driver.search_text(mode, work.texts[n][:200], work.vectors[n]))
    return seen


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]


def main() -> None:
    options = argparse.ArgumentParser()
    for name in ("driver", "work", "scratch", "count"):
        options.add_argument(name)
    options.add_argument("--seconds", type=float, default=30.0, help="the longest that one kind of call is asked")
    options.add_argument("--bound", type=float, default=600.0, help="no kind of call is begun after that, from when it was ready")
    given = options.parse_args()
    driver = importlib.import_module(f"drivers.{given.driver}").Driver()
    scratch = Path(given.scratch)
    scratch.mkdir(parents=True, exist_ok=True)
    result: dict = {}
    try:
        run(driver, Work.load(Path(given.work), int(given.count)), scratch, given.seconds, given.bound, result)
    except Exception as error:
        traceback.print_exc()
        result["failed"] = _said(error)
    for pid in driver.pids():  # a server that a failure left behind would be measured with the next peer
        if pid != os.getpid() and psutil.pid_exists(pid):
            psutil.Process(pid).terminate()
    print("\nRESULT " + json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
