"""An answer says when nothing in it has to do with the question, at every door."""

from typing import Any

import pytest

from tests.interfaces.house import House, call_tool
from tests.interfaces.test_web_people import browser

pytestmark = pytest.mark.anyio
NOTE = "Grey herons build their nests high in trees near water, and return to the colony in spring."
KNOWN, UNKNOWN = "where do herons build their nests", "quarterly income tax of freelancers"
CLOSEST = "No exact match. Closest passages:"


@pytest.fixture
async def filled(house: House) -> House:
    await house.add("Herons", text=NOTE)
    await house.add("Bread", text="Let the dough rise slowly in the refrigerator overnight.")
    return house


async def answers(house: House, query: str, tool_mode: str = "hybrid") -> list[bool]:
    async with house.client("owner") as owner:
        asked: list[tuple[str, dict[str, Any]]] = [
            ("search_knowledge_base", {"query": query, "mode": tool_mode}),
            ("search", {"query": query}),
            ("search_knowledge", {"query": query}),
        ]
        found = [
            (await call_tool(owner, name, given))["result"]["structuredContent"]
            for name, given in asked
        ]
        for path, more in (("/api/v1/search", {"mode": tool_mode}), ("/api/search", {})):
            found.append((await owner.post(path, json={"query": query} | more)).json())
    return [answer["weak"] for answer in found]


async def test_a_question_that_the_library_does_not_answer_is_weak(filled: House) -> None:
    assert await answers(filled, KNOWN) == [False] * 5
    assert await answers(filled, UNKNOWN) == [True] * 5


async def test_the_words_alone_are_enough(filled: House) -> None:
    assert await answers(filled, "dough", "keyword") == [False] * 5
    assert (await answers(filled, "tax of the freelancers overnight", "keyword"))[0]


async def test_the_text_of_an_answer_says_so(filled: House) -> None:
    async with filled.client("owner") as owner:
        for tool in ("search_knowledge_base", "search"):
            said = (await call_tool(owner, tool, {"query": UNKNOWN}))["result"]["content"][0][
                "text"
            ]
            assert said.startswith(f"{CLOSEST}\n1. ")
            said = (await call_tool(owner, tool, {"query": KNOWN}))["result"]["content"][0]["text"]
            assert CLOSEST not in said
    async with await browser(filled, filled.owner.person_id) as client:
        assert CLOSEST in (await client.get("/search", params={"q": UNKNOWN})).text
        assert CLOSEST not in (await client.get("/search", params={"q": KNOWN})).text


async def test_what_a_token_may_not_see_makes_no_answer_strong(filled: House) -> None:
    async with filled.client("one_folder") as agent:
        found = (await call_tool(agent, "search", {"query": KNOWN}))["result"]["structuredContent"]
    assert found["weak"] and not found["results"]


async def test_a_replacement_is_as_good_an_answer_as_what_it_replaced(filled: House) -> None:
    """Also where it alone is shown, and has other words."""
    async with filled.client("owner") as owner:
        memories = (
            ("Deploy day is Friday", "We deploy the billing service every Friday afternoon."),
            ("Shipping moves to Tuesday", "Releases go out on Tuesday mornings from now on."),
        )
        old, new = [
            (
                await call_tool(
                    owner, "remember", {"title": title, "content": content, "kind": "decision"}
                )
            )["result"]["structuredContent"]["id"]
            for title, content in memories
        ]
        given = {"action": "supersede", "entity_id": old, "data": {"by": new}}
        assert "result" in await call_tool(owner, "manage", given)
        for mode in ("hybrid", "keyword", "semantic"):
            for limit in (1, 2):
                asked = {"query": "deploy day friday afternoon", "mode": mode, "limit": limit}
                found = (await owner.post("/api/v1/search", json=asked)).json()
                assert found["results"][0]["disk_title"] == "Shipping moves to Tuesday"
                assert not found["weak"]
        asked = {"query": "deploy day friday afternoon", "as_of": "2100-01-01"}
        found = (await owner.post("/api/search", json=asked)).json()
        assert [each["title"] for each in found["results"]][:1] == ["Shipping moves to Tuesday"]
        assert not found["weak"]
