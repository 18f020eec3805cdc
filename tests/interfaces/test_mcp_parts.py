"""Long texts in parts, as the three doors give them."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.interfaces.house import House, call_tool, open_house

pytestmark = pytest.mark.anyio

CHAPTERS = [
    f"## Chapter {n}\n\n"
    + "\n\n".join(f"The tide of day {d} in chapter {n} turns. " * 24 for d in range(8))
    for n in range(12)
]
TEXT = "\n\n".join(CHAPTERS)
DEFAULT = 40_000
IDS = {"get_item": "item_id", "fetch": "id", "get_disk": "disk_id"}


@pytest.fixture(scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    async with open_house(tmp_path_factory.mktemp("parts") / "data") as opened:
        yield opened


@pytest.fixture(scope="module")
async def client(house: House) -> AsyncIterator[httpx.AsyncClient]:
    async with house.client("owner") as opened:
        yield opened


@pytest.fixture(scope="module")
async def item_id(house: House) -> str:
    return (await house.add("Tides", text=TEXT))[0]


async def read(client: httpx.AsyncClient, tool: str, item_id: str, **more: Any) -> Any:
    answer = await call_tool(client, tool, {IDS[tool]: item_id, **more})
    return answer["result"] if "result" in answer else answer["error"]


def place(tool: str, told: Any) -> Any:
    """Where an answer keeps sections and next_section."""
    return told["metadata"] if tool == "fetch" else told


async def parts(client: httpx.AsyncClient, tool: str, item_id: str, **more: Any) -> list[Any]:
    """All parts, each continued where the last one says."""
    found, start = [], {}
    while True:
        answer = await read(client, tool, item_id, **more, **start)
        found.append(answer)
        following = place(tool, answer["structuredContent"])["next_section"]
        if following is None:
            return found
        start = {"from_section": following}


@pytest.mark.parametrize("more", [{}, {"max_chars": None}], ids=["left out", "null"])
@pytest.mark.parametrize("tool", ["get_item", "fetch"])
async def test_items_come_in_parts_of_whole_sections(
    client: httpx.AsyncClient, item_id: str, tool: str, more: dict[str, None]
) -> None:
    found = await parts(client, tool, item_id, **more)
    texts = [answer["structuredContent"]["text"] for answer in found]
    assert len(found) == 3 and "".join(texts) == TEXT
    assert all(len(text) <= DEFAULT for text in texts) and len(texts[0]) > 0.9 * DEFAULT
    index = 0
    for answer, text in zip(found, texts, strict=True):
        for section in place(tool, answer["structuredContent"])["sections"]:
            assert section["index"] == index
            assert "tide" in text[section["start"] : section["end"]]
            index += 1
    assert index > 12


async def test_headings_are_told_where_they_change(client: httpx.AsyncClient, item_id: str) -> None:
    whole = (await read(client, "get_item", item_id, max_chars=500_000))["structuredContent"]
    assert whole["text"] == TEXT and whole["next_section"] is None
    told = [section["heading"] for section in whole["sections"] if "heading" in section]
    assert told == [f"Chapter {n}" for n in range(12)]
    middle = next(section["index"] for section in whole["sections"] if "heading" not in section)
    part = (await read(client, "get_item", item_id, from_section=middle))["structuredContent"]
    assert part["sections"][0]["heading"] == "Chapter 0"


async def test_the_last_line_says_how_to_continue(client: httpx.AsyncClient, item_id: str) -> None:
    found = await parts(client, "get_item", item_id)
    for answer in found[:-1]:
        following = answer["structuredContent"]["next_section"]
        last = answer["content"][0]["text"].splitlines()[-1]
        assert last == f"Continues: get_item(item_id, from_section={following})"
    assert found[-1]["content"][0]["text"].endswith(TEXT[-100:])


async def test_disks_are_whole_unless_asked_otherwise(
    client: httpx.AsyncClient, item_id: str
) -> None:
    whole = (await read(client, "get_disk", item_id))["structuredContent"]
    assert whole["text"] == TEXT and whole["next_section"] is None
    assert [section["index"] for section in whole["sections"]] == [
        *range(1, len(whole["sections"]) + 1)
    ]
    found = [
        answer["structuredContent"]
        for answer in await parts(client, "get_disk", item_id, max_chars=30_000)
    ]
    assert "".join(part["text"] for part in found) == TEXT
    assert [section for part in found for section in part["sections"]] == whole["sections"]
    assert len(found) > 2 and found[1]["sections"][0]["index"] == found[0]["next_section"]


@pytest.mark.parametrize("tool", IDS)
@pytest.mark.parametrize(
    "more",
    [
        {"from_section": 10_000},
        {"from_section": -1},
        {"max_chars": 199},
        {"max_chars": 500_001},
        {"max_chars": "all"},
    ],
)
async def test_out_of_range_is_refused(
    client: httpx.AsyncClient, item_id: str, tool: str, more: dict[str, Any]
) -> None:
    error = await read(client, tool, item_id, **more)
    assert error["code"] == -32602 and next(iter(more)) in error["message"]


async def test_disks_count_from_one(client: httpx.AsyncClient, item_id: str) -> None:
    error = await read(client, "get_disk", item_id, from_section=0)
    assert (error["code"], error["message"]) == (-32602, "`from_section` must be at least 1.")


@pytest.mark.parametrize("tool", IDS)
async def test_a_section_longer_than_the_part_is_cut(
    client: httpx.AsyncClient, item_id: str, tool: str
) -> None:
    answer = await read(client, tool, item_id, max_chars=200)
    told = answer["structuredContent"]
    assert told["text"] == TEXT[:200]
    where = place(tool, told)
    assert len(where["sections"]) == 1
    assert where["next_section"] == (2 if tool == "get_disk" else 1)
    if tool == "get_disk":
        assert where["sections"][0]["text"] == TEXT[:200]
    else:
        assert where["cut"] is True and where["sections"][0]["end"] == 200
    if tool == "get_item":
        assert "Raise max_chars to read all of it." in answer["content"][0]["text"]


async def test_short_texts_are_whole(house: House, client: httpx.AsyncClient) -> None:
    short, _ = await house.add("Short")
    for tool in IDS:
        told = (await read(client, tool, short))["structuredContent"]
        assert told["text"].startswith("Short: ")
        assert place(tool, told)["next_section"] is None and "cut" not in place(tool, told)
