"""Light enough, quick enough, and usable without eyes, without a mouse, without scripts and on a phone."""

import time

import httpx
import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page, expect

from commonplace.core.entities.validation import NewEntity
from commonplace.core.items.drafts import Record
from commonplace.core.memory.memories import Memo
from commonplace.core.memory.reflection import Notes
from commonplace.core.people.tokens import NewToken
from commonplace.model import Caller, Capability, Item, ItemRef, Role, new_id, new_public_id
from tests.browser.conftest import Site

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
KB = 1024


async def stock(site: Site) -> Item:
    folder = await site.app.folders.create(site.owner, "Birds")
    await site.app.memory.remember(
        site.owner,
        Memo(NewEntity("Feed them", "We feed the owls at night, and never by day.", "decision")),
        sync=True,
    )
    item = await site.add(
        "Owls",
        "# Owls\n\nOwls turn their heads because their eyes cannot move in their sockets.",
        folder=folder.id,
    )
    project = (
        await site.app.entities.add(
            site.owner, NewEntity("Nest boxes", "Build them", "project"), sync=True
        )
    ).item
    await site.app.entities.add(
        site.owner,
        NewEntity("Saw the boards", "All of them", "task", project=project.entity_id),
        sync=True,
    )
    await site.app.graph.link(site.owner, item.id, "RELATED_TO", project.id)
    return await site.app.store.items.get(site.owner.scope, ItemRef(id=item.id))


async def complaints(page: Page, path: str) -> list[str]:
    await page.goto(path)
    found = (await Axe().run(page)).response["violations"]
    return [f"{path}: {each['id']}: {each['nodes'][0]['html'][:150]}" for each in found]


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing(site: Site, scheme: str) -> None:
    item = await stock(site)
    row = "|".join(f" a column of many {n} " for n in range(30))
    wide = await site.add(
        "Wide",
        f"## First\n\n```\n{'x' * 300}\n```\n\n|{row}|\n|{'---|' * 30}\n|{row}|\n\n### Second\n\nAll of it.",
    )
    page = await site.signed_in(color_scheme=scheme)
    paths = (
        "/",
        f"/items/{item.public_id}",
        "/search?q=owls",
        "/work",
        "/graph",
        f"/graph/{item.public_id}",
        "/disks",
        "/review",
        "/review/captures",
        "/tags",
        "/crawls",
        "/import",
        "/tokens",
        "/connect",
        "/people",
        "/health",
        "/admin",
        "/trash",
        "/account",
        f"/disks/{item.public_id}/publish",
        f"/folders/{item.folders[0]}",
        f"/?folder={item.folders[0]}",
        "/?q=nothing+is+like+this",
        f"/items/{wide.public_id}",
    )
    assert [problem for path in paths for problem in await complaints(page, path)] == []
    _, secret = await site.app.members.invite(site.ruler, Role.MEMBER)
    assert await complaints(page, f"/join/{secret}") == []
    dan = await site.app.people.create("Dan", "dan@example.org")
    visitor = await site.visitor(color_scheme=scheme)
    for path in (
        "/sign-in",
        f"/join/{secret}",
        f"/claim/{await site.app.accounts.invitation(dan)}",
    ):
        assert await complaints(visitor, path) == []
    await site.app.members.accept(
        Caller(dan.id, dan.id, "Dan", frozenset(Capability), role=Role.OWNER), secret
    )
    site.expected.append("404")
    for path in ("/people", "/nowhere"):  # with people on it, and as an error
        assert await complaints(page, path) == []


async def test_nothing_sticks_out_on_a_phone(site: Site) -> None:
    item = await stock(site)
    await site.app.folders.create(
        site.owner, "A very long name that somebody gave to a folder of theirs"
    )
    page = await site.signed_in(viewport={"width": 360, "height": 740})
    for path in (
        "/",
        f"/items/{item.public_id}",
        "/search?q=owls",
        "/work",
        "/graph",
        "/tokens",
        "/connect",
        "/health",
        "/admin",
        "/trash",
        "/review",
        "/review/captures",
        "/people",
        "/account",
        f"/folders/{item.folders[0]}",
        "/docs",
    ):
        await page.goto(path)
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360, path
    await page.goto("/")
    await page.get_by_role("button", name="Menu").click()
    await page.get_by_role("link", name="Search").click()
    await expect(page.get_by_role("searchbox", name="Search")).to_be_visible()


@pytest.mark.parametrize("width", [360, 1280])
async def test_words_without_end_are_broken(site: Site, width: int) -> None:
    endless = "x" * 190
    folder = await site.app.folders.create(site.owner, endless)
    project = (
        await site.app.entities.add(site.owner, NewEntity(endless, endless, "project"), sync=True)
    ).item
    task = (
        await site.app.entities.add(
            site.owner,
            NewEntity(
                endless, endless, "task", project=project.entity_id, assignees=(endless[:90],)
            ),
            sync=True,
        )
    ).item
    items = [
        await site.add(
            f"{n} {endless}",
            f"# {endless}\n\n" + f"The zebra grazes by the {endless}. " * 9,
            folder=folder.id,
            tags=(endless[:90],),
        )
        for n in range(2)
    ]
    await site.app.graph.link(site.owner, items[0].id, "REQUIRES", task.id)
    await site.app.annotations.add(site.owner, items[0].id, endless, quote=endless, position=0)
    await site.app.people.create_token(site.owner, NewToken(endless, folders=(folder.id,)))
    await site.app.reflection.reflect(
        site.owner,
        Notes(f"We decided to use {endless} for everything.", endless, persist=True, review=True),
    )
    page = await site.signed_in(viewport={"width": width, "height": 740})
    item = items[0].public_id
    for path in (
        "/",
        f"/?folder={folder.id}",
        "/?state=notes",
        f"/items/{item}",
        "/search?q=zebra",
        "/work",
        "/work?view=list",
        f"/work/{task.public_id}",
        "/graph",
        f"/graph/{item}",
        "/disks?shelf=private",
        f"/disks/{item}/publish",
        "/review",
        "/review/captures",
        "/tokens",
        "/connect",
        "/people",
        "/health",
        "/admin",
        "/trash",
        f"/folders/{folder.id}",
    ):
        await page.goto(path)
        assert await page.evaluate("document.documentElement.scrollWidth") <= width, path


