"""Every action over REST, MCP and the command line: the same answers, as their schemas promise."""

import asyncio
import json
import re
import shlex
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest

from commonplace.app import make_asgi, open_app
from commonplace.interfaces.actions.action import Action
from commonplace.interfaces.actions.registry import ACTIONS
from commonplace.interfaces.actions.shapes import OK, compact
from commonplace.interfaces.mcp.tools import TOOLS
from commonplace.interfaces.rest.openapi import openapi
from commonplace.model import Json
from commonplace.settings import Settings
from tests.fakes import FakeTranscriber
from tests.interfaces.command import Commands
from tests.interfaces.house import ADDRESS, LONG_TEXT, NO_LIMITS, call_tool, open_house
from tests.recordings import record, tone
from tests.webserver import page, web_server

ARTICLE = f"""<html><head><title>Tides</title></head><body><article><h1>Tides</h1>{
    "".join(
        f"<p>Paragraph {n}: the tide turns twice a day, as the harbour knows.</p>"
        for n in range(12)
    )
}</article></body></html>"""
FEED = """<?xml version="1.0"?><rss version="2.0"><channel><title>News</title></channel></rss>"""
NOTES = "We decided to dredge the harbour in May."

# The arguments of each action; {name} is an id of the stock below.
CASES: dict[str, Json] = {
    "add_to_knowledge": {"kind": "text", "title": "Winds", "text": "The wind comes from the west."},
    "search_knowledge_base": {"query": "zebra river", "limit": 3},
    "list_items": {"per_page": 3},
    "list_recent": {"limit": 5},
    "get_item": {"item_id": "{document}"},
    "update_item": {"item_id": "{document}", "tags": ["sea"], "category": "notes"},
    "delete_item": {"item_id": "{document}"},
    "refresh_item": {"item_id": "{page}"},
    "retry_item": {"item_id": "{long}"},
    "list_versions": {"item_id": "{rewritten}"},
    "get_version": {"item_id": "{rewritten}", "revision": 1},
    "compare_version": {"item_id": "{rewritten}", "revision": 1},
    "restore_version": {"item_id": "{rewritten}", "revision": 1},
    "get_job": {"job_id": "{job}"},
    "retry_job": {"job_id": "{job}"},
    "create_upload": {"filename": "a.md", "content_type": "text/markdown", "size": 20},
    "finalize_recording": {"upload_id": "{recording}", "title": "Whistle"},
    "finalize_document": {"upload_id": "{upload}"},
    "list_trash": {},
    "restore_item": {"item_id": "{trashed}"},
    "empty_trash": {},
    "delete_trashed_item": {"item_id": "{trashed}"},
    "list_folders": {},
    "create_folder": {"name": "Yellow"},
    "get_folder": {"folder_id": "{folder}"},
    "update_folder": {"folder_id": "{folder}", "name": "Crimson"},
    "delete_folder": {"folder_id": "{folder}", "cascade_items": True},
    "file_item": {"item_id": "{document}", "folder_ids": ["{folder}"]},
    "unfile_item": {"item_id": "{filed}", "folder_id": "{folder}"},
    "follow_feed": {"url": "{web}/other.xml", "newest": 0},
    "list_feeds": {},
    "get_feed": {"feed_id": "{feed}"},
    "unfollow_feed": {"feed_id": "{feed}"},
    "create_crawl": {"url": "{web}/news.xml", "max_pages": 1},
    "list_crawls": {},
    "get_crawl": {"crawl_id": "{crawl}"},
    "delete_crawl": {"crawl_id": "{crawl}"},
    "crawl": {"url": "{web}/news.xml", "max_pages": 1},
    "sync": {"source_id": "{crawl}"},
    "link_graph": {"source_id": "{crawl}"},
    "search_items": {"query": "zebra river", "limit": 3},
    "search_knowledge": {"query": "zebra river", "limit": 3},
    "list_disks": {"scope": "owned", "limit": 4},
    "get_disks": {"ids": ["{document}", "zzzzzzzzzzzz"]},
    "get_disk": {"disk_id": "{document}"},
    "preview_disk": {"disk_id": "{document}"},
    "publish_disk": {"disk_id": "{document}", "summary": "About a zebra."},
    "unpublish_disk": {"disk_id": "{published}"},
    "save_disk": {"disk_id": "{theirs}"},
    "unsave_disk": {"disk_id": "{saved}"},
    "add": {"title": "Pilots", "content": "Pilots know the sandbanks.", "tags": ["sea"]},
    "add_entity": {
        **{"entity_type": "project", "title": "Pier", "content": "Piers rest on piles."},
        "sync": True,
    },
    "ask": {"query": "When is the harbour dredging?", "limit": 3},
    "search": {"query": "harbour dredging", "types": ["task", "document"], "limit": 3},
    "fetch": {"id": "{todo}"},
    "list_entities": {"entity_type": ["task"], "per_page": 2},
    "get_entity": {"entity_id": "{memory}"},
    "update_entity": {"entity_id": "{memory}", "content": "The pilot has left.", "tags": []},
    "delete": {"entity_id": "{memory}"},
    "supersede": {"entity_id": "{memory}", "by": "{rewritten}", "reason": "newer"},
    "mark_wrong": {"entity_id": "{memory}", "reason": "never true"},
    "mark_stale": {"entity_id": "{memory}"},
    "restore": {"entity_id": "{wrong}"},
    "explore": {"mode": "related", "entity_id": "{todo}"},
    "list_relations": {"entity_id": "{todo}"},
    "refresh": {"entity_id": "{page}"},
    "link": {"entity_id": "{memory}", "to": "{todo}", "type": "RELATED_TO"},
    "unlink": {"entity_id": "{doing}", "to": "{todo}", "type": "DEPENDS_ON"},
    "suggest": {"project": "{project}", "limit": 2},
    "list_tasks": {"project": "{project}", "per_page": 2},
    "add_task": {"title": "Buoys", "content": "Lay the buoys.", "project": "{project}"},
    "get_task": {"entity_id": "{todo}"},
    "update_task": {"entity_id": "{todo}", "due_date": "2030-03-01", "priority": "high"},
    "start_task": {"entity_id": "{todo}"},
    "block_task": {"entity_id": "{doing}", "reason": "No dredger."},
    "unblock_task": {"entity_id": "{blocked}"},
    "submit_review": {"entity_id": "{doing}", "pr_url": "https://example.org/1"},
    "complete_task": {"entity_id": "{doing}", "learnings": "Ask early.", "actual_hours": 3},
    "archive_task": {"entity_id": "{todo}"},
    "add_note": {"entity_id": "{todo}", "content": "Asked the harbour master."},
    "estimate": {"entity_id": "{todo}"},
    "prioritize": {"project": "{project}"},
    "detect_cycles": {"project": "{project}"},
    "list_epics": {"project": "{project}"},
    "add_epic": {"title": "Piers", "content": "Mend the piers.", "project": "{project}"},
    "get_epic": {"entity_id": "{epic}"},
    "update_epic": {"entity_id": "{epic}", "title": "Deeper harbour", "assignees": ["ada"]},
    "start_epic": {"entity_id": "{epic}"},
    "complete_epic": {"entity_id": "{begun}"},
    "archive_epic": {"entity_id": "{epic}"},
    "remember": {"title": "Locks", "content": "Locks open at high tide.", "kind": "claim"},
    "reflect": {"content": NOTES, "source_title": "Minutes", "persist": True},
    "context": {"goal": "dredge the harbour", "limit": 5},
    "get_capture": {"entity_id": "{memory}"},
    "list_candidates": {"limit": 5},
    "get_candidate": {"candidate_id": "{candidate}"},
    "update_candidate": {"candidate_id": "{candidate}", "title": "Dredging in May"},
    "accept_candidate": {"candidate_id": "{candidate}"},
    "reject_candidate": {"candidate_id": "{candidate}"},
    "list_events": {"limit": 5},
    "list_webhooks": {},
    "create_webhook": {"url": "{web}/hook", "events": ["item.ready"]},
    "get_webhook": {"webhook_id": "{webhook}"},
    "delete_webhook": {"webhook_id": "{webhook}"},
    "test_webhook": {"webhook_id": "{webhook}"},
    "get_me": {},
    "list_tokens": {},
    "create_token": {"name": "laptop", "expires_days": 30},
    "get_token": {"token_id": "{token}"},
    "revoke_token": {"token_id": "{token}"},
    "list_token_activity": {"token_id": "{token}"},
    "list_members": {},
    "change_role": {"person_id": "{member}", "role": "member"},
    "remove_member": {"person_id": "{member}"},
    "invite_member": {"role": "viewer", "email": "eve@example.org"},
    "list_invitations": {},
    "withdraw_invitation": {"invitation_id": "{invitation}"},
    "accept_invitation": {"token": "{secret}", "name": "Eve", "email": "eve@example.org"},
}

