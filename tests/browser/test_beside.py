"""What stands beside a text: notes in its margin, earlier versions of it, the pages of its PDF."""

import re
from pathlib import Path

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, expect

from commonplace.core.entities.validation import NewEntity
from tests.browser.conftest import Site, ready, served
from tests.contract.test_extract import pdf

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
RIVER = "Rivers find their way to the sea, and take their time. Where the land is flat they wander about it."


async def test_a_note_is_written_beside_words_and_found_again(site: Site) -> None:
    folder = await site.app.folders.create(site.owner, "Water")
    item = await site.add("The river", RIVER, folder=folder.id)
    page = await site.signed_in()
    await page.goto(f"/items/{item.public_id}")
    await page.evaluate("""() => {
        const text = document.querySelector(".prose p").firstChild;
        getSelection().setBaseAndExtent(text, 0, text, text.data.indexOf(","));
    }""")
    await page.get_by_role("button", name="Highlight").click()
    await expect(page.locator(".note-form blockquote")).to_have_text(
        "Rivers find their way to the sea"
    )
    await page.keyboard.type("Do <b>all</b> of them?")
    await page.get_by_role("button", name="Save note").click()
    await expect(page.locator(".noted li p")).to_have_text("Do <b>all</b> of them?")
    await expect(page.locator(".noted blockquote")).to_have_text("Rivers find their way to the sea")
    await expect(page.locator(".margin .own")).to_contain_text("all")
    assert await page.evaluate("CSS.highlights.get('noted').size") == 1
    await page.goto("/search?q=do+all+of+them&mode=keyword")
    await page.locator(".hits .title").first.click()
    await expect(page.locator(".gist")).to_contain_text("Rivers find their way to the sea")
    await page.get_by_label("Source").get_by_role("link", name="The river").click()
    await expect(page.locator(".passage:target")).to_contain_text("Rivers find")
    await page.goto("/")
    await expect(page.locator(".row .title")).to_have_text(["The river"])
    await ready(page)
    await page.get_by_label("Status").select_option("Highlights")
    await expect(page.locator(".row .title")).to_have_text(["Do <b>all</b> of them?"])
    note = (await site.app.annotations.of(site.owner, item.id))[0].item
    assert note.folders == (folder.id,), "who reads the one may read the other"


async def test_a_note_needs_no_script(site: Site) -> None:
    item = await site.add("The river", RIVER)
    page = await site.signed_in(java_script_enabled=False)
    await page.goto(f"/items/{item.public_id}")
    await page.get_by_label("Add a note").fill("So do I.")
    await page.get_by_role("button", name="Save note").click()
    await expect(page.locator(".noted")).to_contain_text("So do I.")


async def test_earlier_versions_are_kept_and_compared(site: Site) -> None:
    added = await site.app.entities.add(
        site.owner,
        NewEntity("Tides", "The moon pulls.\n\nTwice a day.\n\nFor ever.", "idea"),
        sync=True,
    )
    await site.app.entities.update(
        site.owner,
        added.item.id,
        {"content": "The moon pulls.\n\nTwice a <i>lunar</i> day.\n\nFor ever."},
    )
    page = await site.signed_in()
    await page.goto(f"/items/{added.item.public_id}")
    await page.locator("#versions a").click()
    await expect(page.locator(".diff del")).to_have_text(re.compile("Twice a day."))
    await expect(page.locator(".diff ins b")).to_have_text("<i>lunar</i> ")
    await page.get_by_role("link", name="Text").click()
    await expect(page.locator(".prose")).to_contain_text("Twice a day.")
    await page.get_by_role("link", name="Current version").click()
    await expect(page.locator(".prose").first).to_contain_text("lunar")


