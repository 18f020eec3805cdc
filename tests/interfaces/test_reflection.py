"""Notes in, candidates out; what is sure and new is kept, the rest waits for a yes or no."""

import asyncio
from typing import Any

import httpx
import pytest

from commonplace.core.entities.validation import NewEntity
from commonplace.model import ItemFilter
from tests.interfaces.house import House, call_tool

pytestmark = pytest.mark.anyio

NOTES = """Alice: We decided to rotate the refresh tokens every 30 days.
Bob: It turns out the old client ignores the expiry header.
Alice: Maybe we could push new tokens instead.
Bob: I'll write the rotation job."""


async def reflect(client: httpx.AsyncClient, **wish: Any) -> Any:
    answer = await call_tool(
        client, "reflect", {"content": NOTES, "source_title": "Token call"} | wish, "/mcp/graph"
    )
    return answer["result"]["structuredContent"] if "result" in answer else answer["error"]


async def test_by_default_nothing_is_written(house: House, owner: httpx.AsyncClient) -> None:
    found = await reflect(owner)
    assert {one["kind"] for one in found["candidates"]} == {"decision", "claim", "idea", "task"}
    for one in found["candidates"]:
        assert one["state"] == "proposed"
        assert one["sentences"]
        for sentence in one["sentences"]:
            assert NOTES[sentence["start"] : sentence["end"]] == sentence["text"]
    assert (found["kept"], found["queued"], "source_id" in found) == (0, 0, False)
    assert await house.app.library.recent(house.owner) == []
    assert found == await reflect(owner)


async def test_a_reader_may_reflect_but_not_persist(house: House) -> None:
    async with house.client("reader") as reader:
        assert (await reflect(reader))["total"] == 4
        assert (await reflect(reader, persist=True))["data"]["error"] == "capability_denied"


async def test_what_is_known_is_told(house: House, owner: httpx.AsyncClient) -> None:
    await house.app.entities.add(
        house.owner,
        NewEntity(
            "Rotate the refresh tokens every 30 days",
            "We decided to rotate the refresh tokens every 30 days.",
            "decision",
        ),
        sync=True,
    )
    await house.app.entities.add(
        house.owner,
        NewEntity(
            "Rotate the refresh tokens every 90 days",
            "We decided to rotate the refresh tokens every 90 days.",
            "decision",
        ),
        sync=True,
    )
    decision = next(
        one for one in (await reflect(owner))["candidates"] if one["kind"] == "decision"
    )
    assert [other["name"] for other in decision["duplicates"]] == [
        "Rotate the refresh tokens every 30 days"
    ]
    assert [other["name"] for other in decision["contradictions"]] == [
        "Rotate the refresh tokens every 90 days"
    ]
    kept = await reflect(owner, persist=True)
    states = {one["kind"]: one["state"] for one in kept["candidates"]}
    assert states == {
        "decision": "queued",
        "claim": "kept",
        "idea": "kept",
        "task": "queued",
    }  # known already; without a project


async def test_what_is_kept_points_to_the_notes_and_is_kept_once(
    house: House, owner: httpx.AsyncClient
) -> None:
    project = (
        await house.app.entities.add(house.owner, NewEntity("Auth", "Auth.", "project"))
    ).item.entity_id
    first = await reflect(owner, persist=True, project=project)
    assert {one["state"] for one in first["candidates"]} == {"kept"}
    assert first["source_id"].startswith("session_")
    source = (await owner.get(f"/api/v1/memory/captures/{first['source_id']}")).json()
    assert source["text"] == NOTES
    for one in first["candidates"]:
        item = (await house.app.entities.get(house.owner, one["id"])).item
        joined = await house.app.store.relations.of_items(
            house.owner.scope, [item.id], ["DERIVED_FROM"]
        )
        assert [relation.to_id for relation in joined] == [source["item_id"]]
    again = await reflect(owner, persist=True, project=project)
    assert again["repeated"] is True
    assert [one["id"] for one in again["candidates"]] == [one["id"] for one in first["candidates"]]
    assert (await house.app.library.page(house.owner, ItemFilter()))[
        1
    ] == 6  # project, notes, four memories


