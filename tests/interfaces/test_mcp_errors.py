"""What reaches the wire when the core fails, and what agents are told about degraded answers."""

from types import SimpleNamespace
from typing import Any

import pytest
from mcp import Client, MCPError

from commonplace import errors
from commonplace.interfaces.actions.shapes import moment
from commonplace.interfaces.mcp.server import ALL_TOOLS, Toolset
from commonplace.model import Caller, Capability, Hit, Mode, Passage, SearchResult, now
from commonplace.settings import Settings

pytestmark = pytest.mark.anyio

CALLER = Caller("library", "person", "Ada", frozenset(Capability))
MODES = ("2026-07-28", "legacy")
QUOTA = {"resource": "transcription_minutes", "tier": "free", "cap_per_month": 60}


def toolset(**services: Any) -> Toolset:
    """All tools on services that a test makes up; everybody may call them."""
    access = SimpleNamespace(require=lambda *_: None)
    return Toolset(
        ALL_TOOLS,
        SimpleNamespace(settings=Settings(), access=access, **services),  # type: ignore[arg-type]
    )


def client(mode: str, **services: Any) -> Client:
    return Client(toolset(**services).server(_caller), mode=mode)


async def _caller(_: object) -> Caller:
    return CALLER


def failing(error: Exception) -> Any:
    async def recent(*_: Any, **__: Any) -> Any:
        raise error

    return SimpleNamespace(recent=recent)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("error", "code", "data"),
    [
        (errors.Invalid("Bad."), -32602, {"error": "invalid_request"}),
        (errors.RateLimited(17), -32605, {"error": "rate_limited", "retry_after_sec": 17}),
        (
            errors.QuotaExceeded("No minutes left.", **QUOTA),
            402,
            {"error": "quota_exceeded", "message": "No minutes left.", **QUOTA},
        ),
        (errors.IngestFailed("Nobody answers there."), -32603, {"error": "ingest_failed"}),
        (errors.EmbeddingFailed("The embedder is down."), -32603, {"error": "embedding_failed"}),
        (errors.NotFound("Item not found"), -32603, {"error": "not_found"}),
        (errors.StorageFailed("The disk is full."), -32603, {"error": "storage_failed"}),
        (
            errors.CapabilityDenied("write", ["read"]),
            -32603,
            {"error": "capability_denied", "required": "write", "have": ["read"]},
        ),
    ],
    ids=lambda value: getattr(value, "code", None),
)
async def test_each_error_has_its_code(
    mode: str, error: errors.CommonplaceError, code: int, data: Any
) -> None:
    async with client(mode, library=failing(error)) as asking:
        with pytest.raises(MCPError) as caught:
            await asking.call_tool("list_recent", {})
    assert (caught.value.code, caught.value.message, caught.value.data) == (
        code,
        error.message,
        data,
    )


@pytest.mark.parametrize("mode", MODES)
async def test_a_surprise_is_logged_and_tells_nothing(
    mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with client(mode, library=failing(RuntimeError("the password is hunter2"))) as asking:
        with pytest.raises(MCPError) as caught:
            await asking.call_tool("list_recent", {})
    assert (caught.value.code, caught.value.data) == (-32603, {"error": "internal_error"})
    assert "hunter2" not in caught.value.message and "hunter2" in caplog.text


def searching(found: SearchResult) -> Any:
    async def search(*_: Any, **__: Any) -> SearchResult:
        return found

    return SimpleNamespace(search=search)


async def test_a_degraded_answer_says_so() -> None:
    why = "Only words were compared: 3 of 9 passages have no vector yet."
    address = "https://tides.example/"
    at = now()
    passage = Passage(
        1,
        "item",
        "public",
        "document",
        "Tides",
        address,
        4,
        "",
        "High\nwater.",
        2,
        (),
        {},
        "",
        "private",
        "",
        (),
        (),
        {},
        at,
    )
    found = SearchResult("tides", Mode.HYBRID, (Hit(1, 0.841, passage),), why, weak=False)
    async with client("2026-07-28", search=searching(found)) as asking:
        answer = await asking.call_tool("search_knowledge_base", {"query": "tides"})
    assert answer.content[0].text == (
        f'Note: {why}\n1. (0.84) Tides\n   "...High\n   water...."\n   item_id: item\n'
        f"   created_at: {at:%Y-%m-%d}"
    )
    assert answer.structured_content == {
        "query": "tides",
        "mode": "hybrid",
        "degraded": why,
        "weak": False,
        "hits": [
            {
                "rank": 1,
                "score": 0.841,
                "title": "Tides",
                "item_id": "item",
                "section_index": 4,
                "text": "High\nwater.",
                "url": address,
                "created_at": moment(at),
                "published_at": None,
                "origin": "you",
            }
        ],
    }


async def test_nothing_found_is_an_answer() -> None:
    async with client(
        "2026-07-28", search=searching(SearchResult("tides", Mode.KEYWORD, ()))
    ) as asking:
        answer = await asking.call_tool(
            "search_knowledge_base", {"query": "tides", "mode": "keyword"}
        )
    assert answer.content[0].text == "Nothing found."
    assert answer.structured_content == {
        "query": "tides",
        "mode": "keyword",
        "hits": [],
        "degraded": None,
        "weak": True,
    }
