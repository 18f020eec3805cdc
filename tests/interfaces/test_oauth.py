"""OAuth: a client asks, a person consents, and what the client gets is good for that and no more."""

import asyncio
import gzip
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from commonplace.app import make_asgi, open_app
from commonplace.core.people.authorization import digest
from commonplace.model import Role
from commonplace.settings import Settings
from tests.interfaces.conftest import Clock, OpenHouse
from tests.interfaces.house import ADDRESS, NO_LIMITS, House, call_tool, rpc
from tests.interfaces.oauth_flow import (
    REDIRECT,
    Program,
    challenge_of,
    connected,
    owner_of,
    person_of,
    returned,
)

pytestmark = pytest.mark.anyio
ENDPOINTS = ("/mcp", "/mcp/core", "/mcp/knowledge", "/mcp/graph", "/mcp/disks", "/api/mcp")
METADATA = "/.well-known/oauth-protected-resource"


async def works(house: House, access: str, path: str = "/mcp") -> bool:
    async with house.client(token=access) as client:
        answer = await client.post(
            path,
            json={"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
            headers={
                "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": "2025-11-25",
            },
        )
        assert answer.status_code in (200, 401), answer.text
        return answer.status_code == 200


async def activity(house: House, program: Program) -> list[tuple[str, bool]]:
    grant = await house.app.access.identify(program.access, mcp=True)
    assert grant.token_id
    events = await house.app.people.activity(house.owner, grant.token_id)
    return [(event.action, event.ok) for event in events]


# -- metadata and challenges


async def test_metadata_names_each_endpoint_and_an_issuer_without_a_slash(house: House) -> None:
    assert set(house.asgi.endpoints) == set(ENDPOINTS)
    async with house.client() as client:
        for path in ("", *ENDPOINTS):
            answer = await client.get(METADATA + path)
            found = answer.json()
            assert found["resource"] == ADDRESS + path
            assert found["authorization_servers"] == [ADDRESS]
            assert found["bearer_methods_supported"] == ["header"]
            assert answer.headers["access-control-allow-origin"] == "*"
        server = (await client.get("/.well-known/oauth-authorization-server")).json()
        assert server["issuer"] == ADDRESS
        assert server["code_challenge_methods_supported"] == ["S256"]
        assert "none" in server["token_endpoint_auth_methods_supported"]
        assert server["client_id_metadata_document_supported"] is True
        assert server["authorization_response_iss_parameter_supported"] is True
        for name in ("authorization", "token", "registration", "revocation"):
            assert server[f"{name}_endpoint"].startswith(f"{ADDRESS}/oauth/")
        for path in ("/.well-known/openid-configuration", METADATA + "/mcp/else", "/.well-known/x"):
            assert (await client.get(path)).status_code == 404


async def test_metadata_follows_the_public_address_and_the_setting(house_with: OpenHouse) -> None:
    async with (
        house_with(public_url="https://kb.example.org/", oauth_client_documents=False) as house,
        house.client() as client,
    ):
        client.base_url = httpx.URL("https://kb.example.org")
        server = (await client.get("/.well-known/oauth-authorization-server")).json()
        assert server["issuer"] == "https://kb.example.org"
        assert "client_id_metadata_document_supported" not in server
        challenge = (await client.post("/mcp/core")).headers["www-authenticate"]
        assert f'"https://kb.example.org{METADATA}/mcp/core"' in challenge


@pytest.mark.parametrize(
    ("path", "metadata"),
    [
        *((path, METADATA + path) for path in ENDPOINTS),
        ("/mcp/", METADATA + "/mcp"),
        ("/api/v1/items", METADATA),
        ("/api/tasks", METADATA),
        ("/api/v1/nowhere", METADATA),
    ],
)
async def test_a_401_says_where_to_ask_for_access(house: House, path: str, metadata: str) -> None:
    async with house.client() as client:
        expected = (
            f'Bearer realm="commonplace", resource_metadata="{ADDRESS}{metadata}", '
            'scope="read write"'
        )
        answer = await client.post(path)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, expected)
        for wrong in ("sk_wrong", "co_wrong", "a.b.c"):
            answer = await client.post(path, headers={"Authorization": f"Bearer {wrong}"})
            assert answer.status_code == 401
            assert 'error="invalid_token"' in answer.headers["www-authenticate"]
            assert metadata in answer.headers["www-authenticate"]


