"""The pack that an agent starts with."""

from typing import Any

import httpx
import pytest

from commonplace.core.entities.validation import NewEntity
from commonplace.core.memory.token_budget import tokens
from commonplace.model import INTENTS
from tests.interfaces.house import House, call_tool

pytestmark = pytest.mark.anyio


async def add(house: House, title: str, content: str, kind: str = "episode", **more: Any) -> str:
    return (
        await house.app.entities.add(
            house.owner, NewEntity(title, content, kind, **more), sync=True
        )
    ).item.entity_id


async def context(
    client: httpx.AsyncClient, goal: str, **wish: Any
) -> tuple[dict[str, list[str]], Any, str]:
    """Ids by section and the text, as agents get them, and the whole pack, as REST has it."""
    answer = (await call_tool(client, "context", {"goal": goal} | wish, "/mcp/graph"))["result"]
    shown = answer["structuredContent"]["sections"]
    sections = {part["section"]: [line["id"] for line in part["items"]] for part in shown}
    pack = (await client.post("/api/v1/memory/context", json={"goal": goal} | wish)).json()
    text = answer["content"][0]["text"]
    assert pack["markdown"] == text
    return sections, pack, text


@pytest.fixture
async def stocked(house: House) -> dict[str, str]:
    ids = {
        "project": await add(house, "Auth", "Authentication of the product.", "project"),
        "other": await add(house, "Billing", "Invoices and payments.", "project"),
    }
    mine = {"project": ids["project"]}
    ids |= {
        "doing": await add(
            house,
            "Rotate refresh tokens",
            "Write the job that rotates refresh tokens.",
            "task",
            priority="high",
            **mine,
        ),
        "next": await add(
            house, "Document token rotation", "Tell operators how rotation works.", "task", **mine
        ),
        "decision": await add(
            house,
            "Rotate refresh tokens every 30 days",
            "Chosen because of the audit.",
            "decision",
            **mine,
        ),
        "rule": await add(
            house, "Never log refresh tokens", "Tokens must never be written to logs.", "pattern"
        ),
        "howto": await add(
            house,
            "How to revoke refresh tokens",
            "Run revoke on the primary, then restart the workers.",
            "procedure",
            **mine,
        ),
        "gotcha": await add(
            house,
            "Refresh tokens broke the mobile client",
            "The client crashed when a refresh token expired.",
            **mine,
        ),
        "theirs": await add(
            house,
            "Refresh tokens of the payment provider",
            "Billing rotates refresh tokens by hand.",
            "decision",
            project=ids["other"],
        ),
    }
    await house.app.tasks.step(house.owner, ids["doing"], "start_task")
    return ids


async def test_an_agent_that_starts_finds_everything_in_its_place(
    house: House, owner: httpx.AsyncClient, stocked: dict[str, str]
) -> None:
    sections, pack, text = await context(
        owner, "add rotation of refresh tokens", project=stocked["project"]
    )
    assert sections["active_work"][0] == stocked["doing"]
    assert stocked["next"] in sections["active_work"]
    assert sections["decisions"] == [stocked["decision"]]  # not the other project's
    assert sections["constraints"] == [stocked["rule"]]
    assert sections["procedures"] == [stocked["howto"]]
    assert sections["gotchas"] == [stocked["gotcha"]]
    assert pack["project"] == stocked["project"]
    shown = [entity for ids in sections.values() for entity in ids]
    assert len(shown) == len(set(shown)) == pack["total_items"]
    assert all(f"[{entity}]" in text for entity in shown)
    assert stocked["theirs"] not in text
    everywhere, _, _ = await context(owner, "add rotation of refresh tokens")
    assert stocked["theirs"] in everywhere["decisions"]


async def test_the_budget_holds_and_what_is_left_out_is_told(
    house: House, owner: httpx.AsyncClient, stocked: dict[str, str]
) -> None:
    for budget in (200, 300, 4000):
        _, pack, text = await context(owner, "add rotation of refresh tokens", token_budget=budget)
        assert tokens(text) <= budget
        assert pack["tokens"] <= budget
    _, pack, text = await context(owner, "add rotation of refresh tokens", limit=2)
    assert (pack["total_items"], sum(pack["left_out"].values())) == (2, 5)
    assert "Left out" in text


@pytest.mark.parametrize("sign", ["漢", "😀", "word "])
async def test_the_budget_holds_whatever_the_goal_is_written_in(
    house: House, owner: httpx.AsyncClient, sign: str
) -> None:
    project = await add(house, sign * 40, "A project with a long name.", "project")
    known = await add(
        house, "Known", "The river rises in spring, when the snow melts.", project=project
    )
    _, pack, text = await context(owner, sign * 200, project=project, token_budget=200)
    assert tokens(text) <= pack["tokens"] <= 200
    assert f"[{known}]" in text and "Nothing is known yet" not in text


