"""Every action, over REST, as a tool and as an action of `manage`, asked by everybody for everything.

Out of scope reads like not there.
"""

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from commonplace.core.entities.validation import NewEntity
from commonplace.core.memory.memories import Memo
from commonplace.core.memory.reflection import Notes
from commonplace.core.people.authorization import MCP_PATHS, Requirement
from commonplace.core.people.tokens import NewToken
from commonplace.interfaces.actions.action import Action
from commonplace.interfaces.actions.fields import Input, Patch
from commonplace.interfaces.actions.registry import ACTIONS
from commonplace.interfaces.http.gate import DOCS
from commonplace.interfaces.mcp.server import ALL_TOOLS, ENDPOINTS
from commonplace.interfaces.mcp.tools import MANAGED
from commonplace.model import (
    Caller,
    Capability,
    Crawl,
    FullItem,
    Json,
    Role,
    Subscription,
    Webhook,
    new_id,
)
from tests.interfaces.house import ADDRESS, LONG_TEXT, House, call_tool, open_house, rpc
from tests.interfaces.oauth_flow import connected

pytestmark = pytest.mark.anyio

# The items, with their folder and whether they are in the KB; and who sees them.
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
    "oauth_grant": {"red", "aside"},
    "kb_only": {"red", "blue", "green", "loose"},
    "viewer": {"red", "blue", "green", "loose", "aside"},
    "stranger": {"theirs"},
}
FOLDERS = {
    "owner": {"Red", "Blue", "Green"},
    "reader": {"Red", "Blue", "Green"},
    "one_folder": {"Red"},
    "two_folder": {"Red", "Blue"},
    "oauth_grant": {"Red"},
    "kb_only": {"Red", "Blue", "Green"},
    "viewer": {"Red", "Blue", "Green"},
    "stranger": {"Theirs"},
}
LOCKED_OUT = ("expired", "revoked", None)
WRITERS = {"owner", "one_folder", "two_folder", "oauth_grant", "kb_only", "stranger"}
OF_FOLDERS = ("one_folder", "two_folder", "oauth_grant")
UNSCOPED = {"owner", "reader", "viewer", "stranger"}
READ, WRITE = frozenset(SEES), frozenset(WRITERS)
MISSING = (
    str(uuid.uuid4()),
    "z" * 12,
    "document_" + "z" * 12,
)  # an id of nothing, in every spelling

# What the actions need, apart from what the core declares: everything but GET writes, except for
POSTS_THAT_READ = {"search", "search_items", "get_disks", "context", "ask"}
# and these need a token of the whole library, or are for those who manage its members.
WHOLE_LIBRARY = {
    *("create_folder", "update_folder", "delete_folder"),
    *("publish_disk", "unpublish_disk", "save_disk", "unsave_disk"),
    *("delete_trashed_item", "empty_trash"),
    *("list_tokens", "create_token", "get_token", "revoke_token", "list_token_activity"),
}
OF_ADMINS = {
    *("change_role", "remove_member", "invite_member", "list_invitations", "withdraw_invitation"),
}
UNDECLARED = {"reflect", "accept_invitation"}  # their methods decide by what is asked

# Kinds of targets, by the field that names one; and by action where it has to be a special one.
TARGETS = {
    **dict.fromkeys(("item_id", "entity_id", "disk_id", "id", "ids"), "item"),
    "folder_id": "folder",
    "token_id": "token",
    "feed_id": "feed",
    **dict.fromkeys(("crawl_id", "source_id"), "crawl"),
    "person_id": "member",
    "invitation_id": "invitation",
    "candidate_id": "candidate",
    "job_id": "job",
    "upload_id": "upload",
    "webhook_id": "webhook",
}
SPECIAL_TARGETS = {
    **dict.fromkeys(("get_version", "compare_version", "restore_version"), "rewritten"),
    **dict.fromkeys(("save_disk", "unsave_disk"), "unpublished"),
    **dict.fromkeys(("restore_item", "delete_trashed_item"), "trashed"),
    "get_capture": "memory",
}
OF_ITEMS = ("item", "trashed")  # which are named by their ids in each spelling

