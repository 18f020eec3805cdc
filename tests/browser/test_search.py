"""Search as you type, and what a hit leads to."""

import asyncio
import re

import pytest
from playwright.async_api import Route, expect

from tests.browser.conftest import Site, ready

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
LONG = "\n\n".join(
    f"## Part {n}\n\n"
    + f"Of the part numbered {n} there is little to tell, and that at length. " * 12
    for n in range(8)
)


async def test_hits_come_while_one_types_and_open_at_their_passage(site: Site) -> None:
    await site.add(
        "A long story",
        f"{LONG}\n\n## The end\n\nOnly here does the narwhal appear, with its horn and forty words of "
        "its own, so that this passage stands by itself at the very end of the whole story. " * 3,
    )
    page = await site.signed_in()
    await page.keyboard.press("g")
    await page.keyboard.press("s")
    await page.get_by_role("searchbox", name="Search").press_sequentially("narwhal horn", delay=20)
    await expect(page.locator(".hits mark").first).to_have_text(re.compile("narwhal|horn"))
    await expect(page).to_have_url(re.compile(r"q=narwhal"))
    await page.locator(".hits .title").first.click()
    await expect(page.locator(".passage:target")).to_contain_text("narwhal")
    await expect(page.locator(".passage:target")).to_be_in_viewport()


async def test_modes_and_filters_narrow_the_hits(site: Site) -> None:
    folder = await site.app.folders.create(site.owner, "Sea")
    await site.add("Whales", "Whales sing under water, sometimes for hours.", folder=folder.id)
    await site.add("Singing", "People sing in choirs, sometimes for hours.")
    page = await site.signed_in()
    await page.goto("/search?q=sing")
    await expect(page.locator(".hits .row")).to_have_count(2)
    await ready(page)
    await page.locator("main select[name=folder]").select_option("Sea")
    await expect(page.locator(".hits .title")).to_have_text(["Whales"])
    await page.get_by_label("Type").select_option("task")
    await expect(page.get_by_text("No results")).to_be_visible()
    await page.get_by_label("Type").select_option("")
    await page.locator("select[name=since]").select_option("1")
    await page.get_by_label("Words").check()
    await expect(page.locator(".hits .title")).to_have_text(["Whales"])
    await expect(page).to_have_url(re.compile("mode=keyword.*since=1|since=1.*mode=keyword"))


async def test_search_works_without_scripts(site: Site) -> None:
    await site.add("Whales", "Whales sing under water, sometimes for hours.")
    page = await site.signed_in(java_script_enabled=False)
    await page.goto("/search")
    await page.get_by_role("searchbox", name="Search").fill("whales")
    await page.get_by_role("button", name="Search").click()
    await page.locator(".hits .title").click()
    await expect(page.get_by_role("heading", name="Whales")).to_be_visible()


async def test_arrows_go_through_the_hits_and_back_to_the_words(site: Site) -> None:
    for title in ("Whales", "Wrens"):
        await site.add(title, f"{title} sing, sometimes for hours.")
    page = await site.signed_in()
    await page.goto("/search?q=sing")
    field = page.get_by_role("searchbox", name="Search")
    await field.focus()
    for key, at in (("ArrowDown", 0), ("ArrowDown", 1), ("ArrowUp", 0)):
        await page.keyboard.press(key)
        await expect(page.locator(".hits .title").nth(at)).to_be_focused()
    await page.keyboard.press("ArrowUp")
    await expect(field).to_be_focused()
    await page.keyboard.press("ArrowDown")
    name = await page.locator(".hits .title").first.inner_text()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name=name)).to_be_visible()


async def test_an_answer_that_comes_late_does_not_take_the_place_of_a_newer_one(site: Site) -> None:
    await site.add("Whales", "Whales sing under water, sometimes for hours.")
    await site.add("Wrens", "Wrens are small and loud.")
    page = await site.signed_in()
    await page.goto("/search")
    held = asyncio.Event()

    async def late(route: Route) -> None:
        await held.wait()
        await route.continue_()

    await page.route(re.compile("q=whales&.*part=1"), late)
    field = page.get_by_role("searchbox", name="Search")
    async with page.expect_request(re.compile("q=whales&.*part=1")):
        await field.fill("whales")
    await field.fill("wrens")
    await expect(page.locator(".hits .title").first).to_have_text("Wrens")
    held.set()
    await page.unroute_all(behavior="ignoreErrors")
    await expect(page.locator("#hits")).not_to_have_attribute("aria-busy", "true")
    await expect(page.locator(".hits .title").first).to_have_text("Wrens")


