"""Entities over REST: added at once or by and by, listed, read, changed, deleted."""

import httpx
import pytest

from tests.interfaces.conftest import OpenHouse
from tests.interfaces.house import House, call_tool

pytestmark = pytest.mark.anyio


async def add(
    client: httpx.AsyncClient, title: str, content: str = "Some words.", **more: object
) -> dict[str, object]:
    response = await client.post(
        "/api/entities?sync=true", json={"title": title, "content": content, **more}
    )
    assert response.status_code == 201, response.text
    body: dict[str, object] = response.json()
    return body


async def test_sync_answers_with_what_can_be_found_in_every_way(owner: httpx.AsyncClient) -> None:
    added = await add(
        owner,
        "JWT validation",
        "Validate the signature, then the claims.",
        entity_type="pattern",
        tags=["security"],
        metadata={"source": "review"},
    )
    assert (
        added["success"] is True
        and added["message"] == "Added: JWT validation"
        and added["conflicts"] == []
    )
    assert (added["entity_type"], added["title"], added["name"], added["content"]) == (
        "pattern",
        "JWT validation",
        "JWT validation",
        "Validate the signature, then the claims.",
    )
    for mode in ("semantic", "keyword", "hybrid"):
        hits = (
            await owner.post("/api/v1/search", json={"query": "validate signature", "mode": mode})
        ).json()["results"]
        assert [hit["item_id"] for hit in hits] == [added["item_id"]]
    for spelling in ("id", "item_id", "public_id"):
        read = (await owner.get(f"/api/entities/{added[spelling]}")).json()
        assert read == {
            key: value
            for key, value in added.items()
            if key not in ("success", "message", "timestamp", "conflicts", "similar")
        }


async def test_without_sync_it_is_queued(house_with: OpenHouse) -> None:
    async with house_with(own={"workers": 1}) as house, house.client("owner") as client:
        response = await client.post(
            "/api/entities", json={"title": "Otters", "content": "They swim."}
        )
        assert (response.status_code, response.json()["message"]) == (
            202,
            "Queued: Otters (processing in background)",
        )
        assert (await client.get(f"/api/entities/{response.json()['id']}")).json()[
            "content"
        ] == "They swim."


async def test_refusals(owner: httpx.AsyncClient) -> None:
    for body, sentence in (
        ({"content": "x"}, "Title cannot be empty"),
        ({"title": "T", "content": ""}, "Content cannot be empty"),
        ({"title": "T", "content": "x", "entity_type": "task"}, "Tasks require a project"),
    ):
        response = await owner.post("/api/entities?sync=true", json=body)
        assert (response.status_code, response.json()) == (
            422,
            {"error": "invalid_request", "message": sentence},
        )
    assert (await owner.get("/api/entities")).json()["total"] == 0


async def test_a_task_in_an_epic_and_lists_by_everything(owner: httpx.AsyncClient) -> None:
    project = await add(
        owner, "Auth", entity_type="project", repository_url="https://github.com/org/auth"
    )
    assert project["metadata"] == {"repository_url": "https://github.com/org/auth"}
    epic = await add(owner, "OAuth", entity_type="epic", project=project["id"], priority="high")
    task = await add(
        owner,
        "Fix the callback",
        entity_type="task",
        project=project["item_id"],
        epic=epic["public_id"],
        assignees=["alice"],
        languages=["python"],
        category="bugs",
        due_date="2026-03-31",
    )
    other = await add(owner, "Notes", tags=["zoo"])
    assert (task["project"], task["epic"], task["priority"], task["status"], task["due_date"]) == (
        project["id"],
        epic["id"],
        "medium",
        "todo",
        "2026-03-31",
    )

    async def ids(query: str) -> list[object]:
        response = await owner.get(f"/api/entities?{query}")
        assert response.status_code == 200, response.text
        return [entity["id"] for entity in response.json()["entities"]]

    assert await ids("") == [other["id"], task["id"], epic["id"], project["id"]]
    assert await ids("entity_type=task&entity_type=epic") == [task["id"], epic["id"]]
    assert await ids(f"project={project['id']}") == [task["id"], epic["id"]]
    for query in (
        "status=todo",
        "assignee=alice",
        "language=python",
        "category=bugs",
        "q=callback",
        "since=1d&entity_type=task",
    ):
        assert await ids(query) == [task["id"]], query
    assert await ids("tag=zoo") == [other["id"]]
    assert await ids("since=2099-01-01") == []
    page = (await owner.get("/api/entities?per_page=3&page=2")).json()
    assert (
        page["total"],
        page["page"],
        page["per_page"],
        page["has_more"],
        len(page["entities"]),
    ) == (4, 2, 3, False, 1)
    for query in (
        "entity_type=rule",
        "per_page=0",
        "since=soon",
        "status=lost",
        "project=project_zzzzzzzzzzzz",
    ):
        assert (await owner.get(f"/api/entities?{query}")).status_code == 422, query


