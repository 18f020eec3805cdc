"""The page about benchmarks is made of the committed result, and its fit and its comparison say what they should."""

import json
from argparse import Namespace
from math import isclose
from pathlib import Path
from time import monotonic

import pytest

from benchmarks.side_by_side import __main__ as run, compare, report, verdict
from benchmarks.side_by_side.peers import PEERS

ROOT = Path(__file__).parents[2]


def test_the_page_and_its_plots_are_what_the_last_result_says() -> None:
    last = json.loads((ROOT / "benchmarks" / "results" / "last.json").read_text())
    for name, text in report.pages(last).items():
        assert (ROOT / "docs" / name).read_text() == text, (
            f"docs/{name}: run `make bench`, or `report.write`"
        )


def test_the_exponent_of_a_power_is_found() -> None:
    found = report.exponent(
        [(1_000, 3 * 1_000**0.5), (10_000, 3 * 10_000**0.5), (100_000, 3 * 100_000**0.5)]
    )
    assert found is not None and isclose(found, 0.5)
    assert report.exponent([(1_000, 2.0)]) is None


def _result(ours: float, engine: float) -> dict:
    return {
        "peers": {
            "us": {"kind": "ours", "runs": {"1000": {"semantic": {"cpu_ms": ours}}}},
            "them": {"kind": "engine", "runs": {"1000": {"semantic": {"cpu_ms": engine}}}},
        }
    }


def test_slower_is_told_by_the_ratio_to_the_engines_and_not_by_the_machine(
    capsys: pytest.CaptureFixture[str],
) -> None:
    compare.show(_result(20.0, 2.0), _result(10.0, 1.0))  # a machine half as fast
    assert "Nothing is slower" in capsys.readouterr().out
    compare.show(_result(20.0, 1.0), _result(10.0, 1.0))
    assert "1 slower" in capsys.readouterr().out


def test_what_there_was_no_time_for_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    now = _result(10.0, 1.0)
    now["peers"]["us"]["runs"]["1000"]["left"] = ["get", "delete"]
    compare.show(now, _result(10.0, 1.0))
    assert "us, 1000 notes: not all was measured: get, delete" in capsys.readouterr().out


def test_rows_measured_alone_replace_themselves_and_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(run, "install", lambda peer, cache: {})
    monkeypatch.setattr(run.Embedding, "__enter__", lambda self: "nowhere")
    monkeypatch.setattr(run.Embedding, "__exit__", lambda self, *_: None)
    monkeypatch.setattr(
        run,
        "measure",
        lambda peers, size, *_: {
            peer.name: {"left_out": "no time was left"}
            if size > 1_000
            else {"semantic": {"p50": 1.0}}
            for peer in peers
        },
    )
    kept = {"semantic": {"p50": 7.0}, "measured": {"date": "before"}}
    results = {
        "peers": {
            name: {"kind": "engine", "runs": {"1000": kept, "10000": kept}}
            for name in ("usearch", "tantivy")
        }
    }
    chosen = [peer for peer in PEERS if peer.key == "usearch"]
    given = Namespace(minutes=1, seconds=1, bound=None)
    run._rows(results, [(1_000, chosen), (10_000, chosen)], tmp_path, given, monotonic())
    mine, other = results["peers"]["usearch"]["runs"], results["peers"]["tantivy"]["runs"]
    assert mine["1000"]["semantic"]["p50"] == 1.0 and mine["1000"]["measured"]["revision"]
    assert mine["10000"] == kept and other == {"1000": kept, "10000": kept}


def _served(kind: str, p50: float, kept: int = 1_000, over: str = "REST") -> dict:
    return {
        "kind": kind,
        "runs": {
            "1000": {
                "semantic": {"p50": p50},
                "kept": kept,
                "over": over,
                "memory_mb": 1.0,
                "measured": {"dirty": kept < 1_000},
            }
        },
    }


def test_a_target_is_met_by_the_ratio_to_the_fastest_of_the_others() -> None:
    peers = {
        verdict.REST: _served("ours", 2.0),
        "slow": _served("product", 30.0),
        "few": _served("product", 9.0, kept=273),
    }
    assert (
        f"| semantic | 1,000 | {verdict.REST} | few (273 notes)† | 4.50, apart | 5 | no |"
        in verdict.targets({"peers": peers})
    )


