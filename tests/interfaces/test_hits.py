"""Every hit says when it was added and published, where it comes from, and whether it still holds: in every answer of a search."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from commonplace.core.entities.validation import NewEntity
from commonplace.core.memory.memories import Memo
from tests.interfaces.house import House, call_tool, open_house

pytestmark = pytest.mark.anyio

QUERY = "which port does the harbour server listen on"
DAY = "2021-03-04"


@pytest.fixture(params=["sqlite", "postgres"])
async def house(request: pytest.FixtureRequest, data_dir: Path) -> AsyncIterator[House]:
    place = (
        {}
        if request.param == "sqlite"
        else {
            "database_url": request.getfixturevalue("postgres_url"),
            "database_schema": request.getfixturevalue("postgres_schema"),
        }
    )
    async with open_house(data_dir, **place) as opened:
        yield opened


async def remember(house: House, title: str, content: str, **more: Any) -> str:
    kept = await house.app.memory.remember(
        house.owner, Memo(NewEntity(title, content, "claim", **more)), sync=True
    )
    return kept.item.entity_id


async def answers(client: httpx.AsyncClient) -> tuple[dict[str, dict[str, Any]], str, str]:
    """The hits of each answer by title, and the texts of both search tools."""
    asked: dict[str, Any] = {"query": QUERY, "limit": 10}
    knowledge = (await call_tool(client, "search_knowledge_base", asked))["result"]
    graph = (await call_tool(client, "search", asked))["result"]
    disks = (await call_tool(client, "search_knowledge", asked))["result"]
    rest = (await client.post("/api/v1/search", json=asked)).json()["results"]
    flat = (await client.post("/api/search", json=asked)).json()["results"]
    found = {
        "knowledge": knowledge["structuredContent"]["hits"],
        "graph": [
            hit["metadata"] | {"title": hit["title"], "created_at": hit["created_at"]}
            for hit in [*graph["structuredContent"]["results"]]
        ],
        "graph over REST": [
            hit["metadata"] | {"title": hit["title"], "created_at": hit["created_at"]}
            for hit in flat
        ],
        "disks": disks["structuredContent"]["results"],
        "REST": rest,
    }
    return (
        {
            door: {hit.get("title", hit.get("disk_title")): hit for hit in hits}
            for door, hits in found.items()
        },
        knowledge["content"][0]["text"],
        graph["content"][0]["text"],
    )


async def test_every_hit_tells_its_dates_origin_and_standing(
    house: House, owner: httpx.AsyncClient
) -> None:
    old = await remember(
        house,
        "Old port",
        "The harbour server listens on port 8000.",
        metadata={"published_at": DAY},
    )
    new = await remember(house, "New port", "Cranes ask at 8642.")
    await house.add("Manual", text="Harbour servers listen on a port of their own.")
    await house.app.memory.supersede(house.owner, old, by=new)
    found, listed, results = await answers(owner)
    for door, hits in found.items():
        assert list(hits)[:2] == ["New port", "Old port"], door
        assert hits["Old port"]["superseded_by"] == new, door
        assert hits["Old port"]["status"] == "superseded", door
        assert hits["Old port"]["published_at"].startswith(DAY), door
        assert "superseded_by" not in hits["New port"], door
        assert not hits["New port"].get("status"), door
        assert not hits["New port"].get("published_at"), door
        assert "status" not in hits["Manual"], door
        for hit in hits.values():
            assert hit["created_at"].startswith("20") and hit["origin"] == "you", door
    today = found["knowledge"]["Old port"]["created_at"][:10]
    assert f"created_at: {today}, published_at: {DAY}\n   status: superseded by {new}" in listed
    assert f"Old port (superseded by {new}, published {DAY}, " in results
    assert f"New port ({today}, " in results
    async with house.client("one_folder") as one:
        await house.app.folders.file(house.owner, old, [house.folders["Red"]])
        scoped, listed, results = await answers(one)
    for door, hits in scoped.items():
        assert hits["Old port"]["status"] == "superseded", door
        assert "New port" not in hits and "superseded_by" not in hits["Old port"], door
    assert new.split("_")[1] not in listed + results
