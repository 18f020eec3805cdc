"""Libraries that people share, in the browser: turning from one to another, coming in by a link, going out."""

import re
from contextlib import suppress

import httpx
import pytest

from commonplace.core.people.accounts import ATTEMPTS
from commonplace.errors import NotFound, RateLimited, Unauthorized
from commonplace.model import Role
from tests.interfaces.house import ADDRESS, House
from tests.interfaces.test_web_access import PAGE

pytestmark = pytest.mark.anyio


async def browser(house: House, person_id: str | None = None) -> httpx.AsyncClient:
    client = httpx.AsyncClient(
        transport=httpx.ASGITransport(house.asgi), base_url=ADDRESS, headers=PAGE
    )
    if person_id:
        client.cookies.set(
            "commonplace_8642",
            await house.app.accounts.open_session(person_id, "test"),
            domain="127.0.0.1",
        )
    return client


async def csrf(client: httpx.AsyncClient, page: str = "/account") -> str:
    found = re.search(r'(?:data-csrf|name="csrf" value)="(\w+)"', (await client.get(page)).text)
    assert found
    return found[1]


async def post(
    client: httpx.AsyncClient, path: str, page: str = "/account", **form: str
) -> httpx.Response:
    return await client.post(path, data={"csrf": await csrf(client, page), **form})


async def test_what_was_opened_in_one_library_is_not_sent_to_another(house: House) -> None:
    _, secret = await house.app.members.invite(house.owner, Role.MEMBER)
    async with await browser(house, house.stranger.person_id) as client:
        old = await csrf(client, "/")
        assert (await post(client, f"/join/{secret}")).status_code == 303
        page = await client.get("/")
        assert "<b>Owner</b>" in page.text, "joining turns to the library that was joined"
        text = "A note that was written on a page of the library before."
        stale = await client.post(
            "/add", data={"csrf": old, "text": text}, headers={"Accept": "application/json"}
        )
        assert (stale.status_code, stale.json()["error"]) == (403, "forbidden_scope")
        assert (await post(client, "/add", text=text)).status_code == 303
        assert text in [item.title for item in await house.app.library.recent(house.owner)]
        assert (
            await post(client, "/library", library=house.stranger.library_id)
        ).status_code == 303
        assert text not in (await client.get("/")).text
        elsewhere = await post(client, "/library", library="not-a-library-of-theirs")
        assert (
            elsewhere.status_code in (303, 404)
            and "<b>Stranger</b>" in (await client.get("/")).text
        )


async def test_who_was_taken_out_is_back_in_their_own_library(house: House) -> None:
    _, secret = await house.app.members.invite(house.owner, Role.ADMIN)
    me = house.stranger.person_id
    async with await browser(house, me) as client:
        await post(client, f"/join/{secret}")
        await house.add("A secret of the house")
        assert "A secret of the house" in (await client.get("/")).text
        await house.app.members.remove(house.owner, me)
        page = await client.get("/")
        assert page.status_code == 200 and "A secret of the house" not in page.text
        assert (await client.get("/people")).text.count("stranger@example.org") >= 1


async def test_one_may_leave_a_library_but_not_ones_own(house: House) -> None:
    _, secret = await house.app.members.invite(house.owner, Role.VIEWER)
    async with await browser(house, house.stranger.person_id) as client:
        assert (
            await client.post(
                "/leave", data={"csrf": await csrf(client)}, headers={"Accept": "application/json"}
            )
        ).status_code == 409
        await post(client, f"/join/{secret}")
        assert (await post(client, "/leave")).status_code == 303
        assert (
            await house.app.store.people.role(house.stranger.person_id, house.owner.library_id)
            is None
        )


async def test_a_link_is_good_once_and_for_its_addressee(house: House) -> None:
    _, secret = await house.app.members.invite(house.owner, Role.MEMBER, "ada@example.org")
    who = {"name": "Ada", "password": "a long enough password"}
    async with (
        await browser(house) as nobody,
        await browser(house, house.stranger.person_id) as stranger,
    ):
        page = await nobody.get(f"/join/{secret}")
        assert page.status_code == 200 and page.headers["cache-control"] == "no-store"
        refused = await post(stranger, f"/join/{secret}")
        assert (
            refused.status_code,
            await house.app.store.people.role(house.stranger.person_id, house.owner.library_id),
        ) in ((303, None), (403, None))
        assert (
            await post(nobody, f"/join/{secret}", f"/join/{secret}", email="eve@example.org", **who)
        ).status_code == 403
        short = await post(
            nobody,
            f"/join/{secret}",
            f"/join/{secret}",
            email="ada@example.org",
            name="Ada",
            password="short",
        )
        assert short.status_code == 422 and "10 to 200 characters" in short.text
        assert (
            await post(nobody, f"/join/{secret}", f"/join/{secret}", email="ada@example.org", **who)
        ).status_code == 303
        assert (await nobody.get("/people")).text.count("ada@example.org") == 1
    async with await browser(house) as again:
        gone = await again.get(f"/join/{secret}")
        assert gone.status_code == 404 and "Ask for a new one" in gone.text
        assert not [
            token
            for token in await house.app.people.tokens(house.owner)
            if token.name == "invited: Ada"
        ], "nobody saw one"


