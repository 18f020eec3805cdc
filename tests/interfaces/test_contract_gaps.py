"""Small promises of the contract that no other file is about."""

import httpx
import pytest

from tests.interfaces.house import House, call_tool

pytestmark = pytest.mark.anyio


async def test_an_unknown_field_is_answered_with_the_fields_of_the_body_only(
    house: House, owner: httpx.AsyncClient
) -> None:
    item_id, _ = await house.add("Tides")
    answer = await owner.patch(f"/api/v1/items/{item_id}", json={"titel": "Ebb"})
    assert answer.status_code == 422
    assert answer.json()["message"].startswith("Unknown field `titel`; the fields are: title, ")
    assert "item_id" not in answer.json()["message"]


async def test_a_wrong_choice_is_answered_with_all_three(owner: httpx.AsyncClient) -> None:
    for name in ("in_kb", "archived"):
        answer = await owner.get("/api/v1/items", params={name: "maybe"})
        assert answer.status_code == 422
        assert answer.json()["message"] == f"`{name}` must be true, false or any."
        for choice in ("true", "false", "any"):
            assert (await owner.get("/api/v1/items", params={name: choice})).status_code == 200


async def test_a_repeated_request_gets_the_same_bytes(owner: httpx.AsyncClient) -> None:
    headers = {"Idempotency-Key": "once"}
    body = {"name": "Über Bücher"}
    first, again = [
        await owner.post("/api/v1/folders", json=body, headers=headers) for _ in range(2)
    ]
    assert (again.status_code, again.content) == (first.status_code, first.content)


async def test_reading_a_task_in_parts_ends_with_its_text(owner: httpx.AsyncClient) -> None:
    """Its notes are sections, too, but they are not in the text."""
    project = {"entity_type": "project", "title": "Harbour", "content": "Deepen it."}
    await owner.post("/api/entities?sync=true", json=project)
    task = {"title": "Dredge", "content": "Dredge the basin. " * 100, "project": "Harbour"}
    task_id = (await owner.post("/api/tasks", json=task)).json()["id"]
    await owner.post(f"/api/tasks/{task_id}/notes", json={"content": "The dredger is late."})
    texts, at = [], 0
    while at is not None:
        params = {"from_section": at, "max_chars": 200}
        part = (await owner.get(f"/api/v1/items/{task_id}", params=params)).json()
        texts.append(part["text"])
        at = part["next_section"]
    assert len(texts) > 1
    assert all(texts)


async def test_one_candidate_is_not_many(owner: httpx.AsyncClient) -> None:
    arguments = {"content": "We decided to use Postgres for the queue."}
    answer = await call_tool(owner, "reflect", arguments)
    text = answer["result"]["content"][0]["text"]
    assert text.startswith("1 candidate, 0 kept, 0 queued for review.")


async def test_errors_do_not_repeat_endless_names(owner: httpx.AsyncClient) -> None:
    for field in ("a" * 100_000, "ä" * 100_000):
        rest = await owner.post("/api/v1/search", json={"query": "tides", field: 1})
        assert rest.status_code == 422
        assert rest.json()["message"].startswith("Unknown field `" + field[:20])
        mcp = await call_tool(owner, "search", {"query": "tides", field: 1})
        assert mcp["error"]["code"] == -32602
        assert max(len(rest.text), len(str(mcp))) < 1_000
