"""OAuth clients: registration, documents about them, those that the operator creates, and proxies that sign people in."""

import json
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from commonplace.core.people import oauth_clients
from commonplace.errors import ConfigurationError
from commonplace.interfaces.cli.command import CommandContext
from commonplace.interfaces.cli.server import _greet
from commonplace.settings import Settings
from tests.interfaces.command import Commands
from tests.interfaces.conftest import Clock, OpenHouse
from tests.interfaces.house import ADDRESS, House, open_house
from tests.interfaces.oauth_flow import (
    LOOPBACK,
    PAGE,
    REDIRECT,
    Person,
    Program,
    connected,
    owner_of,
    person_of,
    returned,
)
from tests.webserver import WebServer, certificate_for, page, redirect, web_server

pytestmark = pytest.mark.anyio

# -- redirects

GOOD = (
    "https://claude.ai/api/mcp/auth_callback",
    "https://claude.com/api/mcp/auth_callback",
    "https://chatgpt.com/connector/oauth/AbC_1-2",
    "https://chatgpt.com/connector_platform_oauth_redirect",
    "cursor://anysphere.cursor-mcp/oauth/callback",
    "https://vscode.dev/redirect",
    "http://127.0.0.1:33418/",
    "http://127.0.0.1:33418",
    "http://localhost:7777/oauth/callback",
    "http://[::1]:7777/cb?one=1",
    "com.example.app:/done",
)
HOSTILE = (
    "javascript:alert(1)",
    "JavaScript:alert(1)",
    "data:text/html,hello",
    "file:///etc/passwd",
    "blob:https://claude.ai/1",
    "vbscript:x",
    "ms-msdt:/id",
    "search-ms:query=x",
    "shell:startup",
    "c:/windows",
    "ftp://example.org/cb",
    "http://evil.example/cb",
    "http://localhost.evil.example/cb",
    "http://127.0.0.1@evil.example/cb",
    "https://user:pass@example.org/cb",
    "https://example.org/cb#part",
    "https://example.org/cb\\@evil.example",
    "https://example.org;script-src/cb",
    "https://example.org/a b",
    "https://exämple.org/cb",
    "https:///cb",
    "https://example.org:99999/cb",
    "https://example.org/" + "x" * 2000,
    "/callback",
    "",
)


@pytest.mark.parametrize("uri", GOOD)
async def test_known_clients_get_their_code_where_they_ask(house: House, uri: str) -> None:
    program = Program(house.client(), redirect_uri=uri)
    assert (await program.register()).status_code == 201
    answer = await (await owner_of(house)).decide(program.request())
    assert answer.headers["location"].startswith(uri.partition("?")[0])
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert (await program.redeem(returned(answer)["code"])).status_code == 200


@pytest.mark.parametrize("uri", HOSTILE)
async def test_hostile_redirects_are_refused(house: House, uri: str) -> None:
    program = Program(house.client(), redirect_uri=uri)
    answer = await program.register()
    assert answer.status_code == 400
    assert answer.json()["error"] in ("invalid_redirect_uri", "invalid_client_metadata")


async def test_programs_choose_their_port_and_nothing_else(house: House) -> None:
    program = Program(house.client(), redirect_uri="http://localhost/callback")
    await program.register()
    person = await owner_of(house)
    for uri, good in (
        ("http://localhost:3118/callback", True),
        ("http://localhost:3118/callback/", False),
        ("http://localhost:3118/callback?more=1", False),
        ("http://127.0.0.1:3118/callback", False),
        ("https://localhost:3118/callback", False),
        ("http://evil.example:3118/callback", False),
        ("http://localhost:3118/callback#part", False),
        ("http://somebody@localhost:3118/callback", False),
        ("http://evil.example\\@localhost:3118/callback", False),
        ("http://x; script-src *;@localhost:3118/callback", False),
        (" http://localhost:3118/callback", False),
    ):
        answer = await person.open(**program.request(redirect_uri=uri))
        assert (answer.status_code == 200) is good, uri
    program.redirect_uri = "http://localhost:3118/callback"
    back = returned(await person.decide(program.request()))
    assert (await program.redeem(back["code"])).status_code == 200


