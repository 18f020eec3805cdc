"""Everything by keys: the list, going about, the skip link; and one always sees where one is."""

import re

import pytest
from playwright.async_api import Page, expect

from tests.browser.conftest import Site, ready

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def press(page: Page, *keys: str) -> None:
    for key in keys:
        await page.keyboard.press(key)


async def stocked(site: Site, many: int = 4) -> Page:
    """Newest first: Note 3, Note 2, Note 1, Note 0."""
    for n in range(many):
        await site.add(f"Note {n}")
    page = await site.signed_in()
    await ready(page)
    return page


async def test_one_steps_through_the_list_and_sees_where_one_is(site: Site) -> None:
    page = await stocked(site)
    await press(page, "j", "j", "k", "j")
    await expect(page.locator(".row.at .title")).to_have_text("Note 2")
    focused = page.locator(":focus-visible")
    await expect(focused).to_have_text("Note 2")
    assert await focused.evaluate("e => getComputedStyle(e).outlineStyle") == "solid"
    await press(page, "k", "k", "k")
    await expect(page.locator(".row.at .title")).to_have_text("Note 3")
    for key in ("o", "Enter"):
        await press(page, key)
        await expect(page.get_by_role("heading", level=1)).to_have_text("Note 3")
        await page.go_back()
        await ready(page)
        await press(page, "j")


async def test_rows_are_chosen_archived_and_brought_back(site: Site) -> None:
    page = await stocked(site)
    await press(page, "j", "x", "j", "x")
    await expect(page.locator("#bulk .many")).to_have_text("2 selected")
    await press(page, "Escape")
    await expect(page.locator("#bulk")).to_be_hidden()
    await press(page, "a")
    await expect(page.get_by_role("status")).to_contain_text("1 item archived.")
    await expect(page.locator(".row.at .title")).to_have_text(
        "Note 1"
    )  # the place in the list is kept
    await ready(page)
    await press(page, "x", "k", "x", "a")
    await expect(page.get_by_role("status")).to_contain_text("2 items archived.")
    await expect(page.locator(".row")).to_have_count(1)
    await page.goto("/?state=archived")
    await ready(page)
    await press(page, "j", "a")
    await expect(page.get_by_role("status")).to_contain_text("1 item restored.")


async def test_deleting_by_key_moves_to_the_trash(site: Site) -> None:
    page = await stocked(site)
    await press(page, "j", "j", "#")
    await expect(page.get_by_role("status")).to_contain_text("1 item deleted.")
    await expect(page.locator(".row")).to_have_count(3)
    await ready(page)
    await press(page, "g", "x")
    await expect(page.locator(".row")).to_have_count(1)


async def test_one_goes_everywhere_by_two_keys(site: Site) -> None:
    page = await stocked(site, 1)
    for key, path in (
        ("s", "/search"),
        ("w", "/work"),
        ("m", "/graph"),
        ("d", "/disks"),
        ("r", "/review"),
        ("t", "/tokens"),
        ("c", "/connect"),
        ("p", "/people"),
        ("h", "/health"),
        ("x", "/trash"),
        ("a", "/account"),
        ("l", "/"),
    ):
        await ready(page)
        await press(page, "Escape", "g", key)  # search begins in its field
        await expect(page).to_have_url(f"{site.url}{path}")
    await press(page, "g", "z")
    await press(page, "j")
    await expect(page.locator(".row.at")).to_have_count(1)


async def test_search_adding_theme_and_help_have_keys(site: Site) -> None:
    page = await stocked(site, 1)
    await press(page, "/")
    box = page.get_by_role("search").get_by_label("Search")
    await expect(box).to_be_focused()
    await page.keyboard.type("j?#")
    await expect(box).to_have_value("j?#")
    await press(page, "Escape", "n")
    await expect(page.get_by_label("Add a link, a note or files")).to_be_focused()
    await press(page, "Escape", "?")
    help = page.get_by_role("dialog")
    await expect(help).to_be_visible()
    shown = set(re.findall(r"\S+", " ".join(await help.locator("kbd").all_inner_texts())))
    assert set("/jkoxvbea#ungt?") | {"Esc"} <= shown
    await press(page, "Escape")
    await expect(help).to_be_hidden()
    before = await page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    await press(page, "t")
    assert (
        await page.evaluate("getComputedStyle(document.documentElement).backgroundColor") != before
    )
    await page.reload()
    assert (
        await page.evaluate("getComputedStyle(document.documentElement).backgroundColor") != before
    )
    await page.goto("/health")
    await ready(page)
    await press(page, "/")
    await expect(page.get_by_role("searchbox", name="Search")).to_be_focused()


async def test_the_first_tab_leads_past_the_menu(site: Site) -> None:
    page = await stocked(site, 1)
    for path in ("/", "/people", "/account", "/health", "/admin"):
        await page.goto(path)
        await press(page, "Tab")
        skip = page.get_by_role("link", name="Skip to content")
        await expect(skip).to_be_focused()
        await expect(skip).to_be_in_viewport()
        await press(page, "Enter")
        await expect(page.locator("main")).to_be_focused()
        await press(page, "Tab")
        assert await page.evaluate(
            "document.querySelector('main').contains(document.activeElement)"
        ), path


async def test_every_control_shows_its_focus(site: Site) -> None:
    page = await stocked(site, 2)
    for path in ("/", "/people", "/account", "/tokens"):
        await page.goto(path)
        seen: set[str] = set()
        for _ in range(60):
            await press(page, "Tab")
            shown = await page.evaluate("""() => { const e = document.activeElement; if (!e || e === document.body) return null;
                const box = e.matches('.switch input') ? e.nextElementSibling : e.closest('.add') && e.matches('textarea') ? e.closest('.add') : e;
                const s = getComputedStyle(box), r = e.getBoundingClientRect();
                return [e.outerHTML.slice(0, 90), s.outlineStyle !== 'none' || box !== e || e.matches('.off'), r.width > 0]; }""")
            if shown is None:
                break
            seen.add(shown[0])
            assert shown[1], (path, shown[0])
        assert len(seen) > 10, path