async def test_a_missing_capability_is_an_insufficient_scope(house: House) -> None:
    async with house.client("reader") as client:
        answer = await client.post("/api/v1/folders", json={"name": "New"})
    assert (answer.status_code, answer.json()["error"]) == (403, "capability_denied")
    challenge = answer.headers["www-authenticate"]
    assert 'error="insufficient_scope"' in challenge and 'scope="read write"' in challenge


# -- CORS


@pytest.mark.parametrize(
    "path",
    [
        "/mcp",
        "/mcp/core",
        "/api/mcp",
        "/api/v1/items",
        "/oauth/token",
        "/oauth/register",
        "/oauth/revoke",
        "/.well-known/oauth-authorization-server",
        METADATA,
    ],
)
async def test_pages_of_any_origin_may_call_what_reads_no_cookies(house: House, path: str) -> None:
    asked = {
        "Origin": "https://elsewhere.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,mcp-protocol-version",
    }
    async with house.client() as client:
        preflight = await client.options(path, headers=asked)
        assert preflight.status_code == 204
        assert preflight.headers["access-control-allow-origin"] == "*"
        assert "authorization" in preflight.headers["access-control-allow-headers"]
        assert "access-control-allow-credentials" not in preflight.headers
        answer = await client.post(path, headers={"Origin": "https://elsewhere.example"})
        assert answer.status_code not in (403, 421, 500)
        assert answer.headers["access-control-allow-origin"] == "*"
        assert "WWW-Authenticate" in answer.headers["access-control-expose-headers"]
        assert (await client.options(path, headers=asked | {"Host": "evil"})).status_code == 421


async def test_the_web_app_and_consent_stay_closed_to_other_origins(house: House) -> None:
    person = await owner_of(house)
    for path in ("/oauth/authorize", "/tokens", "/sign-in"):
        answer = await person.http.post(path, headers={"Origin": "https://evil.example"})
        assert (answer.status_code, answer.json()["error"]) == (403, "forbidden_origin")
        assert "access-control-allow-origin" not in answer.headers


# -- a connection


async def test_a_person_connects_a_client(house: House) -> None:
    program = Program(house.client())
    registered = (await program.register(scope="openid email profile")).json()
    assert registered["client_id"].startswith("cl_") and "client_secret" not in registered
    assert registered["token_endpoint_auth_method"] == "none"
    assert registered["scope"] == "read write"
    person = await owner_of(house)
    page = await person.open(**program.request(scope="read write offline_access openid"))
    assert "Probe" in page.text and "unverified, registered itself" in page.text
    assert "claude.ai" in page.text
    back = returned(await person.decide(program.request()))
    assert (back["state"], back["iss"]) == ("s1", ADDRESS) and back["code"].startswith("cc_")
    answer = await program.redeem(back["code"])
    assert answer.headers["cache-control"] == "no-store"
    token = answer.json()
    assert (token["token_type"], token["expires_in"], token["scope"]) == (
        "Bearer",
        3600,
        "read write",
    )
    assert program.access.startswith("co_") and program.refresh.startswith("cr_")
    async with house.client(token=program.access) as client:
        note = {"title": "Herons", "content": "Herons stand in the river.", "kind": "text"}
        added = await call_tool(
            client, "add_to_knowledge", {"kind": "text", "title": "T", "text": note["content"]}
        )
        assert added["result"]["structuredContent"]["status"] == "ready"
    [grant] = [t for t in await house.app.people.tokens(house.owner) if t.kind == "oauth"]
    assert (grant.name, grant.redirect_host, grant.folders) == ("Probe", "claude.ai", None)
    names = [action for action, _ in await activity(house, program)]
    assert names == ["add", "oauth_token_issued", "oauth_granted"]
    stored = house.app.settings.data_dir.glob("commonplace.sqlite3*")
    kept = b"".join(file.read_bytes() for file in stored)
    for secret in (back["code"], program.access, program.refresh):
        assert secret.encode() not in kept and secret[3:].encode() not in kept


