"""A served library and a real Chromium in front of it. Whatever its console complains about fails the test."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    suppress,
)
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Response,
    async_playwright,
    expect,
)

from commonplace.app import make_asgi, open_app
from commonplace.core.items.drafts import Draft
from commonplace.core.services import Services
from commonplace.interfaces.http.connections import LimitedServer
from commonplace.model import Caller, Capability, Item, Role
from commonplace.settings import Settings
from tests.interfaces.conftest import clock as clock
from tests.interfaces.house import NO_LIMITS

CHROMIUM = "/usr/bin/chromium-headless-shell"  # the same engine without the windows, in a third of the time
PASSWORD = "a long enough password"


@dataclass
class Site:
    """A running server, and what its pages complained about."""

    app: Services
    url: str
    owner: Caller
    browser: Browser
    serve: Callable[[], AbstractAsyncContextManager[None]]
    running: AsyncExitStack
    complaints: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)  # parts of complaints that a test provokes

    @property
    def ruler(self) -> Caller:
        """The owner, where it takes the role."""
        return replace(self.owner, role=Role.OWNER)

    async def context(self, **wish: Any) -> BrowserContext:
        context = await self.browser.new_context(base_url=self.url, **wish)
        context.set_default_timeout(60_000)
        context.on("weberror", lambda error: self.complaints.append(str(error.error)))
        context.on("console", self._listen)
        if wish.get("java_script_enabled", True):
            context.on("page", _wait_for_scripts)
        return context

    def _listen(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    async def visitor(self, **wish: Any) -> Page:
        """Somebody who is not signed in."""
        return await (await self.context(**wish)).new_page()

    async def signed_in(self, **wish: Any) -> Page:
        """The owner, with a password, on the library's first page."""
        if await self.app.store.accounts.password_hash(self.owner.person_id) is None:
            secret = await self.app.accounts.first_invitation()
            assert secret
            await self.app.accounts.claim(secret, "Ada", "ada@example.org", PASSWORD, about="")
        context = await self.context(**wish)
        secret = await self.app.accounts.open_session(self.owner.person_id, "test")
        await context.add_cookies(
            [
                {
                    "name": f"commonplace_{self.url.rpartition(':')[2]}",
                    "value": secret,
                    "url": self.url,
                    "httpOnly": True,
                    "sameSite": "Lax",
                }
            ]
        )
        page = await context.new_page()
        await page.goto("/")
        return page

    @asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        """The server is stopped, and started again afterwards."""
        await self.running.aclose()
        yield
        await self.running.enter_async_context(self.serve())

    async def add(
        self, title: str, text: str = "", *, folder: str | None = None, **wish: Any
    ) -> Item:
        added = await self.app.library.add(
            self.owner,
            Draft("text", title, text or f"{title}: the zebra grazes by the river.", **wish),
        )
        if folder:
            await self.app.folders.file(self.owner, added.item.id, [folder])
        return added.item


expect.set_options(timeout=60_000)


async def ready(page: Page) -> None:
    """Its scripts are all there, as it says itself."""
    await expect(page.locator("html[data-ready]")).to_have_count(1)


async def answered(page: Page) -> None:
    """Every form that was sent has its answer, and the page that follows is there."""
    await expect(page.locator("form[aria-busy='true']")).to_have_count(0)


def _wait_for_scripts(page: Page) -> None:
    """Whoever goes to a page or loads it again waits until it is ready."""

    def waiting(
        way: Callable[..., Awaitable[Response | None]],
    ) -> Callable[..., Awaitable[Response | None]]:
        async def go(*where: str, **how: Any) -> Response | None:
            await answered(page)
            answer = await way(*where, **how)
            if await page.locator("script[type=module]").count():
                await ready(page)
            return answer

        return go

    page.goto, page.reload = waiting(page.goto), waiting(page.reload)  # type: ignore[method-assign]


@asynccontextmanager
async def served(
    data_dir: Path,
    browser: Browser,
    *,
    own: dict[str, Any] | None = None,
    tls: Path | None = None,
    **settings: Any,
) -> AsyncIterator[Site]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    wanted = Settings(data_dir=data_dir, embedder="static", port=port, **(NO_LIMITS | settings))
    async with open_app(wanted, workers=1, **(own or {})) as app, AsyncExitStack() as running:
        await running.enter_async_context(_serving(app, wanted, tls))
        person = await app.people.ensure_owner()
        # localhost, not the number: browsers make passkeys for names only.
        site = Site(
            app,
            f"{'https' if tls else 'http'}://localhost:{port}",
            Caller(person.id, person.id, person.name, frozenset(Capability)),
            browser,
            partial(_serving, app, wanted, tls),
            running,
        )
        try:
            yield site
        finally:
            for context in browser.contexts:
                await context.close()
    left = [text for text in site.complaints if not any(part in text for part in site.expected)]
    assert not left, left


@asynccontextmanager
async def _serving(app: Services, settings: Settings, tls: Path | None) -> AsyncIterator[None]:
    with socket.create_server(("127.0.0.1", settings.port)) as listener:
        server = LimitedServer(
            make_asgi(app),
            settings,
            timeout_graceful_shutdown=1,
            ssl_certfile=tls,
            ssl_keyfile=tls,
        )
        serving = asyncio.create_task(server.serve([listener]))
        async with asyncio.timeout(60):
            while not server.started:  # noqa: ASYNC110 (uvicorn has no event to wait for)
                await asyncio.sleep(0.01)
        try:
            yield
        finally:
            server.should_exit = True
            with suppress(asyncio.CancelledError):
                await serving


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        opened = await playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield opened
        await opened.close()


@pytest.fixture
async def site(data_dir: Path, browser: Browser) -> AsyncIterator[Site]:
    async with served(data_dir, browser) as opened:
        yield opened
