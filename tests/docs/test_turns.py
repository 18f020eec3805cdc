"""Peers that are compared take turns; one that dies, hangs or is slow costs the others nothing but its time."""

import json
import os
import sys
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from time import monotonic

import numpy as np
import psutil
import pytest

from benchmarks.side_by_side import row as one, turns
from benchmarks.side_by_side.row import HERE, Row

COUNT, SECONDS = 12, 0.3
Start = Callable[..., Row]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    work = tmp_path / "work"
    work.mkdir()
    (work / "notes.jsonl").write_text("".join(json.dumps(f"note {n}") + "\n" for n in range(COUNT)))
    (work / "questions.json").write_text(json.dumps([f"question {q}" for q in range(COUNT)]))
    for name in ("vectors", "questions"):
        np.save(work / f"{name}.npy", np.eye(COUNT, dtype=np.float32))

    def begin(name: str, bound: float = 600.0, seconds: float = SECONDS, **how: str) -> Row:
        scratch = tmp_path / name
        scratch.mkdir()
        command = [
            sys.executable,
            str(HERE / "harness.py"),
            "made_up",
            str(work),
            str(scratch),
            str(COUNT),
            str(seconds),
        ]
        env = (
            os.environ
            | {
                "PYTHONPATH": str(Path(__file__).parent),
                "NAME": name,
                "SAID": str(tmp_path / "said"),
            }
            | how
        )
        return Row(name, command, env, scratch, bound)

    return begin


def take_turns(*rows: Row, within: float = 600.0, asking: float = 1.0) -> dict[str, dict]:
    return turns.take_turns(rows, monotonic() + within, asking)


def said(tmp_path: Path, part: str) -> list[tuple[str, int]]:
    lines = (line.split() for line in (tmp_path / "said").read_text().splitlines())
    return [(name, int(what)) for name, asked, what in lines if asked == part]


def test_each_kind_of_call_is_asked_in_rounds_that_begin_with_another(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        turns, "KINDS", ("semantic", "get")
    )  # many clients at once would use up their time
    found = take_turns(start("a", seconds=60), start("b", seconds=60))
    lots = [
        (name, [q for _, q in lot])
        for name, lot in groupby(said(tmp_path, "semantic"), key=lambda line: line[0])
    ]
    # What ends one round begins the next, ab ba ab; the questions of the round before are asked first and do not count.
    assert [name for name, _ in lots[:4]] == ["a", "b", "a", "b"]
    assert (
        lots[0][1] == [5, 11, 0, 6]
        and lots[1][1] == [5, 11, 0, 6, 0, 6, 1, 7]
        and lots[2][1][:4] == [0, 6, 1, 7]
    )
    assert found["a"]["semantic"]["calls"] == found["b"]["semantic"]["calls"] == COUNT
    assert len(found["a"]["get"]["rounds"]) == len(found["b"]["semantic"]["rounds"]) == turns.ROUNDS
    assert found["a"]["kept"] == COUNT and "failed" not in found["a"]
    assert not any(psutil.pid_exists(pid) for _, pid in said(tmp_path, "open"))


@pytest.mark.slow
def test_who_dies_or_hangs_drops_out_with_what_was_found_and_the_others_go_on(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = start("late", SLEEPS="get", SECONDS="600")

    def wait_a_second(
        part: str, *how: object, patience: float = 0.0, do: Callable[..., None] = late.do
    ) -> None:
        with monkeypatch.context() as patch:
            if "get" in how:
                patch.setattr(one, "READY", 1.0)
            do(part, *how, patience=patience)

    monkeypatch.setattr(late, "do", wait_a_second)
    found = take_turns(
        start("dead", DIES="semantic"),
        late,
        start("failing", FAILS="get"),
        start("sound", seconds=60),
    )
    assert (
        found["dead"]["failed"].startswith("exit code 3") and found["dead"]["add"]["calls"] == COUNT
    )
    assert (
        found["late"]["late"] == "get was not done within 1 s" and found["late"]["semantic"]["p50"]
    )
    assert (
        found["failing"]["get"] == {"failed": "ValueError: it will not"}
        and found["failing"]["delete"]["calls"] == COUNT // 4
    )
    assert found["sound"]["restart_s"] and len(found["sound"]["semantic"]["rounds"]) == turns.ROUNDS
    assert not any(psutil.pid_exists(pid) for _, pid in said(tmp_path, "open"))  # nor their servers


def test_what_there_is_no_time_for_is_named(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "WORTH", -1.0)
    found = take_turns(
        start("slow", bound=0.2, SLEEPS="semantic", SECONDS="0.1"), start("quick"), asking=0.1
    )
    assert (
        found["slow"]["semantic"]["calls"]
        and found["slow"]["left"][0] == "semantic_16"
        and "left" not in found["quick"]
    )
    monkeypatch.setattr(turns, "WORTH", 10.0)
    assert take_turns(start("unasked"), within=5) == {"unasked": {"left_out": "no time was left"}}
