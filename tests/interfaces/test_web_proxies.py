"""What proxies say is believed of those that the settings name, and of nobody else."""

from pathlib import Path

import httpx
import pytest

from commonplace.app import make_asgi, open_app
from commonplace.core.people import accounts
from commonplace.errors import ConfigurationError
from commonplace.interfaces.http.gate import network_of
from commonplace.settings import Settings
from tests.interfaces.house import ADDRESS, House, open_house
from tests.interfaces.test_web_access import PAGE
from tests.interfaces.test_web_people import csrf

pytestmark = pytest.mark.anyio
PROXY, ELSEWHERE = "10.1.2.3", "203.0.113.9"


def behind(house: House, peer: str, **headers: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(house.asgi, client=(peer, 1)),
        base_url=ADDRESS,
        headers=PAGE | headers,
    )


async def cookies(house: House, peer: str, **headers: str) -> list[str]:
    async with behind(house, peer, **headers) as client:
        return (await client.get("/sign-in")).headers.get_list("set-cookie")


async def test_cookies_are_bound_to_https_when_a_trusted_proxy_says_it_is(data_dir: Path) -> None:
    https = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "198.51.100.7"}
    async with open_house(data_dir, trusted_proxies="10.0.0.0/8, ::1") as house:
        [secure] = await cookies(house, PROXY, **https)
        assert (
            secure.startswith("__Host-commonplace_visit_8642=")
            and "; Secure" in secure
            and "HttpOnly" in secure
            and "Path=/" in secure
        )
        for plain in (await cookies(house, ELSEWHERE, **https), await cookies(house, PROXY)):
            assert plain[0].startswith("commonplace_visit_8642=") and "Secure" not in plain[0]
    async with open_house(data_dir / "other") as house:
        assert (await cookies(house, "127.0.0.1", **https))[0].startswith("commonplace_visit_8642=")


async def test_attempts_are_counted_by_the_address_that_the_proxy_names(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "FROM_ONE_ADDRESS", 2)

    async def attempt(peer: str, forwarded: str) -> int:
        async with behind(house, peer, **{"X-Forwarded-For": forwarded}) as client:
            who = {"email": f"{forwarded}@example.org", "password": "wrong"}
            return (
                await client.post("/sign-in", data={"csrf": await csrf(client, "/sign-in"), **who})
            ).status_code

    async with open_house(data_dir, trusted_proxies=PROXY) as house:
        assert [await attempt(PROXY, "198.51.100.7") for _ in range(3)] == [401, 401, 429]
        assert await attempt(PROXY, "198.51.100.8") == 401
        # Whoever is no proxy of ours gets no new name by saying so.
        assert [await attempt(ELSEWHERE, f"198.51.100.{n}") for n in range(20, 23)] == [
            401,
            401,
            429,
        ]


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ("198.51.100.7", "198.51.100.8", False),
        ("::ffff:198.51.100.7", "::ffff:198.51.100.8", False),
        ("::ffff:198.51.100.7", "198.51.100.7", True),
        ("2001:db8::1", "2001:db8::2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%eth0", "fe80::2", True),
        ("somebody:else", "somebody", False),
    ],
)
def test_clients_are_counted_by_what_one_subscriber_has(
    one: str, other: str, together: bool
) -> None:
    assert (network_of(one) == network_of(other)) is together


async def test_no_address_lets_anybody_in_without_a_secret(data_dir: Path) -> None:
    """The first person of a new server, alone, without a password, at the machine itself."""
    async with open_app(Settings(data_dir=data_dir, embedder="static")) as app:
        await app.people.ensure_owner()
        asgi = make_asgi(app)
        transport = httpx.ASGITransport(asgi, client=("127.0.0.1", 1))
        for forwarded in ({}, {"X-Forwarded-For": "127.0.0.1"}, {"Forwarded": "for=127.0.0.1"}):
            async with httpx.AsyncClient(
                transport=transport, base_url=ADDRESS, headers=PAGE | forwarded
            ) as client:
                sent = {"csrf": await csrf(client, "/sign-in")}
                for path in ("/sign-in/open", "/sign-in", "/claim/", "/claim/x"):
                    await client.post(path, data=sent)
                assert (await client.get("/account")).headers[
                    "location"
                ] == "/sign-in?next=/account"
        [person] = await app.store.people.all()
        assert await app.store.accounts.sessions(person.id) == []


def test_a_proxy_is_named_by_its_address() -> None:
    assert Settings.from_env({"COMMONPLACE_TRUSTED_PROXIES": "127.0.0.1, fd00::/8"}).proxies == [
        "127.0.0.1",
        "fd00::/8",
    ]
    for wrong in ("proxy.example", "*", "10.0.0.1/8"):
        with pytest.raises(ConfigurationError, match="TRUSTED_PROXIES"):
            Settings.from_env({"COMMONPLACE_TRUSTED_PROXIES": wrong})
