"""The composition root: picks adapters by the settings, and opens and closes everything."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

from commonplace.adapters.blobs import make_blobs
from commonplace.adapters.chat import make_model
from commonplace.adapters.coordination import make_limits, make_wake
from commonplace.adapters.embed import make_embedder
from commonplace.adapters.extract import FileExtractor
from commonplace.adapters.fetch import make_fetcher
from commonplace.adapters.model_download import EmbedderDownload, Model, download, find, wanted
from commonplace.adapters.reflect import make_reflector
from commonplace.adapters.summarize import make_transformer
from commonplace.adapters.transcribe import make_transcriber, measure, require_speech
from commonplace.adapters.youtube import YouTube
from commonplace.core.services import Services, build_services
from commonplace.errors import Damaged
from commonplace.model import Advance, Caller
from commonplace.ports import Closable, Transcriber, Videos
from commonplace.settings import Settings
from commonplace.store import Store, load_beside, make_store

if TYPE_CHECKING:
    from commonplace.interfaces.http.app import HttpApp


T = TypeVar("T", bound=Closable)


@asynccontextmanager
async def open_app(
    settings: Settings,
    *,
    workers: int = 0,
    own_store: Store | None = None,
    own_transcriber: Transcriber | None = None,
    own_videos: Videos | None = None,
) -> AsyncIterator[Services]:
    """Open all services and run `workers` workers; close everything in reverse order."""
    async with AsyncExitStack() as stack:

        def closing(part: T) -> T:
            stack.push_async_callback(part.close)
            return part

        store: Store = closing(own_store or make_store(settings))
        await store.open()
        fetcher = closing(make_fetcher(settings))
        if model := make_model(settings):
            closing(model)
        app = build_services(
            settings,
            store=store,
            embedder=closing(make_embedder(settings)),
            models=EmbedderDownload(settings),
            limits=closing(make_limits(settings)),
            wake=closing(make_wake(settings)),
            fetcher=fetcher,
            extractor=closing(FileExtractor()),
            blobs=closing(make_blobs(settings)),
            videos=own_videos or YouTube(fetcher),
            transcriber=closing(own_transcriber or make_transcriber(settings)),
            model=model,
            local=closing(make_transformer(settings, None)),
            chosen=closing(make_transformer(settings, model)),
            reflector=closing(make_reflector(settings, model)),
            measure=measure,
            require_speech=require_speech,
            attended=workers > 0 or bool(settings.redis_url),
        )
        stack.push_async_callback(app.access.flush)
        background = [app.access.keep_flushing()]
        background += [app.worker.another().run() for _ in range(workers)]
        if workers:
            background += [
                app.feeds.keep_polling(),
                app.crawler.keep_crawling(),
                app.uploads.run_cleanup(),
                app.oauth.keep_tidy(),
                app.webhooks.keep_queuing(),
            ]
        stack.push_async_callback(_stop, list(map(asyncio.create_task, background)))
        yield app


@asynccontextmanager
async def scratch_app(settings: Settings) -> AsyncIterator[Services]:
    """Open an application on a temporary store, which is dropped afterwards."""
    with TemporaryDirectory(prefix="commonplace-") as folder:
        store = make_store(
            replace(
                settings,
                data_dir=Path(folder),
                database_schema=f"commonplace_{uuid4().hex}",
            ),
            checkpoints=False,
        )
        async with open_app(replace(settings, redis_url=""), own_store=store) as app:
            try:
                yield app
            finally:
                await store.drop()


async def restore_backup(
    settings: Settings, file: Path, *, force: bool, advance: Advance
) -> dict[str, int]:
    """Load a backup. With `force`, it replaces the data that is there. A damaged or missing
    database is replaced by a new one."""
    blobs = make_blobs(settings)
    try:
        store = make_store(settings)
        try:
            await store.open()
            await store.check()
            return await store.load(file, replace=force, advance=advance, blobs=blobs)
        finally:
            await store.close()
    except Damaged as damage:
        if not force and not damage.data.get("missing"):
            raise
    return await load_beside(settings, file, advance, blobs)


async def download_models(
    settings: Settings, show: Callable[[str], AbstractContextManager[Advance]]
) -> list[str]:
    """Download the models that the settings use and that are not there; return their titles."""
    missing = _missing(settings)
    for model in missing:
        with show(f"Downloading the {model.title}") as advance:
            await download(model, settings.data_dir / "models", advance)
    return [model.title for model in missing]


def missing_models(settings: Settings) -> list[str]:
    """Return the titles of the models that the settings use and that are not there."""
    return [model.title for model in _missing(settings)]


def _missing(settings: Settings) -> list[Model]:
    models = settings.data_dir / "models"
    return [model for model in wanted(settings) if find(model, models) is None]


def make_asgi(services: Services) -> "HttpApp":
    """Build the HTTP application. The caller runs its lifespan and closes `services`."""
    from commonplace.interfaces.http.app import HttpApp  # interfaces are slow to import
    from commonplace.interfaces.http.metrics import Meters
    from commonplace.interfaces.mcp.endpoints import McpEndpoints
    from commonplace.interfaces.rest.app import rest_app
    from commonplace.interfaces.web.app import WebApp

    mcp, meters = McpEndpoints(services), Meters(services.oauth.tally)
    return HttpApp(
        services, meters, rest_app(services, meters, mcp.run(), WebApp(services)), mcp.by_path()
    )


async def serve_stdio(app: Services, caller: Callable[[], Awaitable[Caller]]) -> None:
    from commonplace.interfaces.mcp import stdio

    await stdio.serve_stdio(app, caller)


async def _stop(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    for task in tasks:
        with suppress(asyncio.CancelledError):
            await task