async def test_cancel_and_errors_go_back_with_state_and_issuer(house: House) -> None:
    program = Program(house.client())
    await program.register()
    person = await owner_of(house)
    asked = program.request()
    assert returned(await person.decide(asked, "cancel")) == {
        "error": "access_denied",
        "state": "s1",
        "iss": ADDRESS,
    }
    for change, error in (
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"code_challenge": "é" * 43}, "invalid_request"),
        ({"code_challenge": challenge_of("v") + "="}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"resource": "https://other.example/mcp"}, "invalid_target"),
        ({"resource": f"{ADDRESS}/mcp/else"}, "invalid_target"),
    ):
        answer = await person.open(**program.request(**change))  # type: ignore[arg-type]
        assert answer.headers["location"].startswith(f"{REDIRECT}?")
        back = returned(answer)
        assert (back["error"], back["state"], back["iss"]) == (error, "s1", ADDRESS)
    nobody = person_of(house, None)
    for each in (person, nobody):
        back = returned(await each.open(**asked, prompt="none"))
        assert (back["error"], back["state"]) == ("login_required", "s1")
    for resource in (*ENDPOINTS, "", "/"):
        page = await person.open(**asked, resource=ADDRESS + resource)
        assert page.status_code == 200


async def test_errors_before_client_and_redirect_are_known_never_redirect(house: House) -> None:
    program = Program(house.client())
    await program.register()
    person = await owner_of(house)
    for change in (
        {"client_id": "cl_unknown"},
        {"client_id": "cl_<script>alert(1)</script>"},
        {"client_id": None},
        {"redirect_uri": "https://evil.example/cb"},
        {"redirect_uri": REDIRECT + "/"},
        {"redirect_uri": REDIRECT.replace("claude.ai", "claude.ai:8443")},
        {"redirect_uri": REDIRECT + "?more=1"},
        {"redirect_uri": "javascript:alert(1)"},
        {"redirect_uri": "https://evil.example/cb", "response_type": "token"},
        {"client_id": "cl_unknown", "code_challenge_method": "plain"},
    ):
        answer = await person.open(**program.request(**change))  # type: ignore[arg-type]
        assert answer.status_code == 400 and "location" not in answer.headers
        assert answer.headers["content-type"].startswith("text/html")
        assert "Cannot connect" in answer.text and "<script>alert" not in answer.text


async def test_who_is_not_signed_in_signs_in_first_and_comes_back(house: House) -> None:
    program = Program(house.client())
    await program.register()
    nobody = person_of(house, None)
    forwarded = {"X-Forwarded-For": "127.0.0.1", "Forwarded": "for=127.0.0.1", "CF-Ray": "1"}
    for headers in ({}, forwarded):
        nobody.http.headers.update(headers)
        answer = await nobody.open(**program.request())
        where = answer.headers["location"]
        assert answer.status_code == 303 and where.startswith("/sign-in?next=/oauth/authorize%3F")
        assert answer.headers["cross-origin-opener-policy"] == "unsafe-none"
        page = await nobody.http.get(where)
        assert page.headers["cross-origin-opener-policy"] == "unsafe-none"
        assert "code_challenge" in page.text
        sent = program.request() | {"answer": "connect", "sees": "all", "days": "365"}
        assert (await nobody.http.post("/oauth/authorize", data=sent)).status_code == 403
    assert (await nobody.http.get("/sign-in")).headers[
        "cross-origin-opener-policy"
    ] == "same-origin"


async def test_the_page_is_escaped_and_lets_its_form_lead_to_the_client_alone(house: House) -> None:
    program = Program(house.client(), redirect_uri="http://localhost:7777/oauth/callback")
    await program.register(client_name="<b>Bank</b>\n\u202eevil")
    person = await owner_of(house)
    page = await person.open(**program.request(state='"><script>'))
    assert "&lt;b&gt;Bank&lt;/b&gt; evil" in page.text and '<script>"' not in page.text
    assert '"><script>' not in page.text and "runs on your computer" in page.text
    policy = page.headers["content-security-policy"]
    assert "form-action 'self' http://localhost:7777;" in policy
    assert page.headers["cross-origin-opener-policy"] == "unsafe-none"
    other = await person.http.get("/tokens")
    assert "form-action 'self';" in other.headers["content-security-policy"]
    assert other.headers["cross-origin-opener-policy"] == "same-origin"