# The same at the command line.
COMMANDS = {
    "search_knowledge_base": "search 'zebra river' --limit 3",
    "list_items": "list --limit 3",
    "get_item": "get {document}",
    "delete_item": "delete {document}",
    "list_trash": "trash list",
    "restore_item": "trash restore {trashed}",
    "empty_trash": "trash empty",
    "delete_trashed_item": "trash empty {trashed}",
    "refresh_item": "refresh {page}",
    "retry_item": "retry {long}",
    "list_versions": "history {rewritten}",
    "get_version": "history {rewritten} 1",
    "compare_version": "history {rewritten} 1 --diff",
    "restore_version": "history {rewritten} 1 --restore",
    "list_folders": "folder list",
    "create_folder": "folder create Yellow",
    "update_folder": "folder rename {folder} Crimson",
    "delete_folder": "folder delete {folder} --cascade-items",
    "follow_feed": "feed add {web}/other.xml --newest 0",
    "list_feeds": "feed list",
    "unfollow_feed": "feed remove {feed}",
    "create_crawl": "crawl {web}/news.xml --max-pages 1",
    "list_disks": "disk list --scope owned --limit 4",
    "publish_disk": "disk publish {document} --summary 'About a zebra.'",
    "unpublish_disk": "disk publish {published} --undo",
    "save_disk": "disk save {theirs}",
    "unsave_disk": "disk save {saved} --undo",
    "preview_disk": "get {document} --preview",
    "add_entity": "remember Pier 'Piers rest on piles.' --type project",
    "ask": "ask 'When is the harbour dredging?' --limit 3",
    "search": "search 'harbour dredging' --type task --type document --limit 3",
    "list_entities": "list --type task --limit 2",
    "supersede": "edit {memory} --mark superseded --by {rewritten} --reason newer",
    "mark_wrong": "edit {memory} --mark wrong --reason 'never true'",
    "mark_stale": "edit {memory} --mark stale",
    "restore": "edit {wrong} --mark valid",
    "explore": "related {todo}",
    "link": "related {memory} --link {todo}",
    "unlink": "related {doing} --unlink {todo} --as DEPENDS_ON",
    "suggest": "task list --next --project {project} --limit 2",
    "list_tasks": "task list --project {project} --limit 2",
    "add_task": "task add Buoys --content 'Lay the buoys.' --project {project}",
    "update_task": "task update {todo} --due 2030-03-01 --priority high",
    "start_task": "task update {todo} --status doing",
    "block_task": "task update {doing} --status blocked --reason 'No dredger.'",
    "unblock_task": "task update {blocked} --status doing",
    "submit_review": "task update {doing} --status review --pr-url https://example.org/1",
    "complete_task": "task update {doing} --status done --learnings 'Ask early.' --hours 3",
    "archive_task": "task update {todo} --status archived",
    "add_note": "task update {todo} --note 'Asked the harbour master.'",
    "list_epics": "task list --type epic --project {project}",
    "add_epic": "task add Piers --type epic --content 'Mend the piers.' --project {project}",
    "update_epic": "task update {epic} --title 'Deeper harbour' --assignee ada",
    "start_epic": "task update {epic} --status in_progress",
    "complete_epic": "task update {begun} --status completed",
    "archive_epic": "task update {epic} --status archived",
    "remember": "remember Locks 'Locks open at high tide.' --type claim",
    "reflect": "reflect - --title Minutes --persist",
    "context": "context 'dredge the harbour' --limit 5",
    "list_candidates": "review list --limit 5",
    "get_candidate": "review list {candidate}",
    "accept_candidate": "review accept {candidate}",
    "reject_candidate": "review reject {candidate}",
    "list_tokens": "token list",
    "create_token": "token create --name laptop --expires 30",
    "revoke_token": "token revoke {token}",
    "list_members": "member list",
    "list_invitations": "member list",
    "change_role": "member role {member} member",
    "remove_member": "member role {member} none",
    "invite_member": "member invite --role viewer --email eve@example.org",
    "withdraw_invitation": "member invite --withdraw {invitation}",
}
# One command for two actions: what of its answer is this one's.
JOINED = {"list_members": "members", "list_invitations": "invitations"}

