"""A project is named by its id, its title or its repository, wherever one is named."""

from typing import Any

import httpx
import pytest

from commonplace.core.entities.validation import NewEntity
from commonplace.errors import Invalid
from tests.interfaces.house import House, call_tool

pytestmark = pytest.mark.anyio

PROJECT = {
    "title": "Lighthouse Rewrite",
    "content": "The lamp is replaced by an electric one.",
    "entity_type": "project",
    "repository_url": "https://github.com/Harbour/lamp.git",
}
URLS = (
    "https://github.com/Harbour/lamp.git",
    "https://GitHub.com/Harbour/lamp/",
    "ssh://github.com/Harbour/lamp",
    "github.com/Harbour/lamp.git/",
)


async def add(client: httpx.AsyncClient, **fields: Any) -> str:
    answer = await call_tool(client, "add", {"content": "What it is about."} | fields)
    assert "error" not in answer, answer
    return str(answer["result"]["structuredContent"]["id"])


async def ids(client: httpx.AsyncClient, tool: str, **arguments: Any) -> Any:
    answer = await call_tool(client, tool, arguments)
    return answer["error"]["message"] if "error" in answer else answer["result"]


@pytest.mark.parametrize("name", ["Lighthouse Rewrite", " lighthouse REWRITE ", *URLS])
async def test_work_is_added_to_a_project_by_its_name(owner: httpx.AsyncClient, name: str) -> None:
    project = await add(owner, **PROJECT)
    task = await add(owner, title="Wire the lamp", entity_type="task", project=name)
    shown = (await owner.get(f"/api/entities/{task}")).json()
    assert shown["project"] == project


async def test_every_filter_takes_every_spelling(house: House, owner: httpx.AsyncClient) -> None:
    project = await add(owner, **PROJECT)
    uuid = (await house.app.library.read(house.owner, project)).item.id
    task = await add(owner, title="Wire the lamp", entity_type="task", project=project)
    await add(owner, title="Another", entity_type="project")
    for name in (project, project.partition("_")[2], uuid, "LIGHTHOUSE rewrite", URLS[1]):
        for path in ("/api/tasks", "/api/entities"):
            found = (await owner.get(path, params={"project": name})).json()
            assert [one["id"] for one in next(iter(found.values()))] == [task], (name, path)
        listed = await ids(owner, "explore", mode="list", project=name, types=["task"])
        assert [one["id"] for one in listed["structuredContent"]["entities"]] == [task]
        found = await ids(owner, "search", query="lamp", project=name, types=["task"])
        assert [one["id"] for one in found["structuredContent"]["results"]] == [task]
        packed = await ids(owner, "context", goal="wire the lamp", project=name)
        assert packed["structuredContent"]["project"] == project
        for action in ("suggest", "prioritize"):
            told = await ids(owner, "manage", action=action, data={"project": name})
            assert task in str(told["structuredContent"])
        cycles = await ids(owner, "manage", action="detect_cycles", data={"project": name})
        assert "structuredContent" in cycles


async def test_memories_and_moves_take_a_name(owner: httpx.AsyncClient) -> None:
    first, second = await add(owner, **PROJECT), await add(owner, title="B", entity_type="project")
    note = {"title": "Lamp oil", "content": "Oil is no longer bought.", "project": URLS[2]}
    kept = await ids(owner, "remember", **note)
    entity = (await owner.get(f"/api/entities/{kept['structuredContent']['id']}")).json()
    assert entity["project"] == first
    assert "structuredContent" in await ids(
        owner, "reflect", content="We decided to wait.", project="lighthouse rewrite"
    )
    task = await add(owner, title="Wire the lamp", entity_type="task", project=first)
    moved = {"action": "update_task", "entity_id": task, "data": {"project": "b"}}
    await ids(owner, "manage", **moved)
    assert (await owner.get(f"/api/entities/{task}")).json()["project"] == second


