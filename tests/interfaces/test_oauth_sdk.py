"""OAuth with the MCP SDK's own client: it finds the server, registers, asks a person, and refreshes by itself."""

import json
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.exceptions import OAuthFlowError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from tests.interfaces.conftest import Clock, OpenHouse
from tests.interfaces.house import ADDRESS, House
from tests.interfaces.oauth_flow import LOOPBACK, Person, owner_of, returned
from tests.interfaces.test_mcp import ERAS
from tests.webserver import certificate_for, page, web_server

pytestmark = pytest.mark.anyio


class Kept:
    """What the client keeps."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Visit:
    """The person's browser, which the client opens and which comes back to it."""

    def __init__(self, person: Person, **choice: str) -> None:
        self.person, self.choice, self.back, self.count = person, choice, dict[str, str](), 0

    async def open(self, address: str) -> None:
        asked = dict(parse_qsl(urlsplit(address).query))
        self.back, self.count = (
            returned(await self.person.decide(asked, **self.choice)),
            self.count + 1,
        )

    async def come_back(self) -> AuthorizationCodeResult:
        found = {name: self.back.get(name) for name in ("state", "iss")}
        return AuthorizationCodeResult(code=self.back["code"], **found)


@asynccontextmanager
async def using(
    house: House,
    kept: Kept,
    visit: Visit,
    era: str = "2026-07-28",
    path: str = "/mcp/core",
    document: str | None = None,
    provider: type[OAuthClientProvider] = OAuthClientProvider,
) -> AsyncIterator[tuple[Client, OAuthClientProvider]]:
    auth = provider(
        ADDRESS + path,
        OAuthClientMetadata(client_name="Probe", redirect_uris=[AnyUrl(LOOPBACK)]),
        kept,
        visit.open,
        visit.come_back,
        document,
    )
    async with (
        httpx2.AsyncClient(transport=httpx2.ASGITransport(house.asgi), auth=auth) as http,
        Client(streamable_http_client(ADDRESS + path, http_client=http), mode=ERAS[era]) as client,
    ):
        yield client, auth


async def works(client: Client) -> bool:
    """A call, where a list of tools could come from the client's cache."""
    return not (await client.call_tool("search", {"query": "zebra"})).is_error


async def names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.parametrize("era", ERAS)
async def test_it_connects_with_the_address_alone_and_refreshes(
    house: House, clock: Clock, era: str
) -> None:
    kept, visit = Kept(), Visit(await owner_of(house))
    async with using(house, kept, visit, era) as (client, auth):
        assert {"search", "remember"} <= await names(client)
        assert kept.client and kept.client.client_id.startswith("cl_")
        assert kept.tokens and kept.tokens.scope == "read write"
        first = kept.tokens
        clock.advance(minutes=61)
        auth.context.token_expiry_time = time.time() - 1
        assert await works(client)
        assert kept.tokens.access_token != first.access_token
        assert kept.tokens.refresh_token != first.refresh_token
    async with using(house, kept, visit, era) as (client, _):  # it starts again, and is known
        assert await works(client)
    assert visit.count == 1


@pytest.mark.parametrize("path", ["/mcp", "/api/mcp", "/mcp/knowledge", "/mcp/disks"])
async def test_each_endpoint_can_be_connected(house: House, path: str) -> None:
    visit = Visit(await owner_of(house), write="")
    async with using(house, Kept(), visit, path=path) as (client, _):
        tools = await names(client)
    assert tools and "add_to_knowledge" not in tools


async def test_a_revoked_client_asks_the_person_again(house: House) -> None:
    kept, visit = Kept(), Visit(await owner_of(house))
    async with using(house, kept, visit) as (client, _):
        assert await works(client)
        [grant] = [t for t in await house.app.people.tokens(house.owner) if t.kind == "oauth"]
        await house.app.people.revoke_token(house.owner, grant.id)
        assert await works(client)
    assert visit.count == 2


async def test_an_answer_of_another_server_is_refused_by_the_client(house: House) -> None:
    class Misled(Visit):
        async def come_back(self) -> AuthorizationCodeResult:
            self.back["iss"] = "https://other.example"
            return await super().come_back()

    visit = Misled(await owner_of(house))
    with pytest.raises(BaseException) as caught:
        async with using(house, Kept(), visit) as (client, _):
            await names(client)
    assert caught.group_contains(OAuthFlowError) or isinstance(caught.value, OAuthFlowError)


@pytest.mark.parametrize("era", ERAS)
async def test_it_connects_by_its_document(
    house_with: OpenHouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    context = certificate_for("localhost", tmp_path)
    trusting = ssl.create_default_context(cafile=tmp_path / "server.pem")
    monkeypatch.setattr(
        "commonplace.adapters.fetch.client.httpx.create_ssl_context", lambda **_: trusting
    )
    with web_server(context) as server:
        url = f"https://localhost:{server.port}/client.json"
        described = {"client_id": url, "client_name": "Probe", "redirect_uris": [LOOPBACK]}
        server.pages["/client.json"] = page(json.dumps(described), "application/json")
        kept = Kept()
        async with house_with(fetch_allow_hosts=f"localhost:{server.port}") as house:
            visit = Visit(await owner_of(house))
            async with using(house, kept, visit, era, document=url) as (client, _):
                assert await works(client)
    assert kept.client and kept.client.client_id == url