# -- a library with something of everything, copied for every call


@dataclass(frozen=True)
class Stock:
    folder: Path
    token: str  # the owner's
    web: str  # host of the pages
    ids: dict[str, str]
    known: frozenset[str]  # everything that looks like an id


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stock]:
    with web_server() as web:
        web.pages |= {"/tides": page(ARTICLE)}
        web.pages |= {f"/{name}.xml": page(FEED, "text/xml") for name in ("news", "other")}
        folder = tmp_path_factory.mktemp("stock")
        yield asyncio.run(fill(folder, web.url, web.host))


async def fill(folder: Path, web: str, host: str) -> Stock:
    whistle = record(folder / "whistle.mp3", tone(1, 48_000)).read_bytes()
    own = {"own_transcriber": FakeTranscriber()}
    async with (
        open_house(folder / "data", own=own, fetch_allow_hosts=host) as house,
        house.client("owner") as owner,
        house.client("stranger") as stranger,
    ):

        async def post(path: str, body: Json | None = None, by: httpx.AsyncClient = owner) -> Any:
            response = await by.post(path, json=body)
            assert response.status_code < 300, response.text
            return response.json()

        async def entity(kind: str, title: str, **more: Any) -> str:
            made = await post(
                "/api/entities?sync=true",
                {"entity_type": kind, "title": title, "content": f"{title} in full.", **more},
            )
            return str(made["id"])

        async def upload(name: str, kind: str, content: bytes) -> str:
            about = {"filename": name, "content_type": kind, "size": len(content)}
            made = await post("/api/v1/uploads/signed-url", about)
            assert (await owner.put(made["url"], content=content)).status_code == 200
            return str(made["upload_id"])

        ids = {"web": web, "folder": house.folders["Red"]}
        for name in ("document", "published", "filed", "trashed"):
            ids[name], _ = await house.add(name.capitalize())
        for name in ("theirs", "saved"):
            ids[name], _ = await house.add(name.capitalize(), by=house.stranger)
            await post(f"/api/v1/disks/{ids[name]}/publish", {}, stranger)
        await post(f"/api/v1/disks/{ids['published']}/publish", {})
        await post(f"/api/v1/disks/{ids['saved']}/save")
        await post(f"/api/v1/items/{ids['filed']}/folders", {"folder_ids": [ids["folder"]]})
        assert (await owner.delete(f"/api/v1/items/{ids['trashed']}")).is_success
        kept = await post("/api/v1/ingest", {"kind": "url", "url": f"{web}/tides"})
        ids["page"] = kept["user_item_id"]
        ids["long"], ids["job"] = map(str, await house.add("Long", text=LONG_TEXT))
        ids["upload"] = await upload("a.md", "text/markdown", b"# Notes\n\nOf the harbour.")
        ids["recording"] = await upload("whistle.mp3", "audio/mpeg", whistle)
        ids["crawl"] = (await post("/api/v1/crawls", {"url": f"{web}/other.xml"}))["id"]
        ids["feed"] = (await post("/api/v1/feeds", {"url": f"{web}/news.xml"}))["id"]
        ids["webhook"] = (await post("/api/v1/webhooks", {"url": f"{web}/hook"}))["id"]
        ids["project"] = await entity("project", "Harbour")
        of = {"project": ids["project"]}
        for name in ("epic", "begun"):
            ids[name] = await entity("epic", f"Epic {name}", **of)
        await post(f"/api/epics/{ids['begun']}/start")
        ids["todo"] = await entity("task", "Dredge the harbour", **of)
        for name in ("doing", "blocked"):
            ids[name] = await entity("task", f"Task {name}", depends_on=[ids["todo"]], **of)
            await post(f"/api/tasks/{ids[name]}/start")
        await post(f"/api/tasks/{ids['blocked']}/block", {"reason": "Fog."})
        for name in ("memory", "rewritten", "wrong"):
            text = {"title": f"Memory {name}", "content": f"The {name} pilot waits by the buoy."}
            ids[name] = (await post("/api/v1/memory/remember", text))["id"]
        changed = {"content": "The pilot waits no more."}
        assert (await owner.patch(f"/api/entities/{ids['rewritten']}", json=changed)).is_success
        await post(f"/api/entities/{ids['wrong']}/mark-wrong", {})
        notes = {"content": "We decided to paint the lighthouse.", "persist": True, "review": True}
        [found] = (await post("/api/v1/memory/reflect", notes))["candidates"]
        ids["candidate"] = found["candidate_id"]
        ids["token"] = (await post("/api/v1/tokens", {"name": "spare"}))["id"]
        ids["invitation"] = (await post("/api/v1/invitations", {"role": "viewer"}))["id"]
        ids["secret"] = (await post("/api/v1/invitations", {"role": "viewer"}))["token"]
        members = (await owner.get("/api/v1/members")).json()["members"]
        [ids["member"]] = [each["person_id"] for each in members if each["name"] == "Viewer"]
        lists = [
            (await owner.get(path)).text
            for path in ("/api/entities?per_page=100", "/api/v1/tokens", "/api/v1/members")
        ]
        known = ID.findall(" ".join([*ids.values(), *lists]))
        return Stock(folder / "data", house.tokens["owner"], host, ids, frozenset(known))


