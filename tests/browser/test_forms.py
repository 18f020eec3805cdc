"""Every form that is refused keeps what was typed, shows the error at its field and puts the focus there."""

import re
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, Page, expect

from commonplace.core.entities.validation import NewEntity
from commonplace.core.memory.reflection import Notes
from commonplace.core.people.tokens import NewToken
from commonplace.interfaces.web.app import PARTS
from commonplace.model import Role
from tests.browser.conftest import PASSWORD, Site, served

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
TEXT = "The heron stands in the shallow water and waits for a frog to move, as herons do at dawn."


@dataclass(frozen=True)
class Form:
    """A form: what is typed (True: checked), which field is wrong, and a part of the error."""

    route: str
    page: str
    typed: dict[str, str | bool]
    wrong: str
    error: str
    button: str = ""
    rows: bool = False  # the first row of the list is selected
    own: bool = False  # for somebody who is not signed in
    guest: bool = False  # for somebody else than the first person


FORMS = [
    Form(
        "/folders",
        "/",
        {"name": "papers", "parent_id": "{other}"},
        "name",
        "already a folder",
    ),
    Form(
        "/folders/{folder_id}",
        "/folders/{folder}",
        {"name": "PAPERS", "parent_id": "{other}"},
        "name",
        "already a folder",
    ),
    Form(
        "/add",
        "/",
        {"text": "---\ntitle: Only this\n---\n", "folder": "{other}"},
        "text",
        "Write something",
    ),
    Form(
        "/items",
        "/",
        {"tags": " , ", "folder": "{other}", "new_folder": "Third"},
        "tags",
        "Enter one or more tags",
        "Add tags",
        rows=True,
    ),
    Form(
        "/items",
        "/",
        {"new_folder": "papers", "tags": "green, blue"},
        "new_folder",
        "already a folder",
        "Add to folder",
        rows=True,
    ),
    Form(
        "/items/{item_id}",
        "/items/{item}",
        {"title": "  ", "tags": "one, two", "folder": True, "in_kb": False},
        "title",
        "must not be blank",
    ),
    Form("/items/{item_id}/edit", "/items/{item}/edit", {"text": "  "}, "text", "empty"),
    Form("/items/{item_id}/notes", "/items/{item}", {"text": "  "}, "text", "Write a note"),
    Form("/notes/{note_id}", "/items/{item}", {"text": "  "}, "text", "Write a note"),
    Form(
        "/crawls",
        "/crawls",
        {
            "url": "http://127.0.0.1:9/docs/",
            "prefix": "http://127.0.0.1:9/other/",
            "max_pages": "20",
            "max_depth": "3",
            "exclude": "/docs/old/*",
        },
        "prefix",
        "must be the beginning of the URL",
        "Crawl site",
    ),
    Form("/tags", "/tags", {"name": "  "}, "name", "Enter the new name", "Rename", rows=True),
    Form(
        "/work",
        "/work",
        {
            "kind": "task",
            "project": "",
            "epic": "{epic}",
            "priority": "high",
            "title": "Fly",
            "content": TEXT,
        },
        "project",
        "require a project",
    ),
    Form(
        "/work/{entity_id}",
        "/work/{task}",
        {
            **{"title": "Dig", "assignees": "Ada", "content": "  ", "priority": "high"},
            **{"project": "{garden}", "epic": "{epic}", "due_date": "2027-03-01"},
        },
        "content",
        "empty",
    ),
    Form("/work/{entity_id}/note", "/work/{task}", {"text": "  "}, "text", "must not be blank"),
    Form("/work/{entity_id}/wait", "/work/{task}", {"on": "{later}"}, "on", "cycle"),
    Form(
        "/disks/{disk_id}/publish",
        "/disks/{item}/publish",
        {"summary": TEXT, "audience": "members"},
        "summary",
        "own words",
    ),
    Form("/review", "/review", {"title": "Standup", "content": "  "}, "content", "cannot be empty"),
    Form(
        "/review/{candidate_id}",
        "/review",
        {"title": "  ", "content": "Another text", "kind": "claim", "project": "{yard}"},
        "title",
        "must not be blank",
        "Accept",
    ),
    Form(
        "/tokens",
        "/tokens",
        {
            "name": "  ",
            "sees": "folders",
            "folder": True,
            "kb_only": True,
            "write": True,
            "expires_days": "30",
        },
        "name",
        "must not be blank",
    ),
    Form(
        "/tokens",
        "/tokens",
        {"name": "Laptop", "sees": "folders", "write": True, "expires_days": "90"},
        "sees",
        "Choose a folder",
    ),
    Form("/webhooks", "/tokens", {"url": "http://127.0.0.1/hook"}, "url", "private"),
    Form(
        "/connect",
        "/connect",
        {"sees": "folders", "kb_only": True, "write": True, "expires_days": "30"},
        "sees",
        "Choose a folder",
    ),
    Form(
        "/people",
        "/people",
        {"role": "viewer", "email": "nobody", "expires_days": "30"},
        "email",
        "must be an email address",
    ),
    Form("/library/name", "/people", {"name": "  "}, "name", "Enter a library name"),
    Form("/account", "/account", {"name": "Grace", "email": "grace"}, "email", "Enter an email"),
    Form(
        "/account/password",
        "/account",
        {"old": "not the password", "new": "a new long password"},
        "old",
        "current password is wrong",
    ),
    Form(
        "/account/delete",
        "/account",
        {"email": "ada@example.com"},
        "email",
        "Type your email",
        guest=True,
    ),
    Form(
        "/sign-in",
        "/sign-in",
        {"email": "ada@example.org", "password": "wrong"},
        "password",
        "Wrong email or password",
        own=True,
    ),
    Form(
        "/claim/{secret}",
        "/claim/{claim}",
        {"name": "Grace", "email": "grace@example.org", "password": "short"},
        "password",
        "A password has",
        own=True,
    ),
    Form(
        "/join/{secret}",
        "/join/{join}",
        {"name": "Grace", "email": "grace", "password": PASSWORD},
        "email",
        "Enter an email",
        own=True,
    ),
]
# Nothing is typed there: buttons, and what is chosen among values that are all right.
CHOICES = {
    *("/crawls/{crawl_id}/sync", "/crawls/{crawl_id}/delete"),
    *("/items/{item_id}/refresh", "/items/{item_id}/retry", "/jobs/{job_id}/retry"),
    *("/items/{item_id}/versions/{revision}/restore", "/notes/{note_id}/delete"),
    *("/folders/{folder_id}/delete", "/folders/{folder_id}/parent", "/sample", "/sample/remove"),
    "/import",  # a file is chosen
    *("/trash/empty", "/trash/{item_id}/restore", "/trash/{item_id}/delete"),
    *("/work/{entity_id}/move", "/disks/{disk_id}/unpublish", "/d/{public_id}/save"),
    *("/d/{public_id}/forget", "/tokens/shown", "/tokens/{token_id}/revoke", "/view-as"),
    *("/webhooks/{webhook_id}/test", "/webhooks/{webhook_id}/delete", "/leave", "/library"),
    *("/people/{person_id}/role", "/people/{person_id}/remove", "/sign-out", "/export", "/backup"),
    *("/people/invitations/{invitation_id}/withdraw", "/account/others", "/oauth/authorize"),
    *("/account/sessions/{session_id}", "/account/clients/{grant_id}"),
    *("/passkeys/{passkey_id}/remove", "/undo/{step_id}"),
}
SCRIPTS = {  # without a form, or with one that a script answers in its own way
    *("/uploads", "/items/{item_id}/boxes", "/preview", "/passkeys/offer", "/passkeys"),
    *("/passkeys/ask", "/passkeys/sign-in", "/join/{secret}/offer", "/join/{secret}/passkey"),
}