async def test_the_pages_of_a_pdf_lead_into_it(
    data_dir: Path, browser: Browser, tmp_path: Path
) -> None:
    file = tmp_path / "birds.pdf"
    file.write_bytes(
        pdf(
            [
                [
                    f"Page {n} tells about the birds of the shore and of their long journeys, part {n}."
                ]
                for n in (1, 2)
            ]
        )
    )
    async with served(data_dir, browser, keep_originals=True) as site:
        item = (await site.app.uploads.add_file(site.owner, file)).item
        page = await site.signed_in()
        await page.goto(f"/items/{item.public_id}")
        link = page.locator(".margin .where a").first
        await expect(link).to_have_attribute("href", f"/items/{item.public_id}/original#page=1")
        answer = await page.request.get(f"/items/{item.public_id}/original")
        assert (answer.headers["content-type"], answer.headers["content-disposition"][:6]) == (
            "application/pdf",
            "inline",
        )
        assert (
            answer.headers["x-content-type-options"] == "nosniff"
            and "default-src 'none'" in answer.headers["content-security-policy"]
        )


@pytest.mark.parametrize("scripted", [True, False], ids=["scripts", "no scripts"])
async def test_the_pages_of_a_pdf_are_shown_beside_its_text(
    data_dir: Path, browser: Browser, tmp_path: Path, scripted: bool
) -> None:
    file = tmp_path / "birds.pdf"
    text = [f"Line {n} tells about the birds of the shore." for n in range(30)]
    file.write_bytes(pdf([[f"This is page {n}.", *text] for n in range(1, 6)]))
    async with served(data_dir, browser, keep_originals=True) as site:
        item = (await site.app.uploads.add_file(site.owner, file)).item
        page = await site.signed_in(java_script_enabled=scripted)
        await page.goto(f"/items/{item.public_id}")
        pane = page.locator("#pages")
        picture, words = pane.locator("img"), pane.locator("span")
        await expect(picture).to_be_hidden()
        await pane.locator("summary").click()
        await expect(picture).to_have_attribute("alt", "Page 1 of 5")
        await expect(picture).to_have_js_property("complete", True)
        await expect(picture).to_have_js_property("naturalWidth", 1_100)
        await pane.get_by_role("link", name="Next page").click()
        await expect(words).to_have_text("Page 2 of 5")
        await expect(picture).to_have_attribute("src", re.compile("/pages/2$"))
        await pane.get_by_role("link", name="Previous page").click()
        await expect(words).to_have_text("Page 1 of 5")
        if scripted:
            await page.locator(".margin .where a", has_text="p. 5").first.click()
            await expect(words).to_have_text("Page 5 of 5")
            assert page.url.endswith(item.public_id)
            await page.locator("#s0").scroll_into_view_if_needed()
            await expect(words).to_have_text("Page 1 of 5")  # they follow what is read
            await expect(picture).to_have_js_property("naturalWidth", 1_100)
            found = (await Axe().run(page)).response["violations"]
            assert [each["id"] for each in found] == []
        address = f"/items/{item.public_id}/pages"
        answer = await page.request.get(f"{address}/3")
        assert (answer.status, answer.headers["content-type"]) == (200, "image/png")
        assert "sandbox" in answer.headers["content-security-policy"]
        tag = answer.headers["etag"]
        same = await page.request.get(f"{address}/3", headers={"If-None-Match": tag})
        assert same.status == 304
        for wrong in ("0", "6", "-1", "x", "99999999999"):
            missing = await page.request.get(f"{address}/{wrong}")
            assert missing.status == 404, wrong
        stranger = await site.visitor()
        refused = await stranger.request.get(f"{address}/3", max_redirects=0)
        assert refused.status in (303, 401)


@pytest.mark.parametrize("name", ["page.html", "drawing.svg", "page.pdf.html"])
async def test_pages_and_drawings_of_others_are_never_shown_as_ours(
    data_dir: Path, browser: Browser, tmp_path: Path, name: str
) -> None:
    file = tmp_path / name
    file.write_text(
        "<html><body><h1>Hello</h1><p>A page with a script in it, which must not run.</p><script>alert(1)</script></body></html>"
    )
    async with served(data_dir, browser, keep_originals=True) as site:
        item = (await site.app.uploads.add_file(site.owner, file)).item
        page = await site.signed_in()
        answer = await page.request.get(f"/items/{item.public_id}/original")
        assert (
            answer.headers["content-disposition"].startswith("attachment")
            and "sandbox" in answer.headers["content-security-policy"]
        )
        assert answer.headers["content-type"] == "application/octet-stream"
