"""The pack that an agent starts with."""

from dataclasses import dataclass
from itertools import count
from typing import Any

import httpx
import pytest
from hypothesis import given, strategies as st

from commonplace.core.entities.validation import NewEntity
from commonplace.core.items.drafts import Record
from commonplace.core.memory.context import Goal
from commonplace.core.memory.token_budget import left_out, tokens
from commonplace.core.search.relevance import relevant
from commonplace.core.search.search import EntityQuery
from commonplace.core.search.similarity import SimilarityScale
from commonplace.model import (
    CONTEXT_SECTIONS,
    INTENTS,
    Caller,
    Capability,
    Item,
    ItemFilter,
    Kind,
    Relation,
    Role,
    new_id,
    new_public_id,
)
from commonplace.model.workflow import ENDED, UNDERWAY
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


SUBJECTS = {
    "tokens": "Refresh tokens are rotated every thirty days, and old ones are revoked at once.",
    "birds": "Grey herons nest high in trees near the water and return every spring.",
    "bread": "The dough rests overnight in the refrigerator before it is baked.",
    "database": "Every worker keeps two database connections open, and the pool has forty.",
    "taxes": "Freelancers pay estimated income tax four times a year.",
    "deploy": "The container image that passed the tests is promoted by its digest.",
}
SAID = (
    "",
    "Number 4. ",
    "The audit of last spring asked for it, and the customers of the bank pay for the work. ",
    "Mobile clients lose their session then, which the support team hears about every month. ",
    "A job on the primary does the work at night, and writes what it did into the log. ",
    "Nobody has found a better way, although three of us spent a week reading about others. ",
)
GOALS = (
    "rotate refresh tokens",
    "revoke old tokens",
    "how large must the database connection pool be",
    "bake bread",
    "promote a container image to production",
    "tax",
    "zebra",
)


@dataclass
class Known:
    """An item of a made-up library."""

    kind: str
    subject: str
    said: str
    mine: bool  # whether it belongs to the project
    status: str = ""


MEMORIES = st.builds(
    Known,
    st.sampled_from(["decision", "pattern", "procedure", "episode", "claim", "document", "plan"]),
    st.sampled_from(["tokens", "tokens", "tokens", *SUBJECTS]),
    st.sampled_from(SAID),
    st.booleans(),
)
TASKS = st.builds(
    Known,
    st.just("task"),
    st.sampled_from(sorted(SUBJECTS)),
    st.just(""),
    st.booleans(),
    st.sampled_from([*UNDERWAY, "todo", "done"]),
)
NUMBERS = count()


async def made_library(house: House, known: list[Known]) -> tuple[Caller, str]:
    """A library of its own with these items, and its project."""
    name = f"Person {next(NUMBERS)}"
    person, _ = await house.app.people.create_with_token(name, f"{new_id()}@example.org")
    caller = Caller(person.id, person.id, name, frozenset(Capability), role=Role.OWNER)

    def record(kind: str, title: str, text: str, status: str = "") -> Record:
        return Record(
            Item(
                new_id(),
                caller.library_id,
                new_public_id(),
                "",
                kind,
                "text",
                title,
                summary=text,
                status=status,
            ),
            text,
            once=False,
            describe=False,
        )

    project = record("project", "The product", "What we build.")
    records = [
        record(
            each.kind,
            f"{each.subject.capitalize()} {chr(ord('A') + n)}",
            f"{each.said}{SUBJECTS[each.subject]}",
            each.status,
        )
        for n, each in enumerate(known)
    ]
    await house.app.bulk_import.put(caller, [project, *records])
    await house.app.store.relations.put(
        caller.scope,
        [
            Relation(caller.library_id, made.item.id, Kind.BELONGS_TO, project.item.id)
            for made, each in zip(records, known, strict=True)
            if each.mine
        ],
    )
    return caller, project.item.id