async def test_a_redirect_may_be_left_out_if_there_is_one(house: House) -> None:
    program = Program(house.client())
    await program.register()
    person = await owner_of(house)
    back = await person.decide(program.request(redirect_uri=None))
    assert back.headers["location"].startswith(f"{REDIRECT}?")
    form = {
        "grant_type": "authorization_code",
        "code": returned(back)["code"],
        "code_verifier": program.verifier,
    }
    assert (await program.token(**form)).status_code == 200
    await program.register(redirect_uris=[REDIRECT, LOOPBACK])
    assert (await person.open(**program.request(redirect_uri=None))).status_code == 400


# -- registration


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b"null",
        b'{"redirect_uris": null}',
        b'{"redirect_uris": []}',
        b'{"redirect_uris": "https://example.org"}',
        b'{"redirect_uris": [1]}',
        b"[" * 5000,
        json.dumps({"redirect_uris": [f"https://example.org/{n}" for n in range(11)]}).encode(),
        b'{"redirect_uris": ["https://example.org"], "grant_types": ["implicit"]}',
        b'{"redirect_uris": ["https://e.org"], "token_endpoint_auth_method": "private_key_jwt"}',
    ],
)
async def test_bad_registrations_are_refused(house: House, body: bytes) -> None:
    async with house.client() as client:
        answer = await client.post("/oauth/register", content=body)
    assert answer.status_code == 400
    assert answer.json()["error"] in ("invalid_redirect_uri", "invalid_client_metadata")


async def test_empty_and_null_fields_of_a_registration_are_left_out(house: House) -> None:
    names = ("scope", "client_uri", "logo_uri", "contacts", "grant_types", "response_types")
    also = ("application_type", "token_endpoint_auth_method", "software_id", "jwks")
    for empty in (None, ""):
        program = Program(house.client())
        answer = await program.register(**dict.fromkeys(names + also, empty))
        assert answer.status_code == 201, answer.text
        assert answer.json()["token_endpoint_auth_method"] == "none"
        assert answer.json()["scope"] == "read write" and program.secret is None


async def test_a_client_that_insists_gets_a_secret_that_is_kept_as_a_hash(house: House) -> None:
    program = Program(house.client())
    answer = (await program.register(token_endpoint_auth_method="client_secret_basic")).json()
    assert answer["client_secret"] == program.secret and answer["client_secret_expires_at"] == 0
    stored = await house.app.store.oauth.client(program.client_id)
    assert stored and program.secret and program.secret not in repr(stored)


@pytest.mark.parametrize("way", ["basic", "post"])
async def test_secrets_are_checked_in_the_header_and_in_the_body(house: House, way: str) -> None:
    program = Program(house.client())
    await program.register(token_endpoint_auth_method=f"client_secret_{way}")
    back = returned(await (await owner_of(house)).decide(program.request()))
    form = {
        "grant_type": "authorization_code",
        "code": back["code"],
        "redirect_uri": program.redirect_uri,
        "code_verifier": program.verifier,
    }

    async def ask(secret: str, path: str = "/oauth/token", **form: str) -> httpx.Response:
        who = {"client_id": program.client_id, "client_secret": secret}
        if way == "post":
            return await program.http.post(path, data=form | who)
        return await program.http.post(path, data=form, auth=(program.client_id, secret))

    assert program.secret
    for secret in ("", "wrong", program.secret.upper()):
        answer = await ask(secret, **form)
        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
        assert ("Basic" in answer.headers.get("www-authenticate", "")) is (way == "basic")
    assert (await program.redeem(back["code"])).status_code == 401  # as if it were public
    issued = (await ask(program.secret, **form)).json()
    again = {"grant_type": "refresh_token", "refresh_token": issued["refresh_token"]}
    renewed = (await ask(program.secret, **again)).json()
    done = await ask(program.secret, "/oauth/revoke", token=renewed["refresh_token"])
    assert done.status_code == 200
    again["refresh_token"] = renewed["refresh_token"]
    assert (await ask(program.secret, **again)).status_code == 400


