"""The reader: passages, the box with summary and key points, what is around an item, recordings that times lead into."""

import asyncio
import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from commonplace.core.entities.validation import NewEntity
from commonplace.model import Utterance
from tests.browser.conftest import Site, ready, served
from tests.fakes import FakeTranscriber
from tests.recordings import record, tone

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
ARTICLE = """# The river

Rivers find their way to the sea, and take their time. Where the land is flat they wander, and where it falls they hurry.

## Meanders

A bend grows because the water on its outside runs faster and takes the bank away, while on the inside it lays down sand. In
the end the neck is cut through, and the old bend stays behind as a lake that has the shape of an ox-bow, or of a horseshoe.

| part | does |
|---|---|
| outside | erodes |

![A map of the Mississippi](https://example.org/map.png) and [more](https://example.org/rivers).
"""


async def test_an_article_is_set_as_one(site: Site) -> None:
    item = await site.add("The river", ARTICLE)
    page = await site.signed_in()
    await page.goto(f"/items/{item.public_id}")
    await expect(page.get_by_role("heading", name="The river")).to_have_count(1)
    await expect(page.locator(".prose table")).to_contain_text("erodes")
    await expect(page.locator(".prose img")).to_have_count(0)
    await expect(page.get_by_role("link", name="A map of the Mississippi")).to_have_attribute(
        "href", "https://example.org/map.png"
    )
    await expect(page.get_by_role("link", name="more", exact=True)).to_have_attribute(
        "rel", re.compile("noopener")
    )


async def test_key_points_stand_in_the_box_with_the_summary_only(site: Site) -> None:
    said = [
        f"River {n} carries {n} tons of sand to the sea because its banks erode." for n in range(9)
    ]
    text = "\n\n".join(" ".join(said) + f" Part {n} of the report ends here." for n in range(6))
    item = await site.add("The river", text)
    page = await site.signed_in()
    await page.goto(f"/items/{item.public_id}")
    await page.locator(".gist summary").click()
    await expect(page.locator(".gist li").first).to_be_visible()
    read = await site.app.library.read(site.owner, item.id)
    assert any(section.key_points for section in read.sections)
    await expect(page.locator(".margin")).to_have_count(0)


async def test_title_tags_and_folders_are_changed_in_place(site: Site) -> None:
    folder = await site.app.folders.create(site.owner, "Water")
    item = await site.add("The river", ARTICLE)
    page = await site.signed_in()
    await page.goto(f"/items/{item.public_id}")
    await page.get_by_text("Title, tags and folders").click()
    await page.get_by_label("Title").fill("All rivers")
    await page.get_by_label("Tags").fill("water, geography")
    await page.get_by_label("Water").check()
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_role("heading", name="All rivers")).to_be_visible()
    changed = (await site.app.library.read(site.owner, item.id)).item
    assert (changed.tags, changed.folders) == (("water", "geography"), (folder.id,))


async def test_what_is_joined_and_what_is_alike_leads_on(site: Site) -> None:
    river = await site.add("The river", ARTICLE)
    lake = await site.add(
        "Ox-bow lakes",
        "An ox-bow lake is what stays of a river's bend when its neck is cut through.",
    )
    sea = await site.add(
        "The sea", "Rivers find their way to the sea in the end, and take their time about it."
    )
    await site.app.graph.link(site.owner, river.id, "REQUIRES", sea.id)
    page = await site.signed_in()
    await page.goto(f"/items/{sea.public_id}")
    await expect(page.locator(".after", has_text="requires")).to_contain_text("The river")
    await page.goto(f"/items/{river.public_id}")
    await (
        page.locator(".after section", has_text="Similar")
        .get_by_role("link", name=lake.title)
        .click()
    )
    await expect(page.get_by_role("heading", name=lake.title)).to_be_visible()


async def test_a_time_leads_into_the_recording(
    data_dir: Path, browser: Browser, tmp_path: Path
) -> None:
    said = " ".join(
        f"Sentence number {n} about the owl that hunts at night over the fields." for n in range(60)
    )
    told = tuple(
        Utterance(float(n), n + 1.0, f"{part}.") for n, part in enumerate(said.split(". "))
    )
    recording = record(tmp_path / "owl.wav", tone(60, 8_000), 8_000, "mono")
    async with served(
        data_dir, browser, own={"own_transcriber": FakeTranscriber(said=told)}, keep_originals=True
    ) as site:
        page = await site.signed_in()
        async with page.expect_file_chooser() as chooser:
            await page.get_by_text("Files", exact=True).click()
        await (await chooser.value).set_files(recording)
        await expect(page.locator(".row", has_text="780 words")).to_have_count(1)
        await expect(page.locator(".row.open")).to_have_count(0)
        await page.goto(await page.locator(".row .title").get_attribute("href") or "")
        await page.locator("[data-seek]").nth(1).click()
        await page.wait_for_function("document.querySelector('#recording').currentTime > 5")
        part = await page.request.get(
            f"{page.url.split('#')[0]}/original", headers={"Range": "bytes=1000-1999"}
        )
        assert (part.status, len(await part.body())) == (206, 1000)
        assert part.headers["content-range"].startswith("bytes 1000-1999/")
        answer = await page.request.get(f"{page.url.split('#')[0]}/original")
        assert answer.headers["content-disposition"].startswith("attachment")
        assert "sandbox" in answer.headers["content-security-policy"]


