"""Tokens made, looked through and revoked; clients connected; how the library is."""

import json
import re
import zipfile
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page, expect

from commonplace.core.people.client_setup import SIGN_IN
from commonplace.model import Capability, Role, Token, now
from tests.browser.conftest import Site, answered
from tests.interfaces.conftest import Clock
from tests.interfaces.house import rpc
from tests.interfaces.oauth_flow import PAGE, Person, Program, returned

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def secret_of(page: Page) -> str:
    await answered(page)
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


async def tokens_of(site: Site) -> list[Token]:
    return await site.app.people.tokens(site.ruler)


async def test_a_reload_creates_no_second_token_and_the_secret_goes_after_five_minutes(
    site: Site, clock: Clock
) -> None:
    page = await site.signed_in()
    await page.clock.install()
    for path, shown in (("/tokens", "#secret"), ("/connect?client=cursor", "#lines")):
        before = len(await tokens_of(site))
        await page.goto(path)
        if path == "/tokens":
            await page.get_by_role("textbox", name="Name").fill("Laptop")
        else:
            await page.get_by_text("Use a token instead").click()
        await page.get_by_role("button", name="Create token").click()
        secret = await secret_of(page)
        await page.reload()
        assert await secret_of(page) == secret
        assert len(await tokens_of(site)) == before + 1
        await page.clock.fast_forward(301_000)  # the page stays open
        await expect(page.locator(shown)).to_have_count(0)
        clock.advance(minutes=5, seconds=1)
        await page.reload()
        await expect(page.get_by_text("is no longer shown")).to_be_visible()
        assert secret not in await page.content()
        assert len(await tokens_of(site)) == before + 1


async def test_a_secret_is_shown_in_one_browser_until_it_is_done(site: Site) -> None:
    page = await site.signed_in()
    await page.goto("/tokens")
    await page.get_by_role("textbox", name="Name").fill("Laptop")
    await page.get_by_role("button", name="Create token").click()
    await secret_of(page)
    other = await site.signed_in()
    await other.goto(page.url)
    await expect(other.locator("#secret")).to_have_count(0)
    address = page.url
    await page.get_by_role("button", name="Done").click()
    await expect(page).to_have_url(f"{site.url}/tokens")
    await page.goto(address)
    await expect(page.locator("#secret")).to_have_count(0)


async def test_a_new_token_reads_chosen_folders_unless_more_is_asked_for(site: Site) -> None:
    await site.app.folders.create(site.owner, "Red")
    await site.app.folders.create(site.owner, "Blue")
    page = await site.signed_in()
    for path in ("/tokens", "/connect?client=codex"):
        before = {token.id for token in await tokens_of(site)}
        await page.goto(path)
        if path == "/tokens":
            await page.get_by_role("textbox", name="Name").fill("Laptop")
        else:
            await page.get_by_text("Use a token instead").click()
        says = page.locator(".says")
        end = now() + timedelta(days=365)
        year = f"{end:%-d %b %Y}"
        await expect(says).to_have_text(f"Can read nothing yet. Expires {year}.")
        await page.get_by_role("button", name="Create token").click()
        assert {token.id for token in await tokens_of(site)} == before, "no folder is chosen"
        await page.get_by_label("Red 0").check()
        await expect(says).to_have_text(f"Can read Red. Expires {year}.")
        await page.get_by_role("button", name="Create token").click()
        await expect(page.get_by_text(f"Can read Red. Expires {end:%-d %B %Y}.")).to_be_visible()
        [made] = [token for token in await tokens_of(site) if token.id not in before]
        assert made.folders is not None and len(made.folders) == 1
        assert made.capabilities == {Capability.READ}
    await page.goto("/tokens")
    await page.get_by_label("Whole library").check()
    await page.get_by_label("Can edit").check()
    await page.get_by_label("Expires in").select_option("Never")
    await expect(page.locator(".says")).to_have_text("Can read and edit everything. Never expires.")


async def test_the_first_token_is_named_until_it_is_revoked(site: Site) -> None:
    await site.app.people.first_token()
    page = await site.signed_in()
    await page.goto("/tokens")
    hint = page.get_by_text("was printed when the server started")
    await expect(hint).to_be_visible()
    page.on("dialog", lambda dialog: dialog.accept())
    await page.locator("tr", has_text="owner").get_by_role("button", name="Revoke").click()
    await expect(hint).to_have_count(0)
    assert await site.app.people.first_token() is None


@pytest.mark.parametrize("client", ["claude-code", "codex", "vscode", "claude-ai", "chatgpt"])
async def test_connect_leads_with_signing_in_and_notices_it(site: Site, client: str) -> None:
    page = await site.signed_in()
    await page.goto(f"/connect?client={client}")
    await expect(page.locator("main h2").first).to_have_text("Sign in with your browser")
    await expect(page.locator("#lines")).to_contain_text(f"{site.app.settings.issuer}/mcp/core")
    assert "sk_" not in await page.locator("#lines").inner_text()
    if client in SIGN_IN:
        await expect(page.locator("#sign-in")).to_have_text(SIGN_IN[client])
    await expect(page.get_by_role("button", name="Create token")).to_be_hidden()
    assert (await Axe().run(page)).response["violations"] == []
    await expect(page.get_by_role("status")).to_contain_text("Waiting for")
    async with (
        httpx.AsyncClient(base_url=site.url) as http,
        httpx.AsyncClient(base_url=site.url, headers=PAGE) as browser,
    ):
        program = Program(http)
        await program.register()
        session = await site.app.accounts.open_session(site.owner.person_id, "test")
        browser.cookies.set(f"commonplace_{site.url.rpartition(':')[2]}", session)
        back = returned(await Person(browser).decide(program.request()))
        await program.redeem(back["code"])
        async with recent(site, program.access) as agent:
            assert "result" in await rpc(agent, "ping")
    await expect(page.get_by_role("status")).to_contain_text("Connected")


@pytest.mark.parametrize("client", ["claude-code", "cursor", "vscode", "curl"])
async def test_a_client_is_connected_and_the_page_says_so(site: Site, client: str) -> None:
    page = await site.signed_in()
    await page.goto(f"/connect?client={client}")
    if client != "curl":
        await page.get_by_text("Use a token instead").click()
    await page.get_by_role("button", name="Create token").click()
    await expect(page.get_by_role("status")).to_contain_text("Waiting for the first call")
    secret = await secret_of(page)
    if client in ("cursor", "vscode"):
        await expect(page.get_by_role("link", name="Install in")).to_have_attribute(
            "href", re.compile("^(cursor|vscode):")
        )
        lines = json.loads(await page.locator("#lines").inner_text())
        assert f"{site.app.settings.issuer}/mcp" in str(lines)
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