async def test_the_header_cannot_name_another_client_than_the_body(house: House) -> None:
    program, other = await connected(house), Program(house.client())
    await other.register(token_endpoint_auth_method="client_secret_basic")
    assert other.secret
    victim = Program(house.client())
    await victim.register(token_endpoint_auth_method="client_secret_post")
    form = {"grant_type": "refresh_token", "refresh_token": program.refresh}
    answer = await other.http.post(
        "/oauth/token",
        data=form | {"client_id": victim.client_id},
        auth=(other.client_id, other.secret),
    )
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
    for header in (b"Basic !!!", "Basic é".encode(), b"Basic", b"Basic /v8="):
        for path in ("/oauth/token", "/oauth/revoke"):
            answer = await other.http.post(path, data=form, headers={b"Authorization": header})
            assert answer.status_code == 401
    for client_id in (
        "",
        "cl_\0",
        "cl_é",
        "x" * 9000,
        "https://[",
    ):
        answer = await other.http.post("/oauth/token", data=form | {"client_id": client_id})
        assert answer.status_code in (400, 401)


async def test_token_requests_are_forms_without_files(house: House) -> None:
    program = await connected(house)
    fields = {"grant_type": "refresh_token", "client_id": program.client_id}
    token = {"refresh_token": program.refresh}
    file = {"refresh_token": ("token", program.refresh)}
    for sent in ({"json": fields | token}, {"data": fields, "files": file}, {"content": b"\xff"}):
        answer = await program.http.post("/oauth/token", **sent)  # type: ignore[arg-type]
        assert answer.status_code in (400, 401)
    assert (await program.renew()).status_code == 200


async def test_unused_clients_are_deleted(house: House, clock: Clock) -> None:
    created, _ = await house.app.oauth.clients.create("Console", [REDIRECT])
    used, unused = await connected(house), Program(house.client())
    await unused.register()

    async def left() -> set[str]:
        await house.app.store.oauth.tidy()
        return {client.id for client in await house.app.oauth.clients.all()}

    assert await left() == {created.id, used.client_id, unused.client_id}
    clock.advance(hours=25)
    assert await left() == {created.id, used.client_id}
    clock.advance(days=179)
    assert await left() == {created.id}


# -- documents


@pytest.fixture
def documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WebServer]:
    """An https server on this machine, which the fetcher believes."""
    context = certificate_for("localhost", tmp_path)
    trusting = ssl.create_default_context(cafile=tmp_path / "server.pem")
    monkeypatch.setattr(
        "commonplace.adapters.fetch.client.httpx.create_ssl_context", lambda **_: trusting
    )
    with web_server(context) as server:
        yield server


@pytest.fixture
async def reaching(documents: WebServer, data_dir: Path) -> AsyncIterator[House]:
    async with open_house(data_dir, fetch_allow_hosts=f"localhost:{documents.port}") as house:
        yield house


def document(server: WebServer, **changes: Any) -> str:
    """Serve a document, and return its address, which is the client's id."""
    url = f"https://localhost:{server.port}/client.json"
    found = {
        "client_id": url,
        "client_name": "Claude <b>Code</b>",
        "redirect_uris": ["http://localhost/callback", REDIRECT],
        "token_endpoint_auth_method": "none",
    } | changes
    body = json.dumps({name: each for name, each in found.items() if each is not None})
    server.pages["/client.json"] = page(body, "application/json")
    return url


async def test_a_client_may_be_the_address_of_its_document(
    reaching: House, documents: WebServer, clock: Clock
) -> None:
    url = document(documents)
    program = Program(reaching.client(), client_id=url)
    program.redirect_uri = "http://localhost:3118/callback"
    person = await owner_of(reaching)
    shown = await person.open(**program.request())
    assert "verified: localhost" in shown.text and "Claude &lt;b&gt;Code" in shown.text
    back = returned(await person.decide(program.request()))
    assert (await program.redeem(back["code"])).status_code == 200
    assert len(documents.requests) == 1  # the rest came from the cache
    clock.advance(minutes=61)
    documents.pages["/client.json"] = page("gone", status=404)
    assert (await program.renew()).status_code == 200  # needs no document
    assert (await person.open(**program.request())).status_code == 400


