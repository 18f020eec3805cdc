"""Folders as a tree, things put into them, counts that agree, the way from a list to its items and back, and the first run."""

import re
from collections.abc import Sequence

import pytest
from playwright.async_api import Page, expect

from commonplace.core.entities.validation import NewEntity
from commonplace.model import ItemFilter
from tests.browser.conftest import Site, ready
from tests.browser.test_keys import press
from tests.browser.test_quality import complaints

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
schemes = pytest.mark.parametrize("scheme", ["light", "dark"])


async def chain(site: Site, *names: str) -> list[str]:
    """Ids of folders, each in the one before."""
    made: list[str] = []
    for name in names:
        made.append((await site.app.folders.create(site.owner, name, *made[-1:])).id)
    return made


def folder(page: Page, name: str, count: int | str = r"\d+"):  # type: ignore[no-untyped-def]
    return page.locator("#folders").get_by_role(
        "link", name=re.compile(rf"^{re.escape(name)}\s*{count}$")
    )


async def titles(site: Site, folder_id: str) -> list[str]:
    items, _ = await site.app.library.page(site.owner, ItemFilter(folder_id=folder_id))
    return sorted(item.title for item in items)


async def path_of(site: Site, folder_id: str) -> list[str]:
    by_id = {each.id: each for each in await site.app.folders.list_folders(site.owner)}
    names, at = list[str](), by_id.get(folder_id)
    while at is not None:
        names.insert(0, at.name)
        at = by_id.get(at.parent_id or "")
    return names


# -- folders


async def test_folders_are_a_tree_on_every_page_and_stay_folded(site: Site) -> None:
    _, _, owls = await chain(site, "Animals", "Birds", "Owls")
    item = await site.add("Barn owls", folder=owls)
    page = await site.signed_in()
    for path in ("/", f"/items/{item.public_id}", "/search", "/work", "/health", "/account"):
        await page.goto(path)
        await expect(folder(page, "Owls", 1)).to_be_visible()
    toggle = page.locator("summary[aria-label='Folders in Birds']")
    await toggle.focus()
    await press(page, "Enter")
    await expect(folder(page, "Owls")).to_be_hidden()
    await page.goto("/")
    await expect(folder(page, "Birds")).to_be_visible()
    await expect(folder(page, "Owls")).to_be_hidden()
    await site.add("Tawny owls", folder=owls)  # the live update leaves it folded
    await expect(page.locator("#total")).to_have_text("2 items")
    await expect(folder(page, "Owls")).to_be_hidden()
    await page.goto(f"/?folder={owls}")  # what the page is about is shown
    await expect(folder(page, "Owls", 2)).to_be_visible()
    await expect(page.locator("#folders [aria-current=page]")).to_contain_text("Owls")


@pytest.mark.parametrize("scripted", [True, False], ids=["scripts", "no scripts"])
async def test_subfolders_are_made_moved_renamed_and_deleted(site: Site, scripted: bool) -> None:
    animals, birds = await chain(site, "Animals", "Birds")
    item = await site.add("Barn owls", folder=birds)
    page = await site.signed_in(java_script_enabled=scripted)
    await page.goto(f"/?folder={birds}")
    await page.get_by_title("New folder").click()
    await page.get_by_label("Folder name").fill("Owls")
    await page.get_by_role("button", name="Create folder").click()  # in the one that is shown
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Owls")
    owls = page.url.rpartition("=")[2]
    assert await path_of(site, owls) == ["Animals", "Birds", "Owls"]
    await page.get_by_role("link", name="Rename, move or delete").click()
    await page.get_by_label("Name of the new folder").fill("Eagle owls")
    await page.locator("main").get_by_role("button", name="Create folder").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Eagle owls")
    assert await path_of(site, page.url.rpartition("=")[2]) == [
        *("Animals", "Birds", "Owls", "Eagle owls")
    ]
    await page.goto(f"/folders/{birds}")
    await page.get_by_label("Name", exact=True).fill("Flying")
    await page.get_by_label("Parent folder").select_option("")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Flying")
    assert await path_of(site, owls) == ["Flying", "Owls"]
    await page.get_by_role("link", name="Rename, move or delete").click()
    page.on("dialog", lambda dialog: dialog.accept())
    await page.get_by_role("radio", name="Keep in the library").check()
    await page.get_by_role("button", name="Delete folder").click()
    await expect(page.get_by_role("status")).to_contain_text("still in the library")
    assert await path_of(site, owls) == ["Owls"]
    assert await site.app.library.find(site.owner, item.id) is not None
    assert {f.id for f in await site.app.folders.list_folders(site.owner)} >= {animals, owls}


