"""One page shows and ends everything that has access to a library."""

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import httpx
import pytest

from commonplace.app import make_asgi, open_app
from commonplace.core.people.authorization import digest
from commonplace.core.people.client_setup import Client
from commonplace.settings import Settings
from tests.interfaces.conftest import Clock
from tests.interfaces.house import ADDRESS, House, open_house
from tests.interfaces.oauth_flow import person_of
from tests.interfaces.test_web_access import browser
from tests.interfaces.test_webhooks import Receiver, host_of, verify
from tests.stub_service import running

pytestmark = pytest.mark.anyio
HTML = {"Accept": "text/html"}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running(Receiver()) as service:
        yield service


async def post(client: httpx.AsyncClient, path: str, **form: str) -> str:
    page = await client.get("/account", headers=HTML)
    token = re.search(r'data-csrf="(\w+)"', page.text)
    assert token
    answer = await client.post(path, data=form, headers=HTML | {"X-CSRF-Token": token[1]})
    if answer.status_code == 303:
        answer = await client.get(answer.headers["location"], headers=HTML)
    assert answer.status_code == 200, answer.text
    return answer.text


async def test_grants_tokens_webhooks_and_browsers_are_shown_and_ended(
    data_dir: Path, receiver: Receiver
) -> None:
    async with (
        open_house(data_dir, fetch_allow_hosts=host_of(receiver)) as house,
        await browser(house, "owner") as client,
    ):
        other = await house.app.accounts.open_session(house.owner.person_id, "Firefox/1 Linux")
        made = await post(client, "/webhooks", url=f"{receiver.url}/hook")
        secret = re.search(r'<code id="secret">([^<]+)</code>', made)
        assert secret
        page = (await client.get("/tokens", headers=HTML)).text
        assert secret[1] not in page, "it is shown once"
        assert f"{receiver.url}/hook" in page
        assert "Firefox on Linux" in page
        assert "two" in page, "a token"
        [webhook] = await house.app.webhooks.all(house.owner)
        assert "Test event delivered." in await post(client, f"/webhooks/{webhook.id}/test")
        verify(receiver.requests[0], secret[1].replace("&#43;", "+"))
        page = await post(client, f"/webhooks/{webhook.id}/delete")
        assert f"{receiver.url}/hook" not in page
        sessions = re.findall(r'action="/account/sessions/(\w+)"', page)
        for session in sessions:
            await post(client, f"/account/sessions/{session}")
        assert "Firefox on Linux" not in (await client.get("/tokens", headers=HTML)).text
        assert other


@pytest.mark.parametrize("either_engine", ["sqlite", "postgres"], indirect=True)
async def test_a_new_secret_is_sealed_on_the_server_and_every_replica_shows_it(
    data_dir: Path, either_engine: dict[str, str], clock: Clock
) -> None:
    async with (
        open_house(data_dir, **either_engine) as house,
        await browser(house, "owner") as client,
        open_app(house.app.settings) as replica,
    ):
        session = client.cookies["commonplace_8642"]
        elsewhere = httpx.AsyncClient(
            transport=httpx.ASGITransport(make_asgi(replica)), base_url=ADDRESS, headers=HTML
        )
        async with elsewhere as other:
            other.cookies.set("commonplace_8642", session, domain="127.0.0.1")
            address, found = await created(client, name="Laptop", sees="all")
            assert secret_of(await other.get(address)) == found
            assert secret_of(await client.get(address)) == found
            kept = await house.app.store.accounts.session(digest(session))
            assert kept and kept[0].sealed and found not in kept[0].sealed
            assert found not in repr(kept)
            clock.advance(minutes=5, seconds=1)
            assert secret_of(await other.get(address)) is None
            await replica.store.accounts.forget_sealed()
            kept = await house.app.store.accounts.session(digest(session))
            assert kept and kept[0].sealed is None
            address, found = await created(client, name="Phone", sees="all")
            await post(client, "/tokens/shown")
            assert secret_of(await other.get(address)) is None


async def test_a_form_without_a_choice_never_gives_the_whole_library(house: House) -> None:
    async with await browser(house, "owner") as client:
        for path, form in (("/tokens", {"name": "x"}), ("/connect", {"client": "curl"})):
            for more in ({}, {"sees": "folders"}, {"sees": "everything"}):
                before = await house.app.people.tokens(house.owner)
                page = await client.get("/account", headers=HTML)
                csrf = re.search(r'data-csrf="(\w+)"', page.text)
                assert csrf
                answer = await client.post(path, data=form | more | {"csrf": csrf[1]})
                assert answer.status_code == 422
                assert await house.app.people.tokens(house.owner) == before


async def created(client: httpx.AsyncClient, **form: str) -> tuple[str, str]:
    """The address at which a new token is shown, and its secret."""
    page = await client.get("/tokens", headers=HTML)
    csrf = re.search(r'data-csrf="(\w+)"', page.text)
    assert csrf
    answer = await client.post("/tokens", data=form | {"csrf": csrf[1]}, headers=HTML)
    address = answer.headers["location"]
    secret = secret_of(await client.get(address, headers=HTML))
    assert secret
    return address, secret


def secret_of(page: httpx.Response) -> str | None:
    assert page.headers["cache-control"] == "no-store"
    found = re.search(r"sk_[\w-]{43}", page.text)
    return found[0] if found else None


@pytest.mark.parametrize("character", ["owner", "viewer"])
async def test_no_setting_of_the_server_is_on_the_connect_page(
    data_dir: Path, character: str
) -> None:
    secrets = {
        each.name: f"hidden-{each.name}-{'x' * 32}"
        for each in fields(Settings)
        if each.metadata["secret"] and not each.name.endswith("_url")
    }
    assert "jwt_secret" in secrets
    async with (
        open_house(data_dir, **secrets) as house,
        await browser(house, character) as client,
    ):
        for name in Client:
            page = await client.get(f"/connect?client={name}", headers=HTML)
            assert page.status_code == 200
            assert "hidden-" not in page.text
            assert str(data_dir) not in page.text


async def test_connect_names_the_address_under_which_clients_sign_in(data_dir: Path) -> None:
    at = {
        "http://localhost:8642": ("http://127.0.0.1:8642/mcp/core", False),
        "http://192.168.1.5:8642": ("http://192.168.1.5:8642/mcp/core", True),
    }
    async with open_house(data_dir, allowed_hosts="192.168.1.5") as house:
        session = await house.app.accounts.open_session(house.owner.person_id, "")
        for origin, (address, unknown) in at.items():
            async with person_of(house, None, origin).http as client:
                cookie = {"Cookie": f"commonplace_8642={session}"}
                page = await client.get("/connect?client=cursor", headers=cookie)
                assert address in page.text
                assert ("COMMONPLACE_PUBLIC_URL" in page.text) == unknown
