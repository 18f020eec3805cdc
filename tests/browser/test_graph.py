"""Work on a board, the neighbourhood as a picture, disks with a preview, and what waits for review."""

import re

import pytest
from playwright.async_api import Page, expect

from commonplace.core.entities.validation import NewEntity
from commonplace.core.memory.reflection import Notes
from commonplace.model import Item
from tests.browser.conftest import Site, ready

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def entity(site: Site, title: str, kind: str, **more: object) -> Item:
    added = await site.app.entities.add(
        site.owner, NewEntity(title, f"All about {title}", kind, **more), sync=True
    )  # type: ignore[arg-type]
    return added.item


def column(page: Page, name: str) -> object:
    return page.get_by_role("region", name=name)


async def test_tasks_are_dragged_where_their_state_may_go(site: Site) -> None:
    project = await entity(site, "Ship it", "project")
    task = await entity(site, "Write the docs", "task", project=project.entity_id)
    page = await site.signed_in()
    await page.goto(f"/work?project={project.entity_id}")
    card = page.locator(".task", has_text="Write the docs")
    await card.drag_to(page.get_by_role("region", name="Done"))
    await expect(page.get_by_role("region", name="To do").locator(".task")).to_have_count(1)
    async with page.expect_response(re.compile("/move")):
        await card.drag_to(page.get_by_role("region", name="Doing"))
    assert (await site.app.library.read(site.owner, task.id)).item.status == "doing"
    await page.goto("/work?view=list")
    await expect(page.locator(".row")).to_contain_text("doing")


async def test_tasks_are_moved_on_the_board_by_keys(site: Site) -> None:
    project = await entity(site, "Ship it", "project")
    task = await entity(site, "Write the docs", "task", project=project.entity_id)
    page = await site.signed_in()
    await page.goto("/work")
    await ready(page)
    await page.get_by_role("link", name="Write the docs").focus()
    for key, state, moves in (
        ("ArrowLeft", "To do", False),
        ("ArrowRight", "Doing", True),
        ("ArrowRight", "Blocked", True),
        ("ArrowRight", "Blocked", False),
        ("ArrowLeft", "Doing", True),
    ):
        before = await page.locator(".task").get_attribute("data-next")
        await page.keyboard.press(f"Shift+{key}")
        if moves:
            await expect(page.locator(".task")).not_to_have_attribute(
                "data-next", before or ""
            )  # the server has answered
        await expect(page.get_by_role("region", name=state).locator(".task")).to_have_count(1)
        await expect(page.get_by_role("link", name="Write the docs")).to_be_focused()
    await expect(page.get_by_role("region", name="Doing").locator("h2 small")).to_have_text("1")
    assert (await site.app.library.read(site.owner, task.id)).item.status == "doing"


async def test_a_task_has_notes_and_a_drawing_of_what_it_waits_for(site: Site) -> None:
    project = await entity(site, "Ship it", "project")
    first = await entity(site, "Dig", "task", project=project.entity_id)
    second = await entity(
        site, "Build", "task", project=project.entity_id, depends_on=(first.entity_id,)
    )
    page = await site.signed_in()
    await page.goto(f"/work/{second.public_id}")
    await page.locator(".prose p").select_text()
    await expect(page.get_by_text("Highlight", exact=True)).to_have_count(
        0
    )  # words are noted in the reader
    await page.get_by_placeholder("Add a note").fill("Bricks <b>have</b> come.")
    await page.get_by_role("button", name="Save note").click()
    await expect(page.locator(".noted")).to_contain_text("Bricks <b>have</b> come.")
    await page.get_by_role("button", name="Doing").click()
    await expect(page.locator(".badge").first).to_have_text("doing")
    await page.locator(".drawing a", has_text="Dig").click()
    await expect(page.get_by_role("heading", name="Dig")).to_be_visible()