ELSEWHERE = {
    "/import",  # pages without a row of the table
    *("/sidebar", "/trash", "/search", "/graph", "/graph/{item}", "/disks", "/review/captures"),
    *("/health", "/admin", "/recent", "/d/{shared}", "/tokens/{token}", "/items/{item}/versions/1"),
}
NO_PAGES = {  # streams, files, and a page that clients lead to: see test_consent.py
    *("/events", "/connect/live", "/connect/{token_id}/live", "/items/{item_id}/original"),
    *(
        "/items/{item_id}/thumbnail",
        "/items/{item_id}/images/{image_id}",
        "/items/{item_id}/page",
        "/items/{item_id}/pages/{page}",
        "/oauth/authorize",
    ),
}
CHOSEN = {
    ("/items", "item"),
    ("/tags", "tag"),
    ("/connect", "folder"),
    ("/import", "dry_run"),
}  # which may be missing
TEXTS = {"text", "content", "summary"}  # names of text areas


@dataclass
class Made:
    site: Site
    ids: dict[str, str]


@pytest.fixture(scope="module")
async def made(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> AsyncIterator[Made]:
    async with served(tmp_path_factory.mktemp("forms"), browser) as site:
        yield Made(site, await _filled(site))


async def _filled(site: Site) -> dict[str, str]:
    app, owner = site.app, site.owner
    await site.signed_in()
    papers, other = [(await app.folders.create(owner, name)).id for name in ("Papers", "Other")]
    await app.folders.create(owner, "Papers", parent_id=other)
    folder = (await app.folders.create(owner, "Old")).id
    item = await site.add("Herons", TEXT, tags=("bird",))
    note = await app.annotations.add(owner, item.id, "Which frog?")
    garden = await app.entities.add(owner, NewEntity("Garden", "The yard", entity_type="project"))
    epic = await app.entities.add(
        owner, NewEntity("Spring", "All of it", entity_type="epic", project="Garden")
    )
    task = await app.entities.add(
        owner, NewEntity("Dig", "Dig it", entity_type="task", project="Garden")
    )
    later = await app.entities.add(
        owner,
        NewEntity(
            "Sow",
            "Sow it",
            entity_type="task",
            project="Garden",
            depends_on=(task.item.id,),
        ),
    )
    await app.reflection.reflect(
        owner,
        Notes("We decided to use Postgres for the queue.", "Standup", persist=True, review=True),
    )
    person = await app.people.create("Grace", "grace@localhost")
    claim = await app.accounts.invitation(person)
    shared = await site.add("Shared", TEXT.replace("heron", "egret"))
    await app.disks.publish(owner, shared.id)
    await app.library.update(owner, item.id, {"text": TEXT + " Always."})
    token, _ = await app.people.create_token(owner, NewToken("phone"))
    guest = await app.people.create("Mary", "mary@example.org")
    _, join = await app.members.invite(site.ruler, Role.MEMBER)
    return {
        "papers": papers,
        "other": other,
        "folder": folder,
        "item": item.public_id,
        "note": note.public_id,
        "task": task.item.public_id,
        "later": later.item.entity_id,
        "garden": garden.item.entity_id,
        "yard": garden.item.id,
        "epic": epic.item.entity_id,
        "shared": shared.public_id,
        "token": token.id,
        "claim": claim,
        "join": join,
        "guest": await app.accounts.open_session(guest.id, "test"),
    }


def test_the_table_has_every_form() -> None:
    routes = {route.path for part in PARTS for route in part if route.method == "POST"}
    assert routes == {form.route for form in FORMS} | CHOICES | SCRIPTS


def route_of(path: str, routes: Iterable[str]) -> str:
    """The route that a path leads to; of several, the one with fewer variables."""
    fitting = [each for each in routes if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", each), path)]
    return min(fitting, key=lambda each: each.count("{"))


async def test_the_table_has_every_field_of_every_page(made: Made) -> None:
    forms = [route.path for part in PARTS for route in part if route.method == "POST"]
    pages = [route.path for part in PARTS for route in part if route.method == "GET"]
    table = {(form.route, name) for form in FORMS for name in form.typed}
    seen, known = set[tuple[str, str]](), set[str]()
    owner, nobody = await made.site.signed_in(), await made.site.visitor()
    own = {form.page for form in FORMS if form.own}
    for place in {form.page for form in FORMS} | ELSEWHERE:
        page = nobody if place in own else owner
        answer = await page.goto(place.format(**made.ids))
        assert answer is not None and answer.status == 200, place
        known.add(route_of(urlsplit(page.url).path, pages))
        for path, name, is_text in await page.evaluate(FIELDS):
            assert not is_text or name in TEXTS
            seen.add((route_of(path, forms), name))
    assert {field for field in seen if field[0] not in SCRIPTS} - table == CHOSEN
    assert known == {*pages} - NO_PAGES


VALUES = """form => [...form.elements].filter(e => e.name && e.type !== "hidden" && !e.matches("button"))
    .map(e => [e.name, e.type === "password" ? "password" : "", e.matches("[type=checkbox], [type=radio]") ? e.value + e.checked : e.value.trimEnd()])"""
FIELDS = """() => [...document.forms].filter(f => f.getAttribute("method") === "post")
    .flatMap(f => [...f.elements].filter(e => e.matches("[name]:not(button, [type=hidden], [type=file], [readonly])"))
        .map(e => [new URL(f.getAttribute("action") ?? "", location.href).pathname, e.name, e.matches("textarea")]))"""
FIND = """([path, typed]) => {
    const wanted = [...document.forms].filter(f => f.getAttribute("method") === "post"
        && new RegExp("^" + path + "$").test(new URL(f.getAttribute("action") ?? "", location.href).pathname)
        && typed.every(name => f.elements[name]));
    document.querySelectorAll("details").forEach(e => { e.open = true; });
    wanted[0].noValidate = true;
    wanted[0].setAttribute("data-test", "");
    return wanted.length;
}"""


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "plain"])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.route} {form.wrong}")
async def test_a_refused_form_keeps_what_was_typed(made: Made, form: Form, scripts: bool) -> None:
    site = made.site
    site.expected += ["422", "409", "401"]
    page = await (site.visitor if form.own else site.signed_in)(java_script_enabled=scripts)
    if form.guest:
        [cookie] = await page.context.cookies()
        await page.context.add_cookies([{**cookie, "value": made.ids["guest"]}])  # type: ignore[typeddict-item]
    await page.goto(form.page.format(**made.ids))
    await _fill(page, form, made.ids)
    sent = page.locator("form[data-test]")
    before = await sent.evaluate(VALUES)
    button = sent.get_by_role("button", name=form.button) if form.button else sent.locator("button")
    await button.first.click()
    wrong = page.locator(f"[name={form.wrong}][aria-invalid=true]")
    await expect(wrong).to_be_focused()
    told = await wrong.get_attribute("aria-describedby") or ""
    said = page.locator(f"#{told.split()[-1]}")
    await expect(said).to_contain_text(form.error)
    await expect(said).to_be_visible()
    after = await wrong.evaluate(f"e => ({VALUES})(e.form)")
    if not scripts:  # no server sends a password back
        before, after = ([each for each in values if not each[1]] for values in (before, after))
    assert [each for each in after if each[0] != "_page"] == before
    await page.context.close()