async def test_days_narrow_the_hits_and_an_empty_answer_says_what_narrows_it(site: Site) -> None:
    await site.add("Whales", "Whales sing under water, sometimes for hours.")
    page = await site.signed_in()
    await page.goto("/search?q=sing")
    await page.get_by_text("More filters", exact=True).click()
    await page.get_by_label("Added until", exact=True).fill("2020-01-31")
    await expect(page.get_by_text("No results")).to_be_visible()
    await expect(page).to_have_url(re.compile("to=2020-01-31"))
    await page.get_by_label("Remove filter: until 2020-01-31").click()
    await expect(page.locator(".hits .title")).to_have_text(["Whales"])
    await page.goto("/search?q=sing&from=2020-02-01&mode=keyword")
    await expect(page.locator(".hits .title")).to_have_text(["Whales"])
    await page.goto("/search?q=flugelhorn&mode=keyword")
    await page.get_by_role("link", name="Search by meaning").click()
    await expect(page.get_by_label("Meaning")).to_be_checked()


async def test_the_words_asked_for_are_marked_and_in_sight(site: Site) -> None:
    long = "A sentence that only fills the page and says nothing about animals at all. " * 6
    item = await site.add("A story", f"{long}At last two narwhals come.")
    page = await site.signed_in(viewport={"width": 360, "height": 260})
    await page.goto(f"/items/{item.public_id}?q=narwhal#s0")
    await expect(page.locator("#s0")).to_contain_text("narwhals")
    place = "[...(CSS.highlights.get('asked') ?? [])].map((range) => range.getBoundingClientRect())"
    async with asyncio.timeout(60):
        seen = f"{place}.some(({{ top, bottom }}) => top > 0 && bottom < innerHeight)"
        while not await page.evaluate(seen):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert await page.evaluate(f"{place}.length") == 1


CHAOS = (
    """# The **Birth** of Chaos

## Other activities\\[edit\\]

The **storm petrel** follows ships at sea.<sup>\\[231\\]</sup> It walks on the water, or so the sailors
say, and [hides](https://example.org/hole) in a hole by day. Storm petrels are the smallest of all birds
that live on the sea. """
    + "They come to land by night, and only to breed in a burrow. " * 8
)


async def test_results_are_items_in_plain_words(site: Site) -> None:
    for title, start in (("Petrels", ""), ("Storms", "On storms and petrels. ")):
        parts = [
            CHAOS,
            *(
                f"## Part {n}\n\nStorm petrel number {n} {start}" + "was seen at sea. " * 60
                for n in range(6)
            ),
        ]
        await site.add(title, start + "\n\n".join(parts))
    for n in range(4):
        await site.add(
            f"Sighting {n}", f"A storm petrel was seen from ship {n}, far out in the bay."
        )
    page = await site.signed_in()
    await page.goto("/search?q=storm+petrel")
    titles = await page.locator("#hits .title").all_inner_texts()
    assert len(titles) >= 5 and len(set(titles)) == len(titles)
    links = [
        str(await link.get_attribute("href")).partition("?")[0]
        for link in await page.locator("#hits .title, #hits .meta a").all()
    ]
    assert len(set(links)) == len(links), "an item is there twice"
    shown = await page.locator("#hits .row").evaluate_all(
        "rows => rows.map((row) => row.querySelectorAll('.snippet').length)"
    )
    assert max(shown) == 2 and min(shown) == 1
    words = await page.locator("#hits").inner_text()
    assert not [mark for mark in ("**", "\\[", "<sup>", "](", "##") if mark in words]
    second = page.locator("#hits .where a").nth(1)
    place = str(await second.get_attribute("href")).partition("#")[2]
    await second.click()
    await expect(page.locator(f"#{place}")).to_be_in_viewport()


NOTES = {
    "Whales": "Whales sing under water, sometimes for hours.",
    "Bread": "Sourdough needs a night in the fridge before it is baked.",
    "Rust": "The borrow checker refuses two mutable references.",
    "Postgres": "Vacuum reclaims the space of rows that were updated.",
    "Glaciers": "Ice carves valleys as it moves down from the mountains.",
    "Invoices": "Acme pays within thirty days, if reminded once.",
}


async def test_search_says_when_nothing_fits(site: Site) -> None:
    for title, text in NOTES.items():
        await site.add(title, text)
    page = await site.signed_in()
    for query in ("qwertyuiop zzz nothing", "ERR_4417"):
        await page.goto(f"/search?q={query.replace(' ', '+')}")
        await expect(page.get_by_text("No exact match. Closest passages:")).to_be_visible()
        titles = await page.locator("#hits .title").all_inner_texts()
        assert len(titles) >= 5 and len(set(titles)) == len(titles)
    await page.goto("/search?q=glaciers")
    await expect(page.locator("#hits .title").first).to_have_text("Glaciers")
    await expect(page.get_by_text("No exact match")).to_have_count(0)


async def test_a_filter_without_a_match_leads_into_the_texts(site: Site) -> None:
    await site.add("Meeting", "Marta sends the contract on Friday, and Jonas asks about parking.")
    page = await site.signed_in()
    await page.goto("/?q=contract+on+Friday")
    await page.get_by_role("link", name="Search inside texts for “contract on Friday”").click()
    await expect(page.locator("#hits .title").first).to_have_text("Meeting")
    await expect(page.locator("[data-live] [name=q]")).to_have_value("contract on Friday")
    await ready(page)
    await page.locator("[data-live] [name=q]").press("ArrowDown")
    await expect(page.locator("#hits .title").first).to_be_focused()
