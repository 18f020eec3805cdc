"""Every route and every tool, asked by everybody for everything. What is out of scope reads like what is not there."""

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from commonplace.core.entities.validation import NewEntity
from commonplace.core.memory.memories import Memo
from commonplace.core.memory.reflection import Notes
from commonplace.core.people.tokens import NewToken
from commonplace.interfaces.mcp.server import ALL_TOOLS, TOOLSETS
from commonplace.model import Caller, FullItem, Role, Subscription, new_id
from tests.interfaces.house import LONG_TEXT, House, call_tool, open_house, rpc

pytestmark = pytest.mark.anyio

# What there is, where it lies and whether it is in the KB; and who sees it.
ITEMS: dict[str, tuple[str | None, bool]] = {
    "red": ("Red", True),
    "blue": ("Blue", True),
    "green": ("Green", True),
    "loose": (None, True),
    "aside": ("Red", False),
    "theirs": ("Theirs", True),
}
SEES = {
    "owner": {"red", "blue", "green", "loose", "aside"},
    "reader": {"red", "blue", "green", "loose", "aside"},
    "one_folder": {"red", "aside"},
    "two_folder": {"red", "blue", "aside"},
    "kb_only": {"red", "blue", "green", "loose"},
    "viewer": {"red", "blue", "green", "loose", "aside"},
    "stranger": {"theirs"},
}
FOLDERS = {
    "owner": {"Red", "Blue", "Green"},
    "reader": {"Red", "Blue", "Green"},
    "one_folder": {"Red"},
    "two_folder": {"Red", "Blue"},
    "kb_only": {"Red", "Blue", "Green"},
    "viewer": {"Red", "Blue", "Green"},
    "stranger": {"Theirs"},
}
LOCKED_OUT = ("expired", "revoked", None)
WRITERS = {"owner", "one_folder", "two_folder", "kb_only", "stranger"}
RULERS = {"owner", "stranger"}  # who may write to a whole library
UNSCOPED = {"owner", "reader", "viewer", "stranger"}
READ, WRITE, RULE = frozenset(SEES), frozenset(WRITERS), frozenset(RULERS)
MISSING = (
    str(uuid.uuid4()),
    "z" * 12,
    "document_" + "z" * 12,
)  # an id of nothing, in every spelling

Answer = tuple[int, Any]
Call = Callable[[httpx.AsyncClient, House, str], Awaitable[Answer]]


@dataclass(frozen=True)
class Row:
    """How to ask, of what (an item, folder, token or job; None: of nothing in particular), and who may at all."""

    call: Call
    target: str | None = None
    allowed: frozenset[str] = READ


def rest(method: str, path: str, body: Any = None) -> Call:
    async def call(client: httpx.AsyncClient, house: House, target: str) -> Answer:
        filled = (
            {
                key: value.replace("{}", target) if isinstance(value, str) else value
                for key, value in body.items()
            }
            if body
            else None
        )
        response = await client.request(method, path.replace("{}", target), json=filled)
        return response.status_code, response.json()

    return call


def tool(name: str, **arguments: Any) -> Call:
    async def call(client: httpx.AsyncClient, house: House, target: str) -> Answer:
        answer = await call_tool(
            client,
            name,
            {
                key: value.replace("{}", target) if isinstance(value, str) else value
                for key, value in arguments.items()
            },
        )
        error = answer.get("error")
        if error is None:
            content = answer["result"]["structuredContent"]
            return 404 if content.get("error") == "not_found" else 200, content
        return {"not_found": 404, "capability_denied": 403, "invalid_request": 422}[
            error["data"]["error"]
        ], error

    return call


async def file_in_red(client: httpx.AsyncClient, house: House, target: str) -> Answer:
    own = "Theirs" if client.headers["X-Character"] == "stranger" else "Red"
    return await rest("POST", "/api/v1/items/{}/folders", {"folder_ids": [house.folders[own]]})(
        client, house, target
    )


async def take_out_of_red(client: httpx.AsyncClient, house: House, target: str) -> Answer:
    own = "Theirs" if client.headers["X-Character"] == "stranger" else "Red"
    status, body = await rest("DELETE", f"/api/v1/items/{{}}/folders/{house.folders[own]}")(
        client, house, target
    )
    there_but_elsewhere = body.get("message") == "The item is not in that folder"
    return (200, {}) if there_but_elsewhere else (status, body)