# Values of required fields, and of the first one that a PATCH takes. {}: the target; {own}: a
# folder that the character may use, if anyone.
NOTES = "We decided to let the zebra graze by the river."
MEMORY = "The zebra grazes by the river."
VALUES: Json = {
    "content": MEMORY,
    "content_type": "text/markdown",
    "filename": "notes.md",
    "folder_ids": ["{own}"],
    "goal": "zebra",
    "ids": ["{}"],
    "kind": "idea",
    "name": "New {}",
    "query": "zebra",
    "reason": "why",
    "revision": 1,
    "role": "admin",
    "size": 20,
    "title": "New",
    "to": "{}",
    "url": "http://127.0.0.1/feed",
}
MORE: dict[str, Json] = {
    "add_entity": {"sync": True},
    "delete_folder": {"cascade_items": True},
    "explore": {"mode": "related", "entity_id": "{}"},
    "reflect": {"content": NOTES, "persist": True},
    "unfile_item": {"folder_id": "{own}"},
}
# Refusals that only those hear who see the target, or may call it at all: they count as success.
SEEN = {
    "create_webhook": "private",
    "add_epic": "require a project",
    "add_task": "require a project",
    "follow_feed": "private",
    "link": "cannot be linked to itself",
    "refresh": "Only web pages and documents can be refreshed",
    "refresh_item": "Only web pages and documents can be refreshed",
    "restore": "there is nothing to restore",
    "supersede": "Name the replacement",
    "unfile_item": "The item is not in that folder",
    "unlink": "Relation not found",
    "update_entity": "Documents are changed with PATCH /api/v1/items",
}
OF_WORK = "is a document, not a"  # what is asked of tasks and epics

Answer = tuple[int, Any]
Call = Callable[[httpx.AsyncClient, House, str], Awaitable[Answer]]


@dataclass(frozen=True)
class Row:
    """How to ask, of what (an item, folder, token or job; None: of nothing in particular), and who may at all."""

    call: Call
    target: str | None = None
    allowed: frozenset[str] = READ


def arguments_of(action: Action, shape: type[Input]) -> Json:
    """Return the least that a valid call has."""
    names = shape.model_json_schema().get("required", [])
    if issubclass(shape, Patch) and action.method == "PATCH":
        names = [next(iter(shape.model_fields)), *names]
    given = {name: VALUES.get(name, "{}") for name in names}
    return given | (action.example or {}) | MORE.get(action.name, {})


def fill(value: Any, target: str, own: str) -> Any:
    if isinstance(value, dict):
        return {name: fill(each, target, own) for name, each in value.items()}
    if isinstance(value, list):
        return [fill(each, target, own) for each in value]
    return value.replace("{own}", own).replace("{}", target) if isinstance(value, str) else value


def own_folder(client: httpx.AsyncClient, house: House) -> str:
    return house.folders["Theirs" if client.headers["X-Character"] == "stranger" else "Red"]


def rest(action: Action, arguments: Json) -> Call:
    async def call(client: httpx.AsyncClient, house: House, target: str) -> Answer:
        given = fill(arguments, target, own_folder(client, house))
        path = action.path.format(**given)
        given = {name: each for name, each in given.items() if name not in action.path_fields}
        in_query = action.query if action.method in ("POST", "PATCH") else given
        response = await client.request(
            action.method,
            path,
            params={name: each for name, each in given.items() if name in in_query},
            json={name: each for name, each in given.items() if name not in in_query} or None,
        )
        return response.status_code, response.json()

    return call


def tool(name: str, **arguments: Any) -> Call:
    async def call(client: httpx.AsyncClient, house: House, target: str) -> Answer:
        given = fill(arguments, target, own_folder(client, house))
        answer = await call_tool(client, name, given)
        error = answer.get("error")
        if error is None:
            content = answer["result"]["structuredContent"]
            return 404 if content.get("error") == "not_found" else 200, content
        return {"not_found": 404, "capability_denied": 403, "invalid_request": 422}[
            error["data"]["error"]
        ], error

    return call


def as_tool(action: Action, arguments: Json) -> Call:
    return tool(action.name, **arguments)


def managed(action: Action, arguments: Json) -> Call:
    own = {"entity_id": arguments["entity_id"]} if "entity_id" in arguments else {}
    data = {name: value for name, value in arguments.items() if name not in own}
    return tool("manage", action=action.name, data=data, **own)


def refused(call: Call, sentence: str) -> Call:
    """For what is refused, in these words, of something that is seen."""

    async def ask(client: httpx.AsyncClient, house: House, target: str) -> Answer:
        status, body = await call(client, house, target)
        return (200, {}) if sentence in body.get("message", "") else (status, body)

    return ask


def some_missing(call: Call) -> Call:
    """For what tells of several things which are not there."""

    async def ask(client: httpx.AsyncClient, house: House, target: str) -> Answer:
        status, body = await call(client, house, target)
        return 404 if body.get("not_found") else status, body

    return ask