async def test_rows_are_dragged_onto_folders(site: Site) -> None:
    [here], [there] = await chain(site, "Here"), await chain(site, "There")
    for n in range(4):
        await site.add(f"Note {n}", folder=here if n == 0 else None)
    page = await site.signed_in()
    await page.locator(".row", has_text="Note 3").drag_to(folder(page, "There"))
    await expect(page.get_by_role("status")).to_contain_text("1 item moved to “There”.")
    await ready(page)
    for n in (1, 2):
        await page.get_by_label(f"Select Note {n}").check()
    await page.locator(".row", has_text="Note 2").drag_to(folder(page, "There"))
    await expect(page.get_by_role("status")).to_contain_text("2 items moved to “There”.")
    assert await titles(site, there) == ["Note 1", "Note 2", "Note 3"]
    await page.goto(f"/?folder={here}")  # out of the folder whose list it is
    await page.locator(".row", has_text="Note 0").drag_to(folder(page, "There"))
    await expect(folder(page, "Here", 0)).to_be_visible()
    assert (await titles(site, here), len(await titles(site, there))) == ([], 4)


async def test_folders_are_dragged_onto_folders(site: Site) -> None:
    [animals], [_, owls] = await chain(site, "Animals"), await chain(site, "Birds", "Owls")
    page = await site.signed_in()
    await page.goto("/health")
    await folder(page, "Birds").drag_to(folder(page, "Animals"))
    await expect(page.get_by_role("status")).to_contain_text("Moved the folder “Birds”.")
    assert await path_of(site, owls) == ["Animals", "Birds", "Owls"]
    assert page.url.endswith("/health")
    await ready(page)
    await folder(page, "Animals").drag_to(folder(page, "Owls"))  # into itself: nothing happens
    await folder(page, "Owls").drag_to(page.locator(".folders h2"))
    await expect(page.get_by_role("status")).to_contain_text("Moved the folder “Owls”.")
    assert await path_of(site, owls) == ["Owls"]
    assert await path_of(site, animals) == ["Animals"]


async def test_items_are_moved_by_keys_from_list_and_reader(site: Site) -> None:
    [here], [_, owls] = await chain(site, "Here"), await chain(site, "Birds", "Owls")
    for n in range(3):
        await site.add(f"Note {n}", folder=here)
    page = await site.signed_in()
    await page.goto(f"/?folder={here}")
    await press(page, "?")
    await expect(page.locator("#help")).to_contain_text("move to a folder")
    await press(page, "Escape", "j", "x", "j", "v")
    await expect(page.get_by_role("dialog", name="Move to folder")).to_be_visible()
    assert await complaints_here(page) == []
    await page.keyboard.type("owl")
    await press(page, "Enter")
    await expect(page.get_by_role("status")).to_contain_text("1 item moved to “Owls”.")
    assert (await titles(site, here), await titles(site, owls)) == (
        ["Note 0", "Note 1"],
        ["Note 2"],
    )
    await ready(page)
    await press(page, "j", "v")
    await page.keyboard.type("Brand new")
    await press(page, "ArrowDown")
    await expect(page.locator(":focus")).to_have_text("Create folder “Brand new”")
    await press(page, "Enter")
    await expect(folder(page, "Brand new", 1)).to_be_visible()
    await page.get_by_role("link", name="Note 1").click()
    await ready(page)
    await press(page, "v", "ArrowDown", "Enter")  # the first: Birds
    await expect(folder(page, "Birds", 1)).to_be_visible()
    await expect(folder(page, "Here", 0)).to_be_visible()
    await press(page, "v", "Escape")
    await expect(page.get_by_role("dialog")).to_be_hidden()


async def complaints_here(page: Page) -> Sequence[str]:
    from axe_playwright_python.async_playwright import Axe

    found = (await Axe().run(page)).response["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html'][:150]}" for each in found]


# -- counts


async def test_counts_agree_everywhere(site: Site) -> None:
    [work] = await chain(site, "Water")
    item = await site.add("Rivers", "Rivers bend because water erodes the outer bank.", folder=work)
    for n in range(3):
        await site.add(f"Lake {n}", folder=work if n else None)
    old = await site.add("Old", folder=work)
    await site.app.library.update(site.owner, old.id, {"archived": True})
    await site.app.annotations.add(site.owner, item.id, "Why?", quote="Rivers bend", position=0)
    project = await site.app.entities.add(
        site.owner, NewEntity("Dam", "Build it.", "project"), sync=True
    )
    task = NewEntity("Dig", "All of it.", "task", project=project.item.entity_id)
    added = await site.app.entities.add(site.owner, task, sync=True)
    await site.app.folders.file(site.owner, added.item.id, [work])

    page = await site.signed_in()
    await expect(page.locator("#total")).to_have_text("4 items")
    await expect(page.locator(".row")).to_have_count(4)
    await expect(folder(page, "Water", 3)).to_be_visible()
    await page.goto(f"/?folder={work}")
    await expect(page.locator("#total")).to_have_text("3 items")
    await page.goto(f"/folders/{work}")
    await expect(page.locator(".head")).to_contain_text("3 items")
    await page.goto("/graph")
    await expect(page.locator(".head")).to_contain_text("4 items, 2 in Work")
    await page.goto("/health")
    await expect(page.locator(".figures div").first).to_have_text(
        re.compile(r"Items\s*4\s*and 2 in Work, 1 highlights?, 1 archived")
    )
    await expect(page.get_by_role("img", name="Items by folder: Water: 3")).to_be_visible()
    await expect(page.get_by_role("img", name="4 now")).to_be_visible()
    await page.goto("/?type=all")
    await expect(page.locator("#total")).to_have_text("6 items")
    for type, count in (("task", "1 item"), ("document", "4 items")):
        await page.get_by_label("Type").select_option(type)
        await expect(page.locator("#total")).to_have_text(count)
    await page.goto(f"/?folder={work}&type=all&state=archived")
    await expect(page.locator("#total")).to_have_text("1 item")


