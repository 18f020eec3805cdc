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
