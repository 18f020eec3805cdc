"""Every hit says when it was added and published, where it comes from, and whether it still holds: in every answer of a search."""

from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from commonplace.core.entities.validation import NewEntity
from commonplace.core.memory.memories import Memo
from commonplace.model import Mode
from tests.interfaces.house import House, call_tool, open_house

pytestmark = pytest.mark.anyio

QUERY = "which port does the harbour server listen on"
DAY = "2021-03-04"


@pytest.fixture
async def house(either_engine: dict[str, str], data_dir: Path) -> AsyncIterator[House]:
    async with open_house(data_dir, **either_engine) as opened:
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


async def ask(house: House, query: str, **filters: Any) -> list[tuple[str, str | None]]:
    """Titles and statuses that the graph's search finds, which REST and MCP tell alike."""
    asked = {"query": query} | filters
    async with house.client("owner") as client:
        told = (await call_tool(client, "search", asked))["result"]["structuredContent"]
        rest = (await client.post("/api/search", json=asked)).json()
    found = [(hit["title"], hit["metadata"].get("status") or None) for hit in told["results"]]
    assert found == [
        (hit["title"], hit["metadata"].get("status") or None) for hit in rest["results"]
    ]
    assert rest["filters"] == {name: each for name, each in filters.items() if name != "limit"}
    return found


def on(day: str) -> datetime:
    return datetime.fromisoformat(f"{day}T12:00:00+00:00")


async def test_as_of_answers_from_what_held_then(house: House) -> None:
    first = await remember(house, "First", "Port 8000 is the port.", created_at=on("2025-01-01"))
    second = await remember(house, "Second", "It moved to 8642.", created_at=on("2025-06-01"))
    third = await remember(house, "Third", "Nine is the number.", created_at=on("2026-02-01"))
    await remember(
        house, "Short", "Port of the fair.", created_at=on("2025-01-01"), valid_until="2025-03-31"
    )
    await house.app.memory.supersede(house.owner, first, by=second)
    await house.app.memory.supersede(house.owner, second, by=third)
    stale = await remember(house, "Stale", "Port of the past.", created_at=on("2025-01-02"))
    await house.app.memory.mark_stale(house.owner, stale)
    for limit in (1, 10):
        for day, top, held in (
            ("2024-12-31", [], set()),
            ("2025-01-01", ["First"], {"First", "Short"}),
            ("2025-03-31T23:00:00Z", ["First"], {"First", "Short", "Stale"}),
            ("2025-04-01", ["First"], {"First", "Stale"}),
            ("2025-06-01", ["Second"], {"Second", "Stale"}),
            ("2026-02-01", ["Third"], {"Third", "Stale"}),
        ):
            found = await ask(house, "which port is the port", as_of=day, limit=limit)
            assert [title for title, _ in found][:1] == top, (day, found)
            assert all(status is None for _, status in found)
            if limit > 1:
                assert {title for title, _ in found} == held, day
    now = await ask(house, "which port is the port")
    assert {("Third", None), ("First", "superseded"), ("Short", "expired"), ("Stale", "stale")} <= {
        *now
    }


async def test_what_is_over_ranks_lower_and_says_so(house: House) -> None:
    """A day counts until its end, in UTC; what is to be reviewed keeps its place."""
    over = await remember(
        house,
        "Over",
        "The fair has a port of call.",
        valid_until="2026-03-31",
        review_by="2026-01-01",
    )
    due = await remember(house, "Due", "The fair may have a port, too.", review_by="2026-03-01")
    house.app.search.clock = lambda: on("2026-03-31")
    assert await ask(house, "the fair has a port of call") == [
        ("Over", "review_due"),
        ("Due", "review_due"),
    ]
    house.app.search.clock = lambda: on("2026-04-01")
    assert {*await ask(house, "the fair has a port of call")} == {
        ("Over", "expired"),
        ("Due", "review_due"),
    }
    async with house.client("owner") as owner:
        changed = await owner.patch(f"/api/entities/{over}", json={"valid_until": None})
        assert changed.json()["valid_until"] is None and changed.json()["review_by"] == "2026-01-01"
        changed = await owner.patch(
            f"/api/entities/{due}", json={"review_by": "2027-03-01T02:00:00+02:00"}
        )
        assert changed.json()["review_by"] == "2027-03-01T00:00:00Z"
        for name in ("valid_until", "review_by"):
            for wrong in ("soon", "2026-02-30"):
                words = {"title": "T", "content": "C.", "kind": "claim", name: wrong}
                refused = await call_tool(owner, "remember", words)
                assert refused["error"]["code"] == -32602 and name in refused["error"]["message"]
        words = {"title": "Kept", "content": "Until then.", "valid_until": "2026-12-31"}
        kept = (await call_tool(owner, "remember", words))["result"]["structuredContent"]
        shown = (await owner.get(f"/api/entities/{kept['id']}")).json()
    assert (shown["valid_until"], shown["review_by"]) == ("2026-12-31", None)
    assert {*await ask(house, "the fair has a port of call")} >= {
        ("Over", "review_due"),
        ("Due", None),
    }


