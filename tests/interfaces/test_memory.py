"""What is remembered is kept word for word, found, corrected and forgotten: by every face, on both engines."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from commonplace.app import open_app
from commonplace.core.entities.validation import NewEntity
from commonplace.core.memory.context import Goal
from commonplace.core.memory.memories import Memo
from commonplace.errors import Conflict, Invalid, NotFound
from commonplace.model import ItemFilter, Mode, Relation
from tests.interfaces.house import House, call_tool, open_house

pytestmark = pytest.mark.anyio

WORDS = {
    "title": "Use PKCE",
    "content": "  We use the code flow with PKCE, because implicit flow leaks tokens.\n\n",
    "kind": "decision",
}


@pytest.fixture
async def house(either_engine: dict[str, str], data_dir: Path) -> AsyncIterator[House]:
    async with open_house(data_dir, **either_engine) as opened:
        yield opened


async def remember(
    house: House, title: str, content: str, kind: str = "episode", **more: Any
) -> str:
    kept = await house.app.memory.remember(
        house.owner, Memo(NewEntity(title, content, kind, **more))
    )
    return kept.item.entity_id


async def found(house: House, query: str) -> list[str]:
    return [
        hit.passage.title
        for hit in (await house.app.search.search(house.owner, query, limit=20)).hits
    ]


async def pack(house: House, goal: str, **wish: Any) -> list[str]:
    made = await house.app.context.pack(house.owner, Goal(goal, **wish))
    return [line.title for line in made.packed.lines]


# -- remember


async def test_the_words_are_kept_as_they_came(house: House, owner: httpx.AsyncClient) -> None:
    answer = (await call_tool(owner, "remember", WORDS, "/mcp/graph"))["result"][
        "structuredContent"
    ]
    assert answer["success"] is True
    assert answer["id"].startswith("decision_")
    capture = (await owner.get(f"/api/v1/memory/captures/{answer['id']}")).json()
    assert (capture["id"], capture["text"], capture["hash"]) == (
        answer["capture_id"],
        WORDS["content"],
        hashlib.sha256(WORDS["content"].encode()).hexdigest(),
    )
    assert "Use PKCE" in await found(house, "PKCE code flow")
    item = (await house.app.entities.get(house.owner, answer["id"])).item
    assert item.metadata["capture_id"] == answer["capture_id"]


async def test_a_capture_cannot_be_changed_not_even_by_sql(house: House) -> None:
    await remember(house, "A", "The words.")
    with pytest.raises(Exception, match="captures are never changed"):
        await house.app.store._db.write(lambda tx: tx.run("UPDATE captures SET text = 'other'"))  # type: ignore[attr-defined]


async def test_nothing_leads_an_entity_away_from_its_capture(
    house: House, owner: httpx.AsyncClient
) -> None:
    kept = (await owner.post("/api/v1/memory/remember", json=WORDS)).json()
    for metadata in ({"capture_id": None}, {"capture_hash": "0" * 64}):
        refused = await owner.patch(f"/api/entities/{kept['id']}", json={"metadata": metadata})
        assert (
            refused.status_code == 422 and "cannot be set or changed" in refused.json()["message"]
        )
    same = {"capture_id": kept["capture_id"], "colour": "red"}  # as it was read
    assert (await owner.patch(f"/api/entities/{kept['id']}", json={"metadata": same})).json()[
        "metadata"
    ]["colour"] == "red"
    forged = {
        "title": "Forged",
        "content": "Words.",
        "metadata": {"capture_id": kept["capture_id"]},
    }
    assert (await owner.post("/api/entities?sync=true", json=forged)).status_code == 422
    await owner.patch(f"/api/entities/{kept['id']}", json={"content": "Other words."})
    capture = (await owner.get(f"/api/v1/memory/captures/{kept['id']}")).json()
    assert (capture["text"], capture["hash"]) == (WORDS["content"], kept["capture_hash"])


async def test_one_key_is_one_memory(house: House, owner: httpx.AsyncClient) -> None:
    first, second = [
        (await owner.post("/api/v1/memory/remember", json=WORDS | {"idempotency_key": "k1"})).json()
        for _ in range(2)
    ]
    assert (first["repeated"], second["repeated"]) == (False, True)
    assert first["id"] == second["id"]
    assert first["capture_id"] == second["capture_id"]
    other = (
        await owner.post(
            "/api/v1/memory/remember",
            json=WORDS | {"idempotency_key": "k1", "content": "Other words."},
        )
    ).json()
    assert (other["id"], other["repeated"]) == (first["id"], True)
    assert "was not stored" in other["message"]
    async with house.client("one_folder") as somebody_else:
        theirs = (
            await somebody_else.post(
                "/api/v1/memory/remember", json=WORDS | {"idempotency_key": "k1"}
            )
        ).json()
    assert (theirs["id"] == first["id"], theirs["repeated"]) == (False, False)


async def test_one_key_tells_the_same_conflicts_again(owner: httpx.AsyncClient) -> None:
    await owner.post("/api/v1/memory/remember", json=WORDS)
    first, second = [
        (await owner.post("/api/v1/memory/remember", json=WORDS | {"idempotency_key": "k"})).json()
        for _ in range(2)
    ]
    assert (first["repeated"], second["repeated"]) == (False, True)
    assert [each["kind"] for each in first["conflicts"]] == ["duplicate"]
    assert second["conflicts"] == first["conflicts"]


async def test_one_key_tells_nothing_of_conflicts_that_were_deleted(
    house: House, owner: httpx.AsyncClient
) -> None:
    words = WORDS | {"title": "Soon deleted"}
    conflict = (await owner.post("/api/v1/memory/remember", json=words)).json()["id"]
    keyed = WORDS | {"idempotency_key": "k"}
    first = (await owner.post("/api/v1/memory/remember", json=keyed)).json()
    assert [each["id"] for each in first["conflicts"]] == [conflict]
    assert (await owner.delete(f"/api/entities/{conflict}")).is_success
    assert "Soon deleted" not in str(await house.app.memory.capture(house.owner, first["id"]))
    again = (await owner.post("/api/v1/memory/remember", json=keyed)).json()
    assert (again["repeated"], again["conflicts"]) == (True, [])


async def test_one_key_is_one_memory_also_for_those_who_ask_at_once(
    house: House, owner: httpx.AsyncClient
) -> None:
    answers = await asyncio.gather(
        *(
            owner.post("/api/v1/memory/remember", json=WORDS | {"idempotency_key": "k"})
            for _ in range(8)
        )
    )
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert sum(not answer.json()["repeated"] for answer in answers) == 1


async def test_a_token_of_two_folders_is_told_of_what_it_kept(house: House) -> None:
    async with house.client("two_folder") as client:
        answers = [
            (
                await client.post("/api/v1/memory/remember", json=WORDS | {"idempotency_key": "k"})
            ).json()
            for _ in range(2)
        ]
    assert answers[0]["id"] == answers[1]["id"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"title": " "}, "Title cannot be empty"),
        ({"content": "\n"}, "Content cannot be empty"),
        ({"kind": "task"}, "Tasks require a project"),
        ({"kind": "epic"}, "Epics require a project"),
        ({"kind": "document"}, "add_to_knowledge and uploads keep documents"),
        ({"related_to": ["decision_nowhere"]}, "There is no entity"),
        ({"source": {"a": {"b": "NUL \0"}}}, "`source` contains NUL"),
    ],
)
async def test_refusals_are_in_words_and_keep_nothing(
    house: House, owner: httpx.AsyncClient, change: dict[str, Any], message: str
) -> None:
    error = (await call_tool(owner, "remember", WORDS | change))["error"]
    assert error["code"] == -32602
    assert message in error["message"]
    assert await house.app.library.recent(house.owner) == []


# -- corrections


async def test_what_replaced_a_memory_stands_above_it(house: House) -> None:
    old = await remember(
        house, "Old port", "The server listens on port 8000 for all clients.", "claim"
    )
    new = await remember(house, "New port", "The server listens on port 8642.", "claim")
    done = await house.app.memory.supersede(house.owner, old, by=new, reason="moved")
    assert (done.item.status, done.more["superseded_by"]) == ("superseded", new)
    titles = await found(house, "server listens on port 8000 for all clients")
    assert titles.index("New port") < titles.index("Old port")
    assert await pack(house, "which port does the server listen on") == ["New port"]
    restored = await house.app.memory.restore(house.owner, old)
    assert (restored.item.status, "correction" in restored.item.metadata) == ("", False)
    assert set(await pack(house, "which port does the server listen on")) == {
        "New port",
        "Old port",
    }


async def test_a_replacement_can_be_written_at_once(house: House) -> None:
    project = (
        await house.app.entities.add(house.owner, NewEntity("Server", "The server.", "project"))
    ).item.entity_id
    old = await remember(
        house, "Port", "The server listens on port 8000.", "claim", project=project, tags=("net",)
    )
    done = await house.app.memory.supersede(
        house.owner, old, content="The server listens on port 8642."
    )
    new = await house.app.entities.get(house.owner, done.more["superseded_by"])
    assert (
        new.item.title,
        new.item.entity_type,
        new.item.tags,
        new.project and new.project.entity_id,
    ) == ("Port", "claim", ("net",), project)


async def test_replacing_in_a_circle_is_refused(house: House) -> None:
    a, b, c = [await remember(house, name, f"The text of {name}.") for name in "abc"]
    await house.app.memory.supersede(house.owner, a, by=b)
    await house.app.memory.supersede(house.owner, b, by=c)
    for old, new, said in (
        (c, a, "'a' cannot replace 'c'"),
        (b, a, "'a' cannot replace 'b'"),
        (a, a, "'a' cannot replace itself"),
    ):
        with pytest.raises(Invalid, match=said):
            await house.app.memory.supersede(house.owner, old, by=new)


async def test_joining_replacements_in_a_circle_is_refused_and_parting_them_restores(
    house: House, owner: httpx.AsyncClient
) -> None:
    a, b = [await remember(house, name, f"The text of {name}.") for name in "ab"]
    await house.app.memory.supersede(house.owner, a, by=b)
    response = await owner.post(
        f"/api/entities/{a}/relations", json={"to": b, "type": "SUPERSEDES"}
    )
    assert (response.status_code, response.json()["cycle"]) == (422, ["a", "b", "a"])
    assert (await house.app.entities.get(house.owner, b)).item.status == ""
    assert (
        await owner.delete(f"/api/entities/{b}/relations", params={"to": a, "type": "SUPERSEDES"})
    ).status_code == 200
    assert (await house.app.entities.get(house.owner, a)).item.status == ""


async def test_a_replacement_is_not_left_behind_by_a_refusal(house: House) -> None:
    old = await remember(house, "Cranes", "The harbour has nine cranes.", "claim")
    with pytest.raises(Conflict):
        await house.app.memory.supersede(
            house.owner, old, content="The harbour has ten cranes.", expected_revision=7
        )
    assert [item.title for item in await house.app.library.recent(house.owner)] == ["Cranes"]


async def test_a_token_of_two_folders_replaces_what_it_sees(house: House) -> None:
    """What it writes lies in no folder yet, so that it does not see it itself; the old one is replaced all the same."""
    old = await remember(house, "Cranes", "The harbour has nine cranes.", "claim")
    await house.app.folders.file(house.owner, old, [house.folders["Blue"]])
    async with house.client("two_folder") as two:
        answer = await call_tool(
            two,
            "manage",
            {"action": "supersede", "entity_id": old, "data": {"content": "It has ten cranes."}},
        )
    assert answer["result"]["structuredContent"]["data"]["status"] == "superseded"
    assert len(await house.app.library.recent(house.owner)) == 2


async def test_what_replaced_a_memory_is_not_named_to_who_does_not_see_it(house: House) -> None:
    old = await remember(house, "Old port", "The server listens on port 8000.", "claim")
    new = await remember(house, "New port", "The server listens on port 8642.", "claim")
    await house.app.folders.file(house.owner, old, [house.folders["Red"]])
    await house.app.memory.supersede(house.owner, old, by=new)
    async with house.client("one_folder") as one:
        seen = json.dumps(await call_tool(one, "fetch", {"id": old}))
    assert "superseded" in seen and new.split("_")[1] not in seen


async def test_a_key_does_not_tell_what_others_made_of_a_memory(house: House) -> None:
    async with house.client("one_folder") as one:
        kept = (await call_tool(one, "remember", WORDS | {"idempotency_key": "k"}))["result"][
            "structuredContent"
        ]
        await house.app.folders.file(house.owner, kept["id"], [house.folders["Blue"]])
        await house.app.folders.unfile(house.owner, kept["id"], house.folders["Red"])
        await house.app.entities.update(house.owner, kept["id"], {"title": "Xylophone"})
        again = (await call_tool(one, "remember", WORDS | {"idempotency_key": "k"}))["result"][
            "structuredContent"
        ]
    assert (again["id"], again["message"]) == (kept["id"], "Remembered before: Use PKCE")


async def test_facts_that_many_add_at_once_are_all_kept(house: House) -> None:
    memory = await remember(house, "A", "The text.")
    await asyncio.gather(
        *(
            house.app.entities.update(house.owner, memory, {"metadata": {f"fact {n}": n}})
            for n in range(6)
        ),
        house.app.memory.mark_stale(house.owner, memory),
    )
    item = (await house.app.entities.get(house.owner, memory)).item
    assert {f"fact {n}" for n in range(6)} | {"correction"} <= item.metadata.keys()


async def test_corrections_over_rest(house: House, owner: httpx.AsyncClient) -> None:
    old, new = (
        await remember(house, "Queue", "We use Celery for jobs."),
        await remember(house, "Jobs", "We use a table for jobs."),
    )
    path = f"/api/entities/{old}"
    replaced = (
        await owner.post(
            f"{path}/supersede", json={"by": new, "reason": "simpler", "expected_revision": 1}
        )
    ).json()
    assert (replaced["status"], replaced["metadata"]["correction"]["reason"]) == (
        "superseded",
        "simpler",
    )
    assert (await found(house, "Celery"))[:2] == ["Jobs", "Queue"]
    assert (
        await owner.post(f"{path}/mark-wrong", json={"expected_revision": 1})
    ).status_code == 409
    assert (await owner.post(f"{path}/restore")).json()["status"] == ""
    assert (await owner.post(f"{path}/mark-stale")).json()["status"] == "stale"
    assert (await owner.post(f"{path}/mark-wrong", json={"reason": "never so"})).json()[
        "status"
    ] == "wrong"
    assert "Queue" not in await found(house, "Celery")


async def test_what_is_wrong_is_found_no_more_and_what_is_stale_says_so(house: House) -> None:
    wrong = await remember(house, "Wrong", "The zebra eats meat by the river.", "claim")
    stale = await remember(house, "Stale", "The zebra eats grass by the river.", "claim")
    await house.app.memory.mark_wrong(house.owner, wrong, "zebras do not")
    await house.app.memory.mark_stale(house.owner, stale)
    assert await found(house, "what does the zebra eat") == ["Stale"]
    made = await house.app.context.pack(house.owner, Goal("what does the zebra eat"))
    assert [(line.title, line.status) for line in made.packed.lines] == [("Stale", "stale")]
    await house.app.memory.restore(house.owner, wrong)
    assert set(await found(house, "what does the zebra eat")) == {"Wrong", "Stale"}


async def status_of(house: House, *entity_ids: str) -> list[str]:
    return [
        (await house.app.entities.get(house.owner, entity_id)).item.status
        for entity_id in entity_ids
    ]


async def test_a_memory_counts_again_when_what_replaced_it_is_gone_or_does_not_hold(
    house: House,
) -> None:
    memory = house.app.memory
    old = await remember(
        house, "Retries", "We retry three times before giving up on the carrier pigeon.", "decision"
    )
    done = await memory.supersede(
        house.owner,
        old,
        content="We retry five times before giving up on the carrier pigeon.",
        title="Retries now",
        reason="three was too few",
    )
    new = str(done.more["superseded_by"])
    assert await status_of(house, old, new) == ["superseded", ""]
    assert done.item.metadata["correction"]["reason"] == "three was too few"
    for mark in (memory.mark_wrong, memory.mark_stale):
        await mark(house.owner, new)
        assert (await status_of(house, old))[0] == ""
        assert "correction" not in (await house.app.entities.get(house.owner, old)).item.metadata
        await memory.restore(house.owner, new)
        assert await status_of(house, old, new) == ["superseded", ""]
    await house.app.library.delete(house.owner, new)
    assert await status_of(house, old) == [""]
    assert await found(house, "carrier pigeon retries") == ["Retries"]


async def test_what_the_restorer_does_not_see_replaces_it_no_more_either(house: House) -> None:
    old, new = (
        await remember(house, "A", "The kiln is heated to 1200 degrees."),
        await remember(house, "B", "The kiln: 1250 degrees."),
    )
    await house.app.memory.supersede(house.owner, old, by=new)
    item = (await house.app.entities.get(house.owner, old)).item
    await house.app.folders.file(house.owner, item.id, [house.folders["Red"]])
    red = replace(house.owner, folders=frozenset({house.folders["Red"]}))
    assert (await house.app.memory.restore(red, old)).item.status == ""
    assert await status_of(house, old) == [""]


async def test_of_two_who_replace_a_memory_at_one_revision_one_does(house: House) -> None:
    """Between looking at the revision and writing there is nothing: nobody's replacement is left without its old one."""
    old = await remember(house, "Port", "The server listens on port 8642.")
    answers = await asyncio.gather(
        *(
            house.app.memory.supersede(
                house.owner, old, content=f"The server listens on port {n}.", expected_revision=1
            )
            for n in range(9000, 9004)
        ),
        return_exceptions=True,
    )
    assert sorted(type(answer).__name__ for answer in answers) == [
        "ChangeResult",
        "Conflict",
        "Conflict",
        "Conflict",
    ]
    items, total = await house.app.entities.page(house.owner, ItemFilter(entity_types=("episode",)))
    assert total == 2 and {entity.item.status for entity in items} == {"", "superseded"}