async def test_changing(owner: httpx.AsyncClient) -> None:
    entity = await add(
        owner, "Retries", "We retry three times.", entity_type="decision", metadata={"a": 1, "b": 2}
    )
    path = f"/api/entities/{entity['id']}"
    changed = (
        await owner.patch(
            path, json={"tags": ["x"], "metadata": {"a": None, "c": 3}, "expected_revision": 1}
        )
    ).json()
    assert (changed["tags"], changed["metadata"], changed["revision"]) == (
        ["x"],
        {"b": 2, "c": 3},
        2,
    )
    stale = await owner.patch(path, json={"content": "Never.", "expected_revision": 1})
    assert (stale.status_code, stale.json()["revision"]) == (409, 2)
    changed = (
        await owner.patch(
            path, json={"content": "We retry five times with jitter.", "title": "Retrying"}
        )
    ).json()
    assert (changed["content"], changed["title"], changed["tags"], changed["revision"]) == (
        "We retry five times with jitter.",
        "Retrying",
        ["x"],
        3,
    )
    for mode in ("semantic", "keyword"):
        hits = (await owner.post("/api/v1/search", json={"query": "jitter", "mode": mode})).json()[
            "results"
        ]
        assert [hit["section_text"] for hit in hits] == ["We retry five times with jitter."]
    assert (await owner.post("/api/v1/search", json={"query": "three", "mode": "keyword"})).json()[
        "results"
    ] == []
    await owner.patch(path, json={"due_date": "2026-05-01"})
    assert (await owner.patch(path, json={"due_date": None})).json()["due_date"] is None
    for bad, sentence in (
        ({"status": "done"}, "manage"),
        ({}, "at least one field"),
        ({"title": " "}, "Title cannot be empty"),
        ({"priority": "urgent"}, "priority"),
        ({"due_date": "soon"}, "ISO date"),
        ({"colour": 1}, "colour"),
    ):
        response = await owner.patch(path, json=bad)
        assert response.status_code == 422 and sentence in response.json()["message"], bad


async def test_two_entities_with_one_text_change_apart(owner: httpx.AsyncClient) -> None:
    one, two = await add(owner, "Same", "The same."), await add(owner, "Same", "The same.")
    await owner.patch(f"/api/entities/{one['id']}", json={"content": "Something else."})
    assert (await owner.get(f"/api/entities/{two['id']}")).json()["content"] == "The same."


async def test_deleting(owner: httpx.AsyncClient, house: House) -> None:
    entity = await add(owner, "Gone", "Soon to be forgotten.")
    await owner.patch(f"/api/entities/{entity['id']}", json={"tags": ["read again"]})
    for face in ("entities", "v1/items"):
        stale = await owner.delete(f"/api/{face}/{entity['id']}?expected_revision=1")
        assert (stale.status_code, stale.json()["revision"]) == (409, 2)
    managed = await call_tool(
        owner, "manage", {"action": "delete", "entity_id": entity["id"], "expected_revision": 1}
    )
    assert managed["error"]["data"] == {"error": "conflict", "revision": 2}
    assert (await owner.delete(f"/api/entities/{entity['id']}")).json() == {"ok": True}
    assert (await owner.get(f"/api/entities/{entity['id']}")).status_code == 404
    assert (await owner.post("/api/v1/search", json={"query": "forgotten"})).json()["results"] == []


async def test_documents_are_seen_here_and_changed_elsewhere(
    owner: httpx.AsyncClient, house: House
) -> None:
    item, _ = await house.add("A page")
    assert (await owner.get(f"/api/entities/{item}")).json()["entity_type"] == "document"
    assert (await owner.patch(f"/api/entities/{item}", json={"tags": ["x"]})).status_code == 422


async def test_what_an_entity_said_before_is_listed_read_and_compared(house: House) -> None:
    async with house.client("owner") as client:
        added = (
            await client.post(
                "/api/entities?sync=true",
                json={"title": "Sea", "content": "It is blue.\n\nAnd wide."},
            )
        ).json()
        for said in ("It is green.\n\nAnd wide.", "It is green.\n\nAnd deep."):
            await client.patch(f"/api/entities/{added['id']}", json={"content": said})
        versions = f"/api/v1/items/{added['id']}/versions"
        listed = (await client.get(versions)).json()["versions"]
        assert [(version["revision"], version["title"]) for version in listed] == [
            (2, "Sea"),
            (1, "Sea"),
        ]
        assert (await client.get(f"{versions}/1")).json() == listed[1] | {
            "text": "It is blue.\n\nAnd wide."
        }
        assert (await client.get(f"{versions}/1/diff")).json() == {
            "revision": 1,
            "followed_by": 2,
            "lines": [
                {"sign": "-", "text": "It is blue."},
                {"sign": "+", "text": "It is green."},
                {"sign": " ", "text": ""},
                {"sign": " ", "text": "And wide."},
            ],
        }
        assert (await client.get(f"{versions}/2/diff")).json()["followed_by"] is None
        for revision, status in ((3, 404), (0, 422), ("x", 422), (2**31, 422)):
            assert (await client.get(f"{versions}/{revision}")).status_code == status