@pytest.fixture
def copies(stock: Stock, tmp_path: Path) -> Iterator[Path]:
    """Folders with the stock in them, each a library that nothing was asked of."""
    return (Path(shutil.copytree(stock.folder, tmp_path / f"copy{number}")) for number in range(10))


@asynccontextmanager
async def opened(folder: Path, stock: Stock) -> AsyncIterator[httpx.AsyncClient]:
    settings = Settings(
        data_dir=folder, embedder="static", fetch_allow_hosts=stock.web, **NO_LIMITS
    )
    async with open_app(settings, own_transcriber=FakeTranscriber()) as app:
        asgi = make_asgi(app)
        async with (
            asgi.api.router.lifespan_context(asgi.api),
            httpx.AsyncClient(
                transport=httpx.ASGITransport(asgi),
                base_url=ADDRESS,
                headers={"Authorization": f"Bearer {stock.token}"},
            ) as client,
        ):
            yield client


# -- one action, over each interface


def arguments_of(action: Action, stock: Stock) -> Json:
    def put(value: Any) -> Any:
        if isinstance(value, list):
            return [put(each) for each in value]
        return value.format(**stock.ids) if isinstance(value, str) else value

    return {name: put(value) for name, value in CASES[action.name].items()}


async def ask_rest(
    action: Action, folder: Path, stock: Stock, headers: dict[str, str] | None = None, **more: Any
) -> httpx.Response:
    given = arguments_of(action, stock) | more
    path = action.path.format(**given)
    given = {name: each for name, each in given.items() if name not in action.path_fields}
    in_query = action.query if action.method in ("POST", "PATCH") else given
    async with opened(folder, stock) as client:
        if action.name == "accept_invitation":
            del client.headers["Authorization"]
        return await client.request(
            action.method,
            path,
            params={name: each for name, each in given.items() if name in in_query},
            json={name: each for name, each in given.items() if name not in in_query} or None,
            headers=headers,
        )


