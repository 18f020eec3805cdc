"""Headers around the routes: Idempotency-Key and RateLimit; links to next pages; and GET /me."""

import asyncio
from typing import Any

import httpx
import jwt
import pytest

from commonplace.core.people.authorization import BUCKETS
from commonplace.interfaces.actions.action import Action
from commonplace.interfaces.actions.registry import ACTIONS
from commonplace.model import Role, now
from tests.interfaces.conftest import OpenHouse
from tests.interfaces.house import House, call_tool

pytestmark = pytest.mark.anyio

SECRET = "a secret of more than thirty-two bytes"
REPLAYED = "Idempotent-Replayed"


# -- Idempotency-Key

ENTITY = {"title": "Buoys", "content": "Lay the buoys before the winter."}
CREATING: dict[str, Any] = {
    "/api/v1/ingest": {"kind": "text", "title": "Buoys", "text": "Lay them before the winter."},
    "/api/v1/folders": {"name": "Yellow"},
    "/api/v1/uploads/signed-url": {
        "filename": "a.md",
        "content_type": "text/markdown",
        "size": 20,
    },
    "/api/entities": ENTITY,
    "/api/tasks": ENTITY | {"project": "{project}"},
    "/api/epics": ENTITY | {"project": "{project}"},
    "/api/v1/memory/remember": ENTITY,
    "/api/v1/tokens": {"name": "laptop"},
    "/api/v1/invitations": {"role": "viewer"},
}
WITH_SECRET = ("/api/v1/tokens", "/api/v1/invitations")


async def body_for(client: httpx.AsyncClient, path: str) -> Any:
    body = dict(CREATING[path])
    if "project" in body:
        project = {"entity_type": "project", "title": "Harbour", "content": "The harbour."}
        body["project"] = (await client.post("/api/entities", json=project)).json()["id"]
    return body


def key(value: str) -> dict[str, str]:
    return {"Idempotency-Key": value}


@pytest.mark.parametrize("path", CREATING)
async def test_a_repeated_key_returns_the_first_answer(
    house: House, owner: httpx.AsyncClient, path: str
) -> None:
    body = await body_for(owner, path)
    first = await owner.post(path, json=body, headers=key("k"))
    assert first.status_code in (201, 202), first.text
    assert REPLAYED not in first.headers
    again = await owner.post(path, json=body, headers=key("k"))
    assert (again.status_code, again.headers[REPLAYED]) == (first.status_code, "true")
    answer = first.json()
    if path in WITH_SECRET:
        assert answer.pop("token")
    assert again.json() == answer
    other = await owner.post(path, json={**body, next(iter(body)): "other"}, headers=key("k"))
    assert (other.status_code, other.json()["error"]) == (422, "invalid_request")
    async with house.client(token=await house.token("another", write=True)) as another:
        response = await another.post(path, json=body, headers=key("k"))
        assert REPLAYED not in response.headers  # keys are a token's own


@pytest.mark.parametrize(
    "path", ["/api/v1/ingest", "/api/entities", "/api/tasks", "/api/v1/memory/remember"]
)
async def test_an_answer_is_deleted_with_its_item(
    house: House, owner: httpx.AsyncClient, path: str
) -> None:
    body = await body_for(owner, path)
    made = (await owner.post(path, json=body, headers=key("k"))).json()
    kept = await house.app.store._db.read(lambda tx: tx.all("SELECT * FROM idempotency_keys"))
    assert len(kept) == 1
    await owner.delete(f"/api/v1/items/{made.get('id', made.get('user_item_id'))}")
    kept = await house.app.store._db.read(lambda tx: tx.all("SELECT * FROM idempotency_keys"))
    assert kept == []
    again = await owner.post(path, json=body, headers=key("k"))
    assert again.status_code in (201, 202) and REPLAYED not in again.headers


async def test_one_key_names_one_route(owner: httpx.AsyncClient) -> None:
    project = (await body_for(owner, "/api/tasks"))["project"]
    body = ENTITY | {"project": project}
    assert (await owner.post("/api/tasks", json=body, headers=key("k"))).status_code == 201
    response = await owner.post("/api/epics", json=body, headers=key("k"))
    assert response.status_code == 422 and "Idempotency-Key" in response.json()["message"]


async def test_calls_at_once_create_one(owner: httpx.AsyncClient) -> None:
    calls = [owner.post("/api/v1/memory/remember", json=ENTITY, headers=key("k")) for _ in range(8)]
    answers = await asyncio.gather(*calls)
    assert {answer.status_code for answer in answers} <= {201, 409}
    created = [answer for answer in answers if answer.status_code == 201]
    assert len({answer.json()["id"] for answer in created}) == 1
    assert sum(REPLAYED not in answer.headers for answer in created) == 1
    for answer in answers:
        if answer.status_code == 409:
            assert answer.json()["error"] == "conflict"
    assert (await owner.get("/api/entities")).json()["total"] == 1