async def test_corrections_are_for_memories_and_guard_against_lost_updates(house: House) -> None:
    project = (
        await house.app.entities.add(house.owner, NewEntity("P", "P.", "project"))
    ).item.entity_id
    task = (
        await house.app.entities.add(house.owner, NewEntity("T", "T.", "task", project=project))
    ).item.entity_id
    with pytest.raises(Invalid, match="archive_task"):
        await house.app.memory.mark_wrong(house.owner, task)
    memory = await remember(house, "A", "The text.")
    with pytest.raises(Conflict):
        await house.app.memory.mark_stale(house.owner, memory, expected_revision=7)
    with pytest.raises(Invalid, match="nothing to restore"):
        await house.app.memory.restore(house.owner, memory)


@pytest.mark.parametrize("permanent", [True, False])
async def test_what_is_deleted_leaves_no_trace(
    house: House, owner: httpx.AsyncClient, permanent: bool
) -> None:
    """Not in a search of any mode, a pack, a list, a capture, a relation, a candidate; nor in another process."""
    secret = "The vault's code word is xylophone-7741."
    kept = await call_tool(
        owner,
        "remember",
        {"title": "Vault", "content": secret, "kind": "claim", "idempotency_key": "v"},
    )
    entity = kept["result"]["structuredContent"]["id"]
    notes = {
        "content": f"We decided to use the vault. {secret}",
        "source_title": "Notes",
        "persist": True,
        "review": True,
    }
    source = (await owner.post("/api/v1/memory/reflect", json=notes)).json()["source_id"]
    other = await remember(house, "Vault of the bank", "The vault is in the cellar.")
    ids = {
        name: (await house.app.entities.get(house.owner, name)).item.id for name in (entity, other)
    }
    await house.app.store.relations.put(
        house.owner.scope, [Relation(house.owner.library_id, ids[other], "RELATED_TO", ids[entity])]
    )
    async with open_app(house.app.settings) as elsewhere:
        assert "Vault" in [
            hit.passage.title
            for hit in (await elsewhere.search.search(house.owner, "xylophone")).hits
        ]
        for gone in (entity, source):
            await house.app.library.delete(house.owner, gone, permanent=permanent)
        for mode in Mode:
            for app in (house.app, elsewhere):
                hits = (
                    await app.search.search(
                        house.owner, "vault code word xylophone-7741", mode=mode, limit=20
                    )
                ).hits
                assert [hit.passage.title for hit in hits if "xylophone" in hit.passage.text] == []
    packed = (
        await owner.post(
            "/api/v1/memory/context", json={"goal": "open the vault with its code word"}
        )
    ).json()
    assert "xylophone" not in json.dumps(packed["sections"])
    assert (await owner.get("/api/v1/memory/candidates?state=all")).json()["total"] == 0
    assert await house.app.store.relations.of_items(house.owner.scope, [ids[other]]) == []
    for path in (f"/api/v1/items/{entity}", f"/api/v1/memory/captures/{entity}"):
        assert (await owner.get(path)).status_code == 404
    with pytest.raises(NotFound):
        await house.app.library.delete(house.owner, entity)
    dump = json.dumps(
        await house.app.store._db.read(  # type: ignore[attr-defined]
            lambda tx: [
                [dict(row) for row in tx.all(f"SELECT * FROM {table}")]
                for table in (
                    *("items", "captures", "candidates", "relations", "jobs", "sections"),
                    *(("contents", "trash_rows") if permanent else ()),
                )
            ]
        ),
        default=str,
    )
    assert "xylophone" not in dump
    again = await call_tool(
        owner,
        "remember",
        {"title": "Vault", "content": "New words.", "kind": "claim", "idempotency_key": "v"},
    )
    assert "repeated" not in again["result"]["structuredContent"]