# -- tags


async def test_tags_are_renamed_merged_and_deleted(site: Site) -> None:
    for n, tags in enumerate([("owl", "night"), ("owls",), ("night",), ("Owl", "old")]):
        item = await site.add(f"Note {n}", tags=tags)
    await site.app.library.update(site.owner, item.id, {"archived": True})
    page = await site.signed_in()
    await press(page, "g", "b")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Tags")
    row = page.locator(".row")
    await expect(row).to_have_text(
        [
            re.compile(text)
            for text in (
                r"night\s*2 items",
                r"old\s*archived",
                r"Owl\s*archived",
                r"owl\s*1 item",
                r"owls\s*1 item",
            )
        ]
    )
    await page.get_by_role("link", name="night").click()
    await expect(page.locator("#total")).to_have_text("2 items")
    await page.go_back()
    for name in ("owl", "owls", "Owl"):
        await page.get_by_label(f"Select {name}", exact=True).check()
    await page.get_by_label("New name").fill("owls")
    await page.get_by_role("button", name="Rename or merge").click()
    await expect(page.get_by_role("status")).to_contain_text("2 items now tagged “owls”.")
    await expect(row).to_have_text(
        [re.compile(t) for t in (r"night\s*2", "old", r"owls\s*2 items")]
    )
    await ready(page)
    page.on("dialog", lambda dialog: dialog.accept())
    await press(page, "j", "#")
    await expect(page.get_by_role("status")).to_contain_text("Deleted 1 tag from 2 items.")
    await page.get_by_label("Filter by name").fill("OW")
    await press(page, "Enter")
    await expect(row).to_have_text([re.compile(r"owls\s*2 items")])


# -- lists and items


async def test_one_reads_on_in_the_list_one_came_from_and_goes_back_to_its_place(
    site: Site,
) -> None:
    [birds] = await chain(site, "Birds")
    for n in range(35):
        await site.add(f"Note {n:02}", folder=birds if n % 2 else None)
    page = await site.signed_in()
    await page.goto(f"/?folder={birds}&order=title")
    await page.get_by_role("link", name="Note 03").click()
    await expect(page.get_by_role("link", name="Previous")).to_have_attribute("title", "Note 01")
    await ready(page)
    await press(page, "J")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Note 05")
    await ready(page)
    await press(page, "K")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Note 03")
    await page.get_by_role("link", name="Next", exact=True).click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Note 05")
    await ready(page)
    await press(page, "b")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Birds")
    await expect(page.get_by_label("Sort by")).to_have_value("title")
    await expect(page.locator(".row.at .title")).to_have_text("Note 05")
    await expect(page.locator(".row.at")).to_be_in_viewport()

    await page.goto("/?order=title")  # the second page of a list
    await page.get_by_role("link", name="Note 29").click()
    await page.get_by_role("link", name="Next", exact=True).click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Note 30")
    await page.locator("main").get_by_role("link", name="Library").click()
    await expect(page.locator("main")).to_contain_text("Page 2 of 2")
    await expect(page.locator(".row.at .title")).to_have_text("Note 30")
    await page.get_by_role("link", name="Note 34").click()
    await expect(page.get_by_role("link", name="Next", exact=True)).to_have_count(0)


@pytest.mark.parametrize("scripted", [True, False], ids=["scripts", "no scripts"])
async def test_deleting_in_the_reader_returns_to_the_list(site: Site, scripted: bool) -> None:
    for n in range(3):
        await site.add(f"Note {n}", tags=("odd",) if n % 2 else ("even",))
    page = await site.signed_in(java_script_enabled=scripted)
    await page.goto("/?tag=even&order=title")
    await page.get_by_role("link", name="Note 2").click()
    await page.get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("Tagged even")).to_be_visible()
    assert page.url.endswith("/?tag=even&order=title")