@pytest.mark.parametrize(
    ("rule", "hours"),
    [
        ("max-age=60", 1),
        ("public, Max-Age=7200", 2),
        ("max-age=999999999999", 24),
        ("no-cache, max-age=7200", 1),
        ("max-age=soon", 1),
    ],
)
async def test_documents_are_kept_as_long_as_they_say_within_bounds(
    reaching: House, documents: WebServer, clock: Clock, rule: str, hours: int
) -> None:
    program = Program(reaching.client(), client_id=document(documents))
    body = json.dumps({"client_id": program.client_id, "redirect_uris": [REDIRECT]})
    documents.pages["/client.json"] = page(body, "application/json", Cache_Control=rule)
    for later, fetched in ((0, 1), (hours * 60 - 1, 1), (2, 2)):
        clock.advance(minutes=later)
        person = await owner_of(reaching)
        assert (await person.open(**program.request())).status_code == 200
        assert len(documents.requests) == fetched


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"client_id": "https://claude.ai/other.json"}, "is not its address"),
        ({"client_id": None}, "is no client metadata document"),
        ({"redirect_uris": None}, "is no client metadata document"),
        ({"redirect_uris": [1]}, "not a list"),
        ({"redirect_uris": ["cursor://x/cb"]}, "not allowed"),
        ({"redirect_uris": ["http://evil.example/cb"]}, "not allowed"),
        ({"token_endpoint_auth_method": "private_key_jwt"}, "not supported"),
    ],
)
async def test_wrong_documents_are_refused(
    reaching: House, documents: WebServer, changes: dict[str, Any], said: str
) -> None:
    program = Program(reaching.client(), client_id=document(documents, **changes))
    answer = await (await owner_of(reaching)).open(**program.request())
    assert answer.status_code == 400 and said in answer.text
    assert "COMMONPLACE_OAUTH_CLIENT_DOCUMENTS=off" in answer.text


@pytest.mark.parametrize("kind", ["redirect", "large", "slow", "html", "broken", "array", "error"])
async def test_documents_that_misbehave_are_refused_and_asked_for_once_a_minute(
    reaching: House,
    documents: WebServer,
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
    clock: Clock,
) -> None:
    url = document(documents)
    good = documents.pages["/client.json"]
    documents.pages["/elsewhere"] = good
    document(documents, padding="x" * 70_000)
    large = documents.pages["/client.json"]
    documents.pages["/client.json"] = {
        "redirect": redirect("/elsewhere"),
        "large": large,
        "slow": lambda wire: wire.hang(),
        "html": page("<html>", "text/html"),
        "broken": page("{", "application/json"),
        "array": page("[" * 5000, "application/json"),
        "error": page("{}", "application/json", 500),
    }[kind]
    monkeypatch.setattr(oauth_clients, "DOCUMENT_SECONDS", 0.5)
    program, person = Program(reaching.client(), client_id=url), await owner_of(reaching)
    for _ in range(2):
        answer = await person.open(**program.request())
        assert answer.status_code == 400 and "location" not in answer.headers
    assert len(documents.requests) == 1
    documents.pages["/client.json"] = good
    clock.advance(seconds=61)
    assert (await person.open(**program.request())).status_code == 200


async def test_documents_in_private_networks_are_refused(house: House) -> None:
    person = await owner_of(house)
    for host in ("127.0.0.1:9", "localhost:9", "10.0.0.1", "169.254.169.254", "[::1]:9", "0x7f.1"):
        program = Program(house.client(), client_id=f"https://{host}/client.json")
        answer = await person.open(**program.request())
        assert answer.status_code == 400 and "private network" in answer.text, answer.text