def allowed_to(action: Action) -> frozenset[str]:
    if action.needs is None:
        return WRITE  # `reflect` with persist
    if action.name == "file_item":
        return WRITE - {"one_folder", "oauth_grant"}
    who = WRITE if action.needs.capability is Capability.WRITE else READ
    return who if action.needs.requirement is Requirement.NONE else who & UNSCOPED


def row_of(action: Action, call: Call, arguments: Json, allowed: frozenset[str]) -> Row:
    if sentence := SEEN.get(action.name, OF_WORK if action.path.startswith(WORK) else ""):
        call = refused(call, sentence)
    if action.name == "get_disks":
        call = some_missing(call)
    named = [TARGETS[name] for name in [*action.path_fields, *arguments] if name in TARGETS]
    target = SPECIAL_TARGETS.get(action.name, named[0] if named else None)
    return Row(call, target, allowed)


def rest_row(action: Action) -> Row:
    arguments = arguments_of(action, action.input)
    return row_of(action, rest(action, arguments), arguments, allowed_to(action))


def tool_row(action: Action) -> Row:
    assert action.tool is not None
    arguments = arguments_of(action, action.tool.input or action.input)
    if action.name == "reflect":
        return Row(tool("reflect", content=NOTES))
    return row_of(action, as_tool(action, arguments), arguments, allowed_to(action))


def manage_row(action: Action) -> Row:
    """Whoever may not write is refused every action of `manage`, also those that only read."""
    arguments = arguments_of(action, action.input)
    return row_of(action, managed(action, arguments), arguments, WRITE)


WORK = ("/api/tasks/{", "/api/epics/{")
ROUTES = {
    (action.method, action.path): rest_row(action)
    for action in ACTIONS.values()
    if action.route and action.name != "accept_invitation"
}
TOOLS = {action.name: tool_row(action) for action in ACTIONS.values() if action.tool}
TOOLS["manage"] = manage_row(ACTIONS["start_task"])
MANAGE = {f"manage {name}": manage_row(action) for name, action in MANAGED.items()}
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
OPEN = {("GET", path) for path in ("/healthz", "/readyz", *DOCS)}
OAUTH = {  # metadata for all, and what a client's code or token is the credential of: test_oauth.py
    ("GET", "/.well-known/oauth-authorization-server"),
    *(("GET", f"/.well-known/oauth-protected-resource{path}") for path in ("", *MCP_PATHS)),
    *(("POST", f"/oauth/{name}") for name in ("token", "register", "revoke")),
}
FILES = {  # see test_saved_pages.py, test_pictures.py
    ("GET", "/api/v1/items/{item_id}/page"),
    ("GET", "/api/v1/items/{item_id}/thumbnail"),
}
METRICS = {("GET", "/metrics")}  # of the server, not of a library: see test_rest_access.py
MCP = {("*", path) for path in ("/mcp", "/api/mcp", *(f"/mcp/{name}" for name in ENDPOINTS))}
ROWS = {
    **{f"{method} {path}": row for (method, path), row in ROUTES.items()},
    "GET /api/explore, from nowhere": Row(rest(ACTIONS["explore"], {})),
    "DELETE /api/v1/items/{item_id}, for good": Row(
        rest(ACTIONS["delete_item"], {"item_id": "{}", "permanent": True}), "item", WRITE & UNSCOPED
    ),
    **TOOLS,
    **MANAGE,
}