async def refresh(client: httpx.AsyncClient, house: House, target: str) -> Answer:
    status, body = await rest("POST", "/api/v1/items/{}/refresh")(client, house, target)
    seen_but_a_text = body.get("error") == "invalid_request"
    return (200, {}) if seen_but_a_text else (status, body)


async def link_to_itself(client: httpx.AsyncClient, house: House, target: str) -> Answer:
    status, body = await rest("POST", "/api/entities/{}/relations", {"to": "{}"})(
        client, house, target
    )
    seen_but_one_and_the_same = body.get("error") == "invalid_request"
    return (200, {}) if seen_but_one_and_the_same else (status, body)


async def unlink_from_itself(client: httpx.AsyncClient, house: House, target: str) -> Answer:
    status, body = await rest("DELETE", "/api/entities/{}/relations?to={}")(client, house, target)
    seen_but_not_joined = body.get("message") == "Relation not found"
    return (200, {}) if seen_but_not_joined else (status, body)


async def page(client: httpx.AsyncClient, house: House, target: str) -> Answer:
    response = await client.get(target)
    return response.status_code, {}


async def follow(client: httpx.AsyncClient, house: House, target: str) -> Answer:
    """An address of this machine, which is refused; but only to those who may ask at all."""
    status, body = await rest("POST", "/api/v1/feeds", {"url": "http://127.0.0.1/feed"})(
        client, house, target
    )
    return (201, {}) if body["error"] == "ingest_failed" else (status, body)


async def read_some(client: httpx.AsyncClient, house: House, target: str) -> Answer:
    response = await client.post("/api/v1/disks/batch", json={"ids": [target]})
    return 404 if response.json().get("not_found") else response.status_code, response.json()


async def change_entity(client: httpx.AsyncClient, house: House, target: str) -> Answer:
    status, body = await rest("PATCH", "/api/entities/{}", {"tags": ["x"]})(client, house, target)
    seen_but_a_document = body.get("message") == "Documents are changed with PATCH /api/v1/items"
    return (200, {}) if seen_but_a_document else (status, body)


def refused(call: Call, sentence: str) -> Call:
    """For what is refused, in these words, of something that is seen."""

    async def ask(client: httpx.AsyncClient, house: House, target: str) -> Answer:
        status, body = await call(client, house, target)
        return (200, {}) if sentence in body.get("message", "") else (status, body)

    return ask


def on_a_document(call: Call) -> Call:
    """For what is asked of tasks and epics."""
    return refused(call, "is a document, not a")


def without_project(path: str) -> Call:
    async def ask(client: httpx.AsyncClient, house: House, target: str) -> Answer:
        status, body = await rest("POST", path, ENTITY)(client, house, target)
        return (201, {}) if "require a project" in body["message"] else (status, body)

    return ask