async def ask_mcp(action: Action, folder: Path, stock: Stock, **more: Any) -> Json:
    given = arguments_of(action, stock) | more
    name = action.name
    if action.manage:
        name, data = "manage", dict(given)
        given = {"action": action.name, "data": data}
        if "entity_id" in data:
            given["entity_id"] = data.pop("entity_id")
    async with opened(folder, stock) as client:
        return dict(await call_tool(client, name, given))


def over_rest(action: Action, folder: Path, stock: Stock) -> Json:
    response = asyncio.run(ask_rest(action, folder, stock))
    assert response.status_code in (action.status, *action.also), response.text
    answer: Json = response.json()
    return answer


def over_mcp(action: Action, folder: Path, stock: Stock) -> Json:
    answer = asyncio.run(ask_mcp(action, folder, stock))
    assert "result" in answer, answer
    structured: Json = answer["result"]["structuredContent"]
    assert answer["result"]["content"][0]["text"].strip()
    return structured


def at_command_line(action: Action, folder: Path, stock: Stock) -> Json:
    commands = Commands(folder, fetch_allow_hosts=stock.web, token=stock.token)
    words = shlex.split(COMMANDS[action.name].format(**stock.ids))
    answer: Json = commands.json(*words, stdin=NOTES)
    return answer


# -- comparing

ID = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|(?<![A-Za-z0-9])[2-9a-hjkmnp-zA-HJ-NP-Z]{12}(?![A-Za-z0-9])"
)
SECRET = re.compile(r"(sk|inv)_[\w-]{43}|whsec_[\w+/]{43}=")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?")


