"""The page about benchmarks is made of the committed result, and its fit and its comparison say what they should."""

import json
from math import isclose
from pathlib import Path

import pytest

from benchmarks.side_by_side import compare, report

ROOT = Path(__file__).parents[2]


def test_the_page_and_its_plots_are_what_the_last_result_says() -> None:
    last = json.loads((ROOT / "benchmarks" / "results" / "last.json").read_text())
    for name, text in report.pages(last).items():
        assert (ROOT / "docs" / name).read_text() == text, f"docs/{name}: run `make bench`, or `report.write`"


def test_the_exponent_of_a_power_is_found() -> None:
    found = report.exponent([(1_000, 3 * 1_000 ** 0.5), (10_000, 3 * 10_000 ** 0.5), (100_000, 3 * 100_000 ** 0.5)])
    assert found is not None and isclose(found, 0.5)
    assert report.exponent([(1_000, 2.0)]) is None


def _result(ours: float, engine: float) -> dict:
    return {"peers": {"us": {"kind": "ours", "runs": {"1000": {"semantic": {"cpu_ms": ours}}}},
                      "them": {"kind": "engine", "runs": {"1000": {"semantic": {"cpu_ms": engine}}}}}}


def test_slower_is_told_by_the_ratio_to_the_engines_and_not_by_the_machine(capsys: pytest.CaptureFixture[str]) -> None:
    compare.show(_result(20.0, 2.0), _result(10.0, 1.0))  # a machine half as fast
    assert "Nothing is slower" in capsys.readouterr().out
    compare.show(_result(20.0, 1.0), _result(10.0, 1.0))
    assert "1 slower" in capsys.readouterr().out
