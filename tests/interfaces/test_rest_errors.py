"""Bad requests: each is told what is wrong with it, in one shape, and nothing is stored."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from commonplace.errors import StorageFailed
from tests.interfaces.conftest import OpenHouse
from tests.interfaces.house import House

pytestmark = pytest.mark.anyio
JSON = {"Content-Type": "application/json"}
TEXT = "The quick brown fox jumps over the lazy dog."


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ({}, "`kind` is required"),
        ({"kind": "pdf"}, "/api/v1/uploads/"),
        ({"kind": "text", "title": "T"}, "`text` is required when kind=text"),
        ({"kind": "text", "text": TEXT}, "`title` is required when kind=text"),
        ({"kind": "url"}, "`url` is required when kind=url"),
        ({"kind": "url", "url": "ftp://example.org"}, "must be an http:// or https:// address"),
        (
            {"kind": "url", "url": "https://example.org", "text": TEXT},
            "`text` does not go with kind=url",
        ),
        ({"kind": "text", "title": "T", "text": "short"}, "`text`"),
        ({"kind": "text", "title": "T", "text": " " * 40}, "`text` must not be blank"),
        ({"kind": "text", "title": "T", "text": "x" * 500_001}, "`text`"),
        ({"kind": "text", "title": "t" * 501, "text": TEXT}, "`title`"),
        ({"kind": "text", "title": " ", "text": TEXT}, "`title` must not be blank"),
        ({"kind": "text", "title": "T", "text": TEXT + "\0"}, "`text` contains a NUL character"),
        ({"kind": "text", "title": "T", "text": TEXT + "\ud800"}, "`text` is not valid Unicode"),
        ({"kind": "text", "title": 7, "text": TEXT}, "`title`"),
        ({"kind": "text", "title": "T", "text": TEXT, "in_kb": "yes"}, "`in_kb`"),
        (
            {"kind": "text", "title": "T", "text": TEXT, "colour": "red"},
            "Unknown field `colour`; the fields are: kind, url, text, title, in_kb, auto_transform, html.",
        ),
    ],
)
async def test_ingest_says_what_is_wrong(
    owner: httpx.AsyncClient, body: dict[str, Any], part: str
) -> None:
    response = await owner.post("/api/v1/ingest", content=json.dumps(body), headers=JSON)
    assert response.status_code == 422
    assert response.json()["error"] == "invalid_request"
    assert part in response.json()["message"]
    assert (await owner.get("/api/v1/items")).json()["total"] == 0


async def test_null_is_the_same_as_left_out_and_8_0_the_same_as_8(owner: httpx.AsyncClient) -> None:
    kept = await owner.post(
        "/api/v1/ingest", json={"kind": "text", "title": "T", "text": TEXT, "url": None}
    )
    assert kept.status_code == 201
    assert (
        await owner.post("/api/v1/search", json={"query": "fox", "limit": 8.0})
    ).status_code == 200
    promise = {"filename": "n.md", "content_type": "text/markdown", "size": 5.0}
    assert (await owner.post("/api/v1/uploads/signed-url", json=promise)).status_code < 300
    assert (
        await owner.post("/api/v1/search", json={"query": "fox", "limit": 8.5})
    ).status_code == 422


async def test_the_longest_text_is_kept(owner: httpx.AsyncClient) -> None:
    text = "字" * 500_000
    kept = await owner.post(
        "/api/v1/ingest",
        content=json.dumps({"kind": "text", "title": "L", "text": text}),
        headers=JSON,
    )
    assert kept.status_code == 201
    assert (await owner.get(f"/api/v1/items/{kept.json()['user_item_id']}")).json()["text"] == text


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "search", {"query": "x", "limit": 0}),
        ("POST", "search", {"query": "x", "limit": 21}),
        ("POST", "search", {"query": "x", "limit": "8"}),
        ("POST", "search", {"query": "x", "mode": "fuzzy"}),
        ("POST", "search", {"query": "  "}),
        ("POST", "search", []),
        ("POST", "search", None),
        ("GET", "items?per_page=101", None),
        ("GET", "items?page=0", None),
        ("GET", "items?archive=true", None),
        ("GET", "items?q=a%00b", None),
        ("GET", "items/a%00b", None),
        ("GET", f"items/{'x' * 300}", None),
        ("PATCH", "items/x", {"tags": [" "]}),
        ("PATCH", "items/x", {"tags": "a"}),
        ("PATCH", "items/x", {"tags": ["a\0"]}),
        ("PATCH", "items/x", {"expected_revision": 1.5}),
        ("POST", "items/x/folders", {"folder_ids": []}),
        ("POST", "folders", {"name": ""}),
        ("POST", "folders", {"name": "x" * 201}),
        ("DELETE", "folders/x?cascade=1", None),
        ("POST", "tokens", {"name": "x", "write": True, "capabilities": ["read"]}),
        ("POST", "tokens", {"name": "x", "capabilities": ["admin"]}),
        ("POST", "tokens", {"name": "x", "expires_days": 0}),
        ("POST", "tokens", {"name": "x", "folder_ids": []}),
    ],
)
async def test_bad_values_are_refused_in_words(
    owner: httpx.AsyncClient, method: str, path: str, body: Any
) -> None:
    response = await owner.request(method, f"/api/v1/{path}", json=body)
    assert response.status_code == 422, response.text
    assert set(response.json()) == {"error", "message"}
    assert response.json()["error"] == "invalid_request"


@pytest.mark.parametrize(
    "body", [b'{"query":', b"\xff\xfe", b'{"query":"\xff"}', b"[" * 100_000, b"1" * 10_000]
)
async def test_what_is_not_json_is_a_bad_request(owner: httpx.AsyncClient, body: bytes) -> None:
    response = await owner.post("/api/v1/search", content=body, headers=JSON)
    assert (response.status_code, response.json()["error"]) == (400, "invalid_json")
    assert (
        response.json()["message"].startswith("The body") and "JSON: " in response.json()["message"]
    )


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
async def test_json_that_does_not_say_so_is_told_how(owner: httpx.AsyncClient, kind: str) -> None:
    response = await owner.post(
        "/api/v1/search", content=b'{"query": "fox"}', headers={"Content-Type": kind}
    )
    assert (response.status_code, response.json()["error"]) == (415, "unsupported_media_type")
    assert "application/json" in response.json()["message"]


async def test_what_is_too_long_is_told_in_characters(owner: httpx.AsyncClient) -> None:
    query = await owner.post("/api/v1/search", json={"query": "x" * 10_001})
    item_id = await owner.get(f"/api/v1/items/{'x' * 201}")
    assert query.json()["message"] == "`query` must have at most 10,000 characters."
    assert item_id.json()["message"] == "`item_id` must have at most 200 characters."


@pytest.mark.parametrize(
    ("method", "path", "body", "sentence"),
    [
        ("GET", "/api/v1/items?per_page=101", None, "`per_page` must be at most 100."),
        ("GET", "/api/v1/items?page=0", None, "`page` must be at least 1."),
        ("GET", "/api/v1/items?page=one", None, "`page` must be a whole number."),
        ("GET", "/api/v1/items?in_kb=maybe", None, "`in_kb` must be true, false or any."),
        ("GET", "/api/v1/items?archived=1", None, "`archived` must be true, false or any."),
        (
            "GET",
            "/api/v1/disks?scope=x",
            None,
            "`scope` must be all, owned, saved, private or published.",
        ),
        ("POST", "/api/v1/disks/batch", {"ids": []}, "`ids` must not be empty."),
        ("POST", "/api/v1/search", [], "The body must be an object."),
        ("POST", "/api/v1/search", {"query": 1}, "`query` must be text."),
        ("POST", "/api/v1/search", {"query": "x", "limit": 1.5}, "`limit` must be a whole number."),
    ],
)
async def test_what_a_value_must_be_is_told_in_words(
    owner: httpx.AsyncClient, method: str, path: str, body: object, sentence: str
) -> None:
    response = await owner.request(method, path, json=body)
    assert (response.status_code, response.json()["message"]) == (422, sentence)


async def test_unknown_paths_and_methods_have_the_same_shape(owner: httpx.AsyncClient) -> None:
    nowhere = await owner.get("/api/v1/nowhere")
    assert (nowhere.status_code, nowhere.json()["error"]) == (404, "not_found")
    wrong = await owner.put("/api/v1/items/x")
    assert (wrong.status_code, wrong.json()["error"]) == (405, "method_not_allowed")
    assert wrong.headers["Allow"] == "DELETE, GET, PATCH"


@pytest.mark.parametrize("path", ["/api/v1/ingest", "/mcp"])
async def test_a_body_over_8_mib_is_refused_whether_or_not_it_says_its_size(
    owner: httpx.AsyncClient, path: str
) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(9):
            yield b" " * 1024 * 1024

    for content in (b" " * (8 * 1024 * 1024 + 1), chunks()):
        response = await owner.post(path, content=content, headers=JSON)
        assert (response.status_code, response.json()["error"]) == (413, "payload_too_large")


async def test_no_token_a_wrong_one_and_another_scheme_are_unauthorized_everywhere(
    house: House,
) -> None:
    async with house.client() as client:
        for path in ("/api/v1/items", "/api/v1/nowhere", "/mcp", "/", "/healthz/x"):
            for header in (
                {},
                {"Authorization": "Bearer sk_wrong"},
                {"Authorization": "Basic eDp5"},
                {"Authorization": "Bearer é".encode()},
            ):
                response = await client.post(path, headers=header)
                assert response.status_code == 401
                assert response.json()["error"] == "unauthorized"
                assert response.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:1", 200),
        ("[::1]:8642", 200),
        ("books.example.org", 200),
        ("nas.local:80", 200),
        ("evil.example.org", 421),
        ("localhost.evil.example.org", 421),
        ("127.0.0.1.evil.example.org:8642", 421),
        ("", 421),
    ],
)
async def test_only_known_hosts_are_answered_for(
    house_with: OpenHouse, host: str, status: int
) -> None:
    async with (
        house_with(
            public_url="https://books.example.org", allowed_hosts="nas.local, other"
        ) as house,
        house.client("owner") as client,
    ):
        response = await client.get("/api/v1/items", headers={"Host": host})
        assert response.status_code == status
        assert (await client.get("/healthz", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost:8642", 200),
        ("https://127.0.0.1", 200),
        ("https://evil.example.org", 403),
        ("null", 403),
        ("chrome-extension://localhost", 403),
    ],
)
async def test_pages_from_elsewhere_may_not_write(
    house: House, owner: httpx.AsyncClient, origin: str, status: int
) -> None:
    """Where cookies are read. Elsewhere they need a token, like everybody."""
    web = await owner.post("/sign-in", headers={"Origin": origin})
    assert (web.status_code == 403 and web.json()["error"] == "forbidden_origin") is (status == 403)
    for client, answer in ((owner, 200), (house.client(), 401)):
        response = await client.post(
            "/api/v1/search", json={"query": "x"}, headers={"Origin": origin}
        )
        assert response.status_code == answer
        assert response.headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-credentials" not in response.headers


async def test_surprises_are_logged_not_shown(
    house: House,
    owner: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def surprise() -> None:
        raise RuntimeError("the secret detail")

    monkeypatch.setattr(house.app.store, "ping", surprise)
    response = await owner.get("/readyz")
    assert (response.status_code, response.json()["error"]) == (500, "internal_error")
    assert "secret detail" not in response.text
    assert "the secret detail" in caplog.text


async def test_a_lost_store_is_told_apart_from_a_bad_token(
    house: House, owner: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(*_: object) -> None:
        raise StorageFailed("The disk is full.")

    monkeypatch.setattr(house.app.store.tokens, "by_digest", lost)
    response = await owner.get("/api/v1/items")
    assert (response.status_code, response.json()) == (
        503,
        {"error": "storage_failed", "message": "The disk is full."},
    )
    for path in ("/mcp", "/api/mcp", "/mcp/disks"):
        before_tools = await owner.post(path, json={})
        assert (before_tools.status_code, before_tools.json()) == (
            500,
            {"error": "internal_error", "message": "The disk is full."},
        )


async def test_a_path_of_its_own_names_its_own_methods(owner: httpx.AsyncClient) -> None:
    """`/disks/batch` also looks like the path of a disk."""
    assert (await owner.options("/api/v1/disks/batch")).headers["allow"] == "POST"
    assert (await owner.options("/api/v1/disks/x")).headers["allow"] == "GET"
