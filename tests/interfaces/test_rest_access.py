"""JWTs, limits, probes and the description: what is around the routes."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from commonplace.core.people.authorization import Allowance
from tests.interfaces.conftest import OpenHouse
from tests.interfaces.house import House, call_tool, open_house

pytestmark = pytest.mark.anyio
SECRET = "a secret of more than thirty-two bytes"
TEXT = {"kind": "text", "title": "Fox", "text": "The quick brown fox jumps over the lazy dog."}


def in_days(days: float) -> datetime:
    return datetime.now(UTC) + timedelta(days=days)


def signed(claims: dict[str, Any], secret: str = SECRET, algorithm: str = "HS256") -> str:
    return jwt.encode({"exp": in_days(1), **claims}, secret, algorithm=algorithm)


async def test_a_jwt_opens_the_library_of_its_org(house_with: OpenHouse) -> None:
    async with house_with(jwt_secret=SECRET) as house:
        me = house.owner.person_id
        clock_ahead = datetime.now(UTC) + timedelta(minutes=1)
        async with house.client(
            token=signed({"sub": me, "org": house.owner.library_id, "iat": clock_ahead})
        ) as client:
            kept = await client.post("/api/v1/ingest", json=TEXT)
            assert kept.status_code == 201
            assert (await client.get("/api/v1/items")).json()["total"] == 1
        async with house.client("owner") as owner:
            assert (await owner.get("/api/v1/items")).json()["total"] == 1


async def test_jwts_that_do_not_hold_are_refused(house_with: OpenHouse) -> None:
    async with house_with(jwt_secret=SECRET) as house:
        claims = {"sub": house.owner.person_id, "org": house.owner.library_id, "exp": in_days(1)}
        past = datetime.now(UTC) - timedelta(minutes=1)
        wrong = {
            "no org": signed({"sub": claims["sub"]}),
            "no sub": signed({"org": claims["org"]}),
            "another's library": signed({**claims, "org": house.stranger.library_id}),
            "wrong secret": signed(claims, "another secret of thirty-two bytes or more"),
            "alg none": jwt.encode(claims, None, algorithm="none"),
            "another algorithm": signed(claims, "x" * 64, "HS512"),
            "no exp": jwt.encode({**claims} | {"exp": None}, SECRET),
            "no exp at all": jwt.encode({"sub": claims["sub"], "org": claims["org"]}, SECRET),
            "an exp that is too far away": signed({**claims, "exp": in_days(366)}),
            "an exp of another century": signed({**claims, "exp": 10**18}),
            "an exp without end": signed({**claims, "exp": float("inf")}),
            "an exp that is no number": signed({**claims, "exp": "soon"}),
            "an exp that is a list": jwt.encode({**claims, "exp": [1]}, SECRET),
            "expired": signed({**claims, "exp": past}),
            "an org that is no text": signed({**claims, "org": [claims["org"]]}),
            "an org that no database takes": signed({**claims, "org": "\0"}),
            "an org of half a character": signed({**claims, "org": "\ud800"}),
            "rubbish": "a.b.c",
        }
        for why, token in wrong.items():
            async with house.client(token=token) as client:
                response = await client.get("/api/v1/items")
                assert (response.status_code, response.json()["error"]) == (401, "unauthorized"), (
                    why
                )
        async with house.client(token=signed({**claims, "exp": in_days(364)})) as client:
            assert (await client.get("/api/v1/items")).status_code == 200
        async with house.client(token=wrong["no org"]) as client:
            assert (await client.get("/api/v1/items")).json()[
                "message"
            ] == "organization_id required"


async def test_without_a_secret_no_jwt_is_accepted(house: House) -> None:
    token = signed({"sub": house.owner.person_id, "org": house.owner.library_id}, "0" * 32)
    async with house.client(token=token) as client:
        assert (await client.get("/api/v1/items")).status_code == 401


async def test_the_101st_request_of_a_minute_waits_before_any_tool_runs(
    house_with: OpenHouse,
) -> None:
    async with house_with(rate_requests_per_minute=100) as house, house.client("owner") as client:
        for _ in range(100):
            assert (await client.get("/api/v1/nowhere")).status_code == 404
        response = await client.post("/api/v1/items", json={})
        assert response.status_code == 429
        body = response.json()
        assert body["error"] == "rate_limit_exceeded"
        assert 1 <= body["retry_after"] <= 60
        assert response.headers["Retry-After"] == str(body["retry_after"])
        assert (await client.post("/mcp", json={})).status_code != 429  # counted apart
        async with house.client("reader") as reader:
            assert (await reader.get("/api/v1/items")).status_code == 200
        assert (await client.get("/healthz")).status_code == 200


async def test_mcp_endpoints_have_three_times_the_requests_of_a_minute(
    house_with: OpenHouse,
) -> None:
    async with house_with(rate_requests_per_minute=2) as house, house.client("owner") as client:
        for path in ("/mcp", "/api/mcp", "/mcp/graph") * 2:
            assert (await client.post(path, json={})).status_code != 429
        response = await client.post("/mcp", json={})
        assert response.status_code == 429
        assert 1 <= int(response.headers["Retry-After"]) <= 60
        assert (await client.get("/api/v1/items")).status_code == 200


@pytest.mark.parametrize(
    ("setting", "method", "path", "body"),
    [
        ("rate_reads_per_hour", "GET", "/api/v1/items", None),
        ("rate_reads_per_hour", "POST", "/api/v1/search", {"query": "x"}),
        ("rate_writes_per_hour", "POST", "/api/v1/ingest", TEXT),
        ("rate_deletes_per_hour", "DELETE", "/api/v1/items/x", None),
    ],
)
async def test_hourly_allowances_over_rest(
    house_with: OpenHouse, setting: str, method: str, path: str, body: Any
) -> None:
    async with house_with(**{setting: 2}) as house, house.client("owner") as client:
        for _ in range(2):
            assert (await client.request(method, path, json=body)).status_code in (200, 201, 404)
        response = await client.request(method, path, json=body)
        assert response.status_code == 429
        answer = response.json()
        assert answer["error"] == "rate_limited"
        assert 3500 < answer["retry_after_sec"] <= 3600
        assert response.headers["Retry-After"] == str(answer["retry_after_sec"])


@pytest.mark.parametrize(
    ("setting", "tool", "arguments"),
    [
        ("rate_reads_per_hour", "search_knowledge_base", {"query": "x"}),
        ("rate_writes_per_hour", "add_to_knowledge", TEXT),
    ],
)
async def test_hourly_allowances_over_mcp(
    house_with: OpenHouse, setting: str, tool: str, arguments: Any
) -> None:
    async with house_with(**{setting: 2}) as house, house.client("owner") as client:
        for _ in range(2):
            assert "result" in await call_tool(client, tool, arguments)
        error = (await call_tool(client, tool, arguments))["error"]
        assert error["code"] == -32605
        assert 3500 < error["data"]["retry_after_sec"] <= 3600


async def test_a_used_up_allowance_names_the_limit_and_its_setting(house_with: OpenHouse) -> None:
    async with house_with(rate_writes_per_hour=1) as house, house.client("owner") as client:
        await client.post("/api/v1/ingest", json=TEXT)
        answer = (await client.post("/api/v1/ingest", json=TEXT)).json()
    assert answer.pop("message") == (
        "Write limit reached: 1 per hour for this token. Retry in 60 min, or raise "
        "COMMONPLACE_RATE_WRITES_PER_HOUR."
    )
    assert answer == {
        "error": "rate_limited",
        "limit": "writes",
        "per_hour": 1,
        "retry_after_sec": answer["retry_after_sec"],
    }


ENTITY = {"title": "A thought", "content": "Written down."}


async def test_graph_writes_have_a_limit_of_their_own(house_with: OpenHouse) -> None:
    limits = {"rate_writes_per_hour": 1, "rate_graph_writes_per_hour": 3}
    async with house_with(**limits) as house, house.client("owner") as client:
        added = await call_tool(client, "add", ENTITY)
        assert "result" in added
        assert "result" in await call_tool(client, "remember", ENTITY)
        path = f"/api/v1/items/{added['result']['structuredContent']['id']}"
        assert (await client.patch(path, json={"tags": ["kept"]})).status_code == 200
        error = (await call_tool(client, "add", ENTITY))["error"]
        assert error["message"].startswith("Graph write limit reached: 3 per hour")
        assert error["data"]["limit"] == "graph_writes"
        assert (await client.post("/api/v1/ingest", json=TEXT)).status_code in (200, 201)
        assert "result" in await call_tool(client, "reflect", {"content": "We decided to wait."})


async def test_graph_writes_are_unlimited_when_writes_are(house_with: OpenHouse) -> None:
    async with (
        house_with(rate_writes_per_hour=0, rate_graph_writes_per_hour=1) as house,
        house.client("owner") as client,
    ):
        for _ in range(3):
            assert "result" in await call_tool(client, "add", ENTITY)


async def test_what_is_left_of_each_limit_is_told_without_counting(house_with: OpenHouse) -> None:
    limits = {"rate_reads_per_hour": 10, "rate_writes_per_hour": 5}
    async with house_with(**limits) as house, house.client("owner") as client:
        await client.get("/api/v1/items")
        access = house.app.access
        caller = await access.identify(house.tokens["owner"])
        for _ in range(3):
            left = await access.limits(caller)
        unlimited = await access.limits(house.owner)
    assert (left["reads"].limit, left["reads"].remaining) == (10, 9)
    assert left["reads"].reset is not None and 3500 < left["reads"].reset <= 3600
    assert left["writes"] == Allowance(5, 5, 0)
    assert left["deletes"] == left["uploads"] == Allowance(None, None, None)
    assert left.keys() == {"reads", "writes", "graph_writes", "deletes", "uploads"}
    assert set(unlimited.values()) == {Allowance()}


async def test_doors_share_one_allowance(house_with: OpenHouse) -> None:
    async with house_with(rate_reads_per_hour=1) as house, house.client("reader") as client:
        assert "result" in await call_tool(client, "list_recent", {})
        assert (await client.get("/api/v1/items")).status_code == 429


async def test_metrics_take_a_token_for_the_whole_library(
    house_with: OpenHouse, data_dir: Path
) -> None:
    async with house_with() as house:
        for character, status in (
            (None, 401),
            ("owner", 200),
            ("reader", 200),
            ("one_folder", 401),
            ("two_folder", 401),
            ("kb_only", 401),
            ("expired", 401),
            ("revoked", 401),
            ("stranger", 200),
        ):
            async with house.client(character) as client:
                assert (await client.get("/metrics")).status_code == status, character
                assert (
                    (await client.get("/healthz")).status_code
                    == (await client.get("/readyz")).status_code
                    == 200
                )
    async with open_house(data_dir / "open", metrics_open=True) as house, house.client() as client:
        assert (await client.get("/metrics")).status_code == 200


async def test_probes_need_no_token_and_metrics_count_by_route(house: House) -> None:
    item, _ = await house.add("Fox")
    async with house.client("owner") as owner:
        await owner.get(f"/api/v1/items/{item}")
        await owner.get("/api/v1/items/none")
        await owner.get("/mcp")
    async with house.client() as client:
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        ready = (await client.get("/readyz")).json()
        assert ready["status"] == "ready"
        assert ready["embedder"] in ("loading", "loaded")
        await client.get("/made/up/path")
    async with house.client("owner") as owner:
        text = (await owner.get("/metrics")).text
    counted = {
        (route, status): float(n)
        for route, status, n in re.findall(
            r'commonplace_http_requests_total\{method="GET",route="([^"]+)",status="(\d+)"\} (\S+)',
            text,
        )
    }
    assert counted[("/api/v1/items/{item_id}", "200")] == 1
    assert counted[("/api/v1/items/{item_id}", "404")] == 1
    assert counted[("/mcp", "405")] == 1
    assert counted[("refused", "401")] == 1
    assert 'commonplace_jobs{state="queued"} 0.0' in text
    assert item not in text


async def test_the_description_is_complete_and_stands_alone(house: House) -> None:
    async with house.client() as client:
        schema = (await client.get("/openapi.json")).json()
        page = await client.get("/docs")
    assert schema["security"] == [{"token": []}]
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            assert operation["summary"]
            if path.startswith("/api/"):
                assert operation["responses"]["401"]["content"]["application/json"]["schema"][
                    "$ref"
                ].endswith("/Problem")
        assert path in page.text
    assert "HTTPValidationError" not in schema["components"]["schemas"]
    assert not re.search(r"(src|href)=['\"]?(https?:)?//|<script|@import|url\(", page.text)


async def test_answers_are_neither_sniffed_nor_stored(owner: httpx.AsyncClient) -> None:
    headers = (await owner.get("/api/v1/items")).headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"


async def test_refused_calls_are_logged_by_the_names_of_allowed_ones(house: House) -> None:
    reader = (await house.app.access.identify(house.tokens["reader"])).token_id
    assert reader is not None
    async with house.client("reader") as client:
        for method, path in (
            ("POST", "/api/tasks/task_x/start"),
            ("PATCH", "/api/tasks/task_x"),
            ("PATCH", "/api/epics/epic_x"),
            ("DELETE", "/api/v1/items/x"),
        ):
            response = await client.request(method, path, json={"title": "x"})
            assert response.status_code == 403
        await call_tool(client, "manage", {"action": "start_task", "entity_id": "task_x"})
    logged = await house.app.people.activity(house.owner, reader)
    assert [(event.action, event.target) for event in reversed(logged)] == [
        ("start_task", "task_x"),
        ("update_task", "task_x"),
        ("update_epic", "epic_x"),
        ("delete", "x"),
        ("manage", None),
    ]
