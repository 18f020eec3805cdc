"""Changes by PATCH and `manage`: left out is unchanged, null clears, and stale revisions are refused."""

from typing import Any

import httpx
import pytest

from commonplace.interfaces.actions.action import Action
from commonplace.interfaces.actions.fields import Patch
from commonplace.interfaces.actions.registry import ACTIONS
from commonplace.interfaces.mcp.tools import MANAGED
from commonplace.model import Json
from tests.interfaces.house import House, call_tool

pytestmark = pytest.mark.anyio

PATCHES = {action.name: action for action in ACTIONS.values() if action.method == "PATCH"}
GUARDED = {
    name: action
    for name, action in PATCHES.items()
    if "expected_revision" in action.input.model_fields
}
MANAGED_PATCHES = {
    name: action for name, action in MANAGED.items() if issubclass(action.input, Patch)
}
# Another value for each field; {name} is an id of the things below.
VALUES: Json = {
    "archived": True,
    "assignees": ["ada"],
    "category": "notes",
    "content": "We decided to paint it red, and not before June.",
    "depends_on": ["{other}"],
    "due_date": "2030-03-01",
    "valid_until": "2030-03-01",
    "review_by": "2030-02-01",
    "epic": "{epic}",
    "in_kb": False,
    "kind": "procedure",
    "languages": ["python"],
    "metadata": {"depth": 7},
    "name": "Crimson",
    "parent_id": "{parent}",
    "priority": "low",
    "project": "{second}",
    "role": "member",
    "status": {"update_task": "doing", "update_epic": "in_progress"},
    "tags": ["sea"],
    "technologies": ["sqlite"],
    "text": "Another text, all of it.",
    "title": "Another title",
}
EMPTY = (None, "", [], {})
# What they are called in answers, where that differs.
SHOWN = {("update_candidate", "project"): "project_id"}


