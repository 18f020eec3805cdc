"""What got slower or faster since the last committed result, by ratios to the bare engines of the same run.

Machines differ, and so do their moods: what is compared is ours divided by the engines' of the same run.
"""

from statistics import median

from .peers import ENGINE, OURS

CALLS = (
    "add",
    "semantic",
    "keyword",
    "hybrid",
    "semantic_scoped",
    "keyword_scoped",
    "hybrid_scoped",
    "get",
    "delete",
)
MUCH = 1.25


def show(now: dict, before: dict) -> None:
    pace = _pace(now, before)
    print(
        f"This machine now takes {pace:.2f} x the processor time it took then, by the bare engines; figures are ms of processor time a call."
    )
    print(f"{'':34}{'notes':>8} {'call':16}{'then':>9}{'now':>9}{'ratio':>8}")
    slower = 0
    for name, count, call, then, figure in _pairs(now, before, OURS):
        ratio = figure / then / pace
        slower += ratio > MUCH
        word = "slower" if ratio > MUCH else "faster" if ratio < 1 / MUCH else ""
        print(f"{name:34}{count:>8} {call:16}{then:9.2f}{figure:9.2f}{ratio:8.2f} {word}")
    for name, peer in now["peers"].items():
        for count, run in peer["runs"].items():
            if missing := run.get("failed") or run.get("late") or ", ".join(run.get("left", ())):
                print(f"{name}, {count} notes: not all was measured: {missing}")
    print(
        f"{slower} slower by more than {MUCH - 1:.0%}."
        if slower
        else f"Nothing is slower by more than {MUCH - 1:.0%}."
    )


def _pace(now: dict, before: dict) -> float:
    ratios = [figure / then for *_, then, figure in _pairs(now, before, ENGINE)]
    return median(ratios) if ratios else 1.0


def _pairs(now: dict, before: dict, kind: str):
    for name, peer in now["peers"].items():
        if peer["kind"] != kind:
            continue
        for count, run in peer["runs"].items():
            old = before["peers"].get(name, {}).get("runs", {}).get(count, {})
            if old.get("kept") != run.get("kept"):
                continue  # fewer notes: another thing was measured
            for call in CALLS:
                then, figure = (one.get(call, {}).get("cpu_ms", 0) for one in (old, run))
                if (
                    then > 0.01 and figure > 0.01
                ):  # below that the clock of the system is too coarse
                    yield name, count, call, then, figure
