"""Editing in the reader: whole texts, passages of transcripts, boxes of task lists, notes."""

import asyncio
import re
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, Route, expect

from commonplace.core.people.tokens import NewToken
from commonplace.model import ItemFilter, Utterance
from tests.browser.conftest import Site, ready, served
from tests.fakes import FakeTranscriber
from tests.recordings import record, tone

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

OLD = "The heron stands in the shallow water and waits for a frog to move."
LIST = "Shopping for the weekend:\n\n- [ ] milk\n- [x] bread\n  - [ ] with seeds\n- apples\n"


async def axe(page: Page) -> list[str]:
    found = (await Axe().run(page)).response["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html'][:150]}" for each in found]


async def opened(page: Page, public_id: str) -> None:
    await page.goto(f"/items/{public_id}")
    await page.keyboard.press("e")
    await expect(page.locator("#editor textarea[name=text]")).to_be_focused()


async def text_of(site: Site, item_id: str) -> str:
    return (await site.app.library.read(site.owner, item_id)).text


async def until_found(page: Page, words: str, there: bool) -> None:
    """Ask like another program does, until search knows."""
    shown = page.locator(f'.hits a[href*="/items/"]:has-text("{words}")')
    async with asyncio.timeout(60):
        while True:
            await page.goto(f"/search?mode=keyword&q={words}")
            if bool(await shown.count() or await page.locator(".hits mark").count()) == there:
                return


async def test_a_note_is_edited_in_place_by_keys_alone(site: Site) -> None:
    item = await site.add("Birds", OLD)
    page = await site.signed_in()
    await opened(page, item.public_id)
    field = page.locator("#editor textarea[name=text]")
    await expect(field).to_have_value(OLD)
    await page.keyboard.press("Control+a")
    await page.keyboard.type("# Raptors\n\nThe **kestrel** hovers.")
    await expect(page.locator(".preview strong")).to_have_text("kestrel")
    await expect(page.locator("#text")).to_be_hidden()
    assert await axe(page) == []
    await page.keyboard.press("Control+Enter")
    await expect(page.locator("#text strong")).to_have_text("kestrel")
    await expect(page.locator("#editor")).to_have_count(0)
    await expect(page.locator("[data-key=e]")).to_be_focused()
    await expect(page.get_by_role("status").filter(has_text="Saved.")).to_be_visible()
    await expect(page.get_by_role("link", name="1 earlier version")).to_be_visible()
    assert await axe(page) == []
    await page.keyboard.press("u")
    await expect(page.locator("#text")).to_contain_text(OLD)
    await expect(page.get_by_role("link", name="2 earlier versions")).to_be_visible()
    assert await text_of(site, item.id) == OLD


async def test_search_finds_the_new_words_and_not_the_old(site: Site) -> None:
    item = await site.add("Birds", OLD)
    page = await site.signed_in()
    await opened(page, item.public_id)
    await page.locator("#editor textarea[name=text]").fill("The kestrel hovers over the motorway.")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.locator("#text")).to_contain_text("kestrel")
    await until_found(page, "kestrel", True)
    await until_found(page, "heron", False)


async def test_esc_asks_only_when_something_changed(site: Site) -> None:
    item = await site.add("Birds", OLD)
    page = await site.signed_in()
    asked: list[str] = []

    async def answer(dialog: Any) -> None:
        asked.append(dialog.message)
        await (dialog.accept() if len(asked) > 1 else dialog.dismiss())

    page.on("dialog", answer)
    await opened(page, item.public_id)
    await page.keyboard.press("Escape")
    await expect(page.locator("#editor")).to_have_count(0)
    await expect(page.locator("#text")).to_be_visible()
    assert asked == []
    await page.keyboard.press("e")
    field = page.locator("#editor textarea[name=text]")
    await expect(field).to_be_focused()
    await page.keyboard.type("Well: ")
    await page.keyboard.press("Escape")
    await expect(field).to_have_value(f"Well: {OLD}")
    await page.keyboard.press("Escape")
    await expect(page.locator("#editor")).to_have_count(0)
    assert len(asked) == 2 and await text_of(site, item.id) == OLD


