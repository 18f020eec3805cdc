"""One's own account in the browser, and signing in over https."""

import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from commonplace.core.items.drafts import Draft
from commonplace.model import Caller, Capability, Person, Role
from tests.browser.conftest import PASSWORD, Site, ready, served
from tests.browser.test_signing_in import claim, sign_in
from tests.webserver import certificate_for

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
NEW = "another password, long enough"


async def dan(site: Site) -> tuple[Person, Page]:
    """Somebody with a library and a password of their own, signed in."""
    person = await site.app.people.create("Dan", "dan@example.org")
    await site.app.accounts.claim(
        await site.app.accounts.invitation(person), "Dan", "dan@example.org", PASSWORD, about=""
    )
    page = await site.visitor()
    await page.goto("/sign-in?next=/account")
    await page.get_by_label("Email").fill("dan@example.org")
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await expect(page.get_by_role("heading", name="Account", exact=True)).to_be_visible()
    return person, page


async def test_browsers_are_listed_and_ended_one_by_one(site: Site) -> None:
    page, other, third = [await site.signed_in() for _ in range(3)]
    await page.goto("/account")
    browsers = page.locator(".sheet", has=page.get_by_role("heading", name="Browsers")).locator(
        "li"
    )
    before = await browsers.count()
    assert before >= 3
    await expect(browsers.filter(has_text="this browser")).to_have_count(1)
    await (
        browsers.filter(has_not_text="this browser")
        .first.get_by_role("button", name="Sign out")
        .click()
    )
    await expect(page.get_by_role("status")).to_contain_text("Browser signed out.")
    await expect(browsers).to_have_count(before - 1)
    await page.get_by_role("button", name="Sign out all other browsers").click()
    await expect(browsers).to_have_count(1)
    for gone in (other, third):
        await gone.goto("/account")
        assert gone.url.endswith("/sign-in?next=/account")


async def test_a_password_is_changed_by_who_knows_it_and_others_are_signed_out(site: Site) -> None:
    other, page = await site.signed_in(), await site.signed_in()
    site.expected.append("401")
    await page.goto("/account")
    for old, said in (
        ("not the password", "current password is wrong"),
        (PASSWORD, "All other browsers are signed out"),
    ):
        await page.get_by_label("Current password").fill(old)
        await page.get_by_label("New password").fill(NEW)
        await page.get_by_role("button", name="Change password").click()
        await expect(page.get_by_text(said)).to_be_visible()
    await other.goto("/account")
    assert "/sign-in" in other.url
    fresh = await site.visitor()
    await sign_in(fresh, PASSWORD)
    await expect(fresh.get_by_role("alert").first).to_contain_text("Wrong email or password")
    await sign_in(fresh, NEW)
    await expect(fresh.get_by_role("heading", name="Library", exact=True)).to_be_visible()


async def test_an_account_is_deleted_with_its_library_and_nothing_else(site: Site) -> None:
    await site.signed_in()
    person, page = await dan(site)
    own = Caller(person.id, person.id, "Dan", frozenset(Capability), role=Role.OWNER)
    await site.app.library.add(
        own, Draft("text", "Mine", "What Dan wrote for himself, and for nobody else.")
    )
    _, secret = await site.app.members.invite(site.ruler, Role.MEMBER)
    await page.goto(f"/join/{secret}")
    await page.get_by_role("button", name="Join as Dan").click()
    await ready(page)
    await page.get_by_label("Add a link, a note or files").fill(
        "What Dan wrote for all of them, in their library."
    )
    await page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.locator(".row")).to_have_count(1)
    site.expected += ["401", "422"]
    for email, password, said in (
        ("ada@example.org", PASSWORD, "Type your email to confirm."),
        ("dan@example.org", "wrong", "current password is wrong"),
        ("dan@example.org", PASSWORD, "were deleted"),
    ):
        await page.goto("/account")
        await page.get_by_text("Deletes your library").click()
        await page.get_by_label("Type your email").fill(email)
        await page.get_by_label("Password", exact=True).fill(password)
        await page.get_by_role("button", name="Delete account permanently").click()
        await expect(page.get_by_text(said)).to_be_visible()
    assert [person.name for person in await site.app.store.people.all()] == ["Ada"]
    assert await site.app.library.recent(own) == []
    assert [item.title for item in await site.app.library.recent(site.owner)] == [
        "What Dan wrote for all of them, in their library."
    ]


async def test_the_first_person_stays_and_so_does_who_has_guests(site: Site) -> None:
    page = await site.signed_in()
    await page.goto("/account")
    await expect(page.get_by_text("this server's first person")).to_be_visible()
    token = await page.locator("body").get_attribute("data-csrf") or ""
    form = {"csrf": token, "email": "ada@example.org", "password": PASSWORD}
    answer = await page.request.post(
        "/account/delete", form=form, headers={"Origin": site.url, "Accept": "application/json"}
    )
    assert answer.status == 409
    person, other = await dan(site)
    own = Caller(person.id, person.id, "Dan", frozenset(Capability), role=Role.OWNER)
    _, secret = await site.app.members.invite(own, Role.VIEWER)
    await site.app.members.accept(site.ruler, secret)
    await other.goto("/account")
    await expect(other.get_by_text("Your library has other members")).to_be_visible()


async def test_over_https_cookies_are_bound_to_the_server(
    data_dir: Path, tmp_path: Path, browser: Browser
) -> None:
    certificate_for("localhost", tmp_path)
    async with served(data_dir, browser, tls=tmp_path / "server.pem") as site:
        page = await site.visitor(ignore_https_errors=True)
        await claim(site, page)
        await expect(page.get_by_role("heading", name="Library", exact=True)).to_be_visible()
        [kept] = [
            cookie
            for cookie in await page.context.cookies()
            if re.fullmatch(r".*commonplace_\d+", cookie["name"])
        ]
        assert kept["name"].startswith("__Host-commonplace_")
        assert (
            kept["secure"]
            and kept["httpOnly"]
            and kept["path"] == "/"
            and not kept["domain"].startswith(".")
        )
        await page.goto("/account")
        await page.get_by_role("button", name="Sign out", exact=True).click()
        await expect(page.get_by_text("Signed out.")).to_be_visible()
        site.expected += ["401", "429"]
        for _ in range(10):
            await sign_in(page, "not the password")
            await expect(page.get_by_role("alert").first).to_contain_text("Wrong email or password")
        await sign_in(page, PASSWORD)
        await expect(page.get_by_role("alert").first).to_contain_text(re.compile("Too many"))