FILE = {"filename": "notes.md", "content_type": "text/markdown", "size": 20}
TEXT = {"kind": "text", "title": "New", "text": "A new text of more than twenty characters."}
MEMORY = {"title": "New", "content": "The zebra grazes by the river."}
NOTES = {"content": "We decided to let the zebra graze by the river."}
ENTITY = {"title": "New", "content": "Something that was learnt."}
ROUTES: dict[tuple[str, str], Row] = {
    ("POST", "/api/v1/ingest"): Row(rest("POST", "/api/v1/ingest", TEXT), allowed=WRITE),
    ("POST", "/api/v1/uploads/signed-url"): Row(
        rest("POST", "/api/v1/uploads/signed-url", FILE), allowed=WRITE
    ),
    ("POST", "/api/v1/uploads/finalize"): Row(
        rest("POST", "/api/v1/uploads/finalize", {"upload_id": "{}"}), "upload", WRITE
    ),
    ("POST", "/api/v1/uploads/finalize-document"): Row(
        rest("POST", "/api/v1/uploads/finalize-document", {"upload_id": "{}"}), "upload", WRITE
    ),
    ("POST", "/api/v1/feeds"): Row(follow, allowed=WRITE),
    ("GET", "/api/v1/feeds"): Row(rest("GET", "/api/v1/feeds")),
    ("DELETE", "/api/v1/feeds/{feed_id}"): Row(rest("DELETE", "/api/v1/feeds/{}"), "feed", WRITE),
    ("GET", "/api/v1/items"): Row(rest("GET", "/api/v1/items")),
    ("GET", "/api/v1/items/{item_id}"): Row(rest("GET", "/api/v1/items/{}"), "item"),
    ("PATCH", "/api/v1/items/{item_id}"): Row(
        rest("PATCH", "/api/v1/items/{}", {"tags": ["x"]}), "item", WRITE
    ),
    ("DELETE", "/api/v1/items/{item_id}"): Row(rest("DELETE", "/api/v1/items/{}"), "item", WRITE),
    ("POST", "/api/v1/items/{item_id}/refresh"): Row(refresh, "item", WRITE),
    ("POST", "/api/v1/items/{item_id}/retry"): Row(
        rest("POST", "/api/v1/items/{}/retry"), "item", WRITE
    ),
    ("POST", "/api/v1/items/{item_id}/folders"): Row(file_in_red, "item", WRITE - {"one_folder"}),
    ("DELETE", "/api/v1/items/{item_id}/folders/{folder_id}"): Row(take_out_of_red, "item", WRITE),
    ("GET", "/api/v1/items/{item_id}/versions"): Row(
        rest("GET", "/api/v1/items/{}/versions"), "item"
    ),
    **{
        ("GET", f"/api/v1/items/{{item_id}}/versions/{{revision}}{what}"): Row(
            rest("GET", f"/api/v1/items/{{}}/versions/1{what}"), "rewritten"
        )
        for what in ("", "/diff")
    },
    ("GET", "/api/v1/disks"): Row(rest("GET", "/api/v1/disks")),
    ("GET", "/api/v1/disks/{item_id}"): Row(rest("GET", "/api/v1/disks/{}"), "item"),
    ("POST", "/api/v1/disks/batch"): Row(read_some, "item"),
    ("GET", "/api/v1/disks/{item_id}/preview"): Row(
        rest("GET", "/api/v1/disks/{}/preview"), "item"
    ),
    ("POST", "/api/v1/disks/{item_id}/publish"): Row(
        rest("POST", "/api/v1/disks/{}/publish"), "item", RULE
    ),
    ("DELETE", "/api/v1/disks/{item_id}/publish"): Row(
        rest("DELETE", "/api/v1/disks/{}/publish"), "item", RULE
    ),
    ("POST", "/api/v1/disks/{item_id}/save"): Row(
        rest("POST", "/api/v1/disks/{}/save"), "unpublished", RULE
    ),
    ("DELETE", "/api/v1/disks/{item_id}/save"): Row(
        rest("DELETE", "/api/v1/disks/{}/save"), "unpublished", RULE
    ),
    ("POST", "/api/v1/search"): Row(rest("POST", "/api/v1/search", {"query": "zebra"})),
    ("GET", "/api/v1/jobs/{job_id}"): Row(rest("GET", "/api/v1/jobs/{}"), "job"),
    ("POST", "/api/v1/jobs/{job_id}/retry"): Row(
        rest("POST", "/api/v1/jobs/{}/retry"), "job", WRITE
    ),
    ("GET", "/api/v1/folders"): Row(rest("GET", "/api/v1/folders")),
    ("POST", "/api/v1/folders"): Row(
        rest("POST", "/api/v1/folders", {"name": "New"}), allowed=RULE
    ),
    ("PATCH", "/api/v1/folders/{folder_id}"): Row(
        rest("PATCH", "/api/v1/folders/{}", {"name": "{}"}), "folder", RULE
    ),
    ("DELETE", "/api/v1/folders/{folder_id}"): Row(
        rest("DELETE", "/api/v1/folders/{}?cascade_items=true"), "folder", RULE
    ),
    ("POST", "/api/entities"): Row(rest("POST", "/api/entities?sync=true", ENTITY), allowed=WRITE),
    ("GET", "/api/entities"): Row(rest("GET", "/api/entities")),
    ("GET", "/api/entities/{item_id}"): Row(rest("GET", "/api/entities/{}"), "item"),
    ("PATCH", "/api/entities/{item_id}"): Row(change_entity, "item", WRITE),
    ("DELETE", "/api/entities/{item_id}"): Row(rest("DELETE", "/api/entities/{}"), "item", WRITE),
    ("GET", "/api/v1/tokens"): Row(rest("GET", "/api/v1/tokens"), allowed=RULE),
    ("POST", "/api/v1/tokens"): Row(rest("POST", "/api/v1/tokens", {"name": "New"}), allowed=RULE),
    ("DELETE", "/api/v1/tokens/{token_id}"): Row(
        rest("DELETE", "/api/v1/tokens/{}"), "token", RULE
    ),
    ("GET", "/api/tasks"): Row(rest("GET", "/api/tasks")),
    ("GET", "/api/tasks/next"): Row(rest("GET", "/api/tasks/next")),
    ("GET", "/api/epics"): Row(rest("GET", "/api/epics")),
    ("POST", "/api/tasks"): Row(without_project("/api/tasks"), allowed=WRITE),
    ("POST", "/api/epics"): Row(without_project("/api/epics"), allowed=WRITE),
    ("GET", "/api/tasks/{item_id}"): Row(on_a_document(rest("GET", "/api/tasks/{}")), "item"),
    ("GET", "/api/tasks/{item_id}/estimate"): Row(
        on_a_document(rest("GET", "/api/tasks/{}/estimate")), "item"
    ),
    ("GET", "/api/epics/{item_id}"): Row(on_a_document(rest("GET", "/api/epics/{}")), "item"),
    **{
        ("PATCH", f"/api/{kind}/{{item_id}}"): Row(
            on_a_document(rest("PATCH", f"/api/{kind}/{{}}", {"priority": "low"})), "item", WRITE
        )
        for kind in ("tasks", "epics")
    },
    **{
        ("POST", f"/api/tasks/{{item_id}}/{step}"): Row(
            on_a_document(
                rest(
                    "POST", f"/api/tasks/{{}}/{step}", {"reason": "why"} if step == "block" else {}
                )
            ),
            "item",
            WRITE,
        )
        for step in ("start", "block", "unblock", "review", "complete", "archive")
    },
    ("POST", "/api/tasks/{item_id}/notes"): Row(
        on_a_document(rest("POST", "/api/tasks/{}/notes", {"content": "Seen."})), "item", WRITE
    ),
    **{
        ("POST", f"/api/epics/{{item_id}}/{step}"): Row(
            on_a_document(rest("POST", f"/api/epics/{{}}/{step}", {})), "item", WRITE
        )
        for step in ("start", "complete", "archive")
    },
    **{
        ("POST", f"/api/entities/{{item_id}}/{step}"): Row(
            rest("POST", f"/api/entities/{{}}/{step}", {"reason": "why"}), "item", WRITE
        )
        for step in ("mark-wrong", "mark-stale")
    },
    ("POST", "/api/entities/{item_id}/restore"): Row(
        refused(rest("POST", "/api/entities/{}/restore", {}), "there is nothing to restore"),
        "item",
        WRITE,
    ),
    ("POST", "/api/entities/{item_id}/supersede"): Row(
        refused(
            rest("POST", "/api/entities/{}/supersede", {"reason": "why"}), "Name the replacement"
        ),
        "item",
        WRITE,
    ),
    ("GET", "/api/v1/members"): Row(rest("GET", "/api/v1/members"), allowed=frozenset(UNSCOPED)),
    ("PATCH", "/api/v1/members/{person_id}"): Row(
        rest("PATCH", "/api/v1/members/{}", {"role": "admin"}), "member", RULE
    ),
    ("DELETE", "/api/v1/members/{person_id}"): Row(
        rest("DELETE", "/api/v1/members/{}"), "member", RULE
    ),
    ("POST", "/api/v1/invitations"): Row(
        rest("POST", "/api/v1/invitations", {"role": "viewer"}), allowed=RULE
    ),
    ("GET", "/api/v1/invitations"): Row(rest("GET", "/api/v1/invitations"), allowed=RULE),
    ("DELETE", "/api/v1/invitations/{invitation_id}"): Row(
        rest("DELETE", "/api/v1/invitations/{}"), "invitation", RULE
    ),
    ("GET", "/api/v1/tokens/{token_id}/activity"): Row(
        rest("GET", "/api/v1/tokens/{}/activity"), "token", RULE
    ),
    ("GET", "/api/explore"): Row(rest("GET", "/api/explore")),
    ("GET", "/api/entities/{entity_id}/relations"): Row(
        rest("GET", "/api/entities/{}/relations"), "item"
    ),
    ("POST", "/api/entities/{entity_id}/relations"): Row(link_to_itself, "item", WRITE),
    ("DELETE", "/api/entities/{entity_id}/relations"): Row(unlink_from_itself, "item", WRITE),
    ("POST", "/api/v1/memory/remember"): Row(
        rest("POST", "/api/v1/memory/remember", MEMORY), allowed=WRITE
    ),
    ("POST", "/api/v1/memory/reflect"): Row(
        rest("POST", "/api/v1/memory/reflect", NOTES | {"persist": True}), allowed=WRITE
    ),
    ("POST", "/api/v1/memory/context"): Row(
        rest("POST", "/api/v1/memory/context", {"goal": "zebra"})
    ),
    ("GET", "/api/v1/memory/captures/{item_id}"): Row(
        rest("GET", "/api/v1/memory/captures/{}"), "memory"
    ),
    ("GET", "/api/v1/memory/candidates"): Row(rest("GET", "/api/v1/memory/candidates")),
    ("GET", "/api/v1/memory/candidates/{candidate_id}"): Row(
        rest("GET", "/api/v1/memory/candidates/{}"), "candidate"
    ),
    ("PATCH", "/api/v1/memory/candidates/{candidate_id}"): Row(
        rest("PATCH", "/api/v1/memory/candidates/{}", {"title": "Better"}), "candidate", WRITE
    ),
    ("POST", "/api/v1/memory/candidates/{candidate_id}/accept"): Row(
        rest("POST", "/api/v1/memory/candidates/{}/accept"), "candidate", WRITE
    ),
    ("POST", "/api/v1/memory/candidates/{candidate_id}/reject"): Row(
        rest("POST", "/api/v1/memory/candidates/{}/reject"), "candidate", WRITE
    ),
}
INVITED = {
    ("POST", "/api/v1/invitations/accept")
}  # the invitation is the credential: see test_members.py
SIGNED = {
    (
        "PUT",
        "/api/v1/uploads/{upload_id}/content",
    ),  # the address is the credential: see test_uploads.py
    ("POST", "/api/v1/webhooks/transcription/{provider}"),
}  # a secret is: see test_transcription_services.py
OPEN = {("GET", path) for path in ("/healthz", "/readyz", "/openapi.json", "/docs")}
METRICS = {("GET", "/metrics")}  # of the server, not of a library: see test_rest_access.py
MCP = {("*", path) for path in ("/mcp", "/api/mcp", *(f"/mcp/{door}" for door in TOOLSETS))}
TOOLS: dict[str, Row] = {
    "search_knowledge_base": Row(tool("search_knowledge_base", query="zebra")),
    "add_to_knowledge": Row(tool("add_to_knowledge", **TEXT), allowed=WRITE),
    "get_item": Row(tool("get_item", item_id="{}"), "item"),
    "list_recent": Row(tool("list_recent", limit=100)),
    "search_knowledge": Row(tool("search_knowledge", query="zebra")),
    "get_disk": Row(tool("get_disk", disk_id="{}"), "item"),
    "list_disks": Row(tool("list_disks", limit=100)),
    "manage": Row(
        on_a_document(tool("manage", action="start_task", entity_id="{}")), "item", WRITE
    ),
    "explore": Row(tool("explore", mode="related", entity_id="{}"), "item"),
    "context": Row(tool("context", goal="zebra")),
    "remember": Row(tool("remember", **MEMORY), allowed=WRITE),
    "reflect": Row(tool("reflect", **NOTES)),
    "add": Row(tool("add", **ENTITY), allowed=WRITE),
    "search": Row(tool("search", query="zebra")),
    "fetch": Row(tool("fetch", id="{}"), "item"),
}
ROWS = {f"{method} {path}": row for (method, path), row in ROUTES.items()} | TOOLS