async def test_an_item_knows_no_list_that_its_reader_does_not_see(site: Site) -> None:
    [secret] = await chain(site, "Secret")
    one = await site.add("One", folder=secret)
    page = await site.signed_in()
    for query in (
        "list=/?folder=nothing",
        "list=//example.org/",
        "list=javascript:alert(1)",
        "list=/?type=none%26order=none%26tag=%2500",
    ):
        await page.goto(f"/items/{one.public_id}?{query}")
        link = page.locator(".along").get_by_role("link", name="Library")
        href = await link.get_attribute("href")
        assert href is not None and href.startswith("/?at=")
    await page.goto(f"/search?q=zebra&mode=keyword&folder={secret}")
    await page.locator(".hits .title").first.click()
    await page.get_by_role("link", name="Search results").click()
    await expect(page.get_by_role("searchbox")).to_have_value("zebra")
    await expect(page.get_by_label("Words")).to_be_checked()
    await expect(page.locator("[data-live] [name=folder]")).to_have_value(secret)
    await page.goto(f"/items/{one.public_id}?list=//example.org/search?q=a")
    await expect(page.locator(".along").get_by_role("link", name="Library")).to_be_visible()


# -- search on every page, the phone, the first run


async def test_the_search_box_is_on_every_page(site: Site) -> None:
    item = await site.add("Owls")
    page = await site.signed_in()
    for path in ("/", f"/items/{item.public_id}", "/work", "/tags", "/health", "/search?q=owl"):
        await page.goto(path)
        await press(page, "/")
        await expect(page.locator(":focus")).to_have_attribute("name", "q")
        assert await page.get_by_role("search").count() == 1
        await page.keyboard.type("zebra")
        await press(page, "Enter")
        await expect(page.locator(".hits .title").first).to_have_text("Owls")
        assert "/search?q=zebra" in page.url


@schemes
async def test_the_menu_of_a_phone_covers_the_page(site: Site, scheme: str) -> None:
    await chain(site, "Animals", "Birds")
    for n in range(6):
        await site.add(f"Note {n}")
    page = await site.signed_in(color_scheme=scheme, **PHONE)
    heading = page.get_by_role("heading", level=1)
    before = await heading.bounding_box()
    await page.get_by_role("button", name="Menu").click()
    await expect(folder(page, "Birds")).to_be_visible()
    assert await page.locator("h1").bounding_box() == before, "nothing is pushed"
    shown = await page.locator("#nav").bounding_box()
    assert shown and shown["y"] + shown["height"] >= 843 and shown["width"] == 390
    await expect(page.locator("main")).to_have_attribute("inert", "")
    assert await complaints_here(page) == []
    await press(page, "Escape")
    await expect(page.locator("#nav")).to_be_hidden()
    await expect(page.get_by_role("button", name="Menu")).to_be_focused()
    for path in ("/", "/tags", "/tokens"):
        await page.goto(path)
        for box in await page.locator("input[type=checkbox], input[type=radio]").all():
            if found := await box.bounding_box():
                assert min(found["width"], found["height"]) >= 24, path
        wide = await page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 390, path
    await page.goto("/")
    await page.get_by_label("Select Note 3").check()
    await page.locator("#bulk [name=new_folder]").fill("By thumb")
    await page.get_by_role("button", name="Add to folder").click()
    await expect(page.get_by_role("status")).to_contain_text("1 item added to “By thumb”.")


@schemes
async def test_an_empty_library_shows_three_steps_and_a_sample(site: Site, scheme: str) -> None:
    page = await site.signed_in(color_scheme=scheme)
    await expect(page.get_by_role("heading", name="Three steps to begin")).to_be_visible()
    assert await complaints(page, "/") == []
    await page.get_by_role("link", name="Write a note").click()
    await expect(page.locator("#add-text")).to_be_focused()
    await page.get_by_role("button", name="Add the sample").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Sample library")
    await expect(page.locator(".row")).to_have_count(6)
    await expect(page.locator(".row .title").first).to_have_text("Start here")
    assert await complaints(page, page.url.removeprefix(site.url)) == []
    await site.add("My own")
    await page.get_by_role("button", name="Remove sample").click()
    await expect(page.get_by_role("status")).to_contain_text("Sample removed: 6 items.")
    await expect(page.locator(".row .title")).to_have_text(["My own"])
    await expect(page.locator("#folders li")).to_have_count(0)


async def test_the_first_steps_go_when_something_is_added(site: Site) -> None:
    page = await site.signed_in()
    await press(page, "n")
    await page.keyboard.type("Herons\nThey stand in the water for hours, and nobody knows why.")
    await page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.locator(".row .title")).to_have_text("Herons")
    await expect(page.get_by_role("heading", name="Three steps to begin")).to_have_count(0)
    await expect(page.locator(".filters")).to_be_visible()
