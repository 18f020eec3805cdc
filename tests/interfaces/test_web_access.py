"""Every page and every form of the web app, asked for by everybody: nobody, the owner, a member, a viewer, a stranger."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import httpx
import pytest

from commonplace.core.entities.validation import NewEntity
from commonplace.core.memory.reflection import Notes
from commonplace.core.people.tokens import NewToken
from commonplace.interfaces.web.app import WebApp
from commonplace.model import Event, Role, Step, Webhook
from tests.interfaces.house import ADDRESS, LONG_TEXT, House, open_house

pytestmark = pytest.mark.anyio
PAGE = {"Accept": "text/html,application/xhtml+xml"}


@dataclass(frozen=True)
class Row:
    """What the path names (an item ...), whether only those who may write get on, and a form that is good (* is different each time)."""

    target: str | None = None
    writes: bool = False
    hosts: bool = False  # only those who say who belongs to the library get on
    form: tuple[tuple[str, str], ...] = ()
    json: dict[str, Any] | None = None
    own: bool = False  # about whoever asks, and nothing of a library
    only_operator: bool = False
    answer: int = 200  # what the owner gets for a GET; a form that is taken leads somewhere (303) or says so in JSON


NOTES = "We decided to use Postgres for the archive because it is there already. Always rotate the keys every month."
IN_FORM: dict[str | None, str] = {"chosen": "item", "viewed": "token", "waiting": "on"}
OWN = Row(own=True)
OPEN = {
    ("GET", "/sign-in"),
    ("POST", "/sign-in"),
    ("GET", "/claim/{secret}"),
    ("POST", "/claim/{secret}"),
    ("POST", "/passkeys/ask"),
    ("POST", "/passkeys/sign-in"),
    ("GET", "/oauth/authorize"),  # these two: see test_oauth.py
    ("POST", "/oauth/authorize"),
    ("GET", "/d/{public_id}"),
    ("GET", "/join/{secret}"),
    ("POST", "/join/{secret}"),
    ("POST", "/join/{secret}/offer"),
    ("POST", "/join/{secret}/passkey"),
}
ROWS: dict[tuple[str, str], Row] = {
    ("GET", "/"): Row(),
    ("GET", "/sidebar"): Row(),
    ("GET", "/events"): OWN,  # without an end: see tests/browser/test_live.py
    ("GET", "/search"): Row(),
    ("POST", "/folders"): Row(writes=True, form=(("name", "New *"),)),
    ("GET", "/folders/{folder_id}"): Row("folder", writes=True),
    ("POST", "/folders/{folder_id}"): Row("folder", writes=True, form=(("name", "Renamed *"),)),
    ("POST", "/folders/{folder_id}/parent"): Row("folder", writes=True, form=(("parent_id", ""),)),
    ("GET", "/import"): Row(),
    ("POST", "/import"): Row(writes=True, answer=422),  # without a file
    ("POST", "/sample"): Row(writes=True),
    ("POST", "/sample/remove"): Row(writes=True),
    ("GET", "/tags"): Row(),
    ("GET", "/crawls"): Row(),
    ("POST", "/crawls"): Row(writes=True, form=(("url", "http://127.0.0.1:9/"),)),
    ("POST", "/crawls/{crawl_id}/sync"): OWN,  # see test_access_matrix.py
    ("POST", "/crawls/{crawl_id}/delete"): OWN,
    ("GET", "/recent"): Row(),
    ("POST", "/undo/{step_id}"): Row("step", writes=True),
    ("POST", "/tags"): Row(writes=True, form=(("tag", "old"), ("name", "new"))),
    ("POST", "/folders/{folder_id}/delete"): Row("folder", writes=True, form=(("items", "keep"),)),
    ("POST", "/items"): Row("chosen", writes=True, form=(("action", "archive"),)),
    ("POST", "/add"): Row(writes=True, form=(("text", "A note that is long enough to be kept."),)),
    ("POST", "/uploads"): Row(writes=True, json={"name": "a.txt", "type": "text/plain", "size": 3}),
    ("GET", "/items/{item_id}"): Row("item"),
    ("POST", "/d/{public_id}/save"): OWN,
    ("POST", "/d/{public_id}/forget"): OWN,  # of other libraries: see test_web_published.py
    ("POST", "/items/{item_id}"): Row(
        "item", writes=True, form=(("title", "Renamed"), ("in_kb", "1"))
    ),
    ("POST", "/items/{item_id}/refresh"): Row(
        "item", writes=True, answer=422
    ),  # a text has no address to be fetched from
    ("POST", "/items/{item_id}/retry"): Row("item", writes=True),
    ("GET", "/items/{item_id}/page"): Row("item", answer=404),  # it was not fetched
    ("GET", "/items/{item_id}/thumbnail"): Row("item", answer=404),  # of notes there is none
    ("GET", "/items/{item_id}/images/{image_id}"): Row("item", answer=404),  # none is kept
    ("GET", "/items/{item_id}/original"): Row("item", answer=404),  # originals are not kept here
    ("GET", "/items/{item_id}/pages/{page}"): Row("item", answer=404),  # the same
    ("POST", "/items/{item_id}/notes"): Row(
        "item", writes=True, form=(("text", "Worth reading twice"),)
    ),
    ("GET", "/items/{item_id}/edit"): Row("item", writes=True),
    ("POST", "/items/{item_id}/edit"): Row(
        "item", writes=True, form=(("text", "Other words"), ("revision", "1"))
    ),
    ("POST", "/items/{item_id}/boxes"): Row(
        "listed", writes=True, json={"box": 0, "done": True, "revision": 1}, answer=200
    ),
    ("POST", "/preview"): Row(json={"text": "*Words*"}),
    ("POST", "/notes/{note_id}"): Row("note", writes=True, form=(("text", "Once more"),)),
    ("POST", "/notes/{note_id}/delete"): Row("note", writes=True),
    ("GET", "/items/{item_id}/versions/{revision}"): Row("rewritten"),
    ("POST", "/items/{item_id}/versions/{revision}/restore"): Row("rewritten", writes=True),
    ("GET", "/work"): Row(),
    ("POST", "/work"): Row(writes=True, form=(("kind", "project"), ("title", "Plans"))),
    ("POST", "/work/{entity_id}"): Row("task", writes=True, form=(("title", "Called otherwise"),)),
    ("GET", "/work/{entity_id}"): Row("task"),
    ("POST", "/work/{entity_id}/move"): Row("task", writes=True, form=(("status", "doing"),)),
    ("POST", "/work/{entity_id}/wait"): Row(
        "waiting", writes=True, answer=422
    ),  # for itself, which nothing can
    ("POST", "/work/{entity_id}/note"): Row("task", writes=True, form=(("text", "Looked at"),)),
    ("GET", "/graph"): Row(),
    ("GET", "/graph/{item_id}"): Row("item"),
    ("GET", "/disks"): Row(),
    ("GET", "/disks/{disk_id}/publish"): Row("item"),
    ("POST", "/disks/{disk_id}/publish"): Row("item", writes=True),
    ("POST", "/disks/{disk_id}/unpublish"): Row("published", writes=True),
    ("GET", "/review/captures"): Row(),
    ("GET", "/review"): Row(),
    ("POST", "/review"): Row(writes=True, form=(("content", NOTES),)),
    ("POST", "/review/{candidate_id}"): Row("candidate", writes=True, form=(("action", "accept"),)),
    ("GET", "/tokens"): Row(writes=True),
    ("POST", "/tokens"): Row(writes=True, form=(("name", "New"), ("sees", "all"))),
    ("POST", "/tokens/shown"): OWN,
    ("GET", "/tokens/{token_id}"): Row("token", writes=True),
    ("POST", "/tokens/{token_id}/revoke"): Row("token", writes=True),
    ("POST", "/webhooks"): Row(writes=True, form=(("url", "http://8.8.8.8/hook"),)),
    ("POST", "/webhooks/{webhook_id}/test"): Row("webhook", writes=True),
    ("POST", "/webhooks/{webhook_id}/delete"): Row("webhook", writes=True),
    ("POST", "/view-as"): Row("viewed", writes=True),
    ("GET", "/connect"): Row(),
    ("POST", "/connect"): Row(writes=True, form=(("client", "curl"), ("sees", "all"))),
    ("GET", "/connect/live"): OWN,
    ("GET", "/connect/{token_id}/live"): Row("token", writes=True),
    ("GET", "/people"): Row(),
    ("POST", "/people"): Row(hosts=True, form=(("role", "viewer"),)),
    ("POST", "/people/invitations/{invitation_id}/withdraw"): Row("invitation", hosts=True),
    ("POST", "/people/{person_id}/role"): Row("person", hosts=True, form=(("role", "viewer"),)),
    ("POST", "/people/{person_id}/remove"): Row("person", hosts=True),
    ("POST", "/library/name"): Row(hosts=True, form=(("name", "The lab"),)),
    ("POST", "/leave"): OWN,
    ("POST", "/library"): OWN,  # see test_web_people.py
    ("GET", "/health"): Row(),
    ("GET", "/admin"): Row(only_operator=True),
    ("GET", "/trash"): Row(),
    ("POST", "/trash/empty"): Row(writes=True),
    ("POST", "/trash/{item_id}/restore"): Row("trashed", writes=True),
    ("POST", "/trash/{item_id}/delete"): Row("trashed", writes=True),
    ("POST", "/jobs/{job_id}/retry"): Row("job", writes=True),
    ("POST", "/export"): Row(),
    ("POST", "/backup"): Row(only_operator=True),
    ("GET", "/account"): OWN,
    ("POST", "/account"): OWN,
    ("POST", "/account/password"): OWN,
    ("POST", "/account/others"): OWN,
    ("POST", "/account/sessions/{session_id}"): OWN,
    ("POST", "/account/clients/{grant_id}"): OWN,
    ("POST", "/account/delete"): OWN,
    ("POST", "/sign-out"): OWN,
    ("POST", "/passkeys/offer"): OWN,
    ("POST", "/passkeys"): OWN,
    ("POST", "/passkeys/{passkey_id}/remove"): OWN,
}


@pytest.fixture(scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    async with open_house(tmp_path_factory.mktemp("web") / "data") as opened:
        yield opened


async def browser(house: House, character: str) -> httpx.AsyncClient:
    client = httpx.AsyncClient(
        transport=httpx.ASGITransport(house.asgi), base_url=ADDRESS, headers=PAGE
    )
    if character != "nobody":
        client.cookies.set("commonplace_8642", await session(house, character), domain="127.0.0.1")
    return client


async def session(house: House, character: str) -> str:
    if character in ("owner", "stranger"):
        return await house.app.accounts.open_session(
            (house.stranger if character == "stranger" else house.owner).person_id, ""
        )
    known = {member.name: member for member in await house.app.members.all(house.owner)}
    if character not in ("viewer", *known):
        await house.join(character)
        known = {member.name: member for member in await house.app.members.all(house.owner)}
    person_id = known[character.title() if character == "viewer" else character].person_id
    return await house.app.accounts.open_session(person_id, "", library_id=house.owner.library_id)


async def target(house: House, what: str | None) -> str:
    match what:
        case None:
            return ""
        case "job":
            return str((await house.add("Long", text=f"{uuid4()}\n\n{LONG_TEXT}"))[1])
        case "task" | "waiting":
            entities = house.app.entities
            project = await entities.add(
                house.owner, NewEntity("Plans", "All plans", "project"), sync=True
            )
            task = NewEntity("Do it", "As planned", "task", project=project.item.entity_id)
            return (await entities.add(house.owner, task, sync=True)).item.id
        case "rewritten":
            idea = (
                await house.app.entities.add(
                    house.owner, NewEntity("Before", "What was said", "idea"), sync=True
                )
            ).item
            return (
                await house.app.entities.update(
                    house.owner, idea.id, {"content": "What is said now"}
                )
            ).id
        case "note":
            about = (await house.add(f"Noted {uuid4()}"))[0]
            return (await house.app.annotations.add(house.owner, about, "See also")).id
        case "step":
            step = Step(house.owner.person_id)
            await house.app.folders.create(replace(house.owner, step=step), f"Folder {uuid4()}")
            return step.id
        case "listed":
            return (await house.add("List", text=f"- [ ] {uuid4()}"))[0]
        case "published":
            item_id = (await house.add(f"Open {uuid4()}"))[0]
            await house.app.disks.publish(house.owner, item_id)
            return item_id
        case "candidate":
            found = await house.app.reflection.reflect(
                house.owner, Notes(f"{NOTES} {uuid4()}", persist=True, review=True)
            )
            return next(each.queued.id for each in found.candidates if each.queued)
        case "folder":
            return (await house.app.folders.create(house.owner, f"Folder {uuid4()}")).id
        case "person":
            await house.join(f"Guest {uuid4()}".replace(" ", "."))
            return next(
                m.person_id
                for m in await house.app.members.all(house.owner)
                if m.name.startswith("Guest")
            )
        case "invitation":
            return (await house.app.members.invite(house.owner, Role.VIEWER))[0].id
        case "webhook":
            who, url = house.owner, "http://127.0.0.1:9/hook"
            hook = Webhook(str(uuid4()), who.library_id, who.person_id, None, url, (), "")
            return (await house.app.store.webhooks.create(hook)).id
        case "token" | "viewed":
            made, _ = await house.app.people.create_token(house.owner, NewToken("Used"))
            await house.app.store.tokens.record(
                [Event(made.library_id, made.id, "search", None, True)]
            )
            return made.id
        case "trashed":
            item_id = (await house.add(f"Deleted {uuid4()}"))[0]
            await house.app.library.delete(house.owner, item_id)
            return item_id
        case "item" | "chosen":
            return (
                await house.add(f"Item {len(await house.app.library.recent(house.owner, 100))}")
            )[0]
    raise AssertionError(what)


def filled(path: str, value: str) -> str:
    return re.sub(r"\{[^}]+\}", value, path.replace("{revision}", "1"))


async def send(
    client: httpx.AsyncClient, method: str, path: str, row: Row, **extra: str
) -> httpx.Response:
    if method == "GET":
        return await client.get(path)
    page = await client.get("/account")
    token = re.search(r'data-csrf="(\w+)"', page.text)
    headers = {"Accept": "application/json", "X-CSRF-Token": token[1] if token else ""}
    if row.json is not None:
        return await client.post(path, json=row.json, headers=headers)
    return await client.post(
        path,
        data={**{name: value.replace("*", str(uuid4())) for name, value in row.form}, **extra},
        headers=headers,
    )


async def test_every_door_has_a_row(house: House) -> None:
    pages = house.asgi.api.state.pages
    assert isinstance(pages, WebApp)
    assert {(door.method, door.path) for door in pages.routes} == set(ROWS) | OPEN
    assert {(door.method, door.path) for door in pages.routes if door.open} == OPEN


async def test_nobody_gets_in(house: House) -> None:
    async with await browser(house, "nobody") as client:
        for method, path in [*ROWS, ("GET", "/nowhere")]:
            asked = await client.request(method, filled(path, "x"))
            if method == "GET":
                assert (asked.status_code, asked.headers["location"].startswith("/sign-in")) == (
                    303,
                    True,
                ), path
            else:
                assert asked.status_code == 401 and "You are signed out" in asked.text, path
            program = await client.request(
                method, filled(path, "x"), headers={"Accept": "application/json"}
            )
            assert (program.status_code, program.json()["error"]) == (401, "unauthorized"), path


@pytest.mark.parametrize("character", ["owner", "member", "viewer", "stranger"])
async def test_no_form_is_taken_without_its_token(house: House, character: str) -> None:
    async with await browser(house, character) as client:
        for method, path in [*ROWS, *OPEN]:
            if method == "POST":
                refused = await client.post(
                    filled(path, "x"),
                    data={"csrf": "0" * 43},
                    headers={"Accept": "application/json"},
                )
                assert refused.status_code == 403, path


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if not row.own], ids=" ".join)
async def test_viewers_read_and_strangers_see_nothing(house: House, name: tuple[str, str]) -> None:
    (method, path), row = name, ROWS[name]
    for character in (
        "stranger",
        "viewer",
        "member",
        "owner",
    ):  # the owner last: what they do may be for good
        made = await target(house, row.target)
        async with await browser(house, character) as client:
            answer = await send(
                client,
                method,
                filled(path, made),
                row,
                **({IN_FORM[row.target]: made} if row.target in IN_FORM else {}),
            )
            refused = (
                (character == "viewer" and row.writes)
                or (character in ("viewer", "member") and row.hosts)
                or (character != "owner" and row.only_operator)
            )
            # A member sees of tokens and steps only their own.
            unseen = row.target is not None and (
                character == "stranger"
                or (character == "member" and row.target in ("token", "webhook", "step"))
            )
            taken = {row.answer, 303} if method == "POST" else {row.answer}
            expected = {403} if refused else {404} if unseen else taken
            assert answer.status_code in expected, (character, answer.status_code, answer.text)


async def test_pages_that_are_not_there(house: House) -> None:
    async with await browser(house, "owner") as client:
        for path in ("/nowhere", "/items/zzzzzzzzzzzz", "/static/x/nothing.js"):
            answer = await client.get(path)
            assert answer.status_code == 404
            assert "Not found" in answer.text and answer.headers["content-type"].startswith(
                "text/html"
            )
        assert (await client.post("/")).status_code == 405


@pytest.mark.parametrize("accept", ["text/html", "application/json"])
async def test_programs_with_a_token_are_told_that_there_is_nothing(
    house: House, accept: str
) -> None:
    async with house.client("reader") as known, house.client("revoked") as unknown:
        for method in ("GET", "POST", "PUT", "DELETE"):
            missing = await known.request(method, "/nope", headers={"Accept": accept})
            assert (missing.status_code, missing.json()["error"]) == (404, "not_found"), method
            refused = await unknown.request(method, "/nope", headers={"Accept": accept})
            assert (refused.status_code, refused.json()["error"]) == (401, "unauthorized"), method
        page = await known.get("/account", headers={"Accept": "application/json"})
        assert page.status_code == 401, "pages are for people, whatever token comes with it"


@pytest.mark.parametrize("character", [None, "reader", "revoked"])
async def test_nothing_else_is_well_known(house: House, character: str | None) -> None:
    async with house.client(character) as client:
        for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"):
            for path in ("openid-configuration", "oauth-authorization-server/mcp"):
                answer = await client.request(
                    method, f"/.well-known/{path}", headers={"Accept": "text/html"}
                )
                assert answer.status_code == 404, (method, path)
                assert answer.headers["content-type"] == "application/json"
                assert method == "HEAD" or answer.json()["error"] == "not_found"
    async with await browser(house, "owner") as owner:
        assert (await owner.get("/.well-known/change-password")).json()["error"] == "not_found"


async def test_no_database_is_asked_for_what_none_can_keep(house: House) -> None:
    async with await browser(house, "owner") as client, await browser(house, "nobody") as nobody:
        assert (await nobody.get("/d/%00")).status_code == 422
        for method, path in [*ROWS, *OPEN]:
            if method == "GET":
                assert (
                    await client.get(filled(path, "%00") if "{" in path else f"{path}?q=%00")
                ).status_code == 422, path
        sent = await send(
            client,
            "POST",
            "/add",
            Row(form=(("text", "A note that is long enough\0 to be kept."),)),
        )
        assert (sent.status_code, sent.json()["message"]) == (
            422,
            "The request contains a NUL character. Remove it and try again.",
        )


async def test_scripts_and_styles_come_packed_to_who_can_unpack_them(house: House) -> None:
    async with await browser(house, "nobody") as client:
        packed = await client.get("/static/x/style.css", headers={"Accept-Encoding": "gzip, br"})
        plain = await client.get("/static/x/style.css", headers={"Accept-Encoding": "identity"})
        assert packed.text == plain.text and len(plain.content) > 3 * int(
            packed.headers["content-length"]
        )
        assert (
            packed.headers["content-encoding"] == "gzip" and "content-encoding" not in plain.headers
        )
        assert packed.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"
        page = await client.get("/sign-in", headers={"Accept-Encoding": "gzip"})
        assert "content-encoding" not in page.headers


async def test_every_answer_carries_the_strict_policy(house: House) -> None:
    async with await browser(house, "owner") as client:
        for path in (
            "/",
            "/search?q=zebra",
            "/account",
            "/nowhere",
            "/sign-in",
            "/static/x/app.js",
        ):
            headers = (await client.get(path)).headers
            assert "unsafe" not in headers["content-security-policy"]
            assert headers["content-security-policy"].startswith(
                "default-src 'none'; script-src 'self'; style-src 'self'"
            )
            assert headers["x-content-type-options"] == "nosniff"