@pytest.mark.parametrize("scripts", [True, False])
async def test_of_two_tabs_neither_text_is_lost(site: Site, scripts: bool) -> None:
    item = await site.add("Birds", OLD)
    one = await site.signed_in(java_script_enabled=scripts)
    two = await one.context.new_page()
    site.expected.append("409")
    for page in (one, two):
        await page.goto(f"/items/{item.public_id}/edit")
        await expect(page.locator("#editor textarea[name=text]")).to_have_value(OLD)
    await one.locator("#editor textarea[name=text]").fill("The first tab says kestrel.")
    await one.get_by_role("button", name="Save", exact=True).click()
    await expect(one.locator("#text")).to_contain_text("The first tab")
    await two.locator("#editor textarea[name=text]").fill("The second tab says buzzard.")
    await two.get_by_role("button", name="Save", exact=True).click()
    await expect(two.get_by_role("alert")).to_contain_text("changed meanwhile")
    await expect(two.locator("#editor textarea[name=text]")).to_have_value(
        "The second tab says buzzard."
    )
    await expect(two.locator("#editor .theirs")).to_have_value("The first tab says kestrel.")
    await expect(two.locator("#editor ins")).to_contain_text("buzzard")
    if scripts:
        assert await axe(two) == []
    assert await text_of(site, item.id) == "The first tab says kestrel."
    await two.get_by_role("button", name="Save your text").click()
    await expect(two.locator("#text")).to_contain_text("The second tab")
    kept = [
        (await site.app.versions.get(site.owner, item.id, each.revision)).text
        for each in await site.app.versions.of(site.owner, item.id)
    ]
    assert kept == ["The first tab says kestrel.", OLD]


async def test_a_conflict_shows_the_text_of_this_tab_and_not_the_draft_of_another(
    site: Site,
) -> None:
    item = await site.add("Birds", OLD)
    one = await site.signed_in()
    two = await one.context.new_page()
    site.expected.append("409")
    for page in (two, one):
        await page.goto(f"/items/{item.public_id}/edit")
        await expect(page.locator("#editor textarea[name=text]")).to_have_value(OLD)
    await two.locator("#editor textarea[name=text]").fill("The second tab says buzzard.")
    await has_draft(two, "buzzard")
    await one.locator("#editor textarea[name=text]").fill("The first tab says kestrel.")
    await has_draft(one, "kestrel")
    await site.app.library.update(site.owner, item.id, {"text": "An agent says owl."})
    await two.get_by_role("button", name="Save", exact=True).click()
    mine = two.locator("#editor textarea[name=text]")
    await expect(two.get_by_role("alert")).to_contain_text("changed meanwhile")
    await expect(mine).to_have_value("The second tab says buzzard.")
    await has_draft(two, "buzzard")
    await two.reload()
    await expect(mine).to_have_value("The second tab says buzzard.")
    await expect(two.locator(".draft")).to_be_visible()
    assert await two.locator(".draft").evaluate("it => it.offsetHeight") < 60


async def has_draft(page: Page, word: str) -> None:
    """Wait until the browser keeps a text with the word."""
    await page.wait_for_function(
        "word => Object.values(localStorage).some((each) => each.includes(word))", arg=word
    )


async def test_a_draft_outlives_the_same_form_in_another_tab(site: Site) -> None:
    item = await site.add("Birds", OLD)
    one = await site.signed_in()
    two = await one.context.new_page()
    for page in (two, one):
        await page.goto(f"/items/{item.public_id}/edit")
        await expect(page.locator("#editor textarea[name=text]")).to_have_value(OLD)
    await one.locator("#editor textarea[name=text]").fill("The first tab says kestrel.")
    await has_draft(one, "kestrel")
    await two.locator("#editor textarea[name=text]").fill("The second tab says buzzard.")
    await has_draft(two, "buzzard")
    await one.get_by_role("button", name="Save", exact=True).click()
    await expect(one.locator("#text")).to_contain_text("kestrel")
    await two.close()
    await one.goto("/")
    await one.locator("#adding").get_by_role("link", name="Birds").click()
    await expect(one.locator("#editor textarea[name=text]")).to_have_value(
        "The second tab says buzzard."
    )