@pytest.fixture(scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    async with open_house(tmp_path_factory.mktemp("matrix") / "data") as opened:
        yield opened


def client_of(house: House, character: str | None) -> httpx.AsyncClient:
    client = house.client(character)
    client.headers["X-Character"] = str(character)
    return client


async def make(house: House, what: str, which: str) -> tuple[str, str]:
    """A new thing of that kind: (its id, the id of the item it hangs on)."""
    by = house.stranger if which == "theirs" else house.owner
    folder, in_kb = ITEMS[which]
    name = f"{which} {uuid.uuid4()}"
    if what == "folder":
        return (await house.app.folders.create(by, name)).id, ""
    if what == "upload":
        return (await house.app.uploads.announce(by, name, "text/markdown", 20))[0].id, ""
    if what == "feed":
        feed = Subscription(
            new_id(), by.library_id, f"https://example.org/{name}", name, by.person_id
        )
        return (await house.app.store.feeds.create(feed)).id, ""
    if what in ("invitation", "member"):
        invitation, secret = await house.app.members.invite(by, Role.VIEWER)
        if what == "invitation":
            return invitation.id, ""
        return (
            await house.app.members.accept(None, secret, name, f"{uuid.uuid4()}@example.org")
        ).person_id, ""
    if what == "candidate":
        notes = Notes(f"{NOTES['content']} {name}", name, persist=True, review=True)
        [queued] = (await house.app.reflection.reflect(by, notes)).candidates
        return str(queued.queued and queued.queued.id), ""
    if what in ("memory", "rewritten"):
        kept = await house.app.memory.remember(by, Memo(NewEntity(name, MEMORY["content"])))
        if what == "rewritten":
            await house.app.entities.update(by, kept.item.id, {"content": "The zebra has left."})
        if folder:
            await house.app.folders.file(by, kept.item.id, [house.folders[folder]])
        if not in_kb:
            await house.app.library.update(by, kept.item.id, {"in_kb": False})
        return (kept.item.id,) * 2
    if what == "token":
        return (await house.app.people.create_token(by, NewToken(name)))[0].id, ""
    if what in ("item", "unpublished"):
        return ((await house.add(name, folder=folder, by=by, in_kb=in_kb))[0],) * 2
    # A job hangs on a text that is too long to be done with in the call.
    item, job = await house.add(name, folder=folder, by=by, text=f"{name}\n\n{LONG_TEXT}")
    if not in_kb:
        await house.app.library.update(by, item, {"in_kb": False})
    return str(job), item


@dataclass(frozen=True)
class Thing:
    names: list[str]
    by: Caller  # who has it
    before: FullItem | None  # the item it hangs on

    @classmethod
    async def made(cls, house: House, what: str, which: str) -> "Thing":
        by = house.stranger if which == "theirs" else house.owner
        target, item = await make(house, what, which)
        before = await house.app.library.read(by, item) if item else None
        names = (
            [before.item.id, before.item.public_id, before.item.entity_id]
            if before and what == "item"
            else [target]
        )
        return cls(names, by, before)

    async def stands(self, house: House) -> bool:
        return (
            self.before is None
            or await house.app.library.read(self.by, self.before.item.id) == self.before
        )


def sees(character: str, what: str, which: str) -> bool:
    if what == "upload":
        return False  # whoever announced it, and nobody else
    if what == "unpublished":
        return False  # to be saved by others
    if what == "feed" and character in ("one_folder", "two_folder", "kb_only"):
        return False  # only those that they follow themselves
    if what == "candidate" and character in ("one_folder", "two_folder", "kb_only"):
        return False  # only those that they queued themselves
    if what in ("folder", "token", "feed", "member", "invitation", "candidate"):
        return (which == "theirs") == (character == "stranger")
    return which in SEES[character]


# -- nothing is left out of the matrix


async def test_every_route_and_every_tool_has_a_row(house: House) -> None:
    routes = {
        (method, route.path)
        for route in house.asgi.api.routes  # type: ignore[attr-defined]
        for method in (getattr(route, "methods", None) or {"*"}) - {"HEAD"}
    }
    routes |= {("*", path) for path in house.asgi.endpoints}
    assert routes == set(ROUTES) | INVITED | SIGNED | OPEN | METRICS | MCP
    assert {tool.name for tool in ALL_TOOLS} == set(TOOLS)


# -- who gets in at all


@pytest.mark.parametrize("character", LOCKED_OUT)
async def test_no_valid_token_no_entry_anywhere(house: House, character: str | None) -> None:
    async with client_of(house, character) as client:
        for method, path in [*ROUTES, *SIGNED, *METRICS, *MCP, ("GET", "/nowhere")]:
            response = await client.request("POST" if method == "*" else method, path, json={})
            assert (response.status_code, response.json()["error"]) == (401, "unauthorized"), (
                method,
                path,
            )
        for method, path in OPEN:
            assert (await client.request(method, path)).status_code == 200


@pytest.mark.parametrize("name", ROWS)
async def test_capability_and_rule_come_before_everything(house: House, name: str) -> None:
    row = ROWS[name]
    for character in SEES:
        async with client_of(house, character) as client:
            status, body = await row.call(client, house, str(uuid.uuid4()))
            if character in row.allowed:
                assert status in (200, 201, 404), (character, body)
                assert (status == 404) == (row.target is not None), (character, body)
            else:
                assert status == 403, (character, body)
                error = body.get("data", body)
                if character not in WRITERS:
                    assert (error["error"], error["required"], error["have"]) == (
                        "capability_denied",
                        "write",
                        ["read"],
                    )
                else:
                    assert error["error"] == "forbidden_scope"
    await tidy(house)


async def tidy(house: House) -> None:
    for by in (house.owner, house.stranger):
        for folder in await house.app.folders.list_folders(by):
            if folder.name == "New":
                await house.app.folders.delete(by, folder.id)


@pytest.mark.parametrize("character", SEES)
async def test_a_tool_is_listed_to_those_who_may_call_it_whatever_they_ask_of_it(
    house: House, character: str
) -> None:
    """`manage` has actions that only read; who may not write is not shown it, and is refused these too."""
    project = (
        await house.app.entities.add(house.owner, NewEntity("Plans", "Plans.", "project"))
    ).item.entity_id
    async with client_of(house, character) as client:
        listed = {tool["name"] for tool in (await rpc(client, "tools/list"))["result"]["tools"]}
        assert listed == {name for name, row in TOOLS.items() if character in row.allowed}
        for action in ("suggest", "prioritize", "detect_cycles"):
            status, body = await tool("manage", action=action)(client, house, "")
            assert status == (200 if character in WRITERS else 403), body
        assert (await tool("manage", action="estimate", entity_id=project)(client, house, ""))[
            0
        ] == (
            403
            if character not in WRITERS
            else 422
            if character == "owner" or character == "kb_only"
            else 404
        )


# -- by id, in every spelling


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.target])
async def test_out_of_scope_reads_like_not_there_and_stays_as_it_was(
    house: House, name: str
) -> None:
    row, things = ROWS[name], dict[str, Thing]()
    assert row.target is not None
    for character in SEES:
        async with client_of(house, character) as client:
            for spelling, missing in enumerate(MISSING if row.target == "item" else MISSING[:1]):
                expected = await row.call(client, house, missing)
                for which in ITEMS:
                    thing = things[which] = things.get(which) or await Thing.made(
                        house, row.target, which
                    )
                    spelled = thing.names[spelling]
                    status, body = await row.call(client, house, spelled)
                    if character in row.allowed and sees(character, row.target, which):
                        assert status == 200, (character, which, body)
                        if row.allowed != READ:
                            del things[
                                which
                            ]  # it may have changed; whoever comes next asks for a new one
                    else:
                        assert (status, str(body).replace(spelled, missing)) == (
                            expected[0],
                            str(expected[1]),
                        ), (character, which)
                        assert status == (404 if character in row.allowed else 403)
                        assert await thing.stands(house)


