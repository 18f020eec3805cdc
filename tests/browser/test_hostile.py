"""Texts of others: whatever they hold, nothing of it runs, nothing of it is loaded, and it is shown as what it is."""

import pytest
from playwright.async_api import Page, expect

from commonplace.core.entities.validation import NewEntity
from commonplace.core.items.drafts import Draft
from commonplace.core.memory.reflection import Notes
from commonplace.core.people.tokens import NewToken
from commonplace.model import Content, Item, Section, new_id, new_public_id
from tests.browser.conftest import Site

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
SCRIPT = '"><script>window.hacked=1</script><img src=x onerror="window.hacked=1">'
MARKDOWN = f"""# {SCRIPT}

{SCRIPT} and <svg onload="window.hacked=1"> and <iframe src="javascript:window.hacked=1"></iframe>

[click](javascript:window.hacked=1) [data](data:text/html,<script>window.hacked=1</script>) ![pic](https://evil.example/x.png)
[mixed](JaVaScRiPt:window.hacked=1) [spaced](java\tscript:window.hacked=1) <javascript:window.hacked=1>

<a href="javascript:window.hacked=1" onclick="window.hacked=1">raw</a> <style>body{{display:none}}</style> <base href="//evil.example/">

| {SCRIPT} | b |
|---|---|
| `{SCRIPT}` | {SCRIPT} |

```html
{SCRIPT}
```
"""


async def put(site: Site, **changes: object) -> Item:
    """An item as no door would let it in: as if an older version or another program had written it."""
    fields = {
        "id": new_id(),
        "library_id": site.owner.library_id,
        "public_id": new_public_id(),
        "content_id": new_id(),
        "entity_type": "document",
        "kind": "url",
        "title": SCRIPT,
        "url": "javascript:window.hacked=1",
        "summary": SCRIPT,
        "key_points": (SCRIPT,),
        "tags": (SCRIPT,),
        "category": SCRIPT,
        "metadata": {"author": SCRIPT},
    } | changes
    item = Item(**fields)  # type: ignore[arg-type]
    sections = [
        Section(0, MARKDOWN, SCRIPT, "", 9, (SCRIPT,), {"page": 1}),
        Section(1, SCRIPT, "", "", 9, (), {"seconds": 3.5}),
    ]
    content = Content(item.content_id, f"test:{item.id}", MARKDOWN, url=item.url)
    return (
        await site.app.store.items.add(
            item, content, sections, scope=site.owner.scope, folder_id=None, stamp="x", jobs=()
        )
    )[0]


async def unharmed(page: Page, path: str) -> None:
    await page.goto(path)
    assert await page.evaluate("window.hacked") is None, path
    dangerous = await page.evaluate("""() => [...document.querySelectorAll('*')].filter(e =>
        [...e.attributes].some(a => a.name.startsWith('on') || /^\\s*(javascript|data):/i.test(a.value.replace(/\\s/g, '')))
        || ['IFRAME', 'STYLE', 'BASE', 'OBJECT', 'EMBED'].includes(e.tagName)).map(e => e.outerHTML.slice(0, 200))""")
    assert dangerous == [], (path, dangerous)
    assert await page.locator("script:not([src])").count() == 0, path