async def test_a_task_is_changed_where_it_is_read(site: Site) -> None:
    old, new = [await entity(site, title, "project") for title in ("Ship it", "Fix it")]
    epic = await entity(site, "The cellar", "epic", project=new.entity_id)
    task = await entity(site, "Dig", "task", project=old.entity_id)
    page = await site.signed_in()
    site.expected.append("409")
    await page.goto(f"/work/{task.public_id}")
    stale = await page.context.new_page()
    await stale.goto(page.url)
    await page.get_by_text("Edit", exact=True).click()
    await page.get_by_label("Title").fill("Dig deeper")
    await page.locator("[name=project]").select_option("Fix it")
    await page.locator("[name=epic]").select_option("The cellar")
    await page.locator("[name=priority]").select_option("high")
    await page.get_by_label("Due").fill("2020-02-29")
    await page.get_by_label("Assignees").fill("ada, grace")
    await page.get_by_label("Text").fill("With *shovels*.\n\nAnd a lamp.")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Dig deeper")
    await expect(page.locator(".prose em")).to_have_text("shovels")
    await expect(page.locator(".reader > header")).to_contain_text(
        re.compile("high.*2020-02-29.*ada, grace.*Fix it.*The cellar", re.DOTALL)
    )
    await stale.get_by_text("Edit", exact=True).click()
    await stale.get_by_label("Title").fill("Dig less")
    await stale.get_by_role("button", name="Save", exact=True).click()
    await expect(stale.get_by_role("alert")).to_contain_text("has changed since you opened it")
    await expect(stale.get_by_label("Title")).to_have_value("Dig less")
    assert (await site.app.entities.get(site.owner, task.id)).item.title == "Dig deeper"
    await stale.reload()
    await stale.get_by_text("Edit", exact=True).click()
    await stale.get_by_label("Text").fill("With a spade.")
    await page.get_by_text("Edit", exact=True).click()
    await page.get_by_label("Title").fill("Dig deepest")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Dig deepest")
    await stale.reload()  # the draft keeps the revision that it began with
    await expect(stale.get_by_label("Text")).to_have_value("With a spade.")
    await stale.get_by_role("button", name="Save", exact=True).click()
    await expect(stale.get_by_role("alert")).to_contain_text("Save again to replace it")
    await stale.get_by_role("button", name="Save", exact=True).click()
    await expect(stale.get_by_role("heading", level=1)).to_have_text("Dig deeper")
    await expect(stale.locator(".prose")).to_contain_text("With a spade.")
    await stale.keyboard.press("u")
    await expect(stale.get_by_role("heading", level=1)).to_have_text("Dig deepest")
    await page.goto(f"/work/{epic.public_id}")
    await expect(page.locator(".row")).to_have_text(
        re.compile("Dig deepest.*due 2020-02-29", re.DOTALL)
    )
    await expect(page.locator(".due.late")).to_have_count(1)


async def test_what_a_task_waits_for_is_chosen_on_its_page(site: Site) -> None:
    project, other = [await entity(site, title, "project") for title in ("Ship it", "Fix it")]
    dig, build = [
        await entity(site, title, "task", project=project.entity_id) for title in ("Dig", "Build")
    ]
    await entity(site, "Elsewhere", "task", project=other.entity_id)
    page = await site.signed_in()
    site.expected.append("422")
    await page.goto(f"/work/{build.public_id}")
    await expect(page.locator("select[name=on] option")).to_have_text(["Dig"])
    await page.locator("select[name=on]").select_option("Dig")
    await page.get_by_role("button", name="Add dependency").click()
    await expect(page.locator(".links")).to_contain_text("Dig")
    stale = await page.context.new_page()
    await stale.goto(f"/work/{dig.public_id}")
    await stale.get_by_role("button", name="Add dependency").click()
    await expect(stale.get_by_role("alert")).to_contain_text("must not form a cycle")
    await page.get_by_role("button", name="Remove dependency on Dig").click()
    await expect(page.locator(".drawing")).to_have_count(0)
    assert (await site.app.entities.get(site.owner, build.id)).depends_on == ()


