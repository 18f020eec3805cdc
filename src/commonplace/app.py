"""The only wiring point: settings in, a running application out."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from uuid import uuid4

from commonplace.adapters.embed import make_embedder
from commonplace.adapters.limits import make_limits
from commonplace.adapters.store import make_store
from commonplace.adapters.wake import make_wake
from commonplace.core.access import Access
from commonplace.core.embedding import EmbedJobs
from commonplace.core.library import Library
from commonplace.core.people import People
from commonplace.core.search import Search
from commonplace.model import Caller
from commonplace.ports import Embedder, Store
from commonplace.settings import Settings
from commonplace.worker import Worker

if TYPE_CHECKING:
    from fastapi import FastAPI


@dataclass(frozen=True, slots=True)
class App:
    settings: Settings
    store: Store
    embedder: Embedder
    access: Access
    people: People
    library: Library
    search: Search
    worker: Worker


@asynccontextmanager
async def open_app(settings: Settings, *, workers: int = 0, own_store: Store | None = None) -> AsyncIterator[App]:
    """Open everything, run `workers` workers beside it, and close it all in the other order."""
    async with AsyncExitStack() as stack:
        store: Store = own_store or make_store(settings)
        stack.push_async_callback(store.close)
        await store.open()
        embedder = make_embedder(settings)
        stack.push_async_callback(embedder.close)
        limits = make_limits(settings)
        stack.push_async_callback(limits.close)
        wake = make_wake(settings)
        stack.push_async_callback(wake.close)
        access = Access(store, limits, settings)
        stack.push_async_callback(access.flush)
        embedding = EmbedJobs(store, embedder)
        app = App(settings, store, embedder, access, People(store, access),
                  Library(store, embedder, access, wake), Search(store, embedder, access, settings),
                  Worker(store, wake, embedding))
        background = [asyncio.create_task(access.keep_flushing())]
        background += [asyncio.create_task(Worker(store, wake, embedding).run()) for _ in range(workers)]
        stack.push_async_callback(_stop, background)
        yield app


@asynccontextmanager
async def scratch_app(settings: Settings) -> AsyncIterator[App]:
    """An application on a store of its own, which is gone afterwards; the model is the one that is there."""
    with TemporaryDirectory(prefix="commonplace-") as folder:
        store = make_store(replace(settings, data_dir=Path(folder), database_schema=f"commonplace_{uuid4().hex}"))
        async with open_app(replace(settings, redis_url=""), own_store=store) as app:
            try:
                yield app
            finally:
                await store.drop()


def make_asgi(app: App) -> "FastAPI":
    """Everything that is served over HTTP. Its lifespan must be run; `app` stays the caller's to close."""
    from commonplace.faces.mcp.http import mcp_routes  # faces are heavy, and most commands need none
    from commonplace.faces.rest.api import rest_app

    routes, running = mcp_routes(app)
    return rest_app(app, routes, running)


async def serve_stdio(app: App, caller: Callable[[], Awaitable[Caller]]) -> None:
    from commonplace.faces.mcp import stdio

    await stdio.serve_stdio(app, caller)


async def _stop(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    for task in tasks:
        with suppress(asyncio.CancelledError):
            await task
