"""The library: adding with word of how far it is, filters, many at once, deleting with time to think again."""

from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from commonplace.model import ItemFilter
from tests.browser.conftest import Site, ready

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def choose(page: Page, *titles: str) -> None:
    await ready(page)
    for title in titles:
        await page.get_by_label(f"Select {title}").check()


async def test_a_note_is_added_and_found_without_leaving_the_page(site: Site) -> None:
    page = await site.signed_in()
    await page.keyboard.press("n")
    await page.keyboard.type(
        "Hanging gardens\nThey are said to have been in Babylon, and nobody has found them."
    )
    await page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.locator(".row .title")).to_have_text("Hanging gardens")
    await expect(page.locator("#adding li")).to_have_count(0)
    await expect(page.locator(".row.open")).to_have_count(0)
    await page.keyboard.press("Escape")
    await page.goto("/search?q=Babylon")
    await expect(page.locator(".hits mark").first).to_have_text("Babylon")


async def test_what_cannot_be_added_says_why_and_is_not_lost(site: Site) -> None:
    page = await site.signed_in()
    site.expected.append("422")
    only_front = "---\ntitle: No text\n---"
    await page.get_by_label("Add a link, a note or files").fill(only_front)
    await page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.get_by_role("alert")).to_contain_text("Write something")
    await expect(page.locator("#add-text")).to_have_value(only_front)
    await expect(page.locator("#adding li")).to_have_count(0)
    await page.get_by_label("Add a link, a note or files").fill("http://127.0.0.1:1/secret")
    await page.get_by_role("button", name="Add", exact=True).click()
    row = page.locator(".row", has_text="secret")
    await expect(row.locator(".state.wrong")).to_contain_text("private network (127.0.0.1)")
    await expect(row.get_by_role("button", name="Retry")).to_be_visible()


async def test_files_are_dropped_into_a_folder(site: Site, tmp_path: Path) -> None:
    folder = await site.app.folders.create(site.owner, "Papers")
    (tmp_path / "notes.md").write_text(
        "# On owls\n\nOwls turn their heads because their eyes cannot move in their sockets."
    )
    (tmp_path / "empty.txt").write_text("")
    page = await site.signed_in()
    await page.goto(f"/?folder={folder.id}")
    async with page.expect_file_chooser() as chooser:
        await page.get_by_text("Files", exact=True).click()
    await (await chooser.value).set_files([tmp_path / "notes.md", tmp_path / "empty.txt"])
    site.expected.append("422")
    await expect(page.locator(".row .title")).to_have_text("On owls")
    await expect(page.locator("#adding li", has_text="empty.txt")).to_contain_text(
        "The file is empty."
    )
    items, _ = await site.app.library.page(site.owner, ItemFilter(folder_id=folder.id))
    assert [item.title for item in items] == ["On owls"]


async def test_filters_order_and_paging(site: Site) -> None:
    folder = await site.app.folders.create(site.owner, "Birds")
    for n in range(33):
        await site.add(
            f"Note {n:02}", folder=folder.id if n < 2 else None, tags=("odd",) if n % 2 else ()
        )
    page = await site.signed_in()
    await expect(page.locator(".row")).to_have_count(30)
    await page.get_by_role("link", name="Next").click()
    await expect(page.locator(".row")).to_have_count(3)
    await ready(page)
    await page.get_by_label("Sort by").select_option("title")
    await expect(page.locator(".row .title").first).to_have_text("Note 00")
    await page.get_by_role("link", name="Birds 2").click()
    await expect(page.locator(".row")).to_have_count(2)
    await page.locator(".row", has_text="Note 01").get_by_role("link", name="odd").click()
    await expect(page.get_by_text("16 items")).to_be_visible()
    await page.get_by_placeholder("Filter by title").fill("note 31")
    await page.keyboard.press("Enter")
    await expect(page.locator(".row")).to_have_count(1)


async def test_many_are_filed_tagged_and_archived_at_once(site: Site) -> None:
    for title in ("One", "Two", "Three"):
        await site.add(title)
    page = await site.signed_in()
    await expect(page.locator("#bulk")).to_be_hidden()
    await choose(page, "One", "Two")
    await expect(page.locator("#bulk")).to_contain_text("2 selected")
    await page.get_by_placeholder("New folder").fill("Numbers")
    await page.get_by_role("button", name="Add to folder").click()
    await expect(page.get_by_role("status")).to_contain_text("2 items added to “Numbers”.")
    await expect(page.get_by_role("link", name="Numbers 2")).to_be_visible()
    await choose(page, "Two", "Three")
    await page.get_by_placeholder("Tags, comma-separated").fill("even, small")
    await page.get_by_role("button", name="Add tags").click()
    await expect(
        page.locator(".row", has_text="Three").get_by_role("link", name="even")
    ).to_be_visible()
    await ready(page)
    for key in "jja":
        await page.keyboard.press(key)
    await expect(page.get_by_role("status")).to_contain_text("1 item archived.")
    await expect(page.locator(".row")).to_have_count(2)


async def test_what_is_deleted_is_in_the_trash_until_it_is_restored_or_deleted_for_good(
    site: Site,
) -> None:
    titles = ("Keep me", "Delete me", "Forget me", "And me")
    for title in titles:
        await site.add(title)
    page = await site.signed_in()
    await choose(page, *titles)
    await page.get_by_role("button", name="Delete").click()
    await expect(page.get_by_role("status")).to_contain_text("4 items deleted.")
    await page.get_by_role("link", name="Trash").click()
    await expect(page.locator("#total")).to_have_text("4 items, kept for 30 days")
    await expect(page.locator(".row", has_text="Keep me")).to_contain_text("Deleted just now by")
    await page.get_by_role("button", name="Restore Keep me").click()
    await expect(page.get_by_role("status")).to_contain_text("Restored “Keep me”.")
    page.on("dialog", lambda dialog: dialog.accept())
    await ready(page)
    await page.get_by_role("button", name="Delete Delete me now").click()
    await expect(page.get_by_role("status")).to_contain_text("Deleted for good.")
    await ready(page)
    await page.get_by_role("button", name="Empty trash").click()
    await expect(page.get_by_role("status")).to_contain_text("2 items deleted for good.")
    await expect(page.get_by_role("heading", name="Trash is empty")).to_be_visible()
    assert [item.title for item in await site.app.library.recent(site.owner)] == ["Keep me"]