async def test_one_walks_through_the_picture(site: Site) -> None:
    a, b, c = [await entity(site, title, "idea") for title in ("Anchors", "Boats", "Cables")]
    await site.app.graph.link(site.owner, a.id, "REQUIRES", b.id)
    await site.app.graph.link(site.owner, b.id, "SUPPORTS", c.id)
    page = await site.signed_in()
    await page.goto("/graph")
    await expect(page.locator(".drawing .node")).to_have_count(3)
    await page.goto(f"/graph/{a.public_id}?depth=1")
    before = await page.locator(".drawing").get_attribute("viewBox")
    await page.locator(".drawing").hover(position={"x": 20, "y": 20})
    await page.mouse.wheel(0, -400)
    await expect(page.locator(".drawing")).not_to_have_attribute("viewBox", before or "")
    await page.locator(".links a", has_text="Boats").click()
    await expect(page.get_by_role("heading", name="Boats")).to_be_visible()
    await expect(page.locator(".drawing .node", has_text="Cables")).to_have_count(1)


async def test_the_map_holds_everything_and_is_made_anew_only_when_something_changes(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(4):
        await site.add(
            f"Owls {n}",
            f"Owls hunt at night, and hear mice under the snow. Part {n}.",
            tags=("owls",),
        )
        await site.add(
            f"Bread {n}",
            f"Bread rises because yeast makes gas out of flour and water. Part {n}.",
            tags=("bread",),
        )
    page = await site.signed_in()
    await page.goto("/graph")
    await expect(page.locator(".map .node")).to_have_count(8)
    await expect(page.locator(".map .region")).to_have_count(2)
    await expect(page.locator("#clusters h3", has_text="bread")).to_contain_text("4")
    await expect(page.locator(".legend")).to_have_text(re.compile("8 documents"))
    chart = await site.app.library_map.chart(site.owner)
    await page.reload()
    assert await site.app.library_map.chart(site.owner) is chart, "kept while nothing changes"
    for _ in range(3):
        await page.get_by_role("button", name="Zoom in").click()
    await page.get_by_role("button", name="Show all").click()
    await expect(page.locator(".map .node text", has_text="Owls 1")).to_be_visible()
    await page.locator(".map .node", has_text="Owls 1").click()
    await expect(page.get_by_role("heading", name="Owls 1")).to_be_visible()
    await site.add("Newest")
    monkeypatch.setattr("commonplace.core.map.library_map.MAPPED", 5)
    await page.goto("/graph")
    await expect(page.get_by_text("Showing the newest 5 of 9.")).to_be_visible()
    await expect(page.locator(".map .node")).to_have_count(5)


async def test_fingers_move_and_open_the_map_on_a_phone(site: Site) -> None:
    a, b = [await entity(site, title, "idea") for title in ("Anchors", "Boats")]
    await site.app.graph.link(site.owner, a.id, "REQUIRES", b.id)
    page = await site.signed_in(viewport={"width": 360, "height": 740}, has_touch=True)
    await page.goto(f"/graph/{a.public_id}")
    await expect(page.locator(".drawing text", has_text="Boats")).to_be_visible()
    await expect(page.get_by_role("button", name="Zoom in")).to_be_visible()
    size = await page.locator(".drawing .center text").evaluate(
        "(text) => text.getBoundingClientRect().height"
    )
    assert size > 10, "as large as other text"
    before = await page.locator(".drawing").get_attribute("viewBox")
    box = await page.locator(".drawing").bounding_box()
    assert box
    touch = await page.context.new_cdp_session(page)
    middle, height = box["x"] + box["width"] / 2, box["y"] + box["height"] / 3
    for kind, apart in (("touchStart", 20), ("touchMove", 60), ("touchMove", 90), ("touchEnd", 0)):
        points = (
            [
                {"x": middle - apart, "y": height, "id": 1},
                {"x": middle + apart, "y": height, "id": 2},
            ]
            if apart
            else []
        )
        await touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    after = await page.locator(".drawing").get_attribute("viewBox")
    assert before and after and float(after.split()[2]) < 0.5 * float(before.split()[2]), (
        "two fingers come nearer"
    )
    await page.get_by_role("button", name="Show all").click()
    await expect(page.locator(".drawing")).to_have_attribute("viewBox", before)
    await page.wait_for_timeout(
        600
    )  # else the browser may take the tap for a part of the gesture before it
    await page.locator(".drawing .node", has_text="Boats").tap()
    await expect(page.get_by_role("heading", name="Boats")).to_be_visible()


async def test_a_disk_is_published_after_a_look_at_what_others_see(site: Site) -> None:
    item = await site.add(
        "Otters",
        "Otters hold hands while they sleep, so that the tide does not part them in the night.",
    )
    page = await site.signed_in()
    await page.goto(f"/items/{item.public_id}")
    await page.get_by_role("link", name="Publish", exact=True).click()
    await expect(page.locator(".preview")).not_to_contain_text("hold hands while they sleep")
    await page.get_by_role("button", name="Publish").click()
    await expect(page).to_have_url(re.compile(f"/d/{item.public_id}$"))
    await page.goto(f"/disks/{item.public_id}/publish")
    await page.get_by_label("Visible to").select_option("People with an account here")
    await page.get_by_role("button", name="Save", exact=True).click()
    await page.goto(f"/items/{item.public_id}")
    await page.locator(".actions").get_by_role("link", name="Published").click()
    await expect(page.get_by_label("Visible to")).to_have_value("members")
    await page.goto("/disks")
    await expect(page.locator(".row .title")).to_have_text(["Otters"])
    page.on("dialog", lambda dialog: dialog.accept())
    await page.get_by_role("button", name="Unpublish").click()
    await expect(page.get_by_text("Nothing published yet")).to_be_visible()


async def test_candidates_are_kept_rejected_and_put_in_the_place_of_others(site: Site) -> None:
    await site.app.reflection.reflect(
        site.owner,
        Notes(
            "We decided to use Postgres for the archive, because it is there already.",
            persist=True,
            review=True,
        ),
    )
    page = await site.signed_in()
    await page.goto("/review")
    await expect(page.locator(".candidate")).to_contain_text("Postgres")
    await page.get_by_role("button", name="Accept").click()
    await expect(page.get_by_text("Nothing to review")).to_be_visible()
    await page.get_by_text("Extract memories from notes").click()
    await page.get_by_label("Notes").fill(
        "We decided not to use Postgres for the archive, because it is there already."
    )
    await page.get_by_role("button", name="Extract").click()
    other = page.locator(".beside", has_text="Postgres").first
    await expect(other).to_be_visible()
    await other.get_by_role("button", name="Replace this").click()
    await expect(page.get_by_role("status")).to_contain_text("superseded")


async def test_a_candidate_is_changed_first_and_a_task_gets_its_project(site: Site) -> None:
    await entity(site, "Ship it", "project")
    await site.app.reflection.reflect(
        site.owner,
        Notes("TODO: write the runbook for the failover before Friday.", persist=True, review=True),
    )
    page = await site.signed_in()
    await page.goto("/review")
    task = page.locator(".candidate", has_text="runbook")
    await expect(task.locator("[name=project]")).to_be_visible()
    await task.locator("[name=project]").select_option("Ship it")
    await task.get_by_label("Title").fill("Write the runbook")
    await task.get_by_role("button", name="Accept").click()
    await expect(page.get_by_role("status")).to_contain_text("Accepted.")
    await page.goto("/work")
    await expect(page.locator(".task")).to_contain_text("Write the runbook")
    await page.locator(".task a").click()
    await expect(page.locator(".meta").last).to_contain_text("Ship it")