def steady(value: Any, stock: Stock) -> Any:
    """Return the answer with one word for all times, secrets, and ids that are new.

    Commands finish what servers leave to a worker, so it does not matter that there is none.
    """
    text = SECRET.sub("<secret>", TIME.sub("<time>", json.dumps(value)))
    text = text.replace("Added (sync fallback): ", "Added: ")
    return json.loads(ID.sub(lambda id: id[0] if id[0] in stock.known else "<id>", text))


def common(one: Any, other: Any) -> tuple[Any, Any]:
    """Return both without the fields that only one of them has."""
    if isinstance(one, dict) and isinstance(other, dict):
        pairs = {name: common(one[name], other[name]) for name in one.keys() & other.keys()}
        return {n: pair[0] for n, pair in pairs.items()}, {n: pair[1] for n, pair in pairs.items()}
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        both = [common(*pair) for pair in zip(one, other, strict=True)]
        return [pair[0] for pair in both], [pair[1] for pair in both]
    return one, other


def closed(schema: Any) -> Any:
    """Return a schema of objects that have no fields but those it names."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    shown = {name: closed(each) for name, each in schema.items()}
    return shown | {"additionalProperties": False} if "properties" in schema else shown


def check_schema(answer: Json, schema: Json) -> None:
    whole = {**schema, "components": openapi()["components"]}
    jsonschema.Draft202012Validator(closed(whole)).validate(answer)


# -- the tests


def test_every_action_has_a_case() -> None:
    assert CASES.keys() == ACTIONS.keys()
    assert COMMANDS.keys() >= {name for name, action in ACTIONS.items() if action.cli}


@pytest.mark.parametrize("action", ACTIONS.values(), ids=ACTIONS)
def test_all_interfaces_answer_alike(action: Action, stock: Stock, copies: Iterator[Path]) -> None:
    rest = None
    if action.route:
        rest = over_rest(action, next(copies), stock)
        check_schema(rest, action.output.reference)
        rest.pop("next", None)  # an address of REST
    if action.manage:
        answer = over_mcp(action, next(copies), stock)
        jsonschema.validate(answer, TOOLS["manage"].listing.output_schema)
        assert (answer["success"], answer["action"]) == (True, action.name)
        if rest is not None and action.output is not OK:
            expect_alike({"message": answer["message"], **answer["data"]}, rest, stock)
    elif action.tool:
        answer = over_mcp(action, next(copies), stock)
        jsonschema.validate(answer, TOOLS[action.name].listing.output_schema)
        if rest is not None and action.tool.shape is None:
            assert steady(answer, stock) == steady(compact(rest), stock)
        elif rest is not None:
            expect_alike(answer, rest, stock)


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_answer_alike(name: str, stock: Stock, copies: Iterator[Path]) -> None:
    action = ACTIONS[name]
    shown = at_command_line(action, next(copies), stock)
    if action.route:
        expected = over_rest(action, next(copies), stock)
        expected.pop("next", None)
    else:
        expected = over_mcp(action, next(copies), stock)
        shown = compact(shown)
    if name in JOINED:
        key = JOINED[name]
        expected = [each for each in expected[key] if each.get("accepted_at") is None]
        shown = shown[key]
    assert steady(shown, stock) == steady(expected, stock)


def expect_alike(answer: Json, rest: Json, stock: Stock) -> None:
    one, other = common(steady(answer, stock), steady(compact(rest), stock))
    assert one == other
    assert one, "nothing to compare"


GUARDED = {
    name: action
    for name, action in ACTIONS.items()
    if "expected_revision" in action.input.model_fields
}


@pytest.mark.parametrize("action", GUARDED.values(), ids=GUARDED)
def test_stale_revisions_are_refused(action: Action, stock: Stock, copies: Iterator[Path]) -> None:
    folder = next(copies)
    stale = asyncio.run(ask_rest(action, folder, stock, expected_revision=999))
    assert (stale.status_code, stale.json()["error"]) == (409, "conflict")
    revision = stale.json()["revision"]
    stale = asyncio.run(ask_rest(action, folder, stock, {"If-Match": 'W/"999"'}))
    assert (stale.status_code, stale.json()["error"]) == (412, "precondition_failed")
    assert stale.json()["revision"] == revision
    if action.manage:
        error = asyncio.run(ask_mcp(action, folder, stock, expected_revision=999))["error"]
        assert (error["code"], error["data"]["error"]) == (-32603, "conflict")
        assert error["data"]["revision"] == revision
    fresh = asyncio.run(ask_rest(action, folder, stock, {"If-Match": f'W/"{revision}"'}))
    assert fresh.status_code == action.status, fresh.text