async def test_a_growing_transcript_is_one_session_and_each_candidate_is_made_once(
    house: House, owner: httpx.AsyncClient
) -> None:
    lines = NOTES.splitlines()
    key = {"persist": True, "session_key": "call-7"}
    first = await reflect(owner, content="\n".join(lines[:2]), **key)
    grown = await reflect(owner, content="\n".join(lines[:3]), **key)
    assert grown["source_id"] == first["source_id"]
    assert (grown["repeated"], grown["total"]) == (False, 3)
    assert {one["id"] for one in first["candidates"]} < {one["id"] for one in grown["candidates"]}
    late = await reflect(owner, content="\n".join(lines[:2]), **key)  # a retry that was delayed
    assert late["repeated"]
    assert [one["id"] for one in late["candidates"]] == [one["id"] for one in first["candidates"]]
    await reflect(owner, content=lines[3], **key)  # only what is new
    path = f"/api/v1/memory/captures/{first['source_id']}"
    source = (await owner.get(path)).json()
    assert source["text"] == "\n".join(lines[:3]) + "\n\n" + lines[3]
    stored = await house.app.entities.get(house.owner, first["source_id"])
    assert stored.text == source["text"]
    assert stored.item.metadata["capture_hash"] == source["hash"]
    [task] = (await owner.get("/api/v1/memory/candidates")).json()["candidates"]
    [sentence] = task["sentences"]
    assert source["text"][sentence["start"] : sentence["end"]] == sentence["text"]
    assert (await house.app.library.page(house.owner, ItemFilter()))[1] == 4  # three are kept


async def test_of_a_grown_transcript_what_is_new_comes_first(
    house: House, owner: httpx.AsyncClient
) -> None:
    wish = {"persist": True, "session_key": "call-7", "limit": 1}
    first = await reflect(owner, content=NOTES, **wish)
    later = f"{NOTES}\nAlice: Perhaps we could also shorten the names.\n"
    grown = await reflect(owner, content=later, **wish)
    assert [one["kind"] for one in (first | grown)["candidates"]] == ["idea"]
    assert "shorten the names" in grown["candidates"][0]["content"]
    assert first["candidates"][0]["kind"] == "decision"


async def test_growing_at_once_makes_nothing_twice(house: House, owner: httpx.AsyncClient) -> None:
    lines = NOTES.splitlines()
    async with house.client("owner") as other:
        answers = await asyncio.gather(
            *(
                reflect(
                    client,
                    content="\n".join(lines[:count]),
                    persist=True,
                    session_key="call-7",
                )
                for client in (owner, other) * 2
                for count in (1, 4, 2, 3)
            )
        )
    assert len({answer["source_id"] for answer in answers}) == 1
    stored = await house.app.entities.get(house.owner, answers[0]["source_id"])
    assert stored.text == NOTES
    assert (await house.app.library.page(house.owner, ItemFilter()))[1] == 4
    assert (await owner.get("/api/v1/memory/candidates")).json()["total"] == 1


async def test_a_session_key_belongs_to_its_token(house: House, owner: httpx.AsyncClient) -> None:
    key = {"persist": True, "session_key": "call-7"}
    first = await reflect(owner, **key)
    async with house.client("two_folder") as client:
        mine = await reflect(client, content="We decided to paint the shed red.", **key)
        grown = "We decided to paint the shed red.\n\nIt turns out the fence leaks."
        again = await reflect(client, content=grown, **key)
        assert mine["source_id"] == again["source_id"] != first["source_id"]
        assert (await house.app.entities.get(house.owner, mine["source_id"])).text == grown
        folder = (await owner.post("/api/v1/folders", json={"name": "Elsewhere"})).json()["id"]
        item = (await house.app.entities.get(house.owner, mine["source_id"])).item
        await owner.post(f"/api/v1/items/{item.id}/folders", json={"folder_ids": [folder]})
        await reflect(client, content=f"{grown}\n\nWe agreed to sell the boat.", **key)
    assert (await house.app.entities.get(house.owner, mine["source_id"])).text == grown