async def test_a_call_that_failed_can_be_repeated_with_its_key(
    house: House, owner: httpx.AsyncClient
) -> None:
    for _ in range(2):
        taken = await owner.post("/api/v1/folders", json={"name": "red"}, headers=key("k"))
        assert (taken.status_code, taken.json()["error"]) == (409, "name_taken")
    made = await owner.post("/api/v1/folders", json={"name": "Yellow"}, headers=key("k"))
    assert made.status_code == 201 and REPLAYED not in made.headers


async def test_a_key_has_1_to_200_printable_characters(owner: httpx.AsyncClient) -> None:
    for wrong in ("", "k" * 201, "k\x7f"):
        refused = await owner.post("/api/v1/folders", json={"name": "Yellow"}, headers=key(wrong))
        assert refused.status_code == 422 and "Idempotency-Key" in refused.json()["message"]
    made = await owner.post("/api/v1/folders", json={"name": "Yellow"}, headers=key("k" * 200))
    assert made.status_code == 201


async def test_only_creating_calls_know_keys(house: House, owner: httpx.AsyncClient) -> None:
    item, _ = await house.add("Tides")
    for title in ("First", "Second"):
        changed = await owner.patch(
            f"/api/v1/items/{item}", json={"title": title}, headers=key("k")
        )
        assert changed.json()["title"] == title and REPLAYED not in changed.headers


async def test_people_without_an_account_do_not_share_keys(house: House) -> None:
    for name in ("Ada", "Eve"):
        _, secret = await house.app.members.invite(house.owner, Role.VIEWER)
        body = {"token": secret, "name": name, "email": f"{name.lower()}@example.org"}
        async with house.client() as nobody:
            response = await nobody.post("/api/v1/invitations/accept", json=body, headers=key("k"))
            assert response.status_code == 201, response.text
            assert response.json()["token"]


async def test_answers_to_people_with_a_jwt_are_deleted_with_them(house_with: OpenHouse) -> None:
    async with house_with(jwt_secret=SECRET) as house:
        await house.join("Ada")
        [ada] = [m for m in await house.app.members.all(house.owner) if m.name == "Ada"]
        claims = {"sub": ada.person_id, "org": house.owner.library_id, "exp": now().timestamp() + 9}
        async with house.client(token=jwt.encode(claims, SECRET, "HS256")) as client:
            made = await client.post("/api/entities", json=ENTITY, headers=key("k"))
            assert made.status_code == 201
        place = (house.owner.library_id, ada.person_id, "k", "another request")
        assert await house.app.store.idempotency.claim(*place) is not None
        await house.app.store.people.delete(ada.person_id)
        assert await house.app.store.idempotency.claim(*place) is None


# -- next pages

PAGED = {
    name: action
    for name, action in ACTIONS.items()
    if action.method == "GET" and {"page", "offset"} & action.input.model_fields.keys()
}


def test_lists_have_a_total_and_paged_ones_a_next_page() -> None:
    for action in ACTIONS.values():
        # The log of events is read on from a cursor, not counted.
        if action.name.startswith("list_") and action.route and action.name != "list_events":
            assert "total" in action.output.required, action.name
    for action in PAGED.values():
        assert {"total", "next"} <= action.output.properties.keys(), action.name


