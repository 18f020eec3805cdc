"""Work over MCP, REST and the command line: one life of a task by each."""

from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from commonplace.interfaces.mcp.tools import MANAGED as ACTIONS, Manage
from commonplace.model.workflow import TASK
from tests.core.workshop import open_workshop
from tests.interfaces.command import Commands
from tests.interfaces.house import House, call_tool

pytestmark = pytest.mark.anyio


async def manage(
    client: httpx.AsyncClient,
    action: str,
    entity_id: str | None = None,
    data: dict[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    arguments = {
        "action": action,
        **({"entity_id": entity_id} if entity_id else {}),
        **({"data": data} if data is not None else {}),
        **more,
    }
    answer = await call_tool(client, "manage", arguments, "/mcp/graph")
    return dict(answer["result"]["structuredContent"] if "result" in answer else answer["error"])


async def add(client: httpx.AsyncClient, title: str, entity_type: str = "task", **more: Any) -> str:
    body = {
        "title": title,
        "content": f"What {title} is about.",
        "entity_type": entity_type,
        **more,
    }
    made = await client.post("/api/entities?sync=true", json=body)
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


async def test_a_task_lives_through_manage(owner: httpx.AsyncClient) -> None:
    project = await add(owner, "Auth", "project")
    epic = await add(owner, "OAuth", "epic", project=project)
    task = await add(owner, "GitHub callback", project=project, priority="high")
    moved = await manage(
        owner, "update_task", task, {"epic": epic, "due_date": "2026-12-24", "assignees": ["alice"]}
    )
    assert moved["success"] and moved["entity_id"] == task and moved["data"]["revision"] == 2
    assert (moved["data"]["epic"], moved["data"]["due_date"], moved["data"]["assignees"]) == (
        epic,
        "2026-12-24",
        ["alice"],
    )
    started = await manage(owner, "start_task", task, expected_revision=2)
    assert (started["data"]["status"], started["data"]["revision"]) == ("doing", 3)
    assert "OAuth is now in_progress" in started["message"]
    late = await manage(owner, "complete_task", task, {"expected_revision": 2})
    assert (late["code"], late["data"]) == (-32603, {"error": "conflict", "revision": 3})
    blocked = await manage(owner, "block_task", task, {"reason": "no client secret"})
    assert blocked["message"] == "Blocked: GitHub callback (no client secret)"
    metadata = (await owner.get(f"/api/tasks/{task}")).json()["metadata"]
    assert metadata["blocked_reason"] == "no client secret"
    refused = await manage(owner, "complete_task", task)
    assert refused["code"] == -32602 and "it can go to: doing, archived" in refused["message"]
    assert refused["data"]["allowed"] == ["doing", "archived"]
    await manage(owner, "unblock_task", task)
    await manage(owner, "add_note", task, {"content": "Asked the axolotl team."})
    noted = (await owner.get(f"/api/tasks/{task}")).json()
    assert [note["text"] for note in noted["metadata"]["notes"]] == ["Asked the axolotl team."]
    await manage(owner, "submit_review", task, {"pr_url": "https://example.org/pr/1"})
    open_epic = await manage(owner, "complete_epic", epic)
    assert open_epic["code"] == -32602 and "GitHub callback" in open_epic["message"]
    done = await manage(
        owner,
        "complete_task",
        task,
        {"learnings": "State must be checked first.", "actual_hours": 3},
    )
    assert done["data"]["status"] == "done"
    metadata = (await owner.get(f"/api/tasks/{task}")).json()["metadata"]
    assert metadata["actual_hours"] == 3.0
    episode = (await owner.get(f"/api/entities/{done['data']['learnings_id']}")).json()
    assert (episode["entity_type"], episode["content"], episode["project"]) == (
        "episode",
        "State must be checked first.",
        project,
    )
    related = (
        await owner.get(
            f"/api/entities/{task}/relations", params={"relationship_types": "DERIVED_FROM"}
        )
    ).json()
    assert [entity["id"] for entity in related["entities"]] == [episode["id"]]
    assert (await owner.get(f"/api/epics/{epic}")).json()["status"] == "completed"
    found = await call_tool(owner, "search", {"query": "axolotl"})
    assert found["result"]["structuredContent"]["results"][0]["id"] == task


async def test_facts_can_be_added_to_a_task_however_much_was_noted_on_it(
    owner: httpx.AsyncClient,
) -> None:
    task = await add(owner, "Measure", project=await add(owner, "Bench", "project"))
    await manage(owner, "add_note", task, {"content": "as before " * 2_100})
    changed = await owner.patch(f"/api/entities/{task}", json={"metadata": {"host": "bench-1"}})
    assert (
        changed.status_code,
        changed.json()["metadata"]["host"],
        len(changed.json()["metadata"]["notes"]),
    ) == (200, "bench-1", 1)
    much = await owner.patch(f"/api/entities/{task}", json={"metadata": {"log": "x" * 20_000}})
    assert (
        much.status_code == 422
        and "`metadata` may have 20,000 characters" in much.json()["message"]
    )


async def test_plans_explain_themselves(owner: httpx.AsyncClient) -> None:
    project = await add(owner, "House", "project")
    first = await add(owner, "Foundations", project=project, priority="low")
    second = await add(owner, "Walls", project=project, priority="critical", depends_on=[first])
    order = await manage(owner, "prioritize", project)
    assert [task["id"] for task in order["data"]["tasks"]] == [first, second]
    assert any("Walls" in reason for reason in order["data"]["tasks"][0]["reasons"])
    next_one = await manage(owner, "suggest", None, {"project": project})
    assert [(s["id"], s["action"]) for s in next_one["data"]["suggestions"]] == [
        (first, "start_task")
    ]
    assert (await owner.get("/api/tasks/next", params={"project": project})).json()["suggestions"][
        0
    ]["id"] == next_one["data"]["suggestions"][0]["id"]
    assert (await manage(owner, "detect_cycles", project))["data"] == {
        "cycles": [],
        "has_cycles": False,
    }
    circle = await manage(owner, "update_task", first, {"depends_on": [second]})
    assert circle["code"] == -32602 and "Foundations -> Walls -> Foundations" in circle["message"]
    estimate = await manage(owner, "estimate", first)
    assert (estimate["data"].get("hours"), estimate["data"]["confidence"]) == (None, "none")
    assert estimate["message"] == estimate["data"]["explanation"] != ""


async def test_no_more_cycles_are_named_than_were_asked_for(
    house: House, owner: httpx.AsyncClient
) -> None:
    project = await add(owner, "Knots", "project")
    for name in ("Bow", "Hitch"):
        first = await add(owner, f"{name} first", project=project)
        unseen = await add(owner, f"{name} between", project=project, depends_on=[first])
        last = await add(owner, f"{name} last", project=project, depends_on=[unseen])
        for entity in (first, last):
            await house.app.folders.file(house.owner, entity, [house.folders["Red"]])
        async with house.client(
            "one_folder"
        ) as client:  # who does not see what lies between is not told of a cycle
            assert (await manage(client, "update_task", first, {"depends_on": [last]}))["success"]
    for limit, found in ((20, 2), (1, 1)):
        told = await manage(owner, "detect_cycles", project, {"limit": limit})
        assert (len(told["data"]["cycles"]), told["data"]["has_cycles"]) == (found, True)


async def test_memory_is_corrected_through_manage(owner: httpx.AsyncClient) -> None:
    old, new = (
        await add(owner, "Use MySQL", "decision"),
        await add(owner, "Use Postgres", "decision"),
    )
    gone = await manage(owner, "supersede", old, {"by": new, "reason": "JSON"})
    assert (gone["data"]["status"], gone["data"]["superseded_by"]) == ("superseded", new)
    assert "status" not in (await manage(owner, "restore", old))["data"]
    assert (await manage(owner, "mark_wrong", old, {"reason": "no"}))["data"]["status"] == "wrong"
    assert (await manage(owner, "mark_stale", new))["data"]["status"] == "stale"
    deleted = await manage(owner, "delete", old)
    assert (deleted["success"], deleted["data"]) == (True, {"deleted": True})
    assert (await owner.get(f"/api/entities/{old}")).status_code == 404


async def test_mistakes_are_told_in_words(owner: httpx.AsyncClient) -> None:
    project = await add(owner, "P", "project")
    task, decision = await add(owner, "T", project=project), await add(owner, "D", "decision")
    for arguments, said in [
        ({"action": "begin_task", "entity_id": task}, "start_task, block_task"),
        ({"action": "start_task"}, "`entity_id` is required for start_task"),
        ({"action": "block_task", "entity_id": task}, "In `data`: `reason` is required"),
        ({"action": "block_task", "entity_id": task, "data": {"reason": " "}}, "must not be blank"),
        (
            {"action": "start_task", "entity_id": task, "data": {"colour": "red"}},
            "Unknown field `colour`",
        ),
        (
            {"action": "update_task", "entity_id": task, "data": {"priority": "huge"}},
            "critical, high",
        ),
        ({"action": "update_task", "entity_id": task, "data": {"due_date": "soon"}}, "ISO date"),
        (
            {"action": "update_task", "entity_id": task, "data": {"status": "finished"}},
            "There is no status 'finished'",
        ),
        ({"action": "update_task", "entity_id": task, "data": {}}, "at least one field"),
        (
            {"action": "update_task", "entity_id": task, "data": {"depends_on": [decision]}},
            "is a decision, not a task or epic",
        ),
        ({"action": "add_note", "entity_id": task, "data": {}}, "`content` is required"),
        (
            {"action": "complete_task", "entity_id": task, "data": {"actual_hours": -1}},
            "actual_hours",
        ),
        ({"action": "start_task", "entity_id": decision}, "is a decision, not a task"),
        (
            {"action": "estimate", "entity_id": task, "data": {"x": 1}},
            "Unknown field `x`; there are none.",
        ),
        (
            {
                "action": "start_task",
                "entity_id": task,
                "expected_revision": 1,
                "data": {"expected_revision": 2},
            },
            "twice",
        ),
    ]:
        error = (await call_tool(owner, "manage", arguments))["error"]
        assert error["code"] == -32602 and said in error["message"], error
    missing = (
        await call_tool(owner, "manage", {"action": "start_task", "entity_id": "task_nowhere"})
    )["error"]
    assert (missing["code"], missing["data"]["error"]) == (-32603, "not_found")
    assert (await owner.get(f"/api/tasks/{task}")).json()["revision"] == 1


def test_the_schema_names_every_action() -> None:
    named = Manage.model_json_schema()["properties"]["action"]["enum"]
    assert set(named) == set(ACTIONS)


async def test_tasks_and_epics_over_rest(owner: httpx.AsyncClient) -> None:
    project = await add(owner, "Auth", "project")
    assert (await owner.post("/api/tasks", json={"title": "T", "content": "c"})).json()[
        "message"
    ] == "Tasks require a project"
    assert (await owner.post("/api/epics", json={"title": "E", "content": "c"})).json()[
        "message"
    ] == "Epics require a project"
    epic = (
        await owner.post("/api/epics", json={"title": "E", "content": "c", "project": project})
    ).json()
    assert epic["status"] == "planning"
    made = await owner.post(
        "/api/tasks",
        json={
            "title": "T",
            "content": "c",
            "project": project,
            "epic": epic["id"],
            "priority": "high",
            "assignees": ["ann"],
        },
    )
    assert (made.status_code, made.json()["status"], made.json()["epic"]) == (
        201,
        "todo",
        epic["id"],
    )
    other = (
        await owner.post("/api/tasks", json={"title": "Other", "content": "c", "project": project})
    ).json()
    task = f"/api/tasks/{made.json()['id']}"
    for query, found in [
        ({}, 2),
        ({"epic": epic["id"]}, 1),
        ({"priority": "high"}, 1),
        ({"assignee": "ann"}, 1),
        ({"status": "todo"}, 2),
        ({"project": project, "status": ["doing", "done"]}, 0),
        ({"per_page": 1}, 2),
    ]:
        page = (await owner.get("/api/tasks", params=query)).json()
        assert page["total"] == found, query
    assert page["has_more"] and [entry["id"] for entry in page["tasks"]] == [other["id"]]
    assert (await owner.post(f"{task}/start")).json()["status"] == "doing"
    assert (await owner.get("/api/epics", params={"status": "in_progress"})).json()["total"] == 1
    assert (await owner.post(f"{task}/block", json={})).status_code == 422
    assert (await owner.post(f"{task}/block", json={"reason": "key"})).json()["metadata"][
        "blocked_reason"
    ] == "key"
    assert (await owner.post(f"{task}/unblock", json={})).json()["status"] == "doing"
    assert (await owner.post(f"{task}/review", json={"commit_shas": ["abc"]})).json()["metadata"][
        "commit_shas"
    ] == ["abc"]
    assert (await owner.post(f"{task}/notes", json={"content": "Fine."})).json()[
        "message"
    ] == "Noted: T"
    stale = await owner.patch(task, json={"priority": "low", "expected_revision": 2})
    assert (stale.status_code, stale.json()["error"], stale.json()["revision"]) == (
        409,
        "conflict",
        6,
    )
    assert (
        await owner.patch(task, json={"priority": "low", "due_date": None, "epic": None})
    ).json()["epic"] is None
    refused = await owner.patch(task, json={"status": "backlog"})
    assert (refused.status_code, refused.json()["allowed"]) == (422, list(TASK.next["review"]))
    assert (
        await owner.post(f"{task}/complete", json={"actual_hours": 2.5, "learnings": "Much."})
    ).json()["status"] == "done"
    assert (await owner.post(f"{task}/archive")).json()["status"] == "archived"
    full = (await owner.get(task)).json()
    assert (full["content"], full["status"]) == ("c", "archived")
    assert (await owner.get(f"/api/tasks/{epic['id']}")).status_code == 422
    assert (await owner.get(f"{task}/estimate")).json()["confidence"] == "none"
    assert (await owner.post(f"/api/epics/{epic['id']}/complete")).json()["status"] == "completed"
    assert (await owner.patch(f"/api/epics/{epic['id']}", json={"title": "Epic"})).json()[
        "title"
    ] == "Epic"


async def test_what_is_there_already_is_told_when_a_task_or_an_epic_is_added_over_rest(
    owner: httpx.AsyncClient,
) -> None:
    project = await add(owner, "Gateway", "project")
    for path, said in (
        ("/api/tasks", "Rotate the signing keys of the gateway."),
        ("/api/epics", "Single sign-on for all customers."),
    ):
        body = {"title": said, "content": said, "project": project}
        first, second = [(await owner.post(path, json=body)).json() for _ in range(2)]
        assert first["conflicts"] == []
        assert [(found["id"], found["kind"]) for found in second["conflicts"]] == [
            (first["id"], "duplicate")
        ]
        assert (await owner.post(path, json=body | {"check_conflicts": False})).json()[
            "conflicts"
        ] == []


async def test_a_scoped_token_moves_what_it_sees_and_nothing_else_moves(
    house: House, owner: httpx.AsyncClient
) -> None:
    project = await add(owner, "Secret", "project")
    epic = await add(owner, "Secret epic", "epic", project=project)
    task = await add(owner, "Red task", project=project)
    await manage(owner, "update_task", task, {"epic": epic})
    await house.app.folders.file(
        house.owner,
        (await owner.get(f"/api/tasks/{task}")).json()["item_id"],
        [house.folders["Red"]],
    )
    async with house.client("one_folder") as one:
        started = await manage(one, "start_task", task)
        assert "Secret" not in str(started) and "epic" not in started["data"]
        assert (await manage(one, "start_epic", epic))["data"]["error"] == "not_found"
        nowhere = await manage(one, "update_task", task, {"epic": epic})
        assert nowhere["code"] == -32602 and "There is no epic" in nowhere["message"]
    assert (await owner.get(f"/api/epics/{epic}")).json()[
        "status"
    ] == "in_progress"  # right for those who see it
    async with house.client("one_folder") as one:
        own = await add(one, "Red project", "project")
        assert "Secret" not in str(
            await manage(one, "update_task", task, {"project": own, "epic": None})
        )
        assert "Secret" not in str(await manage(one, "complete_task", task))
    assert (await owner.get(f"/api/tasks/{task}")).json()["epic"] is None
    assert (await owner.get(f"/api/epics/{epic}")).json()[
        "status"
    ] == "in_progress"  # it left before it was done


async def test_an_epic_is_completed_for_everybody_or_not_at_all(
    house: House, owner: httpx.AsyncClient
) -> None:
    project = await add(owner, "Auth", "project")
    epic = await add(owner, "OAuth", "epic", project=project)
    seen, hidden = [
        await add(owner, title, project=project, epic=epic) for title in ("Red task", "Secret task")
    ]
    for entity in (project, epic, seen):
        await owner.post(
            f"/api/v1/items/{entity}/folders", json={"folder_ids": [house.folders["Red"]]}
        )
    async with house.client("one_folder") as one:
        await manage(one, "start_task", seen)
        told = await manage(one, "complete_epic", epic)
        assert (
            told["data"]["open_tasks"] == [seen] and "has 1 open task: Red task" in told["message"]
        )
        assert "is now" not in (await manage(one, "complete_task", seen))["message"]
        for refused in (
            await manage(one, "complete_epic", epic),
            await manage(one, "update_epic", epic, {"status": "completed"}),
        ):
            assert (
                refused["data"]["open_tasks"] == []
                and "cannot be completed yet" in refused["message"]
            )
            assert not any(word in str(refused) for word in ("Secret", hidden, "1 "))
        assert (await one.get(f"/api/epics/{epic}")).json()["status"] == "in_progress"
        await manage(owner, "archive_task", hidden)
        assert (await one.get(f"/api/epics/{epic}")).json()["status"] == "completed"


async def relations_of(client: httpx.AsyncClient, entity_id: str, kind: str) -> list[str]:
    found = (
        await client.get(
            f"/api/entities/{entity_id}/relations", params={"relationship_types": kind}
        )
    ).json()
    return [relation["to"] for relation in found["relations"] if relation["from"] == entity_id]


async def test_joining_a_task_to_an_epic_is_setting_its_epic(owner: httpx.AsyncClient) -> None:
    project = await add(owner, "Auth", "project")
    first, second = [await add(owner, name, "epic", project=project) for name in ("OAuth", "SAML")]
    task, note = await add(owner, "Callback", project=project), await add(owner, "Note", "episode")
    path = f"/api/entities/{task}/relations"
    await manage(owner, "start_task", task)
    assert (await owner.post(path, json={"to": first, "type": "PART_OF"})).status_code == 201
    assert (await owner.post(path, json={"to": first, "type": "PART_OF"})).status_code == 200
    assert (await owner.get(f"/api/epics/{first}")).json()["status"] == "in_progress"
    assert (await owner.post(path, json={"to": second, "type": "PART_OF"})).status_code == 201
    assert await relations_of(owner, task, "PART_OF") == [second]
    assert (await owner.get(f"/api/tasks/{task}")).json()["epic"] == second
    assert (await owner.get(f"/api/tasks?epic={first}")).json()["total"] == 0
    await manage(owner, "complete_task", task)
    assert (await owner.get(f"/api/epics/{second}")).json()["status"] == "completed"
    assert (await owner.delete(path, params={"to": first, "type": "PART_OF"})).status_code == 404
    assert (await owner.delete(path, params={"to": second, "type": "PART_OF"})).json() == {
        "ok": True
    }
    assert (await owner.get(f"/api/tasks/{task}")).json()["epic"] is None
    refused = await owner.post(
        f"/api/entities/{note}/relations", json={"to": first, "type": "PART_OF"}
    )
    assert (
        refused.status_code == 422
        and "only tasks can be part of an epic" in refused.json()["message"]
    )


async def test_a_task_has_a_project_and_can_be_moved_to_another(owner: httpx.AsyncClient) -> None:
    first, second, third = [
        await add(owner, name, "project") for name in ("Auth", "Billing", "Search")
    ]
    epic = await add(owner, "OAuth", "epic", project=first)
    task, note = (
        await add(owner, "Callback", project=first),
        await add(owner, "Note", "episode", project=first),
    )
    for work in (task, epic):
        path = f"/api/entities/{work}/relations"
        refused = await owner.delete(path, params={"to": first, "type": "BELONGS_TO"})
        assert (
            refused.status_code == 422
            and "needs a project. Link it to another" in refused.json()["message"]
        )
        assert (
            await owner.post(path, json={"to": second, "type": "BELONGS_TO"})
        ).status_code == 201
        assert await relations_of(owner, work, "BELONGS_TO") == [second]
        moved = await manage(owner, f"update_{work.partition('_')[0]}", work, {"project": third})
        assert moved["data"]["project"] == third
        assert await relations_of(owner, work, "BELONGS_TO") == [third]
    wrong = await manage(owner, "update_task", task, {"project": epic})
    assert wrong["code"] == -32602 and "must name a project" in wrong["message"]
    await owner.post(f"/api/entities/{note}/relations", json={"to": second, "type": "BELONGS_TO"})
    assert sorted(await relations_of(owner, note, "BELONGS_TO")) == sorted(
        [first, second]
    )  # a memory may bear on several
    assert (
        await owner.delete(
            f"/api/entities/{note}/relations", params={"to": first, "type": "BELONGS_TO"}
        )
    ).status_code == 200


async def test_an_epic_follows_whatever_way_its_tasks_come_and_go(owner: httpx.AsyncClient) -> None:
    project = await add(owner, "Auth", "project")
    epic = await add(owner, "OAuth", "epic", project=project)
    done, late = (
        await add(owner, "Callback", project=project, epic=epic),
        await add(owner, "Login", project=project, epic=epic),
    )
    for action in ("start_task", "complete_task"):
        await manage(owner, action, done)
    assert (await owner.get(f"/api/epics/{epic}")).json()["status"] == "in_progress"
    assert (await owner.delete(f"/api/entities/{late}")).status_code == 200
    assert (await owner.get(f"/api/epics/{epic}")).json()["status"] == "completed"
    more = await add(owner, "Logout", project=project, epic=epic)
    assert (await owner.get(f"/api/epics/{epic}")).json()["status"] == "in_progress"
    assert (await manage(owner, "delete", more))["success"]
    assert (await owner.get(f"/api/epics/{epic}")).json()["status"] == "completed"
    again = await add(owner, "Sessions", project=project, epic=epic)
    assert (await owner.get(f"/api/epics/{epic}")).json()["status"] == "in_progress"
    folder = (await owner.post("/api/v1/folders", json={"name": "Later"})).json()["id"]
    filed = await owner.post(f"/api/v1/items/{again}/folders", json={"folder_ids": [folder]})
    assert filed.status_code == 200, filed.text
    assert (
        await owner.delete(f"/api/v1/folders/{folder}", params={"cascade_items": True})
    ).status_code == 200
    assert (await owner.get(f"/api/epics/{epic}")).json()["status"] == "completed"


async def test_archiving_a_task_is_a_step_by_whatever_face(owner: httpx.AsyncClient) -> None:
    project = await add(owner, "Auth", "project")
    epic = await add(owner, "OAuth", "epic", project=project)
    done, task = (
        await add(owner, "Callback", project=project, epic=epic),
        await add(owner, "Login", project=project, epic=epic),
    )
    for action in ("start_task", "complete_task"):
        await manage(owner, action, done)
    await manage(owner, "start_task", task)
    refused = await owner.patch(f"/api/v1/items/{task}", json={"archived": True})
    assert (
        refused.status_code == 422
        and "it can go to: blocked, review, done, todo" in refused.json()["message"]
    )
    await manage(owner, "block_task", task, {"reason": "frost"})
    assert (
        await owner.patch(f"/api/v1/items/{task}", json={"archived": True, "category": "login"})
    ).json()["archived"]
    shown = (await owner.get(f"/api/tasks/{task}")).json()
    assert (shown["status"], shown["category"], shown["metadata"].get("blocked_reason")) == (
        "archived",
        "login",
        None,
    )
    assert (await owner.get(f"/api/epics/{epic}")).json()["status"] == "completed"
    back = await owner.patch(f"/api/v1/items/{task}", json={"archived": False})
    assert back.status_code == 422 and "cannot go anywhere" in back.json()["message"]


async def make_project(data_dir: Path) -> str:
    async with open_workshop(data_dir) as shop:
        return (await shop.make("project", "Garden")).entity_id


def test_tasks_by_the_command_line(data_dir: Path) -> None:
    project, run = anyio.run(make_project, data_dir), Commands(data_dir)
    assert "No project" in run.fails("task", "add", "Dig", "--project", "project_nowhere")
    dig = run.json(
        "task",
        "add",
        "Dig",
        "--project",
        project,
        "--priority",
        "high",
        "--assignee",
        "ann",
        "--due",
        "2030-01-31",
    )
    assert (dig["status"], dig["priority"], dig["project"]) == ("todo", "high", project)
    plant = run.json(
        "task",
        "add",
        "Plant",
        "--project",
        project,
        "--depends-on",
        dig["id"],
        "--content",
        "-",
        stdin="Three quinces.",
    )
    assert [task["title"] for task in run.json("task", "list", "--project", project)["tasks"]] == [
        "Plant",
        "Dig",
    ]
    assert [task["title"] for task in run.json("task", "list", "--priority", "high")["tasks"]] == [
        "Dig"
    ]
    [suggested] = run.json("task", "list", "--next")["suggestions"]
    assert suggested["id"] == dig["id"]
    assert "Dig\n    priority high" in run.text("task", "list", "--next")
    epic = run.json(
        "remember",
        "Orchard",
        "Fruit trees.",
        "--type",
        "epic",
        "--project",
        project,
    )["id"]
    changed = run.json(
        "task",
        "update",
        plant["id"],
        "--epic",
        epic,
        "--priority",
        "low",
        "--due",
        "2030-02-01",
        "--assignee",
        "bob",
    )
    assert (changed["epic"], changed["priority"], changed["due_date"], changed["assignees"]) == (
        epic,
        "low",
        "2030-02-01",
        ["bob"],
    )
    changed = run.json("task", "update", plant["id"], "--epic", "", "--due", "")
    assert (changed["epic"], changed["due_date"], changed["priority"]) == (None, None, "low")
    assert "at least one field" in run.fails("task", "update", plant["id"])
    assert run.text("task", "update", dig["id"], "--status", "doing").startswith("Started: Dig")
    assert "--reason is required." in run.fails("task", "update", dig["id"], "--status", "blocked")
    run.text("task", "update", dig["id"], "--status", "blocked", "--reason", "frost")
    assert "it can go to: doing, archived" in run.fails(
        "task", "update", dig["id"], "--status", "done"
    )
    run.text("task", "update", dig["id"], "--status", "doing")
    run.text("task", "update", dig["id"], "--note", "The ground is soft.")
    run.text("task", "update", dig["id"], "--status", "review")
    done = run.json(
        "task",
        "update",
        dig["id"],
        "--status",
        "done",
        "--learnings",
        "Wait for the thaw.",
        "--hours",
        "2",
    )
    assert (done["status"], done["metadata"]["actual_hours"]) == ("done", 2.0)
    assert done["learnings_id"].startswith("episode_")
    shown = run.text("get", dig["id"])
    assert "status: done" in shown and "The ground is soft." in shown
    assert run.json("get", plant["id"])["content"] == "Three quinces."
    assert "Archived" in run.text("task", "update", dig["id"], "--status", "archived")
    assert (
        run.fails("task", "update", "task_nowhere", "--status", "doing")
        == "No entity 'task_nowhere'.\n"
    )


def test_epics_by_the_command_line(data_dir: Path) -> None:
    project, run = anyio.run(make_project, data_dir), Commands(data_dir)
    orchard = run.json(
        "task",
        "add",
        "Orchard",
        "--type",
        "epic",
        "--project",
        project,
        "--priority",
        "high",
        "--content",
        "-",
        stdin="Fruit trees.",
    )
    assert (orchard["status"], orchard["priority"], orchard["project"]) == (
        "planning",
        "high",
        project,
    )
    task = run.json("task", "add", "Dig", "--project", project, "--epic", orchard["id"])["id"]
    assert (
        run.text("task", "update", orchard["id"], "--status", "in_progress") == "Started: Orchard\n"
    )
    assert "has 1 open task: Dig" in run.fails(
        "task", "update", orchard["id"], "--status", "completed"
    )
    assert "the epic" not in run.text("task", "update", task, "--status", "doing")
    assert "the epic Orchard is now completed" in run.text(
        "task", "update", task, "--status", "done"
    )
    changed = run.json(
        "task",
        "update",
        orchard["id"],
        "--title",
        "The orchard",
        "--due",
        "2030-01-31",
        "--assignee",
        "ann",
    )
    assert (changed["title"], changed["due_date"], changed["assignees"]) == (
        "The orchard",
        "2030-01-31",
        ["ann"],
    )
    assert run.json("task", "update", orchard["id"], "--due", "")["due_date"] is None
    run.text("task", "update", orchard["id"], "--note", "Quinces first.")
    shown = run.text("get", orchard["id"])
    assert "status: completed" in shown and "Fruit trees." in shown and "Quinces first." in shown
    listed = run.json("task", "list", "--type", "epic", "--status", "completed")["epics"]
    assert [epic["id"] for epic in listed] == [orchard["id"]]
    assert run.json("task", "update", orchard["id"], "--status", "archived")["status"] == "archived"
    assert "cannot go anywhere" in run.fails(
        "task", "update", orchard["id"], "--status", "in_progress"
    )
