"""A library that several people share: invited by a link, with a password or a passkey; roles; turning between libraries."""

import re

import pytest
from playwright.async_api import Page, expect

from commonplace.model import Role
from tests.browser.conftest import PASSWORD, Site, ready

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def invited(site: Site, role: str = "member", email: str = "") -> str:
    """The link that the owner makes on the page."""
    page = await site.signed_in()
    await page.keyboard.press("g")
    await page.keyboard.press("p")
    await page.get_by_role("radio", name=re.compile(f"^{role}")).check()
    await page.get_by_label("Email").fill(email)
    await page.get_by_role("button", name="Create invitation").click()
    link = await page.locator("#secret").inner_text()
    await page.goto("/people")
    assert link not in await page.content(), "it is shown once"
    await page.close()
    return link


async def join(page: Page, link: str, name: str = "Bob") -> None:
    await page.goto(link)
    await page.get_by_role("textbox", name="Name").fill(name)
    if await page.get_by_label("Email").is_editable():
        await page.get_by_label("Email").fill(f"{name.lower()}@example.org")
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Join", exact=True).click()
    await expect(page.get_by_role("status")).to_contain_text("Welcome")


async def test_somebody_new_joins_by_a_link_and_has_two_libraries(site: Site) -> None:
    await site.add("Otters", "Otters hold hands while they sleep, and nobody has to teach them.")
    bob = await site.visitor()
    await join(bob, await invited(site, email="bob@example.org"))
    await expect(bob.locator(".row .title")).to_have_text(["Otters"])
    await ready(bob)
    await bob.get_by_label("Add a link, a note or files").fill(
        "Bob was here, and he wrote it down for all of them."
    )
    await bob.get_by_role("button", name="Add", exact=True).click()
    await expect(bob.locator(".row")).to_have_count(2)
    await bob.locator(".turn summary").click()
    await bob.locator(".turn").get_by_role("button", name="Bob owner").click()
    await expect(bob.get_by_role("heading", name="Three steps to begin")).to_be_visible()
    for path in ("/search?q=otters", "/work", "/graph", "/disks?shelf=private", "/health"):
        await bob.goto(path)
        await expect(bob.locator("main")).not_to_contain_text("hold hands")
    await bob.locator(".turn summary").click()
    await bob.locator(".turn").get_by_role("button", name="Ada member").click()
    await expect(bob.locator(".row")).to_have_count(2)


async def test_a_viewer_sees_everything_and_nothing_to_write_with(site: Site) -> None:
    folder = await site.app.folders.create(site.owner, "Birds")
    item = await site.add(
        "Owls", "# Owls\n\nOwls turn their heads because their eyes cannot move.", folder=folder.id
    )
    page = await site.visitor()
    await join(page, await invited(site, "viewer"))
    for path in (
        "/",
        f"/?folder={folder.id}",
        f"/items/{item.public_id}",
        "/work",
        "/review",
        "/review/captures",
        "/disks",
        "/people",
        "/connect",
        "/health",
    ):
        await page.goto(path)
        writing = page.locator(
            "main form[method=post]:not([action='/export'], [action='/leave']), main input[type=checkbox], main textarea"
        )
        await expect(writing).to_have_count(0)
    await page.goto("/")
    for key in ("j", "x", "e", "a"):
        await page.keyboard.press(key)
    await expect(page.locator(".row")).to_have_count(1)
    token = await page.locator("body").get_attribute("data-csrf")
    for path, form in (
        ("/items", {"action": "archive", "item": item.id}),
        ("/add", {"text": "A note that is long enough."}),
        ("/folders", {"name": "Mine"}),
        ("/people", {"role": "owner"}),
    ):
        answer = await page.request.post(
            path,
            form={"csrf": token or "", **form},
            headers={"Origin": site.url, "Accept": "application/json"},
        )
        assert answer.status == 403, path


async def test_roles_are_changed_people_removed_and_invitations_withdrawn(site: Site) -> None:
    bob = await site.visitor()
    await join(bob, await invited(site))
    link = await invited(site, "viewer")
    page = await site.signed_in()
    await page.goto("/people")
    await ready(page)
    await page.get_by_label("Role of Bob").select_option("viewer")
    await expect(page.get_by_role("status")).to_contain_text("Bob's role is now viewer.")
    await bob.reload()
    await expect(bob.get_by_label("Add a link, a note or files")).to_have_count(0)
    await page.get_by_role("button", name="Withdraw").click()
    await expect(page.get_by_role("status")).to_contain_text("Invitation withdrawn")
    site.expected.append("404")
    late = await site.visitor()
    await late.goto(link)
    await expect(late.get_by_text("ask for a new one")).to_be_visible()
    asked: list[str] = []

    async def agree(dialog: object) -> None:
        asked.append(dialog.message)  # type: ignore[attr-defined]
        await dialog.accept()  # type: ignore[attr-defined]

    page.on("dialog", agree)
    await page.get_by_role("button", name="Remove").click()
    await expect(page.get_by_role("status")).to_contain_text("What they added stays")
    assert "Remove Bob?" in asked[0]
    await bob.goto("/")
    await expect(bob.locator(".turn")).to_have_count(0)
    await expect(bob.get_by_role("heading", name="Three steps to begin")).to_be_visible()


async def test_somebody_joins_with_a_passkey_and_signs_in_with_it(site: Site) -> None:
    link = await invited(site)
    page = await site.visitor()
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
    await page.goto(link)
    await page.get_by_role("textbox", name="Name").fill("Cleo")
    await page.get_by_label("Email").fill("ada@example.org")
    site.expected.append("409")
    await page.get_by_role("button", name="Join with a passkey").click()
    await expect(page.get_by_role("alert").first).to_contain_text("already an account")
    await page.get_by_label("Email").fill("cleo@example.org")
    await page.get_by_role("button", name="Join with a passkey").click()
    await expect(page.locator(".turn b")).to_have_text("Ada")
    await page.goto("/account")
    await page.get_by_role("button", name="Sign out", exact=True).click()
    await page.get_by_role("button", name="Use a passkey").click()
    await expect(page.get_by_role("link", name="Cleo")).to_be_visible()


async def test_who_has_an_account_joins_as_who_they_are(site: Site) -> None:
    dan = await site.app.people.create("Dan", "dan@example.org")
    _, secret = await site.app.members.invite(site.ruler, Role.MEMBER)
    claim = await site.app.accounts.invitation(dan)
    await site.app.accounts.claim(claim, "Dan", "dan@example.org", PASSWORD, about="")
    page = await site.visitor()
    await page.goto(f"/join/{secret}")
    await page.get_by_role("link", name="Sign in").click()
    await page.get_by_label("Email").fill("dan@example.org")
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await page.get_by_role("button", name="Join as Dan").click()
    await expect(page.get_by_role("status")).to_contain_text("member")
    await page.goto("/people")
    page.on("dialog", lambda dialog: dialog.accept())
    await page.get_by_role("button", name="Leave").click()
    await expect(page.get_by_role("status")).to_contain_text("You left")
    await expect(page.locator(".turn")).to_have_count(0)