@given(
    st.lists(MEMORIES | TASKS, max_size=24) | st.lists(MEMORIES, min_size=16, max_size=24),
    st.sampled_from(GOALS),
    st.booleans(),
    st.integers(1, 8),
    st.sampled_from([300, 600, 4_000]),
)
async def test_a_pack_holds_what_search_finds(
    house: House, known: list[Known], goal: str, named: bool, limit: int, budget: int
) -> None:
    caller, project = await made_library(house, known)
    pack = await house.app.context.pack(
        caller,
        Goal(goal, project=project if named else None, limit=limit, token_budget=budget),
    )
    lines = pack.packed.lines
    assert len(lines) <= limit and tokens(pack.markdown()) <= pack.packed.tokens <= budget
    held = {line.id for line in lines} | {other.id for line in lines for other in line.also}
    found = await house.app.entity_search.search(
        caller,
        EntityQuery(goal, project if named else None, ItemFilter(not_statuses=ENDED)),
    )
    scale = await SimilarityScale(house.app.embedder).scale()
    wanted = [hit.passage for hit in relevant(goal, found.hits[: max(0, limit - 2)], scale)]
    titles = "\n".join(f"- [{p.entity_id}] **{p.title}** ({p.status}) (also )" for p in wanted)
    headings = "\n\n".join(f"## {title}" for title in CONTEXT_SECTIONS.values())
    most = left_out(dict.fromkeys(CONTEXT_SECTIONS, 100), CONTEXT_SECTIONS)
    if (
        tokens(
            f"# Context: {goal}\n\nProject: [project_{'x' * 12}] The product\n\n{titles}\n\n"
            f"{headings}\n\n{most}"
        )
        + 2 * len(wanted)
        <= budget
    ):
        assert {passage.entity_id for passage in wanted} <= held


async def test_a_small_project_gets_nothing_unrelated_from_a_large_library(house: House) -> None:
    others = [
        Known("document", subject, f"Part {n}. ", False)
        for n in range(10)
        for subject in SUBJECTS
        if subject != "tokens"
    ]
    own = [
        Known("decision", "tokens", "", True),
        Known("procedure", "tokens", "Run the job on the primary. ", True),
        Known("episode", "database", "", True),
        Known("task", "tokens", "", True, "doing"),
    ]
    caller, project = await made_library(house, [*others, *own])
    for goal in ("rotate refresh tokens", "paint the fence before winter"):
        pack = await house.app.context.pack(caller, Goal(goal, project=project))
        titles = {line.title for line in pack.packed.lines}
        assert titles <= {
            f"{each.subject.capitalize()} {chr(ord('A') + n)}" for n, each in enumerate(own, 50)
        }
    pack = await house.app.context.pack(caller, Goal("paint the fence before winter"))
    assert pack.packed.lines == ()
    assert "Nothing is known yet about this goal" in pack.markdown()


async def test_rules_of_other_projects_stay_there(
    house: House, owner: httpx.AsyncClient, stocked: dict[str, str]
) -> None:
    theirs = await add(
        house,
        "Never cache refresh tokens",
        "Refresh tokens must never be written to a cache.",
        "pattern",
        project=stocked["other"],
    )
    sections, _, _ = await context(owner, "cache refresh tokens", project=stocked["project"])
    assert sections["constraints"] == [stocked["rule"]]
    everywhere, _, _ = await context(owner, "cache refresh tokens")
    assert theirs in everywhere["constraints"]


async def test_near_duplicates_share_a_line_and_contradictions_do_not(
    house: House, owner: httpx.AsyncClient
) -> None:
    text = (
        "The invoice export runs nightly at {}, writes one file for each customer, and mails it "
        "to the accountants of the customer with a link that expires after a week."
    )
    first, twin, other = [
        await add(house, "Invoice export", text.format(hour), "claim")
        for hour in ("02:00", "02:00", "04:30")
    ]
    sections, pack, shown = await context(owner, "change the nightly invoice export")
    assert len(sections["constraints"]) == 2 and other in sections["constraints"]
    [line] = [line for line in pack["sections"][0]["items"] if line["id"] != other]
    [also] = line["also"]
    assert {line["id"], also["id"]} == {first, twin} and also["title"] == "Invoice export"
    assert f"(also [{also['id']}])" in shown
    answer = await call_tool(owner, "context", {"goal": "invoice export"}, "/mcp/graph")
    structured = answer["result"]["structuredContent"]["sections"][0]["items"]
    assert sorted(len(each.get("also", [])) for each in structured) == [0, 1]


async def test_what_replaced_a_memory_is_there_in_its_place(
    house: House, owner: httpx.AsyncClient
) -> None:
    old = await add(house, "Session storage", "User sessions are kept in Redis.", "decision")
    await house.app.memory.supersede(
        house.owner, old, title="Where it lives", content="All of that moved to Postgres."
    )
    sections, _, text = await context(owner, "where are user sessions kept, in Redis")
    assert len(sections["decisions"]) == 1
    assert "All of that moved to Postgres." in text and old not in text


async def test_newest_memory_is_shown_only_where_nothing_fits(
    house: House, owner: httpx.AsyncClient, stocked: dict[str, str]
) -> None:
    goal = {"project": stocked["project"]}
    sections, _, _ = await context(owner, "paint the fence", **goal)
    assert sections["recent_memory"] == [stocked["gotcha"], stocked["howto"]]
    sections, _, _ = await context(owner, "rotation of refresh tokens", **goal)
    assert "recent_memory" not in sections