PARTS = "\n\n".join(
    f"## Part {n}\n\n"
    + f"Of the part numbered {n} there is little to tell, and that at length. " * 10
    for n in range(1, 8)
)


async def test_a_long_text_has_contents_and_is_gone_on_with_where_one_stopped(site: Site) -> None:
    item = await site.add("A long story", PARTS)
    page = await site.signed_in()
    await page.goto(f"/items/{item.public_id}")
    await expect(page.locator(".resume")).to_have_count(0)
    await page.get_by_text("Contents", exact=True).click()
    await page.locator(".contents a", has_text="Part 4").click()
    place = page.locator(".passage:target")
    await expect(place).to_contain_text("numbered 4")
    async with asyncio.timeout(60):
        while await page.evaluate("localStorage.getItem('places')") in (None, "{}"):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    await page.goto(f"/items/{item.public_id}")
    await page.get_by_role("link", name="Continue reading").click()
    await expect(page.locator(".passage:target")).to_be_in_viewport()


async def test_keys_go_through_a_text_and_do_things_with_it(site: Site) -> None:
    item = await site.add("A long story", PARTS)
    page = await site.signed_in()
    await page.goto(f"/items/{item.public_id}")
    for key, at in (("j", 0), ("j", 1), ("k", 0)):
        await page.keyboard.press(key)
        await expect(page.locator(".passage").nth(at)).to_have_class(re.compile(r"\bat\b"))
        await expect(page.locator(".passage").nth(at)).to_be_in_viewport()
    before = await page.locator(".prose").first.evaluate(
        "(prose) => parseFloat(getComputedStyle(prose).fontSize)"
    )
    await page.get_by_role("button", name="Larger text").click()
    after = await page.locator(".prose").first.evaluate(
        "(prose) => parseFloat(getComputedStyle(prose).fontSize)"
    )
    assert after > before
    await page.keyboard.press("a")
    await expect(page.get_by_role("status")).to_contain_text("1 item archived.")
    await ready(page)
    await page.keyboard.press("#")
    await expect(page).to_have_url(re.compile("/$"))
    await page.get_by_role("link", name="Trash").click()
    await page.get_by_role("button", name="Restore").click()
    await expect(page.get_by_role("status")).to_contain_text("Restored")
    assert (await site.app.library.read(site.owner, item.id)).item.archived


async def test_a_text_is_set_the_way_it_is_written(site: Site) -> None:
    hebrew = await site.add("מדריך קצר", "זהו טקסט בעברית שנכתב מימין לשמאל.\n\n- אחת\n- שתיים\n")
    table = "| what | how many |\n|---|---:|\n" + "".join(
        f"| row {n} of the table | {n} |\n" for n in range(30)
    )
    marked = await site.add(
        "Marked", f"- [ ] open\n- [x] done\n- [link](https://example.org)\n\n## Numbers\n\n{table}"
    )
    page = await site.signed_in()
    await expect(page.locator(".title", has_text="מדריך")).to_have_css("unicode-bidi", "plaintext")
    await page.goto(f"/items/{hebrew.public_id}")
    for part in ("h1", ".prose", ".prose li >> nth=0"):
        await expect(page.locator(part)).to_have_css("direction", "rtl")
    await page.goto(f"/items/{marked.public_id}")
    await expect(page.locator(".prose").first).to_have_css("direction", "ltr")
    await expect(page.locator(".prose li")).to_have_text(["open", "done", "link"])
    await expect(page.get_by_role("checkbox", name="done")).to_be_checked()
    await expect(page.locator(".prose li.box")).to_have_count(2)
    await expect(page.get_by_role("heading", name="Numbers")).to_have_js_property(
        "tagName", "H2"
    )  # the first one below the title
    await expect(page.locator("td", has_text=re.compile("^7$"))).to_have_css("text-align", "right")
    await expect(page.locator(".margin")).to_have_count(
        0
    )  # a table has no sentence that could stand beside it


async def test_code_and_tables_go_on_in_the_next_passage(site: Site) -> None:
    code = "def all():\n" + "".join(
        f"    x{n} = compute_the_value(number={n}, other=True)\n" for n in range(60)
    )
    rows = "".join(f"| row {n} of a table that is long | {n} |\n" for n in range(60))
    item = await site.add(
        "Long blocks",
        f"Before.\n\n```python\n{code}```\n\nBetween *them*.\n\n| what | number |\n|---|--:|\n{rows}\nAfter them.",
    )
    page = await site.signed_in()
    await page.goto(f"/items/{item.public_id}")
    assert await page.locator(".passage").count() > 4
    said = await page.locator(".prose").all_inner_texts()
    assert not any("```" in text or "|" in text for text in said), said
    assert "\n".join(
        text.rstrip("\n") for text in await page.locator("pre").all_inner_texts()
    ) == code.rstrip("\n")
    await expect(page.locator("em")).to_have_text("them")
    await expect(page.locator("tbody tr")).to_have_count(60)
    assert await page.locator("pre").count() > 1 and await page.locator("thead").count() > 1


async def test_notes_of_work_stand_below_it_once(site: Site) -> None:
    project = (
        await site.app.entities.add(
            site.owner, NewEntity("Nest boxes", "Build them of oak.", "project"), sync=True
        )
    ).item
    await site.app.tasks.note(site.owner, project.id, "The boards have come.")
    page = await site.signed_in()
    await page.goto(f"/items/{project.public_id}")
    await expect(page.locator(".prose")).to_have_text("Build them of oak.")
    await expect(page.get_by_text("The boards have come.")).to_have_count(1)