async def test_an_address_that_somebody_has_does_not_use_up_the_link(house: House) -> None:
    dan = await house.app.people.create("Dan", "dan@example.org")
    link, who = (
        f"/claim/{await house.app.accounts.invitation(dan)}",
        {"name": "Dan", "password": "a long enough password"},
    )
    async with await browser(house) as client:
        taken = await post(client, link, link, email="Stranger@example.org", **who)
        assert taken.status_code == 409 and 'value="Stranger@example.org"' in taken.text
        assert (await post(client, link, link, email="dan@example.org", **who)).status_code == 303
        assert (await client.get("/account")).status_code == 200


async def test_links_that_were_not_used_end_with_the_one_that_was_and_with_the_old_password(
    house: House,
) -> None:
    """A server that is started twice prints two links; the first lies in a log when the owner has used the second."""
    accounts, (old, new) = house.app.accounts, ("a long enough password", "another long password")
    dan = await house.app.people.create("Dan", "dan@example.org")
    logged, used = await accounts.invitation(dan), await accounts.invitation(dan)
    others = await accounts.invitation(await house.app.people.create("Eve", "eve@example.org"))
    session = await accounts.claim(used, "Dan", "dan@example.org", old, about="")
    device = await accounts.remember_device(session, None)
    with pytest.raises(NotFound):
        await accounts.invited(logged)
    later, visitor = await accounts.invitation(dan), await accounts.visitor(session)
    assert visitor is not None and await accounts.invited(later) == dan
    await accounts.change_password(visitor, old, new)
    with pytest.raises(NotFound):
        await accounts.claim(later, "Dan", "dan@example.org", "the password of a thief", about="")
    assert await accounts.remember_device(session, device) == device, "the browser is still known"
    assert (await accounts.invited(others)).name == "Eve"


async def test_who_tries_too_often_from_one_address_locks_nobody_out(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commonplace.core.people.accounts.FROM_ONE_ADDRESS", 2)
    dan = await house.app.people.create("Dan", "dan@example.org")
    accounts = house.app.accounts
    await accounts.claim(
        await accounts.invitation(dan), "Dan", "dan@example.org", "a long enough password", about=""
    )

    async def tries(email: str, address: str, password: str = "not the password") -> None:
        with suppress(Unauthorized):
            await accounts.sign_in(email, password, address=address, about="")

    with pytest.raises(RateLimited):
        for n in range(3):
            await tries(f"somebody-{n}@example.org", "192.0.2.1")
    for _ in range(ATTEMPTS):
        with pytest.raises(RateLimited):
            await tries("dan@example.org", "192.0.2.1")
    assert await accounts.sign_in(
        "dan@example.org", "a long enough password", address="192.0.2.2", about=""
    )


async def test_nobody_can_lock_the_owner_out(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many guess from wherever, a browser that was signed in before gets in; others are slowed down."""
    monkeypatch.setattr("commonplace.core.people.accounts.ON_ONE_ACCOUNT", 25)
    accounts, right = house.app.accounts, "a long enough password"
    dan, _ = await house.app.people.create_with_token("Dan", "dan@example.org")
    await accounts.claim(await accounts.invitation(dan), "Dan", "dan@example.org", right, about="")

    async def attempt(client: httpx.AsyncClient, password: str) -> int:
        return (
            await post(client, "/sign-in", "/sign-in", email="Dan@example.org", password=password)
        ).status_code

    def coming_from(address: str) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(house.asgi, client=(address, 1)),
            base_url=ADDRESS,
            headers=PAGE,
        )

    async with (
        coming_from("192.0.2.1") as known,
        coming_from("192.0.2.9") as anew,
        coming_from("192.0.2.1") as beside,
    ):
        assert await attempt(known, right) == 303
        device = known.cookies["commonplace_device_8642"]
        assert (await post(known, "/sign-out")).status_code == 303
        # One stranger locks out only where they are themselves.
        async with coming_from("203.0.113.1") as eve:
            assert [await attempt(eve, "wrong") for _ in range(11)] == [401] * 10 + [429]
            assert await attempt(eve, right) == 429
        assert await attempt(anew, right) == 303
        # Many strangers, and one at the owner's own address.
        statuses = []
        for n in range(2, 4):
            async with coming_from(f"203.0.113.{n}") as eve:
                statuses += [await attempt(eve, "wrong") for _ in range(10)]
        statuses += [await attempt(beside, "wrong") for _ in range(10)]
        assert statuses.count(429) > 5
        async with coming_from("198.51.100.4") as unknown:
            assert await attempt(unknown, right) == 429
        assert await attempt(known, right) == 303
        assert known.cookies["commonplace_device_8642"] == device
        # But it is limited by itself, and good for nobody else's account.
        await post(known, "/sign-out")
        assert [await attempt(known, "wrong") for _ in range(10)][-2:] == [401, 429]
    async with coming_from("203.0.113.1") as thief:
        thief.cookies.set("commonplace_device_8642", device, domain="127.0.0.1")
        answers = [
            (
                await post(
                    thief, "/sign-in", "/sign-in", email="stranger@example.org", password="wrong"
                )
            ).status_code
            for _ in range(12)
        ]
        assert answers[-1] == 429


async def test_cookies_of_two_servers_on_one_host_do_not_meet(house: House) -> None:
    async with await browser(house, house.owner.person_id) as client:
        assert (await client.get("/")).status_code == 200
        other = await client.get("http://127.0.0.1:9999/")
        assert other.headers["location"] == "/sign-in"
        assert "commonplace_visit_9999=" in other.headers["set-cookie"]
        no_port = await client.get("http://127.0.0.1/sign-in")
        assert "commonplace_visit=" in no_port.headers["set-cookie"]
