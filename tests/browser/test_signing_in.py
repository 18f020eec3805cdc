"""Coming in: by the printed link, by password, by passkey; and staying out."""

import re

import pytest
from playwright.async_api import Page, expect

from tests.browser.conftest import PASSWORD, Site

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def claim(site: Site, page: Page) -> str:
    secret = await site.app.accounts.first_invitation()
    assert secret
    await page.goto(f"/claim/{secret}")
    await page.get_by_role("textbox", name="Name").fill("Ada")
    await page.get_by_label("Email").fill("ada@example.org")
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Create account").click()
    return secret


async def sign_in(page: Page, password: str) -> None:
    await page.goto("/sign-in")
    await page.get_by_label("Email").fill("ada@example.org")
    await page.get_by_label("Password").fill(password)
    await page.get_by_role("button", name="Sign in", exact=True).click()


async def test_the_printed_link_lets_the_owner_choose_a_password_once(site: Site) -> None:
    page = await site.visitor()
    secret = await claim(site, page)
    await expect(page.get_by_role("heading", name="Library", exact=True)).to_be_visible()
    await expect(page.get_by_role("status")).to_contain_text("your library")
    assert await site.app.accounts.first_invitation() is None
    site.expected.append("404")
    again = await site.visitor()
    await again.goto(f"/claim/{secret}")
    await expect(again.get_by_text("This link was used")).to_be_visible()
    await sign_in(again, PASSWORD)
    await expect(again.get_by_role("heading", name="Library", exact=True)).to_be_visible()


async def test_signing_out_ends_the_session_on_the_server(site: Site) -> None:
    page = await site.signed_in()
    kept = await page.context.cookies()
    await page.goto("/account")
    await page.get_by_role("button", name="Sign out", exact=True).click()
    await expect(page.get_by_role("status")).to_contain_text("Signed out")
    await page.context.add_cookies(kept)  # type: ignore[arg-type]
    await page.goto("/account")
    assert page.url.endswith("/sign-in?next=/account")


async def test_after_signing_in_one_is_where_one_wanted_to_go(site: Site) -> None:
    await site.signed_in()
    page = await site.visitor()
    await page.goto("/search?q=zebra")
    await page.get_by_label("Email").fill("ada@example.org")
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await expect(page).to_have_url(re.compile(r"/search\?q=zebra$"))
    for astray in ("//evil.example/", "/\\evil.example", "https://evil.example"):
        await page.goto(f"/sign-in?next={astray}")
        await expect(page).to_have_url(f"{site.url}/")


async def test_a_link_signs_in_whoever_has_a_password_and_leaves_it_as_it_is(site: Site) -> None:
    before = await site.signed_in()
    [person] = await site.app.store.people.all()
    page = await site.visitor()
    await page.goto(f"/claim/{await site.app.accounts.invitation(person)}")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("heading", name="Library", exact=True)).to_be_visible()
    await before.reload()
    await expect(before.get_by_role("heading", name="Library", exact=True)).to_be_visible()
    other = await site.visitor()
    await sign_in(other, PASSWORD)
    await expect(other.get_by_role("heading", name="Library", exact=True)).to_be_visible()
    await other.goto(f"/claim/{await site.app.accounts.invitation(person)}")
    await other.get_by_label("Password").fill("another long password")
    await other.get_by_role("button", name="Sign in").click()
    await expect(other.get_by_role("heading", name="Library", exact=True)).to_be_visible()
    await before.goto("/account")
    assert before.url.endswith("/sign-in?next=/account"), "a new password ends all other sessions"


async def test_wrong_passwords_are_counted(site: Site) -> None:
    site.expected += ["401", "429"]
    await site.signed_in()
    page = await site.visitor()
    for _ in range(10):
        await sign_in(page, "not the password")
        await expect(page.get_by_role("alert").first).to_contain_text("Wrong email or password")
    await sign_in(page, PASSWORD)
    await expect(page.get_by_role("alert").first).to_contain_text("Too many requests")


async def test_a_passkey_is_made_used_and_removed(site: Site) -> None:
    page = await site.signed_in()
    devtools = await page.context.new_cdp_session(page)
    await devtools.send("WebAuthn.enable")
    await devtools.send(
        "WebAuthn.addVirtualAuthenticator",
        {
            "options": {
                "protocol": "ctap2",
                "transport": "internal",
                "hasResidentKey": True,
                "hasUserVerification": True,
                "isUserVerified": True,
                "automaticPresenceSimulation": True,
            }
        },
    )
    await page.goto("/account")
    await page.get_by_placeholder("This laptop").fill("My <b>key</b>")
    await page.get_by_role("button", name="Add passkey").click()
    await expect(page.get_by_text("My <b>key</b>", exact=False).first).to_be_visible()
    await page.get_by_role("button", name="Sign out", exact=True).click()
    await page.get_by_role("button", name="Use a passkey").click()
    await expect(page.get_by_role("heading", name="Library", exact=True)).to_be_visible()
    await page.goto("/account")
    await page.get_by_role("button", name="Remove").click()
    await expect(page.get_by_text("No passkeys yet.")).to_be_visible()


async def test_a_form_from_elsewhere_or_without_its_token_changes_nothing(site: Site) -> None:
    page = await site.signed_in()
    answer = await page.request.post(
        "/sign-out", form={"csrf": "0" * 43}, headers={"Origin": site.url}
    )
    assert answer.status == 403
    token = await page.locator("body").get_attribute("data-csrf")
    assert token
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        assert (
            await page.request.post("/sign-out", form={"csrf": token}, headers=headers)
        ).status == 403
    await page.reload()
    await expect(page.get_by_role("heading", name="Library", exact=True)).to_be_visible()
