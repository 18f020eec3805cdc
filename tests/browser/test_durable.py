"""Nothing that is typed or dropped is lost when the browser or the server goes: it is there, or offered at the next visit."""

import asyncio
import os
import re
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, BrowserContext, Page, expect

from commonplace.model import ItemFilter
from tests.browser.conftest import CHROMIUM, Site, ready, served
from tests.browser.test_adding import drop
from tests.interfaces.command import Commands
from tests.interfaces.test_cli_processes import bearer, serving
from tests.interfaces.test_unread_kills import signed_in

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
NOTES, FILES = 50, 14
LIMIT = 100  # seconds: long for the slowest machine, and less than two leases of a job
NOT_SENT = "Not sent completely"
ADD = """([count, about]) => {
    const box = document.querySelector("#add");
    for (let n = 0; n < count; n += 1) { box.elements.text.value = `${about}, note ${n}`; box.requestSubmit(); }
}"""


@pytest.fixture(scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> AsyncIterator[Site]:
    async with served(tmp_path_factory.mktemp("durable"), browser) as opened:
        await opened.signed_in()
        opened.expected += ["409", "403", "422", "401", "ERR_"]
        yield opened


@asynccontextmanager
async def visit(
    browser: Browser, url: str, secret: str, profile: Path
) -> AsyncIterator[tuple[BrowserContext, Page]]:
    """A visit with a browser of one's own, whose storage stays."""
    context = await browser.browser_type.launch_persistent_context(
        profile,
        executable_path=CHROMIUM,
        args=["--no-sandbox"] if os.geteuid() == 0 else [],
        base_url=url,
    )
    try:
        await context.add_cookies(
            [{"name": f"commonplace_{url.rpartition(':')[2]}", "value": secret, "url": url}]
        )
        page = context.pages[0]
        await page.goto("/")
        await ready(page)
        yield context, page
    finally:
        await context.close()


async def session(site: Site) -> str:
    return await site.app.accounts.open_session(site.owner.person_id, "test")


async def kept(site: Site, about: str) -> list[str]:
    """The titles of what was added, once each is ready or failed."""
    async with asyncio.timeout(LIMIT):
        while True:
            items, _ = await site.app.library.page(site.owner, ItemFilter(), limit=500)
            mine = [item for item in items if item.title.startswith(about)]
            if all(item.state in ("ready", "failed") for item in mine):
                assert all(item.state == "ready" for item in mine)
                return [item.title for item in mine]
            await asyncio.sleep(0.1)


async def settled(page: Page) -> list[str]:
    """The names of files that were not sent, once nothing is on its way any more."""
    await page.wait_for_function(
        """() => ![...Object.keys(localStorage)].some((key) => key.startsWith("note "))
            && Object.keys(localStorage).filter((key) => key.startsWith("file ")).length
                === document.querySelectorAll("#adding .wrong").length""",
        timeout=LIMIT * 1000,
    )
    lines = page.locator("#adding li", has_text=NOT_SENT)
    return await lines.locator(".name").all_inner_texts()


@pytest.mark.parametrize("pause", [0, 50, 200, 2_000])
async def test_notes_survive_a_closed_browser(
    site: Site, browser: Browser, tmp_path: Path, pause: int
) -> None:
    about = f"After {pause} ms"
    async with visit(browser, site.url, await session(site), tmp_path) as (_, page):
        await page.evaluate(ADD, [NOTES, about])
        await asyncio.sleep(pause / 1000)
    async with visit(browser, site.url, await session(site), tmp_path) as (_, page):
        await settled(page)
        assert sorted(await kept(site, about)) == sorted(f"{about}, note {n}" for n in range(NOTES))


@pytest.mark.parametrize("pause", [0, 50, 200, 2_000])
async def test_files_are_there_or_named_as_not_sent(
    site: Site, browser: Browser, tmp_path: Path, pause: int
) -> None:
    about = f"File {pause}"
    files = {
        f"{about}-{n:02}.txt": f"{about}-{n:02}: the heron waits. " * 2_000 for n in range(FILES)
    }
    names = sorted(name.removesuffix(".txt") for name in files)
    async with visit(browser, site.url, await session(site), tmp_path) as (_, page):
        await drop(page, files)
        await asyncio.sleep(pause / 1000)
    async with visit(browser, site.url, await session(site), tmp_path) as (_, page):
        missing = [name.removesuffix(".txt") for name in await settled(page)]
        there = await kept(site, about)
        assert sorted([*there, *missing]) == names, "each is there or named, and only once"
        if pause == 2_000:
            assert missing == []
        for _ in missing:  # until somebody has read it
            await page.locator("#adding li", has_text=NOT_SENT).first.get_by_text("Dismiss").click()
        await page.reload()
        await ready(page)
        assert await settled(page) == []


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.mark.timeout(400)
@pytest.mark.parametrize("stored", [0, 20])
async def test_a_killed_server_loses_nothing(
    data_dir: Path, browser: Browser, tmp_path: Path, stored: int
) -> None:
    """It is killed once the page has heard that so many are stored, while they are read."""
    secret, token = await asyncio.to_thread(signed_in, data_dir, {})
    cli, port = Commands(data_dir, rate_requests_per_minute="0"), str(free_port())
    files = {f"File {n:02}.txt": f"File {n:02}: the heron waits. " * 2_000 for n in range(FILES)}
    with serving(cli, "--port", port) as (address, _, process):
        async with visit(browser, address, secret, tmp_path) as (_, page):
            await drop(page, files)
            await page.evaluate(ADD, [NOTES, "Killed"])
            await page.wait_for_function(
                "most => Object.keys(localStorage).filter(key => /^(note|file) /.test(key)).length <= most",
                arg=NOTES + FILES - stored,
            )
            os.killpg(process.pid, signal.SIGKILL)
    with serving(cli, "--port", port) as (address, _, process):
        async with visit(browser, address, secret, tmp_path) as (_, page):
            missing = [name.removesuffix(".txt") for name in await settled(page)]
        async with httpx.AsyncClient(base_url=address, headers=bearer(token)) as client:
            async with asyncio.timeout(LIMIT):
                while True:
                    found = (await client.get("/api/v1/items?per_page=100")).json()["items"]
                    if all(item["status"] in ("ready", "failed") for item in found):
                        break
                    await asyncio.sleep(0.2)
        titles = [item["title"] for item in found]
        wanted = [f"Killed, note {n}" for n in range(NOTES)] + [
            f"File {n:02}" for n in range(FILES)
        ]
        assert sorted([*titles, *missing]) == sorted(wanted)


async def test_only_what_the_server_does_not_have_is_named_as_not_sent(site: Site) -> None:
    page = await site.signed_in()
    site.expected += ["404", "503"]
    app, text = site.app, b"The heron comes late."
    late, url = await app.uploads.announce(
        site.owner, "Late.txt", "text/plain", len(text), on_arrival={}
    )
    never, _ = await app.uploads.announce(site.owner, "Never.txt", "text/plain", 9, on_arrival={})
    busy, _ = await app.uploads.announce(site.owner, "Busy.txt", "text/plain", 9, on_arrival={})
    files = {
        "Late.txt": {"upload": late.id},
        "Never.txt": {"upload": never.id},
        "Busy.txt": {"upload": busy.id},
        "Unannounced.txt": {},
        "Deleted since.txt": {"upload": "gone", "sent": True},
    }
    await page.evaluate(
        """files => {
            for (const [name, file] of Object.entries(files))
                localStorage.setItem(`file ${document.body.dataset.me} ${name}`, JSON.stringify({ name, ...file }));
        }""",
        files,
    )
    asked: list[str] = []

    async def answer(route: Any) -> None:
        asked.append(sent := route.request.post_data)
        if busy.id in sent:
            await route.fulfill(status=503, json={"message": "Come back later."})
            return
        if asked.count(f"upload={late.id}") == 2 and late.id in sent:
            async with httpx.AsyncClient(base_url=site.url) as client:
                assert (await client.put(url, content=text)).is_success
        await route.continue_()

    await page.route("**/add", answer)
    await page.reload()
    await expect(page.get_by_role("link", name="Late")).to_be_visible()
    lines = page.locator("#adding li")
    await expect(lines).to_have_count(3)
    for name in ("Never.txt", "Unannounced.txt"):
        await expect(lines.filter(has_text=name)).to_contain_text(NOT_SENT)
    await expect(lines.filter(has_text="Come back later.")).to_contain_text("Busy.txt")
    await page.unroute("**/add")
    await page.get_by_role("button", name="Try again").click()
    await expect(lines.filter(has_text=NOT_SENT)).to_have_count(3)


async def test_closing_asks_only_while_a_file_is_leaving(site: Site) -> None:
    page = await site.signed_in()
    held = asyncio.Event()

    async def hold(route: Any) -> None:
        await held.wait()
        await route.continue_()

    asked: list[str] = []

    async def answer(dialog: Any) -> None:
        asked.append(dialog.type)
        await dialog.dismiss()

    page.on("dialog", answer)
    await page.route("**/api/v1/uploads/**", hold)
    await page.locator("#add-text").click()  # browsers ask only who has done something
    await drop(page, {"Leaving.txt": "The heron is on its way."})
    await expect(page.locator("#adding li")).to_have_count(1)
    await page.close(run_before_unload=True)
    async with asyncio.timeout(10):
        while not asked:  # noqa: ASYNC110 (the dialog fills it)
            await asyncio.sleep(0.02)
    assert asked == ["beforeunload"]
    held.set()
    await expect(page.locator("#adding li")).to_have_count(0)
    await page.goto("/search")
    assert asked == ["beforeunload"]


async def test_drafts_are_offered_after_a_crash_to_the_same_person_only(site: Site) -> None:
    item = await site.add("Cranes", "Cranes dance in spring on the wide meadows by the river.")
    page = await site.signed_in()
    await page.locator("#add-text").fill("A thought that is not")
    await page.goto(f"/items/{item.public_id}/edit")
    await page.locator("#editor textarea[name=text]").fill("Cranes bow.")
    await page.goto("/work")
    await page.locator("summary", has_text="New task").click()
    await page.get_by_label("Title").fill("Count cranes")
    await page.get_by_label("Type").select_option("project")
    await page.get_by_label("Description").fill("At dawn")
    crashed = await page.context.new_page()
    await page.wait_for_function(
        "() => Object.keys(localStorage).filter((key) => key.startsWith('draft ')).length === 3"
    )
    await page.close()
    # another person of this browser sees none of it
    other = await site.app.people.create("Grace", "grace@example.org")
    cookies = await crashed.context.cookies()
    mine = next(each for each in cookies if each["name"].startswith("commonplace_"))
    theirs = await site.app.accounts.open_session(other.id, "test")
    await crashed.context.add_cookies([{**mine, "value": theirs}])  # type: ignore[typeddict-item]
    await crashed.goto("/")
    await expect(crashed.locator("#add-text")).to_have_value("")
    await expect(crashed.locator("#adding li")).to_have_count(0)
    await crashed.context.add_cookies([mine])  # type: ignore[list-item]
    await crashed.goto("/")
    await expect(crashed.locator("#add-text")).to_have_value("A thought that is not")
    await expect(crashed.locator("#adding .name")).to_have_text(
        ["Work", "Edit Cranes"], use_inner_text=True
    )
    await crashed.get_by_role("link", name="Edit Cranes").click()
    await expect(crashed.locator("#editor textarea[name=text]")).to_have_value("Cranes bow.")
    await expect(crashed.locator("#editor .draft")).to_contain_text("Draft restored.")
    await crashed.locator("#editor .draft").get_by_role("button", name="Discard").click()
    await expect(crashed.locator("#editor textarea[name=text]")).to_have_value(re.compile("dance"))
    await crashed.goto("/work")
    await expect(crashed.get_by_label("Description")).to_have_value("At dawn")
    await expect(crashed.get_by_label("Title")).to_have_value("Count cranes")
    await expect(crashed.get_by_label("Type")).to_have_value("project")
    await crashed.get_by_role("button", name="Create", exact=True).click()
    await expect(crashed.get_by_role("link", name="Count cranes")).to_be_visible()
    await crashed.goto("/")
    await expect(crashed.locator("#adding li")).to_have_count(0)
    # signing out can forget the rest
    await crashed.goto("/account")
    await crashed.get_by_label("Forget drafts").check()
    await crashed.get_by_role("button", name="Sign out", exact=True).click()
    await expect(crashed.get_by_role("button", name="Sign in")).to_be_visible()
    assert (
        await crashed.evaluate("Object.keys(localStorage).filter(key => key.startsWith('draft '))")
        == []
    )


@pytest.mark.parametrize("scripts", [True, False])
async def test_a_stale_page_sends_again_for_the_same_person_and_never_for_another(
    site: Site, scripts: bool
) -> None:
    page = await site.signed_in(java_script_enabled=scripts)
    mine = next(
        each
        for each in await page.context.cookies()
        if re.fullmatch(r"commonplace_\d+", each["name"])
    )
    name = f"Stale {scripts}"

    async def send(folder: str, secret: str) -> None:
        await page.goto("/")
        await page.locator(".new summary").click()
        await page.get_by_label("Folder name").fill(folder)
        await page.context.add_cookies([{**mine, "value": secret}])  # type: ignore[typeddict-item]
        await page.get_by_role("button", name="Create folder").click()

    async def folders() -> list[str]:
        return [each.name for each in await site.app.folders.list_folders(site.owner)]

    await send(name, await session(site))  # signed in again
    if not scripts:
        await expect(page.get_by_role("alert")).to_contain_text("send it again")
        await expect(page.get_by_label("Folder name")).to_have_value(name)
        await page.get_by_role("button", name="Create folder").click()
    await expect(page.get_by_role("heading", name=name)).to_be_visible()
    assert (await folders()).count(name) == 1
    other = await site.app.people.create("Eve", f"eve{scripts}@example.org")
    await page.context.add_cookies([mine])  # type: ignore[list-item]
    await send("Never", await site.app.accounts.open_session(other.id, "test"))
    await expect(page.get_by_text("Someone else is signed in here now")).to_be_visible()
    if scripts:
        await expect(page.get_by_label("Folder name")).to_have_value("Never")
    else:
        assert "Never" not in (await page.get_by_label("Folder name").all_inner_texts())
    assert "Never" not in await folders()
