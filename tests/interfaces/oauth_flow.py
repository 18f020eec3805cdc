"""The two sides of a connection with OAuth: a program that asks, and a person who decides in a browser."""

import base64
import hashlib
import re
import secrets
from dataclasses import dataclass, field
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx

from tests.interfaces.house import ADDRESS, House

PAGE = {"Accept": "text/html,application/xhtml+xml"}
REDIRECT = "https://claude.ai/api/mcp/auth_callback"
LOOPBACK = "http://127.0.0.1:33418/"


def challenge_of(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


@dataclass
class Program:
    """A client that registers itself, and what it holds."""

    http: httpx.AsyncClient
    client_id: str = ""
    secret: str | None = None
    redirect_uri: str = REDIRECT
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))
    access: str = ""
    refresh: str = ""

    async def register(self, **more: Any) -> httpx.Response:
        answer = await self.http.post(
            "/oauth/register",
            json={"redirect_uris": [self.redirect_uri], "client_name": "Probe"} | more,
        )
        if answer.status_code == 201:
            self.client_id = answer.json()["client_id"]
            self.secret = answer.json().get("client_secret")
        return answer

    def request(self, **more: str | None) -> dict[str, str]:
        """The parameters of an authorization request; None leaves one out."""
        asked = {
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "response_type": "code",
            "code_challenge": challenge_of(self.verifier),
            "code_challenge_method": "S256",
            "state": "s1",
            "scope": "read write",
        } | more
        return {name: value for name, value in asked.items() if value is not None}

    async def token(self, **form: str) -> httpx.Response:
        answer = await self.http.post("/oauth/token", data={"client_id": self.client_id} | form)
        if answer.status_code == 200:
            self.access, self.refresh = (
                answer.json()["access_token"],
                answer.json()["refresh_token"],
            )
        return answer

    async def redeem(self, code: str, **more: str) -> httpx.Response:
        return await self.token(
            **{
                "grant_type": "authorization_code",
                "code": code,
                "redirect_uri": self.redirect_uri,
                "code_verifier": self.verifier,
            }
            | more
        )

    async def renew(self, refresh: str | None = None, **more: str) -> httpx.Response:
        return await self.token(
            grant_type="refresh_token", refresh_token=refresh or self.refresh, **more
        )


@dataclass
class Person:
    """A browser in which somebody is signed in, or nobody."""

    http: httpx.AsyncClient

    async def open(self, **asked: str) -> httpx.Response:
        return await self.http.get(f"/oauth/authorize?{urlencode(asked)}")

    async def decide(
        self, asked: dict[str, str], answer: str = "connect", **choice: Any
    ) -> httpx.Response:
        """Fill in the form on the page as it is, with other choices."""
        page = await self.open(**asked)
        assert page.status_code == 200, page.text
        hidden = {
            unescape(name): unescape(value)
            for name, value in re.findall(
                r'<input type="hidden" name="([^"]*)" value="([^"]*)">', page.text
            )
        }
        form = hidden | {"sees": "all", "write": "1", "days": "365"} | choice
        return await self.http.post("/oauth/authorize", data=form | {"answer": answer})


def returned(answer: httpx.Response) -> dict[str, str]:
    """What the browser brings back to the client."""
    assert answer.status_code in (302, 303), answer.text
    return {
        name: value
        for name, [value] in parse_qs(urlsplit(answer.headers["location"]).query).items()
    }


def person_of(house: House, secret: str | None, address: str = ADDRESS) -> Person:
    http = httpx.AsyncClient(
        transport=httpx.ASGITransport(house.asgi), base_url=address, headers=PAGE
    )
    if secret:
        http.cookies.set(
            f"commonplace_{address.rpartition(':')[2]}", secret, domain=urlsplit(address).hostname
        )
    return Person(http)


async def owner_of(house: House) -> Person:
    return person_of(house, await house.app.accounts.open_session(house.owner.person_id, "test"))


async def connected(house: House, person: Person | None = None, **choice: Any) -> Program:
    """A program that a person, or else the owner, has connected."""
    program = Program(house.client())
    await program.register()
    asked = program.request()
    if resource := choice.pop("resource", None):
        asked["resource"] = resource
    back = returned(await (person or await owner_of(house)).decide(asked, **choice))
    answer = await program.redeem(back["code"])
    assert answer.status_code == 200, answer.text
    return program