async def test_filters_by_what_the_source_says(house: House) -> None:
    for title, metadata in (
        ("German", {"author": "Åsa Berg", "language": "de-AT", "published_at": "2020-05-05"}),
        ("English", {"author": "Bo Berg", "language": "en", "published_at": "2021-05-05"}),
        ("Unsigned", {}),
    ):
        await remember(house, title, f"Cranes of the harbour, {title}.", metadata=metadata)
    for filters, titles in (
        ({"author": "berg"}, {"German", "English"}),
        ({"author": "ÅSA"}, {"German"}),
        ({"text_language": "DE"}, {"German"}),
        ({"published_after": "2020-05-05"}, {"German", "English"}),
        ({"published_after": "2020-05-06"}, {"English"}),
        ({"published_before": "2021-05-05"}, {"German"}),
        ({"published_before": "2021-05-05T00:00:01Z", "author": "b"}, {"German", "English"}),
    ):
        assert {title for title, _ in await ask(house, "cranes", **filters)} == titles
    async with house.client("owner") as owner:
        for name in ("as_of", "published_after", "published_before"):
            for value in ("then", "9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+14:00"):
                refused = await owner.post("/api/search", json={"query": "q", name: value})
                assert refused.status_code == 422 and name in refused.json()["message"]


async def test_of_two_that_say_the_same_the_newer_stands_first(house: House) -> None:
    """Whatever the order in which they came; a number, or a word that matters, keeps them apart."""
    for title, day in (("Harbour fee", "2025-02-01"), ("Harbour fee", "2026-02-01")):
        await remember(
            house, title, "Ships pay the harbour fee on arrival.", created_at=on(day), tags=(day,)
        )
    await remember(house, "Fee", "The fee is 40 coins a day.", created_at=on("2025-01-01"))
    await remember(house, "Fee", "The fee is 50 coins a day.", created_at=on("2026-01-01"))

    async def days(query: str) -> list[str]:
        found = await house.app.search.search(house.owner, query, limit=20)
        assert [hit.score for hit in found.hits] == sorted(
            (hit.score for hit in found.hits), reverse=True
        )
        return [f"{hit.passage.created_at:%Y-%m-%d}" for hit in found.hits]

    assert (await days("when do ships pay the harbour fee"))[:2] == ["2026-02-01", "2025-02-01"]
    assert (await days("the fee is 40 coins a day"))[0] == "2025-01-01"
    assert (await days("the fee is 50 coins a day"))[0] == "2026-01-01"


async def test_a_superseded_memory_stays_below_its_replacement_beside_one_that_says_the_same(
    house: House,
) -> None:
    text = "Ships pay the harbour fee on arrival."
    old = await remember(house, "Fee", "Ships pay on leaving.", created_at=on("2024-01-01"))
    new = await remember(house, "Harbour fee", text, created_at=on("2025-01-01"))
    await house.app.memory.supersede(house.owner, old, by=new)
    await remember(house, "Harbour fee", text, created_at=on("2026-01-01"))
    for query in ("ships pay on leaving", "ships pay on arrival", "fee"):
        found = (await house.app.search.search(house.owner, query)).hits
        ids = [hit.passage.entity_id for hit in found]
        assert ids.index(new) < ids.index(old)


async def test_as_of_tells_nothing_of_a_replacement_out_of_scope(house: House) -> None:
    old = await remember(house, "Old", "The quay has one crane.", created_at=on("2025-01-01"))
    new = await remember(house, "New", "The quay has two cranes.", created_at=on("2025-06-01"))
    await house.app.folders.file(house.owner, old, [house.folders["Red"]])
    await house.app.memory.supersede(house.owner, old, by=new)
    async with house.client("one_folder") as one:
        for day in ("2025-03-01", "2025-07-01"):  # it was corrected today
            asked = {"query": "quay", "as_of": day}
            told = (await call_tool(one, "search", asked))["result"]["structuredContent"]
            assert [hit["title"] for hit in told["results"]] == ["Old"]
            assert new.split("_")[1] not in str(told)


async def test_a_time_without_entries_hides_nothing(house: House) -> None:
    """Nothing is from that month, and some of what is found has no vector."""
    await house.add("Herons", text="The colony counted 41 nests.")
    await house.add("Bread", text="Let the dough rise overnight.", in_kb=False)
    found = await house.app.search.search(house.owner, "which nests were counted in March 2020?")
    assert [hit.passage.title for hit in found.hits][:1] == ["Herons"]


async def test_keyword_search_finds_texts_of_scripts_without_spaces(house: House) -> None:
    """By pairs of characters, and by a single one."""
    texts = {
        "zh": "市立图书馆周末开放到晚上九点。",
        "ja": "ねこはそとであそぶのがすきです。テニスコートはとおい。",
        "ko": "월요일 회의에서 새로운 서버를 구매하기로 결정했습니다.",
        "th": "แมวชอบกินปลาและนอนหลับบนโซฟา",
    }
    for title, text in texts.items():
        await house.add(title, text=text)
    for query, title in (
        ("图书馆几点关门", "zh"),
        ("馆", "zh"),
        ("ねこ", "ja"),
        ("ﾃﾆｽｺｰﾄ", "ja"),
        ("서버 구매", "ko"),
        ("회의는 언제", "ko"),
        ("โซฟา", "th"),
        ("แมวกินปลา", "th"),
    ):
        found = await house.app.search.search(house.owner, query, mode=Mode.KEYWORD)
        assert [hit.passage.title for hit in found.hits] == [title], query
    assert not (await house.app.search.search(house.owner, "東京", mode=Mode.KEYWORD)).hits