async def test_what_is_typed_while_it_is_saved_stays(site: Site) -> None:
    item = await site.add("Birds", OLD)
    page = await site.signed_in()
    await opened(page, item.public_id)
    field, sent = page.locator("#editor textarea[name=text]"), asyncio.Event()

    async def slowly(route: Route) -> None:
        sent.set()
        await field.press_sequentially(" And on.")
        await route.continue_()

    await page.route("**/edit", slowly)
    await field.fill("The kestrel hovers.")
    await page.keyboard.press("Control+Enter")
    await sent.wait()
    await expect(page.locator(".toast")).to_contain_text("Save again")
    await expect(field).to_have_value("The kestrel hovers. And on.")
    assert await text_of(site, item.id) == "The kestrel hovers."
    await page.unroute("**/edit")
    await page.keyboard.press("Control+Enter")
    await expect(page.locator("#text")).to_contain_text("And on.")
    await expect(page.locator("#editor")).to_have_count(0)
    assert await text_of(site, item.id) == "The kestrel hovers. And on."


async def test_other_changes_of_an_item_are_no_conflict(site: Site) -> None:
    item = await site.add("Birds", OLD)
    page = await site.signed_in()
    await opened(page, item.public_id)
    await site.app.library.update(site.owner, item.id, {"tags": ["bird"]})
    await expect(page.locator(".elsewhere")).to_be_visible()
    await page.locator("#editor textarea[name=text]").fill("The kestrel hovers.")
    await page.keyboard.press("Control+s")
    await expect(page.locator("#text")).to_contain_text("kestrel")
    await expect(page.locator("#labels")).to_contain_text("bird")


async def test_what_another_tab_saves_appears_and_is_not_lost(site: Site) -> None:
    item = await site.add("Birds", OLD)
    page = await site.signed_in()
    other = await page.context.new_page()
    await other.goto(f"/items/{item.public_id}")
    await opened(page, item.public_id)
    await page.locator("#editor textarea[name=text]").fill("The kestrel hovers.")
    await page.keyboard.press("Control+Enter")
    await expect(other.locator("#text")).to_contain_text("kestrel")
    await expect(other.get_by_role("link", name="1 earlier version")).to_be_visible()


async def test_boxes_are_ticked_by_a_click_and_by_keys(site: Site) -> None:
    item = await site.add("Weekend", LIST)
    page = await site.signed_in()
    await page.goto(f"/items/{item.public_id}")
    milk, bread, seeds = (page.get_by_role("checkbox", name=n) for n in ("milk", "bread", "seeds"))
    await expect(bread).to_be_checked()
    line = page.locator(".prose li", has=milk)
    assert await line.evaluate("it => it.offsetHeight < 2 * it.querySelector('input').offsetHeight")
    await milk.click()
    await seeds.focus()
    await page.keyboard.press("Space")
    await expect(page.locator("#text")).to_have_attribute("data-revision", "3")
    ticked = LIST.replace("[ ] milk", "[x] milk").replace("[ ] with", "[x] with")
    assert await text_of(site, item.id) == ticked
    await expect(seeds).to_be_focused()
    await page.keyboard.press("u")
    await expect(page.locator("#text")).to_have_attribute("data-revision", "4")
    await expect(seeds).not_to_be_checked()
    assert await text_of(site, item.id) == LIST.replace("[ ] milk", "[x] milk")
    assert await axe(page) == []


async def test_a_box_that_became_another_is_not_ticked(site: Site) -> None:
    item = await site.add("Weekend", LIST)
    page = await site.signed_in()
    site.expected.append("409")
    await page.goto(f"/items/{item.public_id}")
    await page.route("**/items/*", lambda route: route.abort())  # it hears of nothing
    site.expected.append("ERR_FAILED")
    changed = LIST.replace("- [ ] milk", "- [ ] butter\n- [ ] milk")
    await site.app.library.update(site.owner, item.id, {"text": changed})
    await page.get_by_role("checkbox", name="milk").click()
    await expect(page.get_by_role("status").filter(has_text="changed meanwhile")).to_be_visible()
    assert await text_of(site, item.id) == changed