async def test_consent_needs_the_token_of_its_page(house: House) -> None:
    program = Program(house.client())
    await program.register()
    person = await owner_of(house)
    sent = program.request() | {"answer": "connect", "sees": "all", "days": "365"}
    sent["library"] = house.owner.library_id
    for headers in ({}, {"Sec-Fetch-Site": "cross-site"}):
        for csrf in ("", "0" * 43):
            answer = await person.http.post(
                "/oauth/authorize", data=sent | {"csrf": csrf}, headers=headers
            )
            assert "code" not in answer.headers.get("location", "") and answer.status_code == 403
    assert not [t for t in await house.app.people.tokens(house.owner) if t.kind == "oauth"]


async def test_who_views_the_library_as_a_token_connects_nothing(house: House) -> None:
    program = Program(house.client())
    await program.register()
    session = await house.app.accounts.open_session(house.owner.person_id, "test")
    person = person_of(house, session)
    page = await person.open(**program.request())
    csrf = re.findall('name="csrf" value="([^"]+)"', page.text)[0]
    reader = (await house.app.access.identify(house.tokens["reader"])).token_id
    await house.app.store.accounts.set_view_as(digest(session), reader)
    assert (await person.open(**program.request())).status_code == 403
    sent = program.request() | {"csrf": csrf, "answer": "connect", "sees": "all", "days": "9"}
    answer = await person.http.post(
        "/oauth/authorize", data=sent | {"library": house.owner.library_id}
    )
    assert "code=" not in answer.headers.get("location", "")


# -- what the person allows


async def test_folders_reading_only_and_what_search_finds(house: House) -> None:
    red, _ = await house.add("Red", folder="Red")
    aside, _ = await house.add("Aside", folder="Red", in_kb=False)
    blue, _ = await house.add("Blue", folder="Blue")

    async def sees(program: Program) -> set[str]:
        async with house.client(token=program.access) as client:
            return {
                item
                for item in (red, aside, blue)
                if "result" in await call_tool(client, "get_item", {"item_id": item})
            }

    only = await connected(house, sees="folders", folder=house.folders["Red"])
    assert await sees(only) == {red, aside}
    program = Program(house.client())
    await program.register()
    for neither in ("folders", "", "something"):  # never the whole library by mistake
        answer = await (await owner_of(house)).decide(program.request(), sees=neither)
        assert answer.status_code == 422
    kb = await connected(house, kb_only="1")
    assert await sees(kb) == {red, blue}
    reading = await connected(house, write="")
    assert await sees(reading) == {red, aside, blue}
    async with house.client(token=reading.access) as client:
        names = {tool["name"] for tool in (await rpc(client, "tools/list"))["result"]["tools"]}
        assert "search" in names and "add_to_knowledge" not in names
        refused = await call_tool(
            client, "add_to_knowledge", {"kind": "text", "title": "T", "text": "x" * 40}
        )
        assert refused["error"]["data"]["error"] == "capability_denied"


async def test_write_is_given_only_if_asked_for_and_held(house: House) -> None:
    program = Program(house.client())
    await program.register()
    person = await owner_of(house)
    page = await person.open(**program.request(scope="read"))
    assert "read and write" not in page.text
    answer = await person.decide(program.request(scope="read"))
    assert "code=" not in answer.headers.get("location", "")
    members = await house.app.members.all(house.owner)
    viewer = next(member.person_id for member in members if member.name == "Viewer")
    session = await house.app.accounts.open_session(viewer, "", library_id=house.owner.library_id)
    eyes = person_of(house, session)
    assert "read and write" not in (await eyes.open(**program.request())).text
    answer = await eyes.decide(program.request())
    assert "code=" not in answer.headers.get("location", "")
    back = returned(await eyes.decide(program.request(), write=""))
    assert (await program.redeem(back["code"])).json()["scope"] == "read"
    assert await works(house, program.access)