async def test_the_queue_is_read_edited_accepted_and_rejected(
    house: House, owner: httpx.AsyncClient
) -> None:
    queued = await reflect(owner, persist=True, review=True)
    assert {one["state"] for one in queued["candidates"]} == {"queued"}
    listed = (await owner.get("/api/v1/memory/candidates")).json()
    assert {one["id"] for one in listed["candidates"]} == {
        one["candidate_id"] for one in queued["candidates"]
    }
    ids = {one["kind"]: one["id"] for one in listed["candidates"]}
    path = "/api/v1/memory/candidates"
    edited = (
        await owner.patch(f"{path}/{ids['claim']}", json={"title": "Old client ignores expiry"})
    ).json()
    assert edited["title"] == "Old client ignores expiry"
    accepted = (await owner.post(f"{path}/{ids['claim']}/accept")).json()
    assert accepted["candidate"]["state"] == "accepted"
    kept = (await house.app.entities.get(house.owner, accepted["id"])).item
    assert (kept.entity_type, kept.title) == ("claim", "Old client ignores expiry")
    assert (await owner.post(f"{path}/{ids['claim']}/accept")).json()["id"] == accepted["id"]
    assert (await owner.post(f"{path}/{ids['idea']}/reject")).json()["state"] == "rejected"
    for decided in ("idea", "claim"):
        response = await owner.patch(f"{path}/{ids[decided]}", json={"title": "Too late"})
        assert (response.status_code, response.json()["error"]) == (409, "conflict")
    assert (await owner.post(f"{path}/{ids['idea']}/accept")).status_code == 409
    no_project = await owner.post(f"{path}/{ids['task']}/accept")
    assert (no_project.status_code, no_project.json()["message"]) == (
        422,
        "Tasks require a project",
    )
    project = (
        await house.app.entities.add(house.owner, NewEntity("Auth", "Auth.", "project"))
    ).item.entity_id
    assert (
        await owner.post(f"{path}/{ids['task']}/accept", json={"project": project})
    ).status_code == 200
    assert (await owner.get(path)).json()["total"] == 1
    assert (await owner.get(f"{path}?state=all")).json()["total"] == 4


async def test_two_who_accept_at_once_make_one_memory(
    house: House, owner: httpx.AsyncClient
) -> None:
    queued = await reflect(owner, persist=True, review=True)
    target = next(one["candidate_id"] for one in queued["candidates"] if one["kind"] == "decision")
    async with house.client("owner") as other:
        answers = await asyncio.gather(
            *(
                client.post(f"/api/v1/memory/candidates/{target}/accept")
                for client in (owner, other) * 3
            )
        )
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["id"] for answer in answers}) == 1


async def test_scoped_tokens_see_what_they_queued_themselves(
    house: House, owner: httpx.AsyncClient
) -> None:
    await reflect(owner, persist=True, review=True)
    async with house.client("two_folder") as client:
        assert (await client.get("/api/v1/memory/candidates")).json()["total"] == 0
        mine = await reflect(
            client, content="We decided to paint the shed red.", persist=True, review=True
        )
        assert (await client.get("/api/v1/memory/candidates")).json()["total"] == 1
        accepted = await client.post(
            f"/api/v1/memory/candidates/{mine['candidates'][0]['candidate_id']}/accept"
        )
        assert accepted.status_code == 200
    assert (await owner.get("/api/v1/memory/candidates")).json()["total"] == 4


async def test_accepting_again_tells_only_of_conflicts_that_the_caller_sees(
    house: House, owner: httpx.AsyncClient
) -> None:
    text = "We decided to paint the shed red."
    async with house.client("two_folder") as client:
        queued = await reflect(client, content=text, persist=True, review=True)
        path = f"/api/v1/memory/candidates/{queued['candidates'][0]['candidate_id']}/accept"
        await house.app.entities.add(house.owner, NewEntity("Hidden shed", text, "decision"))
        first, again = (await owner.post(path)).json(), (await client.post(path)).json()
    assert "Hidden shed" in [each["name"] for each in first["conflicts"]]
    assert (again["id"], again["repeated"], again["conflicts"]) == (first["id"], True, [])


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"content": " "}, "Content cannot be empty"),
        ({"source_title": ""}, "`source_title` must not be empty"),
        ({"review": True}, "persist=true"),
        ({"project": "project_nowhere"}, "No project 'project_nowhere'."),
        ({"limit": 51}, "`limit` must be at most 50"),
        ({"content": "x" * 50_001}, "50,000"),
    ],
)
async def test_refusals(
    house: House, owner: httpx.AsyncClient, wish: dict[str, Any], message: str
) -> None:
    error = await reflect(owner, **wish)
    assert error["code"] == -32602
    assert message in error["message"]
