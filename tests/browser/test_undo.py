"""Every action in the app, then u: the library is as it was. Recent changes keep the way back for a day."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from playwright.async_api import Page, expect

from commonplace.model.workflow import TASK
from tests.browser.conftest import Site, ready
from tests.browser.test_structure import complaints_here
from tests.interfaces.house import House
from tests.interfaces.test_undo import World, differences, furnish, state

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
Do = Callable[[Page, World], Awaitable[Any]]


async def furnished(site: Site) -> World:
    house = House(site.app, cast(Any, None), site.owner, site.owner)
    for name in ("Red", "Blue"):
        house.folders[name] = (await site.app.folders.create(site.owner, name)).id
    return await furnish(house)


async def open_item(page: Page, world: World, name: str, path: str = "items") -> None:
    await page.goto(f"/{path}/{(await world.item(name)).public_id}")


def key(name: str, *keys: str) -> Do:
    async def do(page: Page, world: World) -> None:
        await open_item(page, world, name)
        for each in keys:
            await page.keyboard.press(each)

    return do


def click(path: str, *names: str) -> Do:
    async def do(page: Page, world: World) -> None:
        await page.goto(path.format(**world.ids))
        for name in names:
            await page.get_by_role("button", name=name).first.click()

    return do


async def tag_many(page: Page, world: World) -> None:
    await page.goto("/")
    for title in ("Roof", "Both"):
        await page.get_by_label(f"Select {title}", exact=True).check()
    await page.get_by_placeholder("Tags, comma-separated").fill("seen, twice")
    await page.get_by_role("button", name="Add tags").click()


async def archive_many(page: Page, world: World) -> None:
    await page.goto("/")
    for title in ("Roof", "Poster"):
        await page.get_by_label(f"Select {title}", exact=True).check()
    await page.keyboard.press("a")


async def take_out(page: Page, world: World) -> None:
    await page.goto(f"/?folder={world.ids['red']}")
    await page.get_by_label("Select Both", exact=True).check()
    await page.get_by_role("button", name="Remove from folder").click()


async def move(page: Page, world: World) -> None:
    await page.goto(f"/?folder={world.ids['red']}")
    await page.get_by_label("Select Roof", exact=True).check()
    await page.keyboard.press("v")
    await page.keyboard.type("blu")
    await page.keyboard.press("Enter")


async def drag_to_folder(page: Page, world: World) -> None:
    await page.goto("/")
    blue = page.locator(f"#folders [data-folder='{world.house.folders['Blue']}']")
    await page.locator(".row", has_text="Poster").drag_to(blue)


async def move_to_a_new_folder(page: Page, world: World) -> None:
    await open_item(page, world, "note")
    await page.keyboard.press("v")
    await page.keyboard.type("Quite new")
    await page.keyboard.press("Enter")


async def change_all(page: Page, world: World) -> None:
    await open_item(page, world, "note")
    await page.get_by_text("Title, tags and folders").click()
    form = page.locator("form.stack", has=page.get_by_label("Include in search"))
    await form.get_by_label("Title").fill("Ceiling")
    await form.get_by_label("Tags").fill("one, two")
    await form.get_by_label("Blue").check()
    await form.get_by_label("Include in search").uncheck()
    await form.get_by_role("button", name="Save").click()


async def edit_text(page: Page, world: World) -> None:
    await open_item(page, world, "note")
    await page.keyboard.press("e")
    await expect(page.locator("#editor textarea")).to_be_focused()
    await page.locator("#editor textarea").fill("A sunken garden.")
    await page.keyboard.press("Control+Enter")


async def drag_task(page: Page, world: World) -> None:
    await page.goto("/work")
    card = page.locator(".task", has_text="wire")
    await card.drag_to(page.get_by_role("region", name="Doing"))


async def add_task(page: Page, world: World) -> None:
    await page.goto("/work")
    await page.get_by_text("New task, epic or project").click()
    await page.locator("select[name=project]").select_option("house")
    await page.get_by_label("Title").fill("Saw the beam")
    await page.get_by_role("button", name="Create", exact=True).click()


async def edit_task(page: Page, world: World) -> None:
    await open_item(page, world, "wire", "work")
    await page.locator("summary", has_text="Edit").click()
    await page.get_by_label("Title").fill("Wire it all")
    await page.locator("select[name=epic]").select_option("")
    await page.get_by_role("button", name="Save", exact=True).click()


async def add_dependency(page: Page, world: World) -> None:
    await open_item(page, world, "wire", "work")
    await page.locator("select[name=on]").select_option(label="drill")
    await page.get_by_role("button", name="Add dependency").click()


async def note_on_task(page: Page, world: World) -> None:
    await open_item(page, world, "drill", "work")
    await page.get_by_placeholder("Add a note").fill("The bit is sunken.")
    await page.get_by_role("button", name="Save note").click()


async def highlight(page: Page, world: World) -> None:
    await open_item(page, world, "both")
    await page.get_by_placeholder("Add a note").fill("Twice?")
    await page.get_by_role("button", name="Save note").click()


async def edit_highlight(page: Page, world: World) -> None:
    await open_item(page, world, "note")
    await page.locator(".noted summary").click()
    await page.locator(".noted textarea").fill("Sunken?")
    await page.locator(".noted").get_by_role("button", name="Save note").click()


async def rename_tags(page: Page, world: World) -> None:
    await page.goto("/tags")
    for name in ("sun", "roof"):
        await page.get_by_label(f"Select {name}", exact=True).check()
    await page.get_by_label("New name").fill("house")
    await page.get_by_role("button", name="Rename or merge").click()


async def delete_tag(page: Page, world: World) -> None:
    await page.goto("/tags")
    await page.get_by_label("Select sun", exact=True).check()
    await page.keyboard.press("#")


async def rename_folder(page: Page, world: World) -> None:
    await page.goto(f"/folders/{world.ids['red']}")
    await page.get_by_label("Name", exact=True).fill("Rot")
    await page.get_by_label("Parent folder").select_option("Blue")
    await page.get_by_role("button", name="Save", exact=True).click()


async def new_folder(page: Page, world: World) -> None:
    await page.goto("/health")
    await page.get_by_title("New folder").click()
    await page.get_by_label("Folder name").fill("Shiny")
    await page.get_by_role("button", name="Create folder").click()


async def drag_folder(page: Page, world: World) -> None:
    await page.goto("/health")
    folders = page.locator("#folders")
    red, blue = world.ids["red"], world.house.folders["Blue"]
    await folders.locator(f"[data-folder='{red}']").drag_to(
        folders.locator(f"[data-folder='{blue}']")
    )


async def delete_folder_and_items(page: Page, world: World) -> None:
    await page.goto(f"/folders/{world.ids['red']}")
    await page.get_by_label("Move to the trash").check()
    await page.get_by_role("button", name="Delete folder").click()


def decide(button: str) -> Do:
    async def do(page: Page, world: World) -> None:
        await page.goto("/review")
        candidate = page.locator(".candidate", has_text="states a decision")
        await candidate.get_by_role("button", name=button).click()

    return do


ACTIONS: dict[str, Do] = {
    "archive": key("note", "a"),
    "archive several": archive_many,
    "tag several": tag_many,
    "take out of a folder": take_out,
    "move by keys": move,
    "move by dragging": drag_to_folder,
    "move to a new folder": move_to_a_new_folder,
    "title, tags, folders and search": change_all,
    "edit the text": edit_text,
    "delete": key("note", "#"),
    "delete what is published": key("published", "#"),
    "restore from the trash": click("/trash", "Restore"),
    "publish": click("/disks/{note}/publish", "Publish"),
    "unpublish": click("/disks/{published}/publish", "Unpublish"),
    "accept": decide("Accept"),
    "reject": decide("Reject"),
    "drag a task": drag_task,
    "archive a task": click("/work/{drill}", "Archived"),
    "create a task": add_task,
    "edit a task": edit_task,
    "add a dependency": add_dependency,
    "note on a task": note_on_task,
    "highlight": highlight,
    "edit a highlight": edit_highlight,
    "delete a highlight": click("/items/{note}", "Delete note"),
    "merge tags": rename_tags,
    "delete a tag": delete_tag,
    "rename and nest a folder": rename_folder,
    "create a folder": new_folder,
    "drag a folder": drag_folder,
    "delete a folder": click("/folders/{red}", "Delete folder"),
    "delete a folder with its items": delete_folder_and_items,
}


async def test_every_action_is_undone_by_u(site: Site) -> None:
    world = await furnished(site)
    page = await site.signed_in()
    page.on("dialog", lambda dialog: dialog.accept())
    undo = page.locator(".toast [data-key=u]")
    before, wrong = await state(world), dict[str, str]()
    for name, do in ACTIONS.items():
        await do(page, world)
        await expect(undo, name).to_be_visible()
        await ready(page)
        if await state(world) == before:
            wrong[name] = "it changed nothing"
        await page.keyboard.press("u")
        await expect(page.locator("[role=status]", has_text="Undone."), name).to_be_visible()
        await ready(page)
        after = await state(world)
        if after != before:
            wrong[name], before = differences(before, after), after
    assert not wrong, "\n".join(f"{name}: {what}" for name, what in wrong.items())


async def test_recent_changes_are_listed_and_undone_without_scripts(site: Site) -> None:
    world = await furnished(site)
    before = await state(world)
    page = await site.signed_in(java_script_enabled=False)
    await page.goto(f"/folders/{world.ids['red']}")
    await page.get_by_role("button", name="Delete folder").click()
    await expect(page.get_by_role("status")).to_contain_text("Folder deleted.")
    await page.goto("/tags")
    await page.get_by_label("Select sun", exact=True).check()
    await page.get_by_label("New name").fill("star")
    await page.get_by_role("button", name="Rename or merge").click()
    await page.get_by_role("link", name="Recent changes").click()
    rows = page.locator("#rows .row")
    await expect(rows).to_have_count(2)
    await expect(rows.first).to_contain_text("2 items now tagged “star”.")
    await expect(rows.first.get_by_role("link", name="Roof")).to_be_visible()
    for said in ("now tagged", "Folder deleted."):
        await rows.filter(has_text=said).get_by_role("button", name="Undo").click()
        await expect(page.get_by_role("status")).to_contain_text("Undone.")
        assert page.url.endswith("/recent")
    await expect(page.get_by_role("heading", name="Nothing to undo")).to_be_visible()
    assert await state(world) == before


async def test_a_task_done_by_mistake_goes_back_unless_it_was_changed_meanwhile(
    site: Site,
) -> None:
    world = await furnished(site)
    task = await world.item("wire")
    await site.app.tasks.update(site.owner, task.id, TASK, {"status": "doing"})
    page = await site.signed_in()
    await page.goto("/work")
    card = page.locator(".task", has_text="wire")
    done = page.get_by_role("region", name="Done")
    await card.drag_to(done)
    await expect(page.locator(".toast")).to_contain_text("Updated: wire")
    await expect(done.locator(".task")).to_have_count(1)
    await page.keyboard.press("u")
    await expect(page.get_by_role("region", name="Doing").locator(".task")).to_have_count(1)
    assert (await world.item("wire")).status == "doing"
    await expect(page.locator(".toast")).to_contain_text("Undone.")
    await card.drag_to(done)
    await expect(page.locator(".toast")).to_contain_text("Updated: wire")
    await site.app.tasks.update(site.owner, task.id, TASK, {"status": "archived"})
    site.expected.append("409")
    await page.keyboard.press("u")
    await expect(page.locator(".toast")).to_contain_text("“wire” was changed since.")
    assert (await world.item("wire")).status == "archived"


async def test_an_undo_that_comes_too_late_says_so(site: Site) -> None:
    world = await furnished(site)
    page = await site.signed_in()
    await archive_many(page, world)
    await expect(page.locator(".toast")).to_contain_text("2 items archived.")
    await ready(page)
    assert await complaints_here(page) == []
    await site.app.library.update(
        site.owner, world.ids["note"], {"archived": False, "tags": ["theirs"]}
    )
    await site.app.library.update(site.owner, world.ids["note"], {"archived": True})
    await page.keyboard.press("u")
    await expect(page.get_by_role("status")).to_contain_text("Undone.")
    notes = await world.item("note")
    assert (notes.archived, notes.tags) == (False, ("theirs",))
