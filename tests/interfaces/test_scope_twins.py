"""Nothing that a token may not see changes an answer: two libraries that differ only out of its scope answer alike."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from commonplace.interfaces.mcp.server import ALL_TOOLS
from commonplace.interfaces.rest.openapi import openapi
from tests.interfaces.twins import ACTIONS, SCOPES, Names, calls, compare, open_twins
from tests.services import temporary_schema

pytestmark = pytest.mark.anyio
CALLS = {"folders": 600, "kb": 200}  # on each engine, and 100 more until every tool answered
ROUTES = 30  # that must have answered a call with something else than an error, beside all tools
# What a scope has no part in: the process's own figures, and the link that bytes are sent to, which `Call.content` follows.
# Crawls fetch from the web, and are of who began them (test_crawls.py).
ELSEWHERE = {
    ("GET", "/metrics"),
    ("GET", "/readyz"),
    ("POST", "/api/v1/crawls"),
    ("GET", "/api/v1/crawls/{crawl_id}"),
    ("DELETE", "/api/v1/crawls/{crawl_id}"),
    ("POST", "/api/v1/uploads/finalize"),
    ("POST", "/api/v1/uploads/finalize-document"),
}


@pytest.fixture(params=["sqlite", "postgres"])
def databases(
    request: pytest.FixtureRequest,
) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Settings of two empty databases."""
    if request.param == "sqlite":
        yield {}, {}
        return
    url = request.getfixturevalue("postgres_url")
    with temporary_schema(url) as one, temporary_schema(url) as other:
        yield (
            {"database_url": url, "database_schema": one},
            {"database_url": url, "database_schema": other},
        )


@pytest.mark.parametrize("hidden_by", sorted(set(SCOPES.values())))
async def test_answers_do_not_depend_on_what_is_out_of_scope(
    tmp_path: Path, databases: tuple[Mapping[str, Any], Mapping[str, Any]], hidden_by: str
) -> None:
    """Scores, order, totals, conflicts, links, suggestions, refusals: all is as if there were nothing else."""
    tools = set(ALL_TOOLS)
    async with open_twins(tmp_path, hidden_by, seed=1, settings=databases) as twins:
        for seed in range(1, 20):
            count = CALLS[hidden_by] if seed == 1 else 100
            difference = await compare(twins, count, seed=seed)
            assert not difference, difference
            if tools <= {path for method, path in twins.reached if method == "tool"}:
                break
    assert tools <= {path for method, path in twins.reached if method == "tool"}
    assert len(twins.reached) - len(ALL_TOOLS) >= ROUTES, (
        "too many calls were refused to prove anything"
    )


def test_the_calls_reach_every_tool_and_route() -> None:
    made = calls(Random(1), Names())
    seen = [next(made) for _ in range(20_000)]
    routes = {
        (method.upper(), path) for path, methods in openapi()["paths"].items() for method in methods
    }
    asked = {(call.method, call.path) for call in seen}
    missed = {
        (method, path)
        for method, path in routes - ELSEWHERE
        if not any(
            method == other and re.fullmatch(re.sub(r"{[a-z_]+}", "[^/]+", path), asked_path)
            for other, asked_path in asked
        )
    }
    assert not missed
    assert {call.path for call in seen if call.method == "tool"} == set(ALL_TOOLS)
    assert {call.body["action"] for call in seen if call.path == "manage"} == set(ACTIONS)