async def test_many_folders_leave_the_rest_of_the_menu_in_sight(site: Site) -> None:
    folders = [await site.app.folders.create(site.owner, f"Folder {n:03}") for n in range(120)]
    page = await site.signed_in(viewport={"width": 1280, "height": 740})
    await expect(page.get_by_role("link", name="Health")).to_be_in_viewport()
    await expect(page.get_by_role("link", name="Folder 119")).not_to_be_in_viewport()
    await page.goto(f"/?folder={folders[-1].id}")
    await expect(page.get_by_role("link", name="Folder 119")).to_be_in_viewport()


async def test_a_token_is_revoked_on_a_phone(site: Site) -> None:
    folder = await site.app.folders.create(site.owner, "A folder with quite a long name")
    await site.app.people.create_token(
        site.owner, NewToken("Agent of the laptop", folders=(folder.id,))
    )
    page = await site.signed_in(viewport={"width": 360, "height": 740})
    await page.goto("/tokens")
    await expect(page.get_by_role("button", name="Revoke")).to_be_in_viewport(ratio=1)


async def test_the_menu_lies_over_nothing_on_a_phone_without_scripts(site: Site) -> None:
    item = await site.add(
        "Owls", "\n\n".join(f"Owls turn their heads, and this is paragraph {n}." for n in range(60))
    )
    page = await site.signed_in(viewport={"width": 360, "height": 640}, java_script_enabled=False)
    await page.goto(f"/items/{item.public_id}")
    last = page.get_by_text("this is paragraph 59.")
    await last.scroll_into_view_if_needed()
    await expect(page.locator(".side")).not_to_be_in_viewport()
    await expect(last).to_be_in_viewport()
    await page.goto("/")
    box = await page.locator(".files").bounding_box()
    assert box and box["x"] > 0, "the field for files is in sight"


async def test_reading_works_without_scripts(site: Site) -> None:
    item = await stock(site)
    page = await site.signed_in(java_script_enabled=False)
    await page.get_by_role("link", name="Owls", exact=True).click()
    await expect(page.locator(".prose")).to_contain_text("cannot move")
    for name, path in (("Work", "/work"), ("Map", "/graph"), ("Health", "/health")):
        await page.get_by_role("link", name=name, exact=True).click()
        assert page.url.endswith(path)
    await page.goto(f"/graph/{item.public_id}")
    await page.locator(".drawing a", has_text="Nest boxes").click()
    await expect(page.get_by_role("heading", name="Nest boxes")).to_be_visible()


async def test_the_first_page_is_light_and_costs_no_more_with_ten_times_the_items(
    site: Site,
) -> None:
    folders = [(await site.app.folders.create(site.owner, f"Folder {n}")).id for n in range(40)]

    def record(n: int) -> Record:
        item = Item(
            id=new_id(),
            library_id=site.owner.library_id,
            public_id=new_public_id(),
            content_id="",
            entity_type="document",
            kind="text",
            title=f"Note {n}",
            tags=("some", f"tag{n % 50}"),
            summary=f"What note {n} is about.",
            in_kb=False,
            folders=(folders[n % 40],) if n % 3 else (),
        )
        return Record(item, f"The text of note {n}.", once=False)

    page = await site.signed_in()
    cookies = {cookie["name"]: cookie["value"] for cookie in await page.context.cookies()}
    spent: list[dict[str, float]] = []
    async with httpx.AsyncClient(
        base_url=site.url, cookies=cookies, headers={"Accept": "text/html"}
    ) as client:
        for first, last in ((0, 500), (500, 5_000)):
            await site.app.bulk_import.put(site.owner, [record(n) for n in range(first, last)])
            spent.append({})
            for path in ("/", f"/?folder={folders[1]}", "/?tag=tag7", "/?page=10", "/?order=title"):
                times = []
                for _ in range(7):
                    began = time.process_time()
                    assert (await client.get(path)).status_code == 200
                    times.append(time.process_time() - began)
                spent[-1][path] = min(times)
    times_longer = {
        path: many / few
        for (path, few), many in zip(spent[0].items(), spent[1].values(), strict=True)
    }
    assert max(times_longer.values()) < 4, times_longer
    sizes: list[int] = []
    await page.route("**/*", lambda route: route.continue_())
    page.on(
        "response", lambda response: sizes.append(int(response.headers.get("content-length", 0)))
    )
    await page.reload()
    assert 0 < sum(sizes) < 100 * KB, sizes