async def test_who_may_only_read_sees_boxes_and_no_editor(site: Site) -> None:
    item = await site.add("Weekend", LIST)
    await site.app.people.create_token(site.ruler, NewToken("Reading agent"))
    page = await site.signed_in()
    await page.goto("/tokens")
    await page.locator("tr", has_text="Reading agent").get_by_role("button", name="View as").click()
    await page.goto(f"/items/{item.public_id}")
    await expect(page.get_by_role("checkbox", name="milk")).to_be_disabled()
    await expect(page.locator("[data-edit]")).to_have_count(0)


async def test_versions_are_listed_compared_and_restored(site: Site) -> None:
    item = await site.add("Birds", OLD)
    await site.app.library.update(site.owner, item.id, {"text": OLD.replace("heron", "kestrel")})
    page = await site.signed_in()
    await page.goto(f"/items/{item.public_id}")
    await page.get_by_role("link", name="1 earlier version").click()
    await page.locator("#versions a").click()
    await expect(page.locator("del b")).to_have_text("heron")
    await page.get_by_role("link", name="Text", exact=True).click()
    await expect(page.locator(".prose")).to_contain_text(OLD)
    assert await axe(page) == []
    await page.get_by_role("button", name="Restore this version").click()
    await expect(page.locator("#text")).to_contain_text(OLD)
    await expect(page.get_by_role("link", name="2 earlier versions")).to_be_visible()
    assert await text_of(site, item.id) == OLD


async def test_a_passage_of_a_transcript_is_edited_and_times_stay(
    data_dir: Any, browser: Browser, tmp_path: Any
) -> None:
    spoken = [
        Utterance(60.0 * n, 60.0 * n + 50, f"Minute {n} is about mergers of the {word}. " * 25)
        for n, word in enumerate(("oak", "elm", "lime"))
    ]
    own = {"own_transcriber": FakeTranscriber(said=tuple(spoken))}
    async with served(data_dir, browser, own=own, keep_originals=True) as site:
        recording = record(tmp_path / "trees.wav", tone(60, 8_000), 8_000, "mono")
        added = await site.app.uploads.add_file(site.owner, recording)
        page = await site.signed_in()
        await page.goto(f"/items/{added.item.public_id}")
        await expect(page.locator("#text")).to_contain_text("of the lime")  # when it is transcribed
        before = await site.app.library.read(site.owner, added.item.id)
        last = page.get_by_role("link", name=f"Edit passage {len(before.sections)}")
        await last.click()
        await expect(page.locator("#editor")).to_contain_text("Times stay")
        field = page.locator("#editor textarea[name=text]")
        part = before.sections[-1].text
        await expect(field).to_have_value(part)
        assert await axe(page) == []
        # somebody edits another passage meanwhile: both stay
        text = before.text.replace("Minute 0 is about mergers", "Minute 0 is about budgets", 1)
        await site.app.library.update(site.owner, before.item.id, {"text": text})
        await field.fill(part.replace("mergers of the lime", "budgets of the tall lime"))
        await page.keyboard.press("Control+Enter")
        await expect(page.locator("#text")).to_contain_text("the tall lime")
        after = await site.app.library.read(site.owner, before.item.id)
        assert after.text.startswith("Minute 0 is about budgets")
        assert [mark["locator"] for mark in after.segments] == [
            mark["locator"] for mark in before.segments
        ]
        for mark in after.segments:
            minute = int(mark["locator"]["seconds"] // 60)
            assert after.text[mark["at"] :].startswith(f"Minute {minute} ")
        # the key edits the passage that the eyes are on
        for _ in before.sections:
            await page.keyboard.press("k")
        await page.keyboard.press("e")
        await expect(page.locator("#editor")).to_contain_text("The passage at 0:00")


async def test_a_passage_that_somebody_else_changed_shows_both(site: Site) -> None:
    text = "\n\n".join(f"## Part {n}\n\n{'Words about it. ' * 45}Number {n}." for n in range(4))
    item = await site.add("Long", text)
    page = await site.signed_in()
    site.expected.append("409")
    await page.goto(f"/items/{item.public_id}/edit?passage=1")
    await site.app.library.update(
        site.owner, item.id, {"text": text.replace("Number 1", "Theirs 1")}
    )
    field = page.locator("#editor textarea[name=text]")
    await field.fill("## Part 1\n\nMine.")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.locator("#editor .theirs")).to_have_value(re.compile("Theirs 1"))
    await expect(field).to_have_value("## Part 1\n\nMine.")


