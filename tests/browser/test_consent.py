"""Connecting a client with OAuth in a real browser: sign in, decide, and back to the client."""

from collections.abc import AsyncIterator, Iterator
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page, expect

from tests.browser.conftest import PASSWORD, Site
from tests.interfaces.oauth_flow import Program
from tests.webserver import WebServer, page as web_page, web_server

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
VIEWPORTS = [(360, 740), (768, 1024), (1280, 800), (1920, 1080)]


@pytest.fixture
def callback() -> Iterator[WebServer]:
    """The client's own server, at another origin."""
    with web_server() as server:
        for path in ("/callback", "/opener"):
            server.pages[path] = web_page(f"<title>{path}</title><p>Connected.")
        yield server


@pytest.fixture
async def program(site: Site, callback: WebServer) -> AsyncIterator[Program]:
    """A registered client."""
    async with httpx.AsyncClient(base_url=site.url) as http:
        program = Program(http, redirect_uri=f"{callback.url}/callback")
        await program.register(client_name="A client with a rather long name that somebody gave it")
        yield program


def address_of(program: Program, **more: str) -> str:
    """What the client opens in the browser."""
    return f"/oauth/authorize?{urlencode(program.request(**more))}"


def brought(callback: WebServer) -> dict[str, list[str]]:
    """What came back to the client."""
    [request] = [each for each in callback.requests if each.path.startswith("/callback")]
    return parse_qs(urlsplit(request.path).query)


@pytest.mark.parametrize(("width", "height"), VIEWPORTS)
async def test_the_page_is_usable_everywhere_and_leads_to_the_client(
    site: Site, program: Program, callback: WebServer, width: int, height: int
) -> None:
    await site.app.folders.create(site.owner, "A very long name that somebody gave to a folder")
    folder = await site.app.folders.create(site.owner, "Birds")
    page = await site.signed_in(viewport={"width": width, "height": height})
    await page.goto(address_of(program))
    assert await page.evaluate("document.documentElement.scrollWidth") <= width
    assert (await Axe().run(page)).response["violations"] == []
    await expect(page.get_by_text("unverified, registered itself")).to_be_visible()
    await expect(page.get_by_text("runs on your computer")).to_be_visible()
    await expect(page.get_by_label("Birds")).to_be_hidden()
    await page.get_by_label("Only these folders").check()
    await page.get_by_label("Birds").check()
    await page.get_by_label("Read only").check()
    await page.get_by_role("button", name="Connect").click()
    await page.wait_for_url(f"{callback.url}/callback**")
    answer = brought(callback)
    assert answer["state"] == ["s1"]
    token = (await program.redeem(answer["code"][0])).json()
    assert token["scope"] == "read"
    caller = await site.app.access.identify(program.access, mcp=True)
    assert caller.folders == {folder.id}
    await page.goto(f"{site.url}/tokens")
    row = page.get_by_role("row", name="A client with a rather long name")
    await expect(row).to_contain_text("OAuth, 127.0.0.1")
    assert await page.evaluate("document.documentElement.scrollWidth") <= width
    await page.goto(f"{site.url}/account")
    await expect(page.get_by_text("127.0.0.1, read only, some folders")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") <= width
    assert (await Axe().run(page)).response["violations"] == []


async def test_who_is_not_signed_in_comes_back_after_signing_in(
    site: Site, program: Program, callback: WebServer
) -> None:
    await (await site.signed_in()).context.close()  # there is a password now
    page = await site.visitor()
    await page.goto(address_of(program))
    await page.get_by_label("Email").fill("ada@example.org")
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("heading", name="Connect A client")).to_be_visible()
    await page.get_by_role("button", name="Connect").click()
    await page.wait_for_url(f"{callback.url}/callback**")
    assert brought(callback)["code"]
    await page.go_back()
    await expect(page.get_by_role("heading", name="Connect A client")).to_be_visible()


async def test_cancel_is_told_to_the_client(
    site: Site, program: Program, callback: WebServer
) -> None:
    page = await site.signed_in()
    await page.goto(address_of(program))
    await page.get_by_role("button", name="Cancel").click()
    await page.wait_for_url(f"{callback.url}/callback**")
    assert brought(callback)["error"] == ["access_denied"]


async def test_a_popup_stays_in_touch_with_the_page_that_opened_it(
    site: Site, program: Program, callback: WebServer
) -> None:
    await (await site.signed_in()).context.close()
    opener = await site.visitor()
    await opener.goto(f"{callback.url}/opener")
    async with opener.expect_popup() as opened:
        await opener.evaluate(f"window.open('{site.url}{address_of(program)}'); 0")
    popup: Page = await opened.value
    await popup.get_by_label("Email").fill("ada@example.org")
    await popup.get_by_label("Password").fill(PASSWORD)
    await popup.get_by_role("button", name="Sign in").click()
    await popup.get_by_role("button", name="Connect").click()
    await popup.wait_for_url(f"{callback.url}/callback**")
    assert await popup.evaluate("window.opener !== null")


async def test_an_unknown_client_is_explained_to_the_person(
    site: Site, program: Program, callback: WebServer
) -> None:
    page = await site.signed_in()
    site.expected.append("400")
    await page.goto(address_of(program, client_id="cl_gone"))
    await expect(page.get_by_role("heading", name="Cannot connect")).to_be_visible()
    assert (await Axe().run(page)).response["violations"] == []
    assert callback.requests == []