class Things:
    """Something to change for each PATCH, and ids to change it to."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client
        self.ids: dict[str, str] = {}

    async def add(self, kind: str, title: str, **more: Any) -> str:
        body = {"entity_type": kind, "title": title, "content": f"{title} in full.", **more}
        response = await self.client.post("/api/entities?sync=true", json=body)
        assert response.status_code == 201, response.text
        return str(response.json()["id"])

    async def make(self, house: House) -> "Things":
        ids = self.ids
        ids["project"] = await self.add("project", "Harbour")
        ids["second"] = await self.add("project", "Lighthouse")
        of = {"project": ids["project"]}
        ids["epic"] = await self.add("epic", "Deepen the harbour", **of)
        ids["task"] = await self.add("task", "Hire a dredger", **of)
        ids["other"] = await self.add("task", "Ask for money", **of)
        ids["memory"] = await self.add("episode", "The dredger came late", category="old")
        ids["item"], _ = await house.add("Tides")
        notes = {"content": "We decided to paint the lighthouse.", "persist": True, "review": True}
        reflected = await self.client.post("/api/v1/memory/reflect", json=notes)
        ids["candidate"] = reflected.json()["candidates"][0]["candidate_id"]
        ids["folder"], ids["parent"] = house.folders["Red"], house.folders["Blue"]
        members = (await self.client.get("/api/v1/members")).json()["members"]
        [ids["member"]] = [each["person_id"] for each in members if each["name"] == "Viewer"]
        return self

    def value(self, action: Action, field: str) -> Any:
        value = VALUES[field]
        if field == "status":
            return value[action.name]
        if isinstance(value, list):
            return [each.format(**self.ids) for each in value]
        return value.format(**self.ids) if isinstance(value, str) else value

    def path(self, action: Action) -> str:
        return action.path.format(**dict.fromkeys(action.path_fields, self.ids[OF[action.name]]))

    async def patch(self, action: Action, body: Any, **headers: str) -> httpx.Response:
        return await self.client.patch(self.path(action), json=body, headers=headers)

    async def read(self, action: Action) -> Json:
        if action.name == "change_role":
            members = (await self.client.get("/api/v1/members")).json()["members"]
            [found] = [each for each in members if each["person_id"] == self.ids["member"]]
        else:
            found = (await self.client.get(self.path(action))).json()
        assert "error" not in found
        return dict(found)

    async def manage(self, action: Action, **arguments: Any) -> Json:
        given = {"action": action.name, "entity_id": self.ids[OF[action.name]], **arguments}
        return dict(await call_tool(self.client, "manage", given))


OF = {
    "update_item": "item",
    "update_folder": "folder",
    "update_entity": "memory",
    "update_task": "task",
    "update_epic": "epic",
    "update_candidate": "candidate",
    "change_role": "member",
}


@pytest.fixture
async def things(house: House, owner: httpx.AsyncClient) -> Things:
    return await Things(owner).make(house)


def fields_of(action: Action) -> list[str]:
    assert issubclass(action.input, Patch)
    return [name for name in action.input.model_fields if name not in action.input.kept]


def nullable(action: Action, field: str) -> bool:
    schema = action.input.model_json_schema()["properties"][field]
    return {"type": "null"} in schema.get("anyOf", ())


def shown(action: Action, field: str, answer: Json) -> Any:
    return answer[SHOWN.get((action.name, field), field)]


EVERY_FIELD = [
    pytest.param(action, field, id=f"{name}-{field}")
    for name, action in PATCHES.items()
    for field in fields_of(action)
]
EVERY_MANAGED_FIELD = [
    pytest.param(action, field, id=f"{name}-{field}")
    for name, action in MANAGED_PATCHES.items()
    for field in fields_of(action)
]


def test_all_patches_are_tested() -> None:
    assert PATCHES.keys() == OF.keys()
    assert MANAGED_PATCHES.keys() == {"update_task", "update_epic"}


# -- one field at a time


@pytest.mark.parametrize(("action", "field"), EVERY_FIELD)
async def test_fields_that_are_left_out_do_not_change(
    things: Things, action: Action, field: str
) -> None:
    before = await things.read(action)
    response = await things.patch(action, {field: things.value(action, field)})
    assert response.status_code == 200, response.text
    answer, after = response.json(), await things.read(action)
    assert {name: answer[name] for name in after} == after  # the shape of GET
    assert shown(action, field, after) != shown(action, field, before)
    for other in fields_of(action):
        # work that is archived has that status, and epics start with their tasks
        if other != field and {field, other} != {"status", "archived"}:
            assert shown(action, other, after) == shown(action, other, before), other


@pytest.mark.parametrize(("action", "field"), EVERY_FIELD)
async def test_null_clears_a_field_or_is_refused_by_its_name(
    things: Things, action: Action, field: str
) -> None:
    assert (await things.patch(action, {field: things.value(action, field)})).is_success
    before = await things.read(action)
    response = await things.patch(action, {field: None})
    if nullable(action, field):
        assert response.status_code == 200, response.text
        assert shown(action, field, response.json()) in EMPTY
        assert shown(action, field, await things.read(action)) in EMPTY
    else:
        assert (response.status_code, response.json()["error"]) == (422, "invalid_request")
        assert field in response.json()["message"].lower()
        assert await things.read(action) == before


@pytest.mark.parametrize(("action", "field"), EVERY_MANAGED_FIELD)
async def test_manage_changes_and_clears_alike(things: Things, action: Action, field: str) -> None:
    before, value = await things.read(action), things.value(action, field)
    answer = await things.manage(action, data={field: value})
    assert answer["result"]["structuredContent"]["data"][field] == value
    after = await things.read(action)
    assert shown(action, field, after) != shown(action, field, before)
    assert answer["result"]["structuredContent"]["data"]["revision"] == after["revision"]
    for other in fields_of(action):
        if other != field:
            assert after[other] == before[other], other
    answer = await things.manage(action, data={field: None})
    if nullable(action, field):
        assert "result" in answer, answer
        assert (await things.read(action))[field] in EMPTY
    else:
        assert (answer["error"]["code"], answer["error"]["data"]["error"]) == (
            -32602,
            "invalid_request",
        )
        assert field in answer["error"]["message"].lower()
        assert await things.read(action) == after


async def test_metadata_is_merged_and_null_removes_a_key(things: Things) -> None:
    action = PATCHES["update_entity"]
    for sent, kept in (
        ({"depth": 7, "by": {"name": "ada"}}, {"depth": 7, "by": {"name": "ada"}}),
        ({"depth": 8}, {"depth": 8, "by": {"name": "ada"}}),
        ({"depth": None}, {"by": {"name": "ada"}}),
    ):
        answer = (await things.patch(action, {"metadata": sent})).json()
        assert answer["metadata"] == kept


# -- bodies that change nothing


@pytest.mark.parametrize("action", PATCHES.values(), ids=PATCHES)
async def test_unknown_fields_and_empty_bodies_are_refused(things: Things, action: Action) -> None:
    before = await things.read(action)
    known = {fields_of(action)[0]: things.value(action, fields_of(action)[0])}
    for body, sentence in (
        ({**known, "colour": "red"}, "`colour`"),
        ({**known, action.path_fields[0]: "other"}, f"`{action.path_fields[0]}`"),
        ({}, "nothing to change"),
        ([known], "must be an object"),
    ):
        response = await things.patch(action, body)
        assert (response.status_code, response.json()["error"]) == (422, "invalid_request"), body
        assert sentence in response.json()["message"], response.text
    no_body = await things.client.patch(things.path(action))
    assert (no_body.status_code, no_body.json()["error"]) == (422, "invalid_request")
    if action.name in GUARDED:
        only = await things.patch(action, {"expected_revision": before["revision"]})
        assert "nothing to change" in only.json()["message"]
    assert await things.read(action) == before


@pytest.mark.parametrize("action", MANAGED_PATCHES.values(), ids=MANAGED_PATCHES)
async def test_manage_refuses_unknown_fields_and_empty_data(things: Things, action: Action) -> None:
    before = await things.read(action)
    for data, sentence in (
        ({"title": "New", "colour": "red"}, "`colour`"),
        ({}, "nothing to change"),
    ):
        error = (await things.manage(action, data=data))["error"]
        assert (error["code"], error["data"]["error"]) == (-32602, "invalid_request")
        assert sentence in error["message"]
    assert await things.read(action) == before


async def test_no_field_of_a_patch_has_a_default(owner: httpx.AsyncClient) -> None:
    document = (await owner.get("/openapi.json")).json()
    for action in PATCHES.values():
        operation = document["paths"][action.path]["patch"]
        reference = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        schema = document["components"]["schemas"][reference.rpartition("/")[2]]
        assert {*fields_of(action)} <= schema["properties"].keys()
        assert "required" not in schema or schema["required"] == []
        for name, field in schema["properties"].items():
            assert "default" not in field, (action.name, name)


# -- dates


@pytest.mark.parametrize("door", ["entities", "tasks", "epics", "manage"])
async def test_null_clears_a_due_date_and_an_empty_text_is_refused(
    things: Things, door: str
) -> None:
    action = PATCHES["update_epic" if door == "epics" else "update_task"]
    which = things.ids[OF[action.name]]

    async def change(due: str | None) -> bool:
        if door == "manage":
            return "result" in await things.manage(action, data={"due_date": due})
        response = await things.client.patch(f"/api/{door}/{which}", json={"due_date": due})
        assert response.status_code in (200, 422)
        assert response.is_success or "due_date" in response.json()["message"]
        return response.is_success

    async def read() -> Any:
        return (await things.client.get(f"/api/entities/{which}")).json()["due_date"]

    assert await change("2030-03-01") and await read() == "2030-03-01"
    for wrong in ("", " ", "2030-02-30", "soon"):
        assert not await change(wrong)
        assert await read() == "2030-03-01"
    assert await change(None) and await read() is None


async def test_an_empty_due_date_is_refused_for_new_ones_too(things: Things) -> None:
    body = {"title": "Buoys", "content": "Lay them.", "project": things.ids["project"]}
    for path in ("/api/tasks", "/api/epics", "/api/entities"):
        response = await things.client.post(path, json={**body, "due_date": ""})
        assert response.status_code == 422 and "due_date" in response.json()["message"]
    answer = await call_tool(things.client, "add", {**body, "entity_type": "task", "due_date": ""})
    assert answer["error"]["code"] == -32602 and "due_date" in answer["error"]["message"]


# -- revisions


@pytest.mark.parametrize("action", GUARDED.values(), ids=GUARDED)
async def test_stale_revisions_are_refused(things: Things, action: Action) -> None:
    old = await things.read(action)
    assert (await things.patch(action, {"title": "First"})).is_success
    now = await things.read(action)
    assert now["revision"] > old["revision"]

    def tag(revision: int) -> dict[str, str]:
        return {"If-Match": f'W/"{revision}"'}

    stale = await things.patch(action, {"title": "S", "expected_revision": old["revision"]})
    assert (stale.status_code, stale.json()["error"]) == (409, "conflict")
    assert stale.json()["revision"] == now["revision"]
    stale = await things.patch(action, {"title": "S"}, **tag(old["revision"]))
    assert (stale.status_code, stale.json()["error"]) == (412, "precondition_failed")
    assert stale.json()["revision"] == now["revision"]
    for foreign in ("three", "W/3a", '"0"', '"99999999999"', "", '"7", "eight"'):
        refused = await things.patch(action, {"title": "S"}, **{"If-Match": foreign})
        assert (refused.status_code, refused.json()["revision"]) == (412, now["revision"])
    both = {"title": "S", "expected_revision": now["revision"]}
    refused = await things.patch(action, both, **tag(old["revision"]))
    assert (refused.status_code, refused.json()["error"]) == (412, "precondition_failed")
    stale_body = both | {"expected_revision": old["revision"]}
    refused = await things.patch(action, stale_body, **tag(now["revision"]))
    assert (refused.status_code, refused.json()["error"]) == (409, "conflict")
    assert await things.read(action) == now

    fresh = await things.patch(action, both | {"title": "Second"}, **tag(now["revision"]))
    assert fresh.status_code == 200, fresh.text
    etag = fresh.headers["ETag"]
    assert etag == f'W/"{fresh.json()["revision"]}"'
    for header in ("{}", "*", 'W/"1", "foreign", {}'):
        matches = {"If-Match": header.format(etag)}
        again = await things.patch(action, {"title": f"By {header}"}, **matches)
        assert again.status_code == 200, again.text
        etag = again.headers["ETag"]


@pytest.mark.parametrize("action", MANAGED_PATCHES.values(), ids=MANAGED_PATCHES)
async def test_manage_refuses_stale_revisions(things: Things, action: Action) -> None:
    old = (await things.read(action))["revision"]
    assert "result" in await things.manage(action, data={"title": "First"}, expected_revision=old)
    now = await things.read(action)
    for stale in ({"expected_revision": old}, {"data": {"expected_revision": old}}):
        given = {"title": "Stale", **stale.pop("data", {})}  # type: ignore[arg-type]
        error = (await things.manage(action, data=given, **stale))["error"]
        assert (error["code"], error["data"]["error"]) == (-32603, "conflict")
        assert error["data"]["revision"] == now["revision"]
    assert await things.read(action) == now


@pytest.mark.parametrize("action", GUARDED.values(), ids=GUARDED)
async def test_what_did_not_change_is_not_sent_again(things: Things, action: Action) -> None:
    path, client = things.path(action), things.client
    first = await client.get(path)
    etag = first.headers["ETag"]
    assert etag == f'W/"{first.json()["revision"]}"'
    for header in (etag, etag.removeprefix("W/"), f'"7777", {etag}', "*"):
        same = await client.get(path, headers={"If-None-Match": header})
        assert (same.status_code, same.content, same.headers["ETag"]) == (304, b"", etag), header
    assert (await client.get(path, headers={"If-None-Match": '"7777"'})).status_code == 200
    changed = await things.patch(action, {"title": "Changed"})
    after = await client.get(path, headers={"If-None-Match": etag})
    assert (after.status_code, after.headers["ETag"]) == (200, changed.headers["ETag"])
    assert changed.headers["ETag"] != etag