@pytest.mark.parametrize("action", PAGED.values(), ids=PAGED)
async def test_next_leads_through_all_pages(
    house: House, owner: httpx.AsyncClient, action: Action
) -> None:
    project = {"entity_type": "project", "title": "Harbour", "content": "The harbour."}
    of = {"project": (await owner.post("/api/entities", json=project)).json()["id"]}
    for number in range(5):
        await house.add(f"Item {number}")
        for path in ("/api/tasks", "/api/epics"):
            body = {"title": f"Work {number}", "content": f"Of {path} {number}.", **of}
            assert (await owner.post(path, json=body)).status_code == 201
        notes = {"content": f"We decided to paint pier {number}.", "persist": True, "review": True}
        assert (await owner.post("/api/v1/memory/reflect", json=notes)).is_success
        trashed, _ = await house.add(f"Old item {number}")
        assert (await owner.delete(f"/api/v1/items/{trashed}")).is_success
    size = {"per_page": 2} if "page" in action.input.model_fields else {"limit": 2}
    filters = {"project": of["project"]} if action.name == "list_tasks" else {}
    path = action.path.format(entity_id=of["project"])
    first = await owner.get(path, params=size | filters)
    answer, seen, pages = first.json(), list[str](), 1
    [entries] = [
        name
        for name, value in answer.items()
        if isinstance(value, list) and name not in ("relations", "cycles")
    ]
    while True:
        seen += [str(entry.get("id") or entry["public_id"]) for entry in answer[entries]]
        if answer["next"] is None:
            break
        assert len(answer[entries]) == 2
        answer, pages = (await owner.get(answer["next"])).json(), pages + 1
    assert len(seen) == len({*seen}) == answer["total"] > 2
    assert pages == -(-answer["total"] // 2)


async def test_next_keeps_filters_that_are_given_several_times(
    house: House, owner: httpx.AsyncClient
) -> None:
    for kind in ("episode", "idea", "claim"):
        body = {"title": f"A {kind}", "content": f"Of {kind}s & more.", "entity_type": kind}
        assert (await owner.post("/api/entities", json=body)).is_success
    query = [("entity_type", "idea"), ("entity_type", "claim"), ("per_page", "1"), ("q", "a")]
    first = (await owner.get("/api/entities", params=query)).json()
    second = (await owner.get(first["next"])).json()
    assert first["total"] == second["total"] == 2 and second["next"] is None
    kinds = [page["entities"][0]["entity_type"] for page in (first, second)]
    assert sorted(kinds) == ["claim", "idea"]


# -- RateLimit


async def test_answers_say_what_is_left_of_the_requests(house_with: OpenHouse) -> None:
    async with house_with(rate_requests_per_minute=4) as house, house.client("owner") as client:
        answers = [
            await client.get(path)
            for path in ("/api/v1/me", "/api/v1/items/none", "/api/nowhere", "/api/v1/items")
        ]
        assert [answer.status_code for answer in answers] == [200, 404, 404, 200]
        assert [answer.headers["RateLimit-Limit"] for answer in answers] == ["4"] * 4
        assert [answer.headers["RateLimit-Remaining"] for answer in answers] == list("3210")
        assert all(0 < int(answer.headers["RateLimit-Reset"]) <= 60 for answer in answers)
        refused = await client.get("/api/v1/me")
        assert (refused.status_code, refused.json()["error"]) == (429, "rate_limit_exceeded")
        assert refused.headers["RateLimit-Remaining"] == "0"
        assert int(refused.headers["Retry-After"]) == refused.json()["retry_after"]
        # agents have three times as many, counted apart
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        answer = await client.post("/mcp", json=message, headers={"Accept": "application/json"})
        assert (answer.headers["RateLimit-Limit"], answer.headers["RateLimit-Remaining"]) == (
            "12",
            "11",
        )


async def test_no_limit_no_headers(owner: httpx.AsyncClient) -> None:
    assert "RateLimit-Limit" not in (await owner.get("/api/v1/me")).headers


# -- who is asking


async def test_me_tells_person_library_token_and_limits(house_with: OpenHouse) -> None:
    limits = {"rate_reads_per_hour": 10, "rate_writes_per_hour": 5, "rate_deletes_per_hour": 3}
    async with house_with(**limits) as house, house.client("one_folder") as client:
        me = (await client.get("/api/v1/me")).json()
        assert me["person"]["id"] == house.owner.person_id
        assert me["person"]["role"] == "owner"
        assert me["library"]["id"] == house.owner.library_id
        assert me["library"]["name"]
        assert me["capabilities"] == ["read", "write"]
        assert me["token"]["name"] == "one"
        assert me["token"]["folders"] == [house.folders["Red"]]
        assert (me["token"]["kb_only"], me["token"]["revoked_at"]) == (False, None)
        assert "sk_" not in str(me)
        assert me["limits"].keys() == {bucket.name for bucket in BUCKETS}
        left = {name: (each["limit"], each["remaining"]) for name, each in me["limits"].items()}
        assert (left["reads"], left["writes"]) == ((10, 9), (5, 5))
        assert (left["deletes"], left["uploads"]) == ((3, 3), (3, 3))
        text = {"kind": "text", "title": "Fox", "text": "The quick brown fox jumps."}
        assert (await call_tool(client, "add_to_knowledge", text))["result"]
        again = (await client.get("/api/v1/me")).json()["limits"]
        assert (again["reads"]["remaining"], again["writes"]["remaining"]) == (8, 4)
        assert 0 < again["writes"]["reset"] <= 3600


async def test_me_without_limits_and_of_other_callers(house_with: OpenHouse) -> None:
    async with house_with(jwt_secret=SECRET) as house:
        async with house.client("viewer") as client:
            me = (await client.get("/api/v1/me")).json()
            assert (me["person"]["role"], me["capabilities"]) == ("viewer", ["read"])
            assert me["token"]["capabilities"] == ["read"]
            assert me["limits"]["reads"] == {"limit": None, "remaining": None, "reset": None}
        async with house.client("stranger") as client:
            me = (await client.get("/api/v1/me")).json()
            assert me["library"]["id"] == house.stranger.library_id
        claims = {"sub": house.owner.person_id, "org": house.owner.library_id}
        signed = jwt.encode(
            {**claims, "exp": int(now().timestamp()) + 60}, SECRET, algorithm="HS256"
        )
        async with house.client(token=signed) as client:
            me = (await client.get("/api/v1/me")).json()
            assert (me["token"], me["capabilities"]) == (None, ["read", "write"])
