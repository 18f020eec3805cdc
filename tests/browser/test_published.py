"""The page of a published disk, as people see it who have no account: with and without scripts, on a phone, and read aloud."""

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import expect

from tests.browser.conftest import Site

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
TEXT = (
    "Owls hear mice under deep snow because their ears sit at different heights. Owls turn their heads far, and owls see well. "
    "At night owls hunt by ear alone, and the snow does not hide mice from owls. "
) * 4


async def published(site: Site) -> str:
    item = await site.add("Owls & their <ears>", TEXT, tags=("owls", "snow"))
    return (await site.app.disks.publish(site.owner, item.id)).public_id


@pytest.mark.parametrize(
    "wish",
    [{}, {"color_scheme": "dark"}, {"viewport": {"width": 360, "height": 740}}],
    ids=["light", "dark", "phone"],
)
async def test_anybody_reads_it_and_nothing_is_in_the_way(
    site: Site, wish: dict[str, object]
) -> None:
    disk = await published(site)
    page = await site.visitor(**wish)
    await page.goto(f"/d/{disk}")
    await expect(page.get_by_role("heading", name="Owls & their <ears>")).to_be_visible()
    found = (await Axe().run(page)).response["violations"]
    assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert "hear mice under deep snow" not in await page.content()
    assert await page.context.cookies() == []


async def test_it_is_read_without_scripts_and_saved_after_signing_in(site: Site) -> None:
    disk = await published(site)
    page = await site.visitor(java_script_enabled=False)
    await page.goto(f"/d/{disk}")
    await expect(page.get_by_role("heading", name="Key points")).to_be_visible()
    await page.get_by_role("link", name="Sign in to save it").click()
    assert page.url.endswith(f"next=/d/{disk}")


async def test_the_owner_writes_the_summary_and_sees_it_before_others_do(site: Site) -> None:
    item = await site.add("Owls at night", TEXT, tags=("owls", "snow"))
    page = await site.signed_in()
    await page.goto(f"/disks/{item.public_id}/publish")
    preview = page.get_by_role("region", name="Preview")
    await expect(preview).to_contain_text("Owls at night")
    assert "hear mice under deep snow" not in await page.content()
    await expect(page.locator("#public-summary")).to_be_hidden()
    await page.get_by_label("Summary in your own words").fill("A note on <b>ears</b>.")
    await expect(preview.locator("#public-summary")).to_have_text("A note on <b>ears</b>.")
    found = (await Axe().run(page)).response["violations"]
    assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
    await page.keyboard.press("Tab")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(page.get_by_label("Summary", exact=True)).to_have_text("A note on <b>ears</b>.")
    other = await site.visitor()
    await other.goto(f"/d/{item.public_id}")
    await expect(other.get_by_label("Summary", exact=True)).to_have_text("A note on <b>ears</b>.")
    # Without it: title, tags and key points.
    await page.goto(f"/disks/{item.public_id}/publish")
    await page.get_by_label("Summary in your own words").fill("")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("heading", name="Key points")).to_be_visible()
    await other.reload()
    await expect(other.get_by_label("Summary", exact=True)).to_have_count(0)
    await expect(other.locator(".tag")).to_have_text(["owls", "snow"])
    await expect(other.locator(".outline li").first).to_contain_text("owls")
    # A summary that quotes is refused, and nothing is shown of it.
    site.expected.append("422")
    await page.goto(f"/disks/{item.public_id}/publish")
    await page.get_by_label("Summary in your own words").fill(TEXT[:200])
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Write it in your own words")).to_be_visible()
