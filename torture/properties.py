"""The suite's own properties with 500 examples each, and made-up requests to every route."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from torture.harness import Part, Play, Round, Stage, require
from torture.server import ROOT

PROFILE = "torture"  # of tests/conftest.py


def property_files() -> list[str]:
    """Return the files of the suite with a test that makes up its examples."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    marks = ("@given(", "@hypothesis.given(", "mark.hypothesis")
    return [
        str(file.relative_to(ROOT))
        for file in files
        if any(mark in file.read_text() for mark in marks)
    ]


@contextmanager
def open_properties(
    stage: Stage, profile: str = PROFILE, files: tuple[str, ...] = ()
) -> Iterator[Play]:
    chosen = files or property_files()

    def play(round: Round) -> None:
        file = chosen[round.seed % len(chosen)]
        how = ["-q", "-m", "hypothesis", "-o", "timeout=3600", "-p", "no:cacheprovider"]
        said = subprocess.run(
            [sys.executable, "-m", "pytest", *how, f"--hypothesis-seed={round.seed}", file],
            cwd=ROOT,
            env=os.environ | {"HYPOTHESIS_PROFILE": profile},
            capture_output=True,
            text=True,
        )
        require(said.returncode == 0, f"{file}: {said.stdout[-3000:]}{said.stderr[-1000:]}")

    yield play


PART = Part("properties", rounds=12, long_rounds=200, share=2, open=open_properties)