async def test_a_person_chooses_one_of_their_libraries_and_no_other(house: House) -> None:
    _, invitation = await house.app.members.invite(house.stranger, Role.MEMBER)
    await house.app.members.accept(house.owner, invitation, with_token=False)
    program = Program(house.client())
    await program.register()
    person = await owner_of(house)
    asked = program.request()
    theirs = {"library": house.stranger.library_id}
    assert "use Stranger" in (await person.open(**asked)).text
    page = await person.open(**asked, **theirs)
    assert "Theirs" in page.text
    back = returned(await person.decide({**asked, **theirs}))
    assert (await program.redeem(back["code"])).status_code == 200
    caller = await house.app.access.identify(program.access, mcp=True)
    assert (caller.library_id, caller.person_id) == (
        house.stranger.library_id,
        house.owner.person_id,
    )
    outsider = person_of(
        house, await house.app.accounts.open_session(house.stranger.person_id, "test")
    )
    answer = await outsider.decide(asked, library=house.owner.library_id)
    assert "code=" not in answer.headers.get("location", "")
    folder = {"sees": "folders", "folder": house.folders["Theirs"]}
    answer = await person.decide(asked, **folder)
    assert "code=" not in answer.headers.get("location", "")


# -- codes


async def test_a_code_is_good_once_for_its_client_verifier_and_address(house: House) -> None:
    person, program = await owner_of(house), Program(house.client())
    await program.register()
    other = Program(house.client(), redirect_uri=REDIRECT)
    await other.register()
    code = returned(await person.decide(program.request()))["code"]

    async def refused(who: Program, error: str, **more: str) -> None:
        answer = await who.redeem(code, **more)
        assert (answer.status_code, answer.json()["error"]) == (400, error)

    await refused(program, "invalid_grant", code_verifier="x" * 64)
    await refused(program, "invalid_grant", code_verifier=challenge_of(program.verifier))
    await refused(program, "invalid_grant", redirect_uri="https://claude.com/other")
    await refused(other, "invalid_grant", code_verifier=program.verifier)
    await refused(program, "invalid_target", resource=f"{ADDRESS}/mcp/graph")
    await refused(program, "invalid_target", resource="https://other.example/mcp")
    assert (await program.redeem(code, resource=f"{ADDRESS}/mcp/")).status_code == 200
    assert await works(house, program.access)
    refresh = program.refresh
    await refused(program, "invalid_grant")
    assert not await works(house, program.access)
    answer = await program.renew(refresh)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")


@pytest.mark.parametrize(
    ("grant_type", "error"),
    [
        ("", "invalid_request"),
        ("password", "unsupported_grant_type"),
        ("client_credentials", "unsupported_grant_type"),
        ("urn:ietf:params:oauth:grant-type:jwt-bearer", "unsupported_grant_type"),
    ],
)
async def test_other_grant_types_are_refused_by_name(
    house: House, grant_type: str, error: str
) -> None:
    program = Program(house.client())
    await program.register()
    answer = await program.token(grant_type=grant_type)
    assert (answer.status_code, answer.json()["error"]) == (400, error)


async def test_a_code_expires_after_a_minute_and_its_grant_is_tidied(
    house: House, clock: Clock
) -> None:
    person, program = await owner_of(house), Program(house.client())
    await program.register()
    code = returned(await person.decide(program.request()))["code"]
    clock.advance(seconds=61)
    answer = await program.redeem(code)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    await house.app.store.oauth.tidy()
    assert not [t for t in await house.app.people.tokens(house.owner) if t.kind == "oauth"]


# -- access tokens


async def test_an_access_token_is_for_its_resource(house: House) -> None:
    usual, whole = await connected(house), await connected(house, resource=ADDRESS)
    one = await connected(house, resource=f"{ADDRESS}/mcp/graph")
    for program in (usual, whole, one):
        for path in ENDPOINTS:
            assert await works(house, program.access, path)
    for program, status in ((usual, 401), (whole, 200), (one, 401)):
        async with house.client(token=program.access) as client:
            for path in ("/api/v1/items", "/api/v1/me", "/api/tasks", "/metrics"):
                answer = await client.get(path)
                assert answer.status_code == status, (path, answer.text)
                if status == 401:
                    assert 'error="invalid_token"' in answer.headers["www-authenticate"]
    for secret in (usual.refresh, "cc_" + "x" * 43, "co_" + usual.refresh[3:]):
        assert not await works(house, secret)