@pytest.mark.parametrize(
    "client_id",
    [
        "http://localhost/client.json",
        "https://example.org",
        "https://example.org/",
        "https://example.org/a/../client.json",
        "https://user@example.org/client.json",
        "https://example.org/client.json#part",
        "https://example.org/cli ent.json",
        "ftp://example.org/client.json",
    ],
)
async def test_what_is_no_address_of_a_document_is_not_fetched(
    house: House, client_id: str
) -> None:
    program = Program(house.client(), client_id=client_id)
    answer = await (await owner_of(house)).open(**program.request())
    assert answer.status_code == 400 and "not known here" in answer.text


async def test_documents_can_be_turned_off(documents: WebServer, house_with: OpenHouse) -> None:
    allowed = f"localhost:{documents.port}"
    async with house_with(fetch_allow_hosts=allowed, oauth_client_documents=False) as house:
        program = Program(house.client(), client_id=document(documents))
        answer = await (await owner_of(house)).open(**program.request())
        assert answer.status_code == 400 and documents.requests == []
    for value, on in (("off", False), ("on", True), ("false", False)):
        env = {"COMMONPLACE_OAUTH_CLIENT_DOCUMENTS": value}
        assert Settings.from_env(env).oauth_client_documents is on


async def test_documents_are_limited_by_address(reaching: House, documents: WebServer) -> None:
    person = await owner_of(reaching)
    answers = []
    for n in range(21):
        url = f"https://localhost:{documents.port}/{n}"
        answers.append(await person.open(**Program(person.http, url).request()))
    assert [answer.status_code for answer in answers] == [400] * 20 + [429]
    assert int(answers[-1].headers["retry-after"]) > 0
    assert len(documents.requests) == 20


# -- clients that the operator creates


async def test_the_operator_creates_lists_and_deletes_clients(house: House, data_dir: Path) -> None:
    cli = Commands(data_dir)
    made = await _in_thread(
        cli.json, "oauth", "client", "create", "--name", "Claude", "--redirect", REDIRECT
    )
    assert made["id"].startswith("cl_") and len(made) == 2
    program = Program(house.client(), made["id"], made["secret"])
    page = await (await owner_of(house)).open(**program.request())
    assert "created by this server's operator" in page.text
    back = returned(await (await owner_of(house)).decide(program.request()))
    answer = await program.redeem(back["code"], client_secret=made["secret"])
    assert answer.status_code == 200
    [listed] = (await _in_thread(cli.json, "oauth", "client", "list"))["clients"]
    assert (listed["id"], listed["name"], listed["source"]) == (made["id"], "Claude", "created")
    assert listed["last_used_at"] and made["secret"] not in json.dumps(listed)
    assert "Claude" in await _in_thread(cli.text, "oauth", "client", "list")
    await _in_thread(cli.text, "oauth", "client", "delete", made["id"])
    async with house.client(token=program.access) as client:
        assert (await client.post("/mcp", json={})).status_code == 401
    for arguments in (
        ("delete", made["id"]),
        ("create", "--name", "X", "--redirect", "javascript:alert(1)"),
    ):
        result = await _in_thread(cli.run, "oauth", "client", *arguments)
        assert result.exit_code == 1
    token = await house.token("agent", write=True)
    result = await _in_thread(cli.run, "oauth", "client", "list", "--token", token)
    assert result.exit_code == 1 and "Only the owner" in result.stderr


async def _in_thread(run: Any, *arguments: object) -> Any:
    """The command line has an event loop of its own."""
    import asyncio

    return await asyncio.to_thread(run, *arguments)


# -- people that a proxy has signed in

PROXY, ELSEWHERE = "10.1.2.3", "203.0.113.9"
HEADER = "Remote-Email"


def behind(house: House, peer: str, *emails: str, **headers: str) -> Person:
    lines = [*PAGE.items(), *headers.items(), *((HEADER, email) for email in emails)]
    transport = httpx.ASGITransport(house.asgi, client=(peer, 1))
    return Person(httpx.AsyncClient(transport=transport, base_url=ADDRESS, headers=lines))


