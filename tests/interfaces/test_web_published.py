"""The page of a published disk: what nobody, its owner, a viewer and somebody else see of it."""

import re
from pathlib import Path

import httpx
import pytest

from commonplace.core.items.drafts import Draft
from commonplace.model import Audience
from tests.interfaces.house import ADDRESS, House, open_house
from tests.interfaces.test_web_access import Row, browser, send
from tests.interfaces.test_web_people import post

pytestmark = pytest.mark.anyio

TEXT = """Owls hear mice under deep snow because their ears sit at different heights, so owls know where a sound came from.

At night owls hunt by ear alone. Call the ranger at ranger@example.org: his password is <script>snowy</script>-4417."""


async def published(
    house: House, title: str = "Owls & <ears>", audience: Audience = Audience.ANYONE
) -> str:
    added = await house.app.library.add(house.owner, Draft("text", title, TEXT))
    return (await house.app.disks.publish(house.owner, added.item.id, audience)).public_id


async def test_anybody_reads_the_redacted_view_without_an_account(house: House) -> None:
    disk = await published(house)
    async with await browser(house, "nobody") as client:
        page = await client.get(f"/d/{disk}")
        assert page.status_code == 200
        assert "Owls &amp; &lt;ears&gt;</h1>" in page.text and "owls" in page.text
        tags = dict(re.findall(r'<meta property="og:(\w+)" content="([^"]*)"', page.text))
        assert (
            tags["title"] == "Owls &amp; &lt;ears&gt;"
            and tags["url"] == f"{ADDRESS}/d/{disk}"
            and "owls" in tags["description"]
        )
        assert "Save to my library" not in page.text and f"/sign-in?next=/d/{disk}" in page.text
        assert (
            "deep snow because" not in page.text
            and "ranger@" not in page.text
            and "4417" not in page.text
        )
        assert page.headers["content-security-policy"].startswith(
            "default-src 'none'; script-src 'self'; style-src 'self'"
        )


async def test_the_owner_writes_a_summary_in_the_form(house: House) -> None:
    item = (await house.app.library.add(house.owner, Draft("text", "Owls", TEXT))).item
    page = f"/disks/{item.public_id}/publish"
    async with await browser(house, "owner") as client:
        refused = await post(client, page, page, audience="anyone", summary=TEXT[:100])
        assert refused.status_code == 422 and "own words" in refused.text
        assert (await client.get(f"/d/{item.public_id}")).status_code == 404
        await post(client, page, page, audience="anyone", summary="How they hunt.")
        assert ">How they hunt.</textarea>" in (await client.get(page)).text
        assert "How they hunt." in (await client.get(f"/d/{item.public_id}")).text
        await post(client, page, page, audience="anyone", summary="")
        assert "How they hunt." not in (await client.get(f"/d/{item.public_id}")).text


async def test_members_only_and_not_there_read_the_same_to_nobody(house: House) -> None:
    disk = await published(house, audience=Audience.MEMBERS)
    async with await browser(house, "nobody") as client:
        hidden, nothing = await client.get(f"/d/{disk}"), await client.get("/d/zzzzzzzzzzzz")
        assert (hidden.status_code, nothing.status_code) == (404, 404)
        assert without_token(hidden) == without_token(nothing)
    async with await browser(house, "stranger") as client:
        assert (await client.get(f"/d/{disk}")).status_code == 200


async def test_people_who_are_signed_in_save_it_and_forget_it(house: House) -> None:
    disk = await published(house)
    async with await browser(house, "stranger") as client:
        assert "Save to my library" in (await client.get(f"/d/{disk}")).text
        assert (await send(client, "POST", f"/d/{disk}/save", Row())).status_code == 303
        assert "Remove from my library" in (await client.get(f"/d/{disk}")).text
        async with house.client("stranger") as program:
            assert (await program.get("/api/v1/disks")).json()["disks"][0]["public_id"] == disk
            await send(client, "POST", f"/d/{disk}/forget", Row())
            assert (await program.get("/api/v1/disks")).json()["total"] == 0


async def test_its_owner_is_led_to_the_text_and_viewers_save_nothing(house: House) -> None:
    disk = await published(house)
    theirs = (await house.app.library.add(house.stranger, Draft("text", "Theirs", TEXT))).item
    await house.app.disks.publish(house.stranger, theirs.id)
    async with await browser(house, "owner") as client:
        assert f'href="/items/{disk}"' in (await client.get(f"/d/{disk}")).text
    async with await browser(house, "viewer") as client:
        assert "Save to my library" not in (await client.get(f"/d/{theirs.public_id}")).text
        assert (await send(client, "POST", f"/d/{theirs.public_id}/save", Row())).status_code == 403


async def test_unpublishing_takes_the_page_away_at_once(house: House) -> None:
    disk = await published(house)
    async with await browser(house, "nobody") as client:
        assert (await client.get(f"/d/{disk}")).status_code == 200
        await house.app.disks.unpublish(house.owner, disk)
        assert (await client.get(f"/d/{disk}")).status_code == 404


async def test_people_without_an_account_are_counted_by_their_address(tmp_path: Path) -> None:
    async with open_house(tmp_path / "data", rate_requests_per_minute=3) as house:
        disk = await published(house)
        async with await browser(house, "nobody") as client:
            seen = [await client.get(f"/d/{disk}") for _ in range(4)]
            assert [page.status_code for page in seen] == [200, 200, 200, 429]
            assert "Too many requests" in seen[3].text and int(seen[3].headers["retry-after"]) > 0
            assert (await client.get("/d/zzzzzzzzzzzz")).status_code == 429, (
                "also for what is not there"
            )
        async with await browser(house, "stranger") as client:
            assert (await client.get(f"/d/{disk}")).status_code == 200


async def test_it_is_one_page_for_everybody_that_is_asked_for_again_each_time(house: House) -> None:
    disk = await published(house)
    async with await browser(house, "nobody") as client:
        page = await client.get(f"/d/{disk}")
        assert (
            page.headers["cache-control"] == "public, no-cache" and page.headers["vary"] == "Cookie"
        )
        assert "set-cookie" not in page.headers
        same = {"If-None-Match": page.headers["etag"]}
        assert (await client.get(f"/d/{disk}", headers=same)).status_code == 304
        await house.app.library.update(house.owner, disk, {"title": "Owls at night"})
        changed = await client.get(f"/d/{disk}", headers=same)
        assert changed.status_code == 200 and "Owls at night" in changed.text
        await house.app.disks.unpublish(house.owner, disk)
        assert (await client.get(f"/d/{disk}", headers=same)).status_code == 404
    async with await browser(house, "owner") as client:
        assert (await client.get("/account")).headers["cache-control"] == "private, no-cache"


def without_token(page: httpx.Response) -> str:
    return re.sub(r'data-csrf="\w+"', "", page.text)