@pytest.fixture(scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    async with open_house(tmp_path_factory.mktemp("matrix") / "data") as opened:
        await give_a_grant(opened)
        yield opened


async def give_a_grant(house: House) -> None:
    """Connect a client with OAuth to one folder, for REST too."""
    red = {"sees": "folders", "folder": house.folders["Red"]}
    house.tokens["oauth_grant"] = (await connected(house, resource=ADDRESS, **red)).access


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
    if what == "crawl":
        crawl = Crawl(new_id(), by.library_id, f"http://127.0.0.1/{name}", name, by.person_id)
        return (await house.app.store.crawls.begin(crawl)).id, ""
    if what == "webhook":
        hook = Webhook(new_id(), by.library_id, by.person_id, None, "http://127.0.0.1/", (), "")
        return (await house.app.store.webhooks.create(hook)).id, ""
    if what in ("invitation", "member"):
        invitation, secret = await house.app.members.invite(by, Role.VIEWER)
        if what == "invitation":
            return invitation.id, ""
        return (
            await house.app.members.accept(None, secret, name, f"{uuid.uuid4()}@example.org")
        ).person_id, ""
    if what == "candidate":
        notes = Notes(f"{NOTES} {name}", name, persist=True, review=True)
        [queued] = (await house.app.reflection.reflect(by, notes)).candidates
        return str(queued.queued and queued.queued.id), ""
    if what in ("memory", "rewritten"):
        kept = await house.app.memory.remember(by, Memo(NewEntity(name, MEMORY)))
        if what == "rewritten":
            await house.app.entities.update(by, kept.item.id, {"content": "The zebra has left."})
        if folder:
            await house.app.folders.file(by, kept.item.id, [house.folders[folder]])
        if not in_kb:
            await house.app.library.update(by, kept.item.id, {"in_kb": False})
        return (kept.item.id,) * 2
    if what == "token":
        return (await house.app.people.create_token(by, NewToken(name)))[0].id, ""
    if what in ("item", "unpublished", "trashed"):
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
    trashed: bool = False

    @classmethod
    async def made(cls, house: House, what: str, which: str) -> "Thing":
        by = house.stranger if which == "theirs" else house.owner
        target, item = await make(house, what, which)
        before = await house.app.library.read(by, item) if item else None
        names = (
            [before.item.id, before.item.public_id, before.item.entity_id]
            if before and what in OF_ITEMS
            else [target]
        )
        if what == "trashed":
            await house.app.library.delete(by, target)
        return cls(names, by, before, what == "trashed")

    async def stands(self, house: House) -> bool:
        if self.before and self.trashed:
            found, _ = await house.app.trash.page(self.by)
            return self.before.item.id in {entry.id for entry in found}
        return (
            self.before is None
            or await house.app.library.read(self.by, self.before.item.id) == self.before
        )


def sees(character: str, what: str, which: str) -> bool:
    if what == "upload":
        return False  # whoever announced it, and nobody else
    if what == "unpublished":
        return False  # to be saved by others
    if what == "webhook" and character in ("reader", "viewer", *OF_FOLDERS, "kb_only"):
        return False  # only those that they created themselves
    if what in ("feed", "crawl") and character in (*OF_FOLDERS, "kb_only"):
        return False  # only those that they follow themselves
    if what == "candidate" and character in (*OF_FOLDERS, "kb_only"):
        return False  # only those that they queued themselves
    if what == "folder" and character in OF_FOLDERS:
        return False  # a new one is in the scope of no token
    if what in ("folder", "token", "feed", "crawl", "webhook", "member", "invitation", "candidate"):
        return (which == "theirs") == (character == "stranger")
    return which in SEES[character]


# -- nothing is left out of the matrix


async def test_every_route_and_every_tool_has_a_row(house: House) -> None:
    routes = {
        (method, route.path)  # type: ignore[attr-defined]
        for route in house.asgi.api.routes
        for method in (getattr(route, "methods", None) or {"*"}) - {"HEAD"}
    }
    routes |= {("*", path) for path in house.asgi.endpoints}
    assert routes == set(ROUTES) | INVITED | SIGNED | FILES | OPEN | OAUTH | METRICS | MCP
    assert set(ALL_TOOLS) == set(TOOLS)


@pytest.mark.parametrize("action", ACTIONS.values(), ids=ACTIONS)
def test_actions_need_what_they_do(action: Action) -> None:
    """Rows expect what the core declares; here is what it has to declare."""
    if action.name in UNDECLARED:
        assert action.needs is None
        return
    assert action.needs is not None
    if action.route:
        reads = action.method == "GET" or action.name in POSTS_THAT_READ
        assert (action.needs.bucket.capability is Capability.READ) == reads
    if action.name in WHOLE_LIBRARY:
        assert action.needs.requirement is Requirement.FULL_WRITE
    elif action.name in OF_ADMINS:
        assert action.needs.requirement is Requirement.ADMIN
    elif action.name == "list_members":
        assert action.needs.requirement is Requirement.FULL_SCOPE
    else:
        assert action.needs.requirement is Requirement.NONE


# -- who gets in at all


@pytest.mark.parametrize("character", LOCKED_OUT)
async def test_no_valid_token_no_entry_anywhere(house: House, character: str | None) -> None:
    async with client_of(house, character) as client:
        for method, path in [*ROUTES, *SIGNED, *FILES, *METRICS, *MCP, ("GET", "/nowhere")]:
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


@pytest.mark.parametrize("character", ["reader", "viewer"])
async def test_capability_comes_before_the_body(house: House, character: str) -> None:
    async with client_of(house, character) as client:
        for (method, path), row in ROUTES.items():
            if method in ("POST", "PATCH") and row.allowed <= WRITE and "reflect" not in path:
                for body in (b"{", b"[]", b'{"unknown": 1}'):
                    response = await client.request(method, path, content=body)
                    assert response.json()["error"] == "capability_denied", (path, response.text)
        for name, row in TOOLS.items():
            if row.allowed <= WRITE:
                status, error = await tool(name, unknown=1)(client, house, "")
                assert (status, error["data"]["error"]) == (403, "capability_denied")


async def tidy(house: House) -> None:
    for by in (house.owner, house.stranger):
        for folder in await house.app.folders.list_folders(by):
            if folder.name.startswith("New "):
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
            for spelling, missing in enumerate(MISSING if row.target in OF_ITEMS else MISSING[:1]):
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


def naming_project(ask: Callable[[Action, Json], Call], action: Action) -> Call:
    given = {} if action.name == "explore" else arguments_of(action, action.input)
    return ask(action, given | {"project": "{}"})


OF_PROJECTS = [
    action
    for action in ACTIONS.values()
    if "project" in action.input.model_fields
    and not {"entity_id", "candidate_id"} & {*action.path_fields}
]
NAMING_PROJECTS = {
    **{f"REST {each.name}": naming_project(rest, each) for each in OF_PROJECTS if each.route},
    **{f"tool {each.name}": naming_project(as_tool, each) for each in OF_PROJECTS if each.tool},
    **{f"manage {each.name}": naming_project(managed, each) for each in OF_PROJECTS if each.manage},
}


@pytest.mark.parametrize("call", NAMING_PROJECTS.values(), ids=NAMING_PROJECTS)
async def test_a_project_out_of_scope_reads_like_no_project(house: House, call: Call) -> None:
    project = (await house.app.entities.add(house.owner, NewEntity("P", "P.", "project"))).item
    await house.app.folders.file(house.owner, project.id, [house.folders["Green"]])
    for character in WRITERS:
        async with client_of(house, character) as client:
            for spelled, missing in (
                (project.id, MISSING[0]),
                (project.public_id, MISSING[1]),
                (project.entity_id, "project_" + "z" * 12),
            ):
                status, body = await call(client, house, spelled)
                if character in ("owner", "kb_only"):
                    assert status in (200, 201, 202), body
                else:
                    assert (status, str(body).replace(spelled, missing)) == (
                        422,
                        str((await call(client, house, missing))[1]),
                    )


# -- by list, by count, by search


@pytest.fixture(scope="module")
async def stocked(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[tuple[House, dict[str, str]]]:
    """A house with exactly one item of each kind: its title is its name."""
    async with open_house(tmp_path_factory.mktemp("stocked") / "data") as opened:
        await give_a_grant(opened)
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
        assert {item["title"] for item in recent["result"]["structuredContent"]["items"]} == SEES[
            character
        ]
        text = recent["result"]["content"][0]["text"]
        assert all((f" {name} (" in text) == (name in SEES[character]) for name in ITEMS)
        for folder, folder_id in house.folders.items():
            inside = {name for name in SEES[character] if ITEMS[name][0] == folder}
            response = await client.get("/api/v1/items", params={"folder_id": folder_id})
            if folder not in FOLDERS[character]:
                assert response.status_code == 404
                continue
            listed = response.json()
            assert ({names[item["id"]] for item in listed["items"]}, listed["total"]) == (
                inside,
                len(inside),
            )
        entities = (await client.get("/api/entities")).json()
        assert {names[entity["item_id"]] for entity in entities["entities"]} == SEES[character]
        assert entities["total"] == len(SEES[character])
        answer = (await client.get("/api/v1/folders")).json()
        folders = answer["folders"]
        assert answer["total"] == len(folders)
        for name, folder_id in house.folders.items():
            response = await client.get(f"/api/v1/folders/{folder_id}")
            assert (response.status_code == 200) == (name in FOLDERS[character])
            assert response.status_code == 404 or response.json() in folders
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
            (await client.post("/api/v1/search", json=request)).json()["results"],
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
            door = set(ENDPOINTS.get(path.removeprefix("/mcp/"), ALL_TOOLS))
            assert shown == {
                name for name, row in TOOLS.items() if character in row.allowed and name in door
            }