async def test_an_unknown_project_is_named_everywhere(owner: httpx.AsyncClient) -> None:
    for tool, arguments in (
        ("add", {"title": "T", "content": "C", "entity_type": "task"}),
        ("remember", {"title": "T", "content": "C"}),
        ("reflect", {"content": "We decided to wait."}),
        ("search", {"query": "lamp"}),
        ("explore", {"mode": "list"}),
        ("context", {"goal": "wire the lamp"}),
    ):
        error = (await call_tool(owner, tool, arguments | {"project": "Nowhere"}))["error"]
        assert (error["code"], error["message"]) == (-32602, "No project 'Nowhere'."), tool
    for action in ("suggest", "prioritize", "detect_cycles"):
        manage = {"action": action, "data": {"project": "Nowhere"}}
        error = (await call_tool(owner, "manage", manage))["error"]
        assert (error["code"], error["message"]) == (-32602, "No project 'Nowhere'."), action
    for path in ("/api/tasks", "/api/entities"):
        response = await owner.get(path, params={"project": "Nowhere"})
        assert response.json()["message"] == "No project 'Nowhere'."
        assert response.status_code in (400, 422)


async def test_two_of_one_title_must_be_named_by_id(owner: httpx.AsyncClient) -> None:
    first = await add(owner, **PROJECT)
    second = await add(owner, **PROJECT | {"title": "LIGHTHOUSE rewrite"})
    for name in ("Lighthouse Rewrite", URLS[0]):
        error = (await call_tool(owner, "explore", {"mode": "list", "project": name}))["error"]
        assert error["code"] == -32602 and sorted(error["data"]["ids"]) == sorted([first, second])
        assert first in error["message"] and second in error["message"]
    assert "structuredContent" in await ids(owner, "explore", mode="list", project=first)


async def test_a_title_that_is_another_projects_repository_wins(owner: httpx.AsyncClient) -> None:
    await add(owner, **PROJECT)
    titled = await add(owner, title="github.com/Harbour/lamp", entity_type="project")
    packed = await ids(owner, "context", goal="lamp", project="github.com/harbour/lamp")
    assert packed["structuredContent"]["project"] == titled


async def test_an_archived_project_is_found_by_id_only(owner: httpx.AsyncClient) -> None:
    project = await add(owner, **PROJECT)
    assert (await owner.patch(f"/api/v1/items/{project}", json={"archived": True})).is_success
    for name in (PROJECT["title"], URLS[0]):
        assert await ids(owner, "context", goal="lamp", project=name) == f"No project {name!r}."
    packed = await ids(owner, "context", goal="lamp", project=project)
    assert packed["structuredContent"]["project"] == project


async def test_what_the_caller_does_not_see_reads_like_unknown(house: House) -> None:
    async with house.client("owner") as owner:
        project = await add(owner, **PROJECT)
    for character in ("one_folder", "stranger"):
        async with house.client(character) as client:
            for name in (project, PROJECT["title"], URLS[0]):
                told = await ids(client, "context", goal="lamp", project=name)
                assert told == f"No project {name!r}."
    item = (await house.app.library.read(house.owner, project)).item
    await house.app.folders.file(house.owner, item.id, [house.folders["Red"]])
    async with house.client("one_folder") as client:
        packed = await ids(client, "context", goal="lamp", project=PROJECT["title"])
        assert packed["structuredContent"]["project"] == project


async def test_any_metadata_is_survived(house: House, owner: httpx.AsyncClient) -> None:
    odd = NewEntity("Odd", "It has a strange address.", "project", metadata={"repository_url": 7})
    await house.app.entities.add(house.owner, odd, sync=True)
    with pytest.raises(Invalid, match="No project ''"):
        await house.app.entities.find_project(house.owner, "")
    for empty in ("/", "//", "https://"):  # the address of no repository
        with pytest.raises(Invalid, match=f"No project '{empty}'"):
            await house.app.entities.find_project(house.owner, empty)
    with pytest.raises(Invalid, match="No project '7'"):
        await house.app.entities.find_project(house.owner, "7")
    note = await add(owner, title="A note")
    with pytest.raises(Invalid, match="is an episode, not a project"):
        await house.app.entities.find_project(house.owner, note)