async def test_a_token_of_another_address_is_not_good_here(house: House, data_dir: Path) -> None:
    program = await connected(house)
    moved = Settings(
        data_dir=data_dir, embedder="static", public_url="https://kb.example.org", **NO_LIMITS
    )
    async with open_app(moved) as app:
        asgi = make_asgi(app)
        async with (
            asgi.api.router.lifespan_context(asgi.api),
            httpx.AsyncClient(
                transport=httpx.ASGITransport(asgi), base_url="https://kb.example.org"
            ) as client,
        ):
            answer = await client.post(
                "/mcp", headers={"Authorization": f"Bearer {program.access}"}
            )
            assert answer.status_code == 401


async def test_an_access_token_expires_and_is_refreshed(house: House, clock: Clock) -> None:
    program = await connected(house)
    clock.advance(minutes=59)
    assert await works(house, program.access)
    clock.advance(minutes=2)
    assert not await works(house, program.access)
    old = program.refresh
    assert (await program.renew()).status_code == 200
    assert program.refresh != old and await works(house, program.access)
    assert (("oauth_refreshed", True)) in await activity(house, program)


async def test_revocation_is_immediate_whoever_revokes(house: House) -> None:
    async def revoke(program: Program, token: str, **more: str) -> int:
        form = {"token": token, "client_id": program.client_id} | more
        return (await program.http.post("/oauth/revoke", data=form)).status_code

    program = await connected(house)
    first = program.access
    await program.renew()
    assert await revoke(program, first) == 200  # only itself
    assert not await works(house, first) and await works(house, program.access)
    other = await connected(house)
    assert await revoke(other, program.refresh) == 200  # not theirs
    assert await works(house, program.access)
    assert await revoke(program, program.refresh, token_type_hint="refresh_token") == 200
    assert not await works(house, program.access)
    assert (await program.renew()).status_code == 400
    assert await revoke(program, "cr_unknown") == 200
    assert await revoke(other, other.access, token_type_hint="what_is_this") == 200
    assert not await works(house, other.access)
    await other.renew()
    caller = await house.app.access.identify(other.access, mcp=True)
    assert caller.token_id
    await house.app.people.revoke_token(house.owner, caller.token_id)
    assert not await works(house, other.access)
    assert (await other.renew()).json()["error"] == "invalid_grant"


async def test_who_revokes_must_say_what_and_be_known(house: House) -> None:
    async with house.client() as client:
        for form, status, error in (
            ({"token": "cr_x", "client_id": "cl_unknown"}, 401, "invalid_client"),
            ({"token": "cr_x"}, 401, "invalid_client"),
            ({"client_id": (await connected(house)).client_id}, 400, "invalid_request"),
        ):
            answer = await client.post("/oauth/revoke", data=form)
            assert (answer.status_code, answer.json()["error"]) == (status, error)


async def test_people_disconnect_their_own_clients_on_their_account_page(house: House) -> None:
    members = await house.app.members.all(house.owner)
    viewer = next(member.person_id for member in members if member.name == "Viewer")
    session = await house.app.accounts.open_session(viewer, "", library_id=house.owner.library_id)
    eyes, program = person_of(house, session), await connected(house)
    back = returned(await eyes.decide(program.request(), write=""))
    await program.redeem(back["code"])
    page = await eyes.http.get("/account")
    [grant] = re.findall('/account/clients/([^"]+)', page.text)
    csrf = re.findall('name="csrf" value="([^"]+)"', page.text)[0]
    owner = await owner_of(house)
    assert grant not in (await owner.http.get("/account")).text
    own = re.findall('name="csrf" value="([^"]+)"', (await owner.http.get("/account")).text)[0]
    await owner.http.post(f"/account/clients/{grant}", data={"csrf": own})
    assert await works(house, program.access)  # not theirs
    done = await eyes.http.post(f"/account/clients/{grant}", data={"csrf": csrf})
    assert done.headers["location"] == "/account"
    assert not await works(house, program.access)
    events = await house.app.people.activity(house.owner, grant)
    assert "oauth_revoked" in [event.action for event in events]
    assert "/account/clients" not in (await eyes.http.get("/account")).text


