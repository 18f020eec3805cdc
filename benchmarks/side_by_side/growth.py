"""The store with many sections: the texts and vectors of the work over and over, each vector with a little noise of its own.

    python -m benchmarks.side_by_side.growth build|ask sqlite|postgres COUNT WORK FOLDER SECONDS

A library that was built is kept in the cache folder and asked again the next time: remove it there to have it built anew.
Building and asking are processes of their own, so that memory and the first answer are those of a server that was started again.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENGINES = ("sqlite", "postgres")
PER_ITEM, LOT, ASKED = 20, 2_000, 100
SCOPES = {"whole library": None, "5 %": 10, "0.5 %": 1}  # groups of the two hundred


def measure(count: int, engines: list[str], work: Path, seconds: float, when: dict) -> dict:
    found = {}
    for engine in engines:
        place = work.parent / "growth" / f"{engine}-{count}"
        told = place / "built.json"
        share = seconds / len(engines)
        if not told.exists():
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            place.chmod(0o755)  # Postgres may run as another user
            built = _run("build", engine, count, work, place, 0.75 * share)
            if "failed" in built:
                found[engine] = built | {"measured": when}
                continue
            told.write_text(json.dumps(built | {"measured": when}))
        built = json.loads(told.read_text())
        for kept in place.rglob(
            "search_index"
        ):  # as after an upgrade, when every row is read before the first answer
            shutil.rmtree(kept)
        read, asked = (_run("ask", engine, count, work, place, 0.125 * share) for _ in range(2))
        found[engine] = {
            "asked_for": count,
            "built": built,
            "measured": when,
            "all_read_s": read.get("first_answer_s"),
        } | asked
    return found


def _run(step: str, engine: str, count: int, work: Path, place: Path, seconds: float) -> dict:
    print(
        f"{time.strftime('%H:%M:%S')} growth: {step}, {engine}, {count:,} sections, {seconds:.0f} s ...",
        file=sys.stderr,
        flush=True,
    )
    command = [
        sys.executable,
        "-m",
        "benchmarks.side_by_side.growth",
        step,
        engine,
        str(count),
        str(work),
        str(place),
        str(seconds),
    ]
    env = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}", "BENCH_ENGINE": engine}
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=env)
    line = next((line for line in done.stdout.splitlines() if line.startswith("RESULT ")), None)
    return (
        json.loads(line[7:])
        if line
        else {"failed": f"exit code {done.returncode} while it was {step}ing"}
    )


def main() -> None:
    step, _, count, work_folder, folder, seconds = sys.argv[1:]
    sys.path.insert(0, str(Path(__file__).parent))
    from drivers.commonplace_store import Driver
    from harness import Costs
    from work import Work

    driver, work = Driver(), Work.load(Path(work_folder), 100_000 if step == "build" else 1_000)
    began, busy = time.perf_counter(), time.process_time()
    driver.open(Path(folder), work)
    costs = Costs(driver)
    told = (
        _build(driver, costs, int(count), float(seconds))
        if step == "build"
        else _ask(driver, costs, began, busy, Path(folder), float(seconds) / 12)
    )
    driver.close()
    print("\nRESULT " + json.dumps(told), flush=True)


def _build(driver, costs, count: int, seconds: float) -> dict:
    import numpy as np

    from commonplace.model import Content, Entry, Item, Section, new_id, new_public_id
    from commonplace.text.query_terms import extra_terms

    work, dice, words = driver.work, np.random.default_rng(1), {}
    folders = sorted(driver.folders.values())

    def entry(start: int) -> Entry:
        picked = [n % len(work.texts) for n in range(start, start + PER_ITEM)]
        for n in picked:
            words.setdefault(n, extra_terms(work.texts[n]))
        near = work.vectors[picked] + dice.normal(0, 0.01, (PER_ITEM, work.dimensions)).astype(
            np.float32
        )
        near = (near / np.linalg.norm(near, axis=1, keepdims=True)).astype(np.float16)
        item = Item(
            new_id(),
            driver.person.id,
            new_public_id(),
            new_id(),
            "document",
            "text",
            f"part-{start}",
            folders=(folders[start // PER_ITEM % len(folders)],),
        )
        sections = tuple(
            Section(k, work.texts[n], extra=words[n], word_count=180, vector=near[k].tobytes())
            for k, n in enumerate(picked)
        )
        return Entry(
            item, Content(item.content_id, f"{driver.person.id}:{start}", f"part-{start}"), sections
        )

    began, busy, marks = time.perf_counter(), costs.processor(), [(0, 0.0)]
    for start in range(0, count, LOT):
        lot = [entry(n) for n in range(start, min(start + LOT, count), PER_ITEM)]
        driver.keep(lot)
        marks.append((start + PER_ITEM * len(lot), time.perf_counter() - began))
        if marks[-1][1] > seconds:
            break
    added, spent = marks[-1]
    tail = marks[-max(2, len(marks) // 10)]
    return {
        "sections": added,
        "seconds": spent,
        "per_s": added / spent,
        "per_s_last_tenth": (added - tail[0]) / (spent - tail[1]),
        "cpu_ms": 1000 * (costs.processor() - busy) / added,
    }


def _ask(driver, costs, began: float, busy: float, folder: Path, patience: float) -> dict:
    from harness import summed

    from commonplace.model import Scope

    driver.search("hybrid", 0)
    found: dict = {
        "first_answer_s": time.perf_counter() - began,
        "first_answer_cpu_s": time.process_time() - busy,
        "scopes": {},
    }
    folders = sorted(driver.folders.values())
    for name, groups in SCOPES.items():
        scope = (
            driver.whole if groups is None else Scope(driver.person.id, frozenset(folders[:groups]))
        )
        for mode in driver.modes:

            def ask(q: int, mode=mode, scope=scope) -> None:
                driver.ask(mode, driver.work.questions[q], driver.work.question_vectors[q], scope)

            ask(0)
            found["scopes"].setdefault(name, {})[mode] = summed(
                [costs.of(ask, range(ASKED), patience)]
            )
    found["sections"] = driver.sections()
    found["memory_mb"] = costs.memory_mb()
    found["disk_mb"] = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / 1e6
    return found


if __name__ == "__main__":
    main()