async def test_what_a_memory_contradicts_is_told_with_both_statements(
    owner: httpx.AsyncClient,
) -> None:
    first, second = [
        (
            await owner.post(
                "/api/v1/memory/remember",
                json={"title": "Grocery budget", "content": text, "kind": "decision"},
            )
        ).json()
        for text in (
            "We spend $500 monthly on groceries.",
            "We now spend $550 monthly on groceries.",
        )
    ]
    assert first["conflicts"] == []
    [told] = second["conflicts"]
    assert (told["id"], told["kind"], told["difference"]) == (
        first["id"],
        "update",
        "$500 against $550",
    )
    assert told["statements"] == [
        "Grocery budget. We spend $500 monthly on groceries.",
        "Grocery budget. We now spend $550 monthly on groceries.",
    ]
    assert told["score"] >= 0.85 and told["reason"].endswith(".")


CONFLICT = {"id", "name", "score", "kind", "reason", "statements", "difference"}


async def test_conflicts_have_all_fields_in_tools_and_say_what_to_do(
    owner: httpx.AsyncClient,
) -> None:
    code = "```python\n" + "\n".join(f"y{n} = x + {n}" for n in range(9)) + "\n```"
    for text in ("The toll is $5.", code):
        for _ in range(2):
            answer = await call_tool(owner, "remember", {"title": "Toll", "content": text})
        result = answer["result"]
        [same] = result["structuredContent"]["conflicts"]
        assert same.keys() == CONFLICT
        assert (same["kind"], same["difference"]) == ("duplicate", None)
        assert result["structuredContent"]["similar"] == []
        assert "These may be affected. If so, call manage" in result["content"][0]["text"]
    other = {"title": "Toll", "content": code.replace("+", "-")}
    answer = await call_tool(owner, "remember", other)
    assert answer["result"]["structuredContent"]["conflicts"] == []