async def test_much_work_in_hand_leaves_room_for_what_was_decided(
    house: House, owner: httpx.AsyncClient, stocked: dict[str, str]
) -> None:
    for name in (
        "Paint the fence",
        "Order new chairs",
        "Answer the auditor",
        "Renew the domain",
        "Sort the archive",
    ):
        task = await add(
            house,
            name,
            f"{name} before winter comes.",
            "task",
            project=stocked["project"],
            priority="critical",
        )
        await house.app.tasks.step(house.owner, task, "start_task")
    sections, pack, _ = await context(
        owner, "rotation of refresh tokens", project=stocked["project"], limit=6
    )
    assert len(sections["active_work"]) == 3 and pack["total_items"] == 6
    assert stocked["decision"] in sections["decisions"]


async def test_what_blocks_and_what_waits_is_said(
    house: House, owner: httpx.AsyncClient, stocked: dict[str, str]
) -> None:
    await house.app.tasks.step(
        house.owner, stocked["doing"], "block_task", reason="no access to staging"
    )
    waits = await add(
        house,
        "Announce it",
        "Tell everybody.",
        "task",
        project=stocked["project"],
        depends_on=(stocked["doing"],),
        due_date="2026-12-01",
    )
    _, pack, text = await context(owner, "rotation", project=stocked["project"])
    assert "blocked: no access to staging" in text
    [line] = [line for part in pack["sections"] for line in part["items"] if line["id"] == waits]
    assert (
        line["reason"] == "next, medium priority, due 2026-12-01, waits for Rotate refresh tokens"
    )


async def test_the_intent_shifts_what_comes_first(
    house: House, owner: httpx.AsyncClient, stocked: dict[str, str]
) -> None:
    goal = "refresh tokens broke the client"
    places = {
        intent: [
            part["section"] for part in (await context(owner, goal, intent=intent))[1]["sections"]
        ]
        for intent in INTENTS
    }
    assert places["debug"].index("gotchas") < places["debug"].index("decisions")
    assert places["debug"].index("gotchas") <= places["decide"].index("gotchas")
    error = (await call_tool(owner, "context", {"goal": "x", "intent": "dance"}))["error"]
    assert (error["code"], "build, plan, debug" in error["message"]) == (-32602, True)


async def test_scopes_hold_and_an_empty_library_says_so(
    house: House, stocked: dict[str, str]
) -> None:
    async with house.client("one_folder") as client:
        sections, _, text = await context(client, "refresh tokens")
        assert sections == {}
        assert "Nothing is known yet" in text
        error = (await call_tool(client, "context", {"goal": "x", "project": stocked["project"]}))[
            "error"
        ]
        missing = (
            await call_tool(client, "context", {"goal": "x", "project": "project_zzzzzzzzzzzz"})
        )["error"]
        assert (
            error["message"].replace(stocked["project"], "project_zzzzzzzzzzzz")
            == missing["message"]
        )


@pytest.mark.parametrize(
    "wish",
    [
        {"goal": " "},
        {"limit": 0},
        {"limit": 101},
        {"token_budget": 199},
        {"token_budget": 32_001},
        {"limit": "5"},
        {"more": 1},
    ],
)
async def test_refusals(owner: httpx.AsyncClient, wish: dict[str, Any]) -> None:
    assert (await call_tool(owner, "context", {"goal": "x"} | wish))["error"]["code"] == -32602


async def test_work_that_is_over_is_left_out_and_a_sentence_is_not_cut_at_its_title(
    house: House, owner: httpx.AsyncClient, stocked: dict[str, str]
) -> None:
    epic = await add(
        house,
        "Hardening",
        "Hardening of refresh tokens and their rotation.",
        "epic",
        project=stocked["project"],
    )
    _, _, text = await context(owner, "rotation of refresh tokens", project=stocked["project"])
    assert epic in text and "Hardening of refresh tokens and their rotation." in text
    task = await add(
        house,
        "Shorten refresh tokens",
        "Refresh tokens live for an hour.",
        "task",
        project=stocked["project"],
        epic=epic,
    )
    for action in ("start_task", "complete_task"):
        await house.app.tasks.step(house.owner, task, action)
    _, _, text = await context(owner, "rotation of refresh tokens", project=stocked["project"])
    assert epic not in text and task not in text