async def test_highlights_and_notes_are_edited_and_deleted_beside_each(site: Site) -> None:
    item = await site.add("Birds", OLD)
    await site.app.annotations.add(site.owner, item.id, "", quote="shallow water", position=0)
    await site.app.annotations.add(site.owner, item.id, "Which frog?")
    page = await site.signed_in()
    await page.goto(f"/items/{item.public_id}")
    highlight, note = page.locator(".noted > li").nth(0), page.locator(".noted > li").nth(1)
    await highlight.get_by_text("Add a note").click()
    await highlight.get_by_role("textbox").fill("It is cold.")
    assert await axe(page) == []
    await highlight.get_by_role("button", name="Save note").click()
    await expect(highlight.locator("p")).to_have_text("It is cold.")
    await expect(highlight.locator("blockquote")).to_have_text("shallow water")
    await note.locator("summary").click()
    await note.get_by_role("textbox").fill("Which frog, and when?")
    await note.get_by_role("button", name="Save note").click()
    await expect(note.locator("p")).to_have_text("Which frog, and when?")
    # without its note, the highlight stays
    await highlight.locator("summary").click()
    await highlight.get_by_role("textbox").fill("")
    await highlight.get_by_role("button", name="Save note").click()
    await expect(highlight.locator("p")).to_have_count(0)
    await ready(page)
    await note.get_by_role("button", name="Delete").click()
    await expect(page.locator(".noted > li")).to_have_count(1)
    await expect(page).to_have_url(f"{site.url}/items/{item.public_id}#notes")
    left, _ = await site.app.library.page(site.owner, ItemFilter(notes=True))
    assert [each.title for each in left] == ["shallow water"]


async def test_a_highlight_follows_its_words(site: Site) -> None:
    parts = [f"## Part {n}\n\n{'Words about it. ' * 70}Number {n}." for n in range(3)]
    item = await site.add("Long", "\n\n".join(parts))
    await site.app.annotations.add(site.owner, item.id, "", quote="Number 2.", position=2)
    new = "\n\n".join([*parts[:2], "## New\n\n" + "Something else. " * 80, parts[2]])
    await site.app.library.update(site.owner, item.id, {"text": new})
    page = await site.signed_in()
    await page.goto(f"/items/{item.public_id}")
    await page.locator(".noted blockquote a").click()
    await expect(page.locator(".passage:target")).to_contain_text("Number 2.")
    assert await page.evaluate("[...CSS.highlights.get('noted')].map(String)") == ["Number 2."]


async def test_the_key_opens_the_editor_from_a_list(site: Site) -> None:
    await site.add("Birds", OLD)
    page = await site.signed_in()
    await page.keyboard.press("j")
    await page.keyboard.press("e")
    await expect(page.locator("#editor textarea[name=text]")).to_have_value(OLD)
    await ready(page)
    await page.locator("#editor textarea[name=text]").fill("The kestrel hovers.")
    await page.keyboard.press("Control+Enter")
    await expect(page.locator("#text")).to_contain_text("kestrel")


async def test_a_failed_save_keeps_the_text(site: Site) -> None:
    item = await site.add("Birds", OLD)
    page = await site.signed_in()
    site.expected += ["422", "Failed to load"]
    await opened(page, item.public_id)
    field = page.locator("#editor textarea[name=text]")
    await field.fill("   ")
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_role("alert")).to_contain_text("empty")
    await field.fill("The kestrel hovers.")
    async with site.away():
        await page.keyboard.press("Control+Enter")
        await expect(page.get_by_role("alert")).not_to_contain_text("empty")
        await expect(field).to_have_value("The kestrel hovers.")
    await page.keyboard.press("Control+Enter")
    await expect(page.locator("#text")).to_contain_text("kestrel")