async def test_the_threshold_moves_the_bar_of_near_duplicates(owner: httpx.AsyncClient) -> None:
    async def told(title: str, content: str, threshold: float) -> dict[str, Any]:
        body = {"title": title, "content": content, "entity_type": "claim"}
        answer = await call_tool(owner, "add", {**body, "conflict_threshold": threshold})
        return answer["result"]["structuredContent"]

    text = "The kiln behind the pottery cools down for a whole day before anybody opens it."
    old = await told("Kiln", text, 1.0)
    dream = "Kiln pottery whole day: a picnic where anybody opens a bottle and cools down."
    usual, lower = [await told("Dream", dream, threshold) for threshold in (0.85, 0.5)]
    assert [each["id"] for each in usual["similar"]] == [old["id"]] and not usual["conflicts"]
    [found] = [each for each in lower["conflicts"] if each["id"] == old["id"]]
    assert found["kind"] == "near_duplicate" and 0.5 <= found["score"] < 0.85


async def test_the_closest_statement_is_shown_and_may_be_corrected(
    owner: httpx.AsyncClient,
) -> None:
    async def keep(title: str, content: str, **more: Any) -> dict[str, Any]:
        body = {"title": title, "content": content, "kind": "decision", **more}
        return (await owner.post("/api/v1/memory/remember", json=body)).json()

    old = await keep("Queue", "We use Postgres for the job queue.")
    await keep("Bread", "Let the dough rest overnight in the cold.")
    new = await keep("Job queue", "We use Redis for the job queue.", idempotency_key="once")
    assert new["conflicts"] == []
    [close] = new["similar"]
    assert (close["id"], close["name"]) == (old["id"], "Queue")
    assert close["statements"] == [
        "Queue. We use Postgres for the job queue.",
        "Job queue. We use Redis for the job queue.",
    ]
    assert close["date"].endswith("Z") and 0 <= close["score"] <= 1
    again = await keep("Job queue", "We use Redis for the job queue.", idempotency_key="once")
    assert (again["repeated"], again["similar"]) == (True, new["similar"])
    by_tool = await call_tool(
        owner,
        "remember",
        {"title": "Queue now", "content": "The job queue runs on Kafka.", "kind": "decision"},
        "/mcp/core",
    )
    text = by_tool["result"]["content"][0]["text"]
    assert "These may be affected. If so, call manage with supersede or mark_wrong" in text
    assert f"[{old['id']}]" in text
    path = f"/api/entities/{old['id']}"
    token = (await owner.get("/api/v1/me")).json()["token"]["id"]
    assert (await owner.post(f"{path}/supersede", json={"by": new["id"]})).is_success
    kept = await keep("Queue of jobs", "We use Postgres for the job queue.")
    assert old["id"] not in [each["id"] for each in (*kept["conflicts"], *kept["similar"])]
    assert (await owner.post(f"{path}/restore", json={})).is_success
    log = (await owner.get(f"/api/v1/tokens/{token}/activity")).json()["events"]
    assert {(old["id"], "supersede"), (old["id"], "restore")} <= {
        (each["target"], each["action"]) for each in log
    }
    assert (await owner.get(path)).json()["status"] == ""