def test_rows_that_took_turns_are_compared_round_by_round() -> None:
    ours, theirs = _served("ours", 2.0), _served("product", 9.0)
    ours["runs"]["1000"]["semantic"]["rounds"], theirs["runs"]["1000"]["semantic"]["rounds"] = (
        [2.0, 4.0, 2.0],
        [12.0, 24.0, 8.0],
    )
    assert f"| {verdict.REST} | other | 6.00 | 5 | yes |" in verdict.targets(
        {"peers": {verdict.REST: ours, "other": theirs}}
    )
    theirs["runs"]["1000"]["measured"] = {"date": "another day"}
    assert f"| {verdict.REST} | other | 4.50, apart | 5 | no |" in verdict.targets(
        {"peers": {verdict.REST: ours, "other": theirs}}
    )


def test_products_are_compared_with_the_row_that_is_reached_as_they_are() -> None:
    told = verdict.targets(
        {
            "peers": {
                verdict.MCP: _served("ours", 3.0, over="MCP"),
                verdict.REST: _served("ours", 2.0),
                verdict.LIBRARY: _served("ours", 0.5, over="library"),
                "agents": _served("product", 36.0, over="MCP"),
                "programs": _served("product", 30.0),
                "within": _served("product", 4.0, over="library"),
            }
        }
    )
    assert f"| semantic | 1,000 | {verdict.MCP} | agents | 12.0, apart | 5 | yes |" in told
    assert f"| semantic | 1,000 | {verdict.REST} | programs | 15.0, apart | 5 | yes |" in told
    assert f"| semantic | 1,000 | {verdict.LIBRARY} | within | 8.00, apart | 5 | yes |" in told


def test_searching_by_meaning_is_compared_with_engines_that_find_as_much() -> None:
    quick, wide = _served("engine", 1.0, over="library"), _served("engine", 4.0, over="library")
    quick["runs"]["1000"]["recall"], wide["runs"]["1000"]["recall"] = 0.8, 0.99
    told = verdict.targets(
        {
            "peers": {
                verdict.STORE: _served("ours", 3.0, over="library"),
                "quick": quick,
                "wide": wide,
            }
        }
    )
    assert f"| semantic | 1,000 | {verdict.STORE} | quick | 0.33, apart | 0.5 | no |" in told
    assert (
        f"| semantic, recall from 0.97 on | 1,000 | {verdict.STORE} | wide | 1.33, apart | 0.5 | yes |"
        in told
    )


def test_a_target_that_nobody_could_meet_is_told_as_one() -> None:
    peers = {verdict.REST: _served("ours", 0.9), "quick": _served("product", 0.9)}
    limits = {
        "calls": {"p50": 0.2, "calls_per_s": 4_000.0},
        "embedder": {"alone_ms": 1.0, "per_s": 1_000.0},
    }
    told = verdict.targets({"peers": peers, "limits": limits})
    assert f"| semantic | 1,000 | {verdict.REST} | quick | 1.00, apart | 5 | nobody |" in told
    limits["calls"]["p50"] = 0.1
    assert "| 1.00, apart | 5 | no |" in verdict.targets({"peers": peers, "limits": limits})


def test_how_far_from_the_limit_is_told_by_what_was_measured() -> None:
    found = {
        "memory": {"gb_per_s": 10.0, "bytes_a_vector": 512},
        "calls": {"p50": 0.2, "cpu_ms": 0.1, "calls_per_s": 4_000.0},
        "embedder": {"alone_ms": 1.0, "cpu_ms": 0.5},
        "measured": {"date": "today", "load": 0.1},
    }
    told = verdict.limits(
        {"peers": {verdict.STORE: _served("ours", 0.512)}, "limits": found}, [1_000]
    )
    assert "| 1,000 | 0.51 | 0.051 | 10.0 |" in told
    assert "| words | search, ms | 4.00 | 2.00 | 2.00 | abc |" in verdict.mended(
        [
            {
                "change": "words",
                "measured": "search, ms",
                "before": 4.0,
                "after": 2.0,
                "revision": "abc",
            }
        ]
    )