@pytest.mark.parametrize(
    "form", [form for form in FORMS if TEXTS & {*form.typed}], ids=lambda form: form.route
)
async def test_every_text_area_keeps_a_draft(made: Made, form: Form) -> None:
    page = await made.site.signed_in()
    await page.goto(form.page.format(**made.ids))
    typed = {name: TEXT if name in TEXTS else value for name, value in form.typed.items()}
    await _fill(page, replace(form, typed=typed), made.ids)
    before = await page.locator("form[data-test]").evaluate(VALUES)
    await page.goto("/search")
    await page.goto(form.page.format(**made.ids))
    sent = page.locator("form", has=page.locator(".draft"))
    assert await sent.evaluate(VALUES) == before
    await sent.locator(".draft").get_by_role("button", name="Discard").click()
    await page.goto("/search")
    await page.goto(form.page.format(**made.ids))
    await expect(page.locator(".draft")).to_have_count(0)
    await page.context.close()


async def _fill(page: Page, form: Form, ids: dict[str, str]) -> None:
    path = re.sub(r"\{\w+\}", "[^/]+", form.route)
    assert await page.evaluate(FIND, [path, list(form.typed)])
    if form.rows:
        await page.locator(".row > input").first.check()
    for name, value in form.typed.items():
        each = page.locator("form[data-test]").locator(f"[name={name}]")
        if isinstance(value, bool):
            await each.first.set_checked(value)
        elif await each.first.get_attribute("type") == "radio":
            await each.and_(page.locator(f"[value={value}]")).check()
        elif await each.first.evaluate("e => e.tagName") == "SELECT":
            await each.select_option(value.format(**ids))
        else:
            await each.fill(value)