# -- by list, by count, by search


@pytest.fixture(scope="module")
async def stocked(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[tuple[House, dict[str, str]]]:
    """A house with exactly one item of each kind: its title is its name."""
    async with open_house(tmp_path_factory.mktemp("stocked") / "data") as opened:
        yield (
            opened,
            {
                (
                    await opened.add(
                        name,
                        folder=folder,
                        in_kb=in_kb,
                        by=opened.stranger if name == "theirs" else None,
                    )
                )[0]: name
                for name, (folder, in_kb) in ITEMS.items()
            },
        )


@pytest.mark.parametrize("character", SEES)
async def test_lists_and_counts_hold_what_is_in_scope(
    stocked: tuple[House, dict[str, str]], character: str
) -> None:
    house, names = stocked
    async with client_of(house, character) as client:
        everything = (await client.get("/api/v1/items")).json()
        assert {names[item["id"]] for item in everything["items"]} == SEES[character]
        assert everything["total"] == len(SEES[character])
        recent = await call_tool(client, "list_recent", {"limit": 100})
        assert {
            names[item["id"]] for item in recent["result"]["structuredContent"]["items"]
        } == SEES[character]
        text = recent["result"]["content"][0]["text"]
        assert all((f" {name} (" in text) == (name in SEES[character]) for name in ITEMS)
        for folder, folder_id in house.folders.items():
            inside = {
                name
                for name in SEES[character]
                if ITEMS[name][0] == folder and folder in FOLDERS[character]
            }
            listed = (await client.get("/api/v1/items", params={"folder_id": folder_id})).json()
            assert ({names[item["id"]] for item in listed["items"]}, listed["total"]) == (
                inside,
                len(inside),
            )
        entities = (await client.get("/api/entities")).json()
        assert {names[entity["item_id"]] for entity in entities["entities"]} == SEES[character]
        assert entities["total"] == len(SEES[character])
        folders = (await client.get("/api/v1/folders")).json()["folders"]
        assert {folder["name"] for folder in folders} == FOLDERS[character]
        assert {folder["name"]: folder["item_count"] for folder in folders} == {
            folder: sum(ITEMS[name][0] == folder for name in SEES[character])
            for folder in FOLDERS[character]
        }


@pytest.mark.parametrize("mode", ["semantic", "keyword", "hybrid"])
@pytest.mark.parametrize("character", SEES)
async def test_search_finds_what_is_in_scope_and_in_the_kb(
    stocked: tuple[House, dict[str, str]], character: str, mode: str
) -> None:
    house, names = stocked
    expected = {name for name in SEES[character] if ITEMS[name][1]}
    async with client_of(house, character) as client:
        request = {"query": "zebra river", "mode": mode, "limit": 20}
        for hits in (
            (await client.post("/api/v1/search", json=request)).json()["hits"],
            (await call_tool(client, "search_knowledge_base", request))["result"][
                "structuredContent"
            ]["hits"],
        ):
            assert {names[hit["item_id"]] for hit in hits} == expected
        found = (await call_tool(client, "search", {"query": "zebra river", "limit": 50}))[
            "result"
        ]["structuredContent"]
        assert ({result["title"] for result in found["results"]}, found["total"]) == (
            expected,
            len(expected),
        )


async def test_a_folder_out_of_scope_is_not_told_of_an_item_in_scope(house: House) -> None:
    item, _ = await house.add("Both", folder="Red")
    await house.app.folders.file(house.owner, item, [house.folders["Green"]])
    async with client_of(house, "one_folder") as client:
        full = (await client.get(f"/api/v1/items/{item}")).json()
        assert [folder["name"] for folder in full["folders"]] == ["Red"]
        assert full["folder_ids"] == [house.folders["Red"]]
        green = await client.get("/api/v1/items", params={"folder_id": house.folders["Green"]})
        nowhere = await client.get("/api/v1/items", params={"folder_id": str(uuid.uuid4())})
        assert green.json() == nowhere.json()


# -- by attach


async def test_nothing_is_attached_across_scopes_or_libraries(house: House) -> None:
    red, _ = await house.add("Mine", folder="Red")
    green, _ = await house.add("Greens", folder="Green")
    theirs, _ = await house.add("Not mine", folder="Theirs", by=house.stranger)
    attempts = [
        ("owner", theirs, "Red", 404),
        ("owner", red, "Theirs", 404),
        ("stranger", red, "Theirs", 404),
        ("stranger", theirs, "Red", 404),
        ("two_folder", red, "Green", 403),
        ("two_folder", green, "Red", 404),
        ("two_folder", red, "Theirs", 403),
        ("one_folder", green, "Red", 403),
        ("reader", red, "Blue", 403),
    ]
    for character, item, folder, status in attempts:
        async with client_of(house, character) as client:
            response = await client.post(
                f"/api/v1/items/{item}/folders", json={"folder_ids": [house.folders[folder]]}
            )
            assert response.status_code == status, (character, folder, response.text)
    for by, item, folder in (
        (house.owner, red, "Red"),
        (house.owner, green, "Green"),
        (house.stranger, theirs, "Theirs"),
    ):
        assert [f.name for f in (await house.app.library.read(by, item)).folders] == [folder]


# -- tools


@pytest.mark.parametrize("path", sorted(path for _, path in MCP))
async def test_a_token_is_shown_the_tools_it_may_call(house: House, path: str) -> None:
    for character in SEES:
        async with client_of(house, character) as client:
            shown = {
                tool["name"]
                for tool in (await rpc(client, "tools/list", path=path))["result"]["tools"]
            }
            door = {tool.name for tool in TOOLSETS.get(path.removeprefix("/mcp/"), ALL_TOOLS)}
            assert shown == {
                name for name, row in TOOLS.items() if character in row.allowed and name in door
            }
