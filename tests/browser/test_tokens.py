"""Tokens made, looked through and revoked; clients connected; how the library is."""

import json
import re
import zipfile
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Page, expect

from commonplace.model import Role
from tests.browser.conftest import Site

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def secret_of(page: Page) -> str:
    text = await page.locator("#secret, #lines").first.inner_text()
    found = re.search(r"sk_[\w-]{43}", text)
    assert found
    return found[0]


def recent(site: Site, secret: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=site.url, headers={"Authorization": f"Bearer {secret}"})


async def test_a_token_for_one_folder_sees_what_view_as_shows(site: Site) -> None:
    red = await site.app.folders.create(site.owner, "Red")
    await site.add("In red", folder=red.id)
    await site.add("Elsewhere")
    page = await site.signed_in()
    await page.goto("/tokens")
    await page.get_by_role("textbox", name="Name").fill("Red agent")
    await page.get_by_label("Only these folders").check()
    await page.get_by_label("Red 1").check()
    await page.get_by_role("button", name="Create token").click()
    secret = await secret_of(page)
    async with recent(site, secret) as client:
        seen = [item["title"] for item in (await client.get("/api/v1/items")).json()["items"]]
    await page.goto("/tokens")
    await expect(page.locator("#secret")).to_have_count(0)
    await page.locator("tr", has_text="Red agent").get_by_role("button", name="View as").click()
    await expect(page.locator(".row .title")).to_have_text(seen)
    await expect(page.locator("#add")).to_have_count(0)
    assert seen == ["In red"]
    await page.get_by_role("button", name="Exit").click()
    await page.goto("/")
    await expect(page.locator(".row")).to_have_count(2)


async def test_a_revoked_token_is_out_and_its_activity_stays(site: Site) -> None:
    page = await site.signed_in()
    await page.goto("/tokens")
    await page.get_by_role("textbox", name="Name").fill("<i>Nosy</i>")
    await page.get_by_role("button", name="Create token").click()
    async with recent(site, await secret_of(page)) as client:
        await client.get("/api/v1/items")
        page.on("dialog", lambda dialog: dialog.accept())
        await page.locator("tr", has_text="Nosy").get_by_role("button", name="Revoke").click()
        await expect(page.get_by_role("status")).to_contain_text("revoked")
        assert (await client.get("/api/v1/items")).status_code == 401
    await page.get_by_role("link", name="<i>Nosy</i>").click()
    await expect(page.locator("tbody")).to_contain_text("list")


async def test_a_viewers_token_is_said_to_read_whatever_it_was_given(site: Site) -> None:
    _, secret = await site.app.members.invite(site.ruler, Role.VIEWER)
    await site.app.members.accept(None, secret, "Dan", "dan@example.org")
    page = await site.signed_in()
    await page.goto("/tokens")
    await expect(page.locator("tr", has_text="invited: Dan").locator("td").nth(1)).to_have_text(
        "Read only viewer"
    )


@pytest.mark.parametrize("client", ["claude-code", "cursor", "vscode", "curl"])
async def test_a_client_is_connected_and_the_page_says_so(site: Site, client: str) -> None:
    page = await site.signed_in()
    await page.goto(f"/connect?client={client}")
    await page.get_by_role("button", name="Create token").click()
    await expect(page.get_by_role("status")).to_contain_text("Waiting for the first call")
    secret = await secret_of(page)
    if client in ("cursor", "vscode"):
        await expect(page.get_by_role("link", name="Install in")).to_have_attribute(
            "href", re.compile("^(cursor|vscode):")
        )
        lines = json.loads(await page.locator("#lines").inner_text())
        assert f"{site.url}/mcp" in str(lines)
    async with recent(site, secret) as agent:
        assert (await agent.get("/api/v1/items")).status_code == 200
    await expect(page.get_by_role("status")).to_contain_text("Connected")


async def test_health_shows_what_is_there_and_hands_it_out(site: Site, tmp_path: Path) -> None:
    folder = await site.app.folders.create(site.owner, "Birds")
    await site.add(
        "Owls", "Owls turn their heads because their eyes cannot move.", folder=folder.id
    )
    page = await site.signed_in()
    await page.keyboard.press("g")
    await page.keyboard.press("h")
    await expect(page.locator(".figures")).to_contain_text("wordllama")
    await expect(page.get_by_role("img", name="Items by folder: Birds: 1")).to_be_visible()
    await expect(page.get_by_text("No failed jobs.")).to_be_visible()
    async with page.expect_download() as download:
        await page.get_by_role("button", name="Export as Markdown").click()
    await (await download.value).save_as(tmp_path / "export.zip")
    with zipfile.ZipFile(tmp_path / "export.zip") as exported:
        assert "Owls turn their heads" in "".join(
            exported.read(name).decode() for name in exported.namelist()
        )
    async with page.expect_download() as download:
        await page.get_by_role("button", name="Back up everything").click()
    await (await download.value).save_as(tmp_path / "all.backup")
    assert (tmp_path / "all.backup").read_bytes()[:2] == b"\x1f\x8b"