async def test_a_removed_person_a_lost_role_and_a_deleted_folder_end_it(house: House) -> None:
    _, invitation = await house.app.members.invite(house.owner, Role.MEMBER)
    token = await house.app.members.accept(None, invitation, "Mia", "mia@example.org")
    session = await house.app.accounts.open_session(
        token.person_id, "", library_id=house.owner.library_id
    )
    program = await connected(house, person_of(house, session), library=house.owner.library_id)
    caller = await house.app.access.identify(program.access, mcp=True)
    assert caller.library_id == house.owner.library_id and caller.can_write
    await house.app.members.change_role(house.owner, token.person_id, Role.VIEWER)
    assert not (await house.app.access.identify(program.access, mcp=True)).can_write
    await house.app.members.remove(house.owner, token.person_id)
    assert not await works(house, program.access)
    assert (await program.renew()).status_code == 400
    scoped = await connected(house, sees="folders", folder=house.folders["Red"])
    assert await works(house, scoped.access)
    await house.app.folders.delete(house.owner, house.folders["Red"])
    assert not await works(house, scoped.access)
    assert (await scoped.renew()).status_code == 400


async def test_what_is_deleted_with_its_person(house: House) -> None:
    person = await house.app.people.create("Dan", "dan@example.org")
    session = await house.app.accounts.open_session(person.id, "")
    program = await connected(house, person_of(house, session))
    await house.app.store.people.delete(person.id)
    assert not await works(house, program.access)
    assert await house.app.store.tokens.of_library(person.id) == []


async def test_a_backup_holds_no_secret_and_clients_go_on_after_it(
    house: House, tmp_path: Path
) -> None:
    program = await connected(house)
    await program.renew()
    file = tmp_path / "all.backup"
    await house.app.store.dump(file)
    stolen = gzip.decompress(file.read_bytes()).decode()
    for secret in (program.access, program.refresh):
        assert secret not in stolen and secret[3:] not in stolen
    await house.app.store.load(file, replace=True)
    assert await works(house, program.access)
    assert (await program.renew()).status_code == 200


async def test_a_secret_is_good_for_what_it_is(house: House) -> None:
    program = await connected(house)
    access, refresh = program.access, program.refresh
    for wrong in (access, "cc_" + "x" * 43, "", "sk_x", "cr_\0"):
        answer = await program.renew(wrong) if wrong else await program.renew(" ")
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant"), wrong
    for wrong in (access, refresh):
        answer = await program.redeem(wrong)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
        assert not await works(house, refresh)
    assert await works(house, access)


# -- refreshing


async def test_a_refresh_token_used_again_soon_gives_the_same_successor(
    house: House, clock: Clock
) -> None:
    program = await connected(house)
    first = program.refresh
    await program.renew(first)
    successor, access = program.refresh, program.access
    clock.advance(seconds=50)
    await program.renew(first)
    assert program.refresh == successor and program.access != access
    assert await works(house, access) and await works(house, program.access)
    clock.advance(seconds=11)
    answer = await program.renew(first)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    assert not await works(house, access)
    assert (await program.renew(successor)).status_code == 400


