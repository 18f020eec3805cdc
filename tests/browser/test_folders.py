"""Folders from the list's side, captures that nobody changes, counts that follow, and all of it also without scripts."""

import hashlib

import pytest
from playwright.async_api import Page, expect

from commonplace.core.entities.validation import NewEntity
from commonplace.core.memory.memories import Memo
from commonplace.core.people.tokens import NewToken
from commonplace.model import ItemFilter
from tests.browser.conftest import Site

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
scripts = pytest.mark.parametrize("scripted", [True, False], ids=["scripts", "no scripts"])


async def make(page: Page, name: str) -> None:
    await page.get_by_title("New folder").click()
    await page.get_by_label("Folder name").fill(name)
    await page.get_by_role("button", name="Create folder").click()


@scripts
async def test_a_folder_is_made_renamed_and_deleted(site: Site, scripted: bool) -> None:
    page = await site.signed_in(java_script_enabled=scripted)
    await make(page, "Birds")
    await expect(page.get_by_role("heading", name="Birds", exact=True)).to_be_visible()
    await page.goto("/")
    site.expected.append("409")
    await make(page, "BIRDS")
    await expect(page.get_by_role("alert")).to_contain_text("already a folder named")
    await page.get_by_role("link", name="Birds 0").click()
    await page.get_by_role("link", name="Rename, move or delete").click()
    await page.get_by_label("Name", exact=True).fill("Water <b>birds</b>")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Water <b>birds</b>")
    await page.get_by_role("link", name="Rename, move or delete").click()
    await expect(page.get_by_text("This folder is empty.")).to_be_visible()
    page.on("dialog", lambda dialog: dialog.accept())
    await page.get_by_role("button", name="Delete folder").click()
    await expect(page.get_by_role("status")).to_contain_text("deleted")
    assert await site.app.folders.list_folders(site.owner) == []


@pytest.mark.parametrize(
    "choice, left",
    [
        ("Keep in the library", ["In both", "Only here"]),
        ("Move to the trash: 1 item", ["In both"]),
    ],
)
async def test_what_goes_with_a_folder_is_said_before(
    site: Site, choice: str, left: list[str]
) -> None:
    here, there = [await site.app.folders.create(site.owner, name) for name in ("Here", "There")]
    both = await site.add("In both", folder=here.id)
    await site.app.folders.file(site.owner, both.id, [there.id])
    await site.add("Only here", folder=here.id)
    await site.app.people.create_token(site.owner, NewToken("Agent", folders=(here.id,)))
    page = await site.signed_in(java_script_enabled=False)
    await page.goto(f"/folders/{here.id}")
    await expect(
        page.get_by_text("Deleting it also revokes 1 token that can only see this folder.")
    ).to_be_visible()
    await page.get_by_role("radio", name=choice).check()
    await page.get_by_role("button", name="Delete folder").click()
    await expect(page.get_by_role("status")).to_contain_text("deleted")
    items, _ = await site.app.library.page(site.owner, ItemFilter())
    assert sorted(item.title for item in items) == left


async def test_many_are_filed_tagged_archived_and_deleted_without_scripts(site: Site) -> None:
    for title in ("One", "Two", "Three"):
        await site.add(title)
    page = await site.signed_in(java_script_enabled=False)

    async def choose(*titles: str) -> None:
        await expect(page.locator("#bulk")).to_be_hidden()
        for title in titles:
            await page.get_by_label(f"Select {title}").check()

    await choose("One", "Two")
    await page.get_by_placeholder("New folder").fill("Numbers")
    await page.get_by_role("button", name="Add to folder").click()
    await expect(page.get_by_role("status")).to_contain_text("2 items added to “Numbers”.")
    await choose("Three")
    await page.get_by_placeholder("Tags, comma-separated").fill("odd")
    await page.get_by_role("button", name="Add tags").click()
    await expect(
        page.locator(".row", has_text="Three").get_by_role("link", name="odd")
    ).to_be_visible()
    await choose("One")
    await page.get_by_role("button", name="Archive").click()
    await expect(page.locator("#total")).to_have_text("2 items")
    await choose("Two", "Three")
    await page.get_by_role("button", name="Delete").click()
    await expect(page.get_by_role("status")).to_contain_text("2 items deleted.")
    await page.get_by_role("link", name="Trash").click()
    for title in ("Two", "Three"):
        await page.get_by_role("button", name=f"Restore {title}").click()
        await expect(page.get_by_role("status")).to_contain_text(f"Restored “{title}”.")
    await page.get_by_role("link", name="Library").click()
    await page.get_by_label("Add a link, a note or files").fill(
        "A note that was written without any script."
    )
    await page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("A note that was written")


async def test_counts_follow_what_is_added_and_deleted(site: Site) -> None:
    folder = await site.app.folders.create(site.owner, "Birds")
    await site.add("Owls")
    page = await site.signed_in()
    await page.goto(f"/?folder={folder.id}")
    await expect(page.locator("#total")).to_have_text("0 items")
    text = "Herons\nThey stand in the water for hours, and nobody knows why."
    for _ in range(2):  # the second time it is there already
        await page.get_by_label("Add a link, a note or files").fill(text)
        await page.get_by_role("button", name="Add", exact=True).click()
        await expect(page.locator("#adding li")).to_have_count(0)
        await expect(page.locator("#total")).to_have_text("1 item")
        await expect(page.get_by_role("link", name="Birds 1")).to_be_visible()
    await page.get_by_label("Select Herons").check()
    await page.get_by_role("button", name="Delete").click()
    await expect(page.locator("#total")).to_have_text("0 items")
    await expect(page.get_by_role("link", name="Birds 0")).to_be_visible()


async def test_captures_show_the_words_their_hash_and_what_became_of_them(site: Site) -> None:
    said = "We use <b>Postgres</b> for the archive, because it is there already."
    kept = await site.app.memory.remember(
        site.owner,
        Memo(NewEntity("The archive", said, "decision"), source={"client": "Claude"}),
        sync=True,
    )
    await site.app.memory.supersede(
        site.owner,
        kept.item.id,
        title="The archive, again",
        content="We use SQLite for it now, and nothing else.",
        reason="One process reads it.",
    )
    page = await site.signed_in()
    await page.goto("/review")
    await page.get_by_role("link", name="Captures").click()
    capture = page.get_by_role("region", name="The archive", exact=True)
    await expect(capture.locator(".said")).to_have_text(said)
    await expect(capture.locator("code")).to_have_attribute(
        "title", hashlib.sha256(said.encode()).hexdigest()
    )
    for text in (
        "text is unchanged",
        "client: Claude",
        "superseded by The archive, again",
        "One process reads it.",
    ):
        await expect(capture).to_contain_text(text)
    await expect(page.locator("main form, main input, main textarea, main button")).to_have_count(0)
    await capture.get_by_role("link", name="The archive, again").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("The archive, again")