async def test_a_trusted_proxy_signs_people_in(house_with: OpenHouse) -> None:
    async with house_with(auth_proxy_header=HEADER, trusted_proxies="10.0.0.0/8") as house:
        stranger = behind(house, PROXY, "STRANGER@example.org", **{"X-Forwarded-For": ELSEWHERE})
        account = await stranger.http.get("/account")
        assert account.status_code == 200 and "stranger@example.org" in account.text
        program = Program(house.client())
        await program.register()
        back = returned(await stranger.decide(program.request()))
        assert (await program.redeem(back["code"])).status_code == 200
        caller = await house.app.access.identify(program.access, mcp=True)
        assert caller.person_id == house.stranger.person_id
        # Another person than that of the cookie.
        stranger.http.headers[HEADER] = "owner@localhost"
        assert "owner@localhost" in (await stranger.http.get("/account")).text
        assert (await behind(house, PROXY, "no@example.org").http.get("/")).status_code == 403
        for empty in (behind(house, PROXY), behind(house, PROXY, "")):
            assert (await empty.http.get("/account")).status_code == 303


async def test_nobody_else_is_believed(house_with: OpenHouse) -> None:
    owner = "owner@localhost"
    async with house_with(auth_proxy_header=HEADER, trusted_proxies=PROXY) as house:
        forwarded = {"X-Forwarded-For": PROXY, "Forwarded": f"for={PROXY}"}
        for who in (
            behind(house, ELSEWHERE, owner),
            behind(house, ELSEWHERE, owner, **forwarded),
            behind(house, "127.0.0.1", owner, **forwarded),
            behind(house, PROXY, owner, "stranger@example.org"),
        ):
            for path in ("/account", "/", "/tokens", "/oauth/authorize"):
                assert (await who.http.get(path)).status_code == 403, path
        for path in ("/api/v1/me", "/mcp"):  # only for the web app
            answer = await behind(house, PROXY, owner).http.post(path)
            assert answer.status_code == 401
        before = len(await house.app.store.accounts.sessions(house.owner.person_id))
        assert before == 0


async def test_the_header_of_a_proxy_is_off_by_default(house_with: OpenHouse) -> None:
    owner = "owner@localhost"
    async with house_with(trusted_proxies=PROXY) as house:
        assert (await behind(house, PROXY, owner).http.get("/account")).status_code == 303


def test_the_header_of_a_proxy_needs_a_proxy() -> None:
    for env in (
        {"AUTH_PROXY_HEADER": "Remote-Email"},
        {"AUTH_PROXY_HEADER": "Remote Email", "TRUSTED_PROXIES": PROXY},
        {"AUTH_PROXY_HEADER": "Remote-Email:", "TRUSTED_PROXIES": PROXY},
        {"OAUTH_ACCESS_MINUTES": "0"},
    ):
        with pytest.raises(ConfigurationError):
            Settings.from_env({f"COMMONPLACE_{name}": value for name, value in env.items()})


def test_serve_says_how_to_sign_in_before_clients_can_connect(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for public, said in (("https://kb.example.org", True), ("", False)):
        context = CommandContext(Settings(public_url=public), None, False)
        _greet(context, ADDRESS, None, "secret", False)
        shown = capsys.readouterr().out
        assert "/claim/secret" in shown and ("no client can connect" in shown) is said


async def test_without_a_way_to_sign_in_nobody_connects_a_public_server(
    house_with: OpenHouse,
) -> None:
    async with house_with(public_url=ADDRESS) as house:
        program = Program(house.client())
        await program.register()
        session = await house.app.accounts.open_session(house.owner.person_id, "")
        answer = await person_of(house, session).decide(program.request())
        assert "code=" not in answer.headers.get("location", "")
        secret = await house.app.accounts.first_invitation()
        assert secret
        await house.app.accounts.claim(
            secret, "Ada", "ada@example.org", "a long enough password", about=""
        )
        session = await house.app.accounts.open_session(house.owner.person_id, "")
        back = returned(await person_of(house, session).decide(program.request()))
        assert back["code"]