async def test_reuse_is_in_the_log_and_in_the_metrics_without_a_secret(
    house: House, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    program = await connected(house)
    first = program.refresh
    grant = (await house.app.access.identify(program.access, mcp=True)).token_id
    assert grant
    await program.renew()
    clock.advance(seconds=61)
    await program.renew(first)
    events = await house.app.people.activity(house.owner, grant)
    assert ("oauth_refresh_reuse", False) in [(event.action, event.ok) for event in events]
    async with house.client("owner") as client:
        metrics = (await client.get("/metrics")).text
    assert 'commonplace_oauth_grants_total{result="granted"} 1.0' in metrics
    assert (
        'commonplace_oauth_tokens_total{grant_type="refresh_token",result="reused"} 1.0' in metrics
    )
    written = caplog.text + metrics + repr(events)
    assert "refresh_reuse" in caplog.text
    for secret in (first, program.refresh, program.access):
        assert secret not in written


async def test_refreshing_narrows_and_never_widens(house: House) -> None:
    program = await connected(house)
    narrow = (await program.renew(scope="read")).json()
    assert narrow["scope"] == "read"
    assert not (await house.app.access.identify(program.access, mcp=True)).can_write
    again = (await program.renew(scope="read write offline_access")).json()
    assert again["scope"] == "read write"
    assert (await house.app.access.identify(program.access, mcp=True)).can_write
    reading = await connected(house, write="")
    refused = await reading.renew(scope="read write")
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_scope")
    assert (await reading.renew(scope="write")).status_code == 400
    assert (await reading.renew(resource="https://other.example")).status_code == 400
    assert (await reading.renew(scope="read")).json()["scope"] == "read"


async def test_another_client_cannot_refresh(house: House) -> None:
    program, other = await connected(house), await connected(house)
    answer = await other.renew(program.refresh)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    assert (await program.renew()).status_code == 200


async def test_a_connection_ends_when_it_is_unused_and_after_its_lifetime(
    house: House, clock: Clock
) -> None:
    used, unused, short = (
        await connected(house),
        await connected(house),
        await connected(house, days="1"),
    )
    clock.advance(hours=25)
    assert (await short.renew()).status_code == 400
    clock.advance(days=28)
    assert (await used.renew()).status_code == 200
    await house.app.store.oauth.tidy()
    assert len(await house.app.store.oauth.grants(house.owner.person_id)) == 2
    clock.advance(days=2)
    assert (await unused.renew()).status_code == 400
    await house.app.store.oauth.tidy()
    [left] = await house.app.store.oauth.grants(house.owner.person_id)
    assert left.client_id == used.client_id
    for _ in range(11):
        assert (await used.renew()).status_code == 200
        clock.advance(days=29)
    clock.advance(days=29)
    assert (await used.renew()).status_code == 400


async def test_sixteen_refreshes_at_once_on_two_replicas_keep_one_family(
    house: House, data_dir: Path
) -> None:
    await _at_once(house, Settings(data_dir=data_dir, embedder="static", **NO_LIMITS))


async def _at_once(house: House, settings: Settings) -> None:
    program = await connected(house)
    async with open_app(settings) as replica:
        asgi = make_asgi(replica)
        async with (
            asgi.api.router.lifespan_context(asgi.api),
            httpx.AsyncClient(transport=httpx.ASGITransport(asgi), base_url=ADDRESS) as there,
        ):
            form = {
                "grant_type": "refresh_token",
                "client_id": program.client_id,
                "refresh_token": program.refresh,
            }
            answers = await asyncio.gather(
                *(
                    (there if n % 2 else program.http).post("/oauth/token", data=form)
                    for n in range(16)
                )
            )
            assert {answer.status_code for answer in answers} == {200}
            assert len({answer.json()["refresh_token"] for answer in answers}) == 1
            assert len({answer.json()["access_token"] for answer in answers}) == 16
            for answer in answers:
                assert await works(house, answer.json()["access_token"])


@pytest.mark.slow
async def test_sixteen_refreshes_at_once_on_postgres(
    house_with: OpenHouse, postgres_url: str, postgres_schema: str, data_dir: Path
) -> None:
    place: Any = {"database_url": postgres_url, "database_schema": postgres_schema}
    async with house_with(**place) as house:
        await _at_once(house, Settings(data_dir=data_dir, embedder="static", **place, **NO_LIMITS))


# -- limits


async def test_registration_and_tokens_are_limited_by_address(house: House) -> None:
    program = Program(house.client())
    for _ in range(11):
        hostile = await program.register(redirect_uris=["javascript:alert(1)"])
        assert hostile.json()["error"] == "invalid_redirect_uri"
    statuses = [(await program.register()).status_code for _ in range(11)]
    assert statuses == [201] * 10 + [429]
    answer = await program.register()
    assert int(answer.headers["retry-after"]) > 0
    assert answer.json()["error"] == "temporarily_unavailable"
    assert "Registration limit reached: 10 per hour" in answer.json()["error_description"]
    refused = [(await program.renew("cr_wrong")).status_code for _ in range(61)]
    assert refused == [400] * 60 + [429]
    elsewhere = Program(
        httpx.AsyncClient(
            transport=httpx.ASGITransport(house.asgi, client=("198.51.100.7", 1)), base_url=ADDRESS
        )
    )
    assert (await elsewhere.register()).status_code == 201