async def test_nothing_that_is_kept_runs_anywhere(site: Site) -> None:
    asked: list[str] = []
    folder = await site.app.folders.create(site.owner, SCRIPT)
    item = await put(site)
    await site.app.folders.file(site.owner, item.id, [folder.id])
    token, _ = await site.app.people.create_token(site.owner, NewToken(SCRIPT))
    project = (
        await site.app.entities.add(site.owner, NewEntity(SCRIPT, MARKDOWN, "project"), sync=True)
    ).item
    task = (
        await site.app.entities.add(
            site.owner,
            NewEntity(SCRIPT, MARKDOWN, "task", project=project.entity_id, assignees=(SCRIPT,)),
            sync=True,
        )
    ).item
    await site.app.tasks.note(site.owner, task.id, SCRIPT)
    await site.app.graph.link(site.owner, item.id, "REQUIRES", task.id)
    await site.app.reflection.reflect(
        site.owner,
        Notes(
            f"We decided to use {SCRIPT} for everything, because it is there.",
            SCRIPT[:100],
            persist=True,
            review=True,
        ),
    )
    paper = await put(site, url="javascript:window.hacked=1//x.pdf")
    note = await site.app.annotations.add(site.owner, item.id, SCRIPT, quote=SCRIPT, position=0)
    await site.app.entities.update(site.owner, task.id, {"content": f"{SCRIPT} and more"})
    [version] = await site.app.versions.of(site.owner, task.id)
    page = await site.signed_in()
    page.on("request", lambda request: asked.append(request.url))
    for path in (
        "/",
        f"/?folder={folder.id}",
        f"/items/{item.public_id}",
        "/search?q=script+hacked+window&mode=keyword",
        "/search?q=" + "%22%3E%3Cscript%3Ewindow.hacked%3D1%3C/script%3E",
        "/tokens",
        f"/tokens/{token.id}",
        "/connect",
        "/health",
        "/work",
        "/work?view=list",
        f"/work/{task.public_id}",
        f"/work/{project.public_id}",
        "/graph",
        f"/graph/{item.public_id}",
        "/review",
        "/disks?shelf=private",
        f"/disks/{item.public_id}/publish",
        "/account",
        f"/items/{paper.public_id}",
        f"/items/{note.public_id}",
        "/?state=notes",
        f"/items/{task.public_id}/versions/{version.revision}",
        f"/items/{task.public_id}/versions/{version.revision}?view=text",
    ):
        await unharmed(page, path)
    assert [url for url in asked if not url.startswith(site.url)] == []


async def test_a_hostile_text_is_shown_as_the_text_it_is(site: Site) -> None:
    item = await put(site)
    page = await site.signed_in()
    await page.goto(f"/items/{item.public_id}")
    await expect(page.get_by_role("heading", level=1)).to_have_text(SCRIPT)
    await expect(page.locator(".prose").first).to_contain_text("window.hacked=1")
    for name in ("click", "data", "mixed"):
        assert await page.get_by_role("link", name=name, exact=True).count() == 0


async def test_file_names_and_notes_come_through_the_doors_unharmed(site: Site) -> None:
    page = await site.signed_in()
    async with page.expect_file_chooser() as chooser:
        await page.get_by_text("Files", exact=True).click()
    name = "<img src=x onerror=window.hacked=1>.html"
    await (await chooser.value).set_files(
        {
            "name": name,
            "mimeType": "text/html",
            "buffer": f"<title>{name}</title><body><p>An article that is "
            f"long enough to be read.</p><script>window.hacked=1</script>{SCRIPT}".encode(),
        }
    )
    await expect(page.locator(".row")).to_have_count(1)
    await page.get_by_label("Add a link, a note or files").fill(
        f"{SCRIPT}\nA note that is long enough to be kept here."
    )
    await page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.locator(".row")).to_have_count(2)
    await expect(page.locator(".row.open")).to_have_count(0)
    for title in await page.locator(".row .title").all():
        assert await page.evaluate("window.hacked") is None
        await unharmed(await page.context.new_page(), await title.get_attribute("href") or "")


async def test_a_page_of_ours_never_leads_to_a_javascript_address(site: Site) -> None:
    added = await site.app.library.add(
        site.owner, Draft("text", "Plain", "A plain text that is long enough.")
    )
    await site.app.store.items.update(
        site.owner.scope,
        added.item.id,
        {"url": "javascript:alert(1)"},
        expected_revision=None,
        sections=None,
        stamp="x",
        jobs=(),
    )
    page = await site.signed_in()
    for path in ("/", f"/items/{added.item.public_id}", "/search?q=plain"):
        await page.goto(path)
        assert await page.locator("a[href^=javascript]").count() == 0
