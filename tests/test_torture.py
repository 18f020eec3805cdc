"""`make torture` itself: a few cheap rounds of each part, and what it says when something does not hold."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from torture import (
    calls,
    damage,
    faults,
    files,
    kills,
    outages,
    patterns,
    properties,
    sockets,
    twins,
)
from torture.__main__ import PARTS
from torture.harness import Broken, Part, Plan, Play, Round, Stage, print_table, run_part
from torture.shim import compiler

ROOT = Path(__file__).parents[1]
# Part, first seed, rounds. Kills: one add on SQLite. Faults: calls to a server. Damage: a file that is no database.
ROUNDS = [
    (kills.PART, 0, 1),
    (faults.PART, 1, 5),
    (files.PART, 1, 8),
    (calls.PART, 1, 2),
    (replace(twins.PART, open=partial(twins.open_scope_twins, calls=12)), 1, 1),
    (
        replace(sockets.PART, open=partial(sockets.open_sockets, connections=40, slow=["noise"])),
        1,
        1,
    ),
    (outages.PART, 0, 1),
    (damage.PART, 3, 1),
    (replace(patterns.PART, open=partial(patterns.open_patterns, texts=3)), 1, 1),
    (
        replace(
            properties.PART,
            open=partial(
                properties.open_properties,
                profile="suite",
                files=("tests/core/test_token_budget.py",),
            ),
        ),
        1,
        1,
    ),
]


def test_every_part_has_cheap_rounds() -> None:
    assert [part.name for part, _, _ in ROUNDS] == [part.name for part in PARTS]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "seed", "rounds"), ROUNDS, ids=[part.name for part, _, _ in ROUNDS]
)
def test_a_few_rounds_hold(part: Part, seed: int, rounds: int) -> None:
    if part.name == "faults" and not compiler():
        pytest.skip("no C compiler")
    outcome = run_part(
        part, Plan(seed, rounds=rounds, outage_seconds=2.0, timed=False), seconds=600
    )
    assert outcome.failures == []
    assert outcome.played == rounds


@contextmanager
def open_failing(stage: Stage) -> Iterator[Play]:
    def play(round: Round) -> None:
        if round.seed % 3 == 0:
            raise Broken(f"an item is lost; the dice say {round.random.random()}")

    yield play


FAILING = Part("failing", rounds=6, share=1, open=open_failing)


def test_a_failure_prints_its_seed_and_the_command_that_replays_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    outcome = run_part(FAILING, Plan(seed=7, rounds=6), seconds=60)
    said = capsys.readouterr().out
    assert (outcome.played, len(outcome.failures)) == (6, 2)
    assert re.findall(r"replay: (.*)", said) == [
        f"make torture ONLY=failing SEED={seed} ROUNDS=1" for seed in (9, 12)
    ]
    assert run_part(FAILING, Plan(seed=9, rounds=1), seconds=60).failures == outcome.failures[:1]


def test_a_part_stops_when_its_time_is_up(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run_part(FAILING, Plan(seed=1), seconds=-1)
    assert (outcome.played, outcome.wanted) == (1, 6)
    print_table([outcome])
    assert re.search(r"failing +1 of 6 +0 ", capsys.readouterr().out)


def test_a_part_that_cannot_begin_has_failed() -> None:
    @contextmanager
    def nothing(stage: Stage) -> Iterator[Play]:
        raise Broken("no server")
        yield

    assert run_part(replace(FAILING, open=nothing), Plan(seed=1), seconds=60).failures == [
        "no server"
    ]


def test_an_unknown_part_is_named() -> None:
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "torture", "--only", "nothing"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1
    assert run.stderr.startswith("There is no part 'nothing'. Choose from: kills, ")
