"""The composition root: builds every service from the settings."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Protocol, TypeVar
from uuid import uuid4

from commonplace.adapters.blobs import make_blobs
from commonplace.adapters.embed import make_embedder
from commonplace.adapters.extract import FileExtractor
from commonplace.adapters.fetch import make_fetcher
from commonplace.adapters.rate_limits import make_limits
from commonplace.adapters.reflect import make_reflector
from commonplace.adapters.summarize import make_transformer
from commonplace.adapters.transcribe import duration, make_transcriber
from commonplace.adapters.wakeup import make_wake
from commonplace.adapters.youtube.audio import YouTubeSound
from commonplace.adapters.youtube.captions import YouTubeCaptions
from commonplace.core.disks.disks import Disks
from commonplace.core.disks.publishing import Publisher
from commonplace.core.entities.annotations import Annotations
from commonplace.core.entities.auto_links import AutoLinker, LinkJobs
from commonplace.core.entities.duplicates import Duplicates
from commonplace.core.entities.entities import Entities
from commonplace.core.entities.search import EntitySearch
from commonplace.core.entities.similarity_scale import SimilarityScale
from commonplace.core.ingest.embedding import EmbedJobs
from commonplace.core.ingest.pipeline import IngestPipeline
from commonplace.core.ingest.sources import Sources
from commonplace.core.ingest.summaries import TransformJobs
from commonplace.core.ingest.transcription import Quota, Recordings, TranscribeJobs
from commonplace.core.ingest.transcription_webhook import Webhooks
from commonplace.core.items.delayed_delete import DelayedDeletes, RemoveJobs
from commonplace.core.items.epic_status import Epics
from commonplace.core.items.feeds import Feeds
from commonplace.core.items.folders import Folders
from commonplace.core.items.ingest_jobs import IngestJobs
from commonplace.core.items.library import Library
from commonplace.core.items.overview import Overview
from commonplace.core.items.unread import Unread
from commonplace.core.items.uploads import Uploads
from commonplace.core.items.versions import Versions
from commonplace.core.jobs.worker import Handler, Worker
from commonplace.core.map.library_map import LibraryMap
from commonplace.core.memory.context import Context
from commonplace.core.memory.memories import Memory
from commonplace.core.memory.reflection import Reflection
from commonplace.core.people.accounts import Accounts
from commonplace.core.people.authorization import Access
from commonplace.core.people.invitations import Invitations
from commonplace.core.people.members import Members
from commonplace.core.people.passkeys import Passkeys
from commonplace.core.people.tokens import People
from commonplace.core.search.search import Search
from commonplace.core.services import Services
from commonplace.core.transfer.account_deletion import AccountDeletion
from commonplace.core.transfer.session_import import Sessions
from commonplace.core.work.graph import Graph
from commonplace.core.work.planning import Planning
from commonplace.core.work.tasks import Tasks
from commonplace.errors import Damaged
from commonplace.model import Caller
from commonplace.model.jobs import EMBED, INGEST, LINK, REMOVE, TRANSCRIBE, TRANSFORM
from commonplace.model.progress import Advance
from commonplace.ports import Captions, Soundtracks, Transcriber
from commonplace.settings import Settings
from commonplace.store import Store, load_beside, make_store

if TYPE_CHECKING:
    from commonplace.interfaces.http.app import HttpApp


class Closable(Protocol):
    async def close(self) -> None: ...


T = TypeVar("T", bound=Closable)


@asynccontextmanager
async def open_app(
    settings: Settings,
    *,
    workers: int = 0,
    own_store: Store | None = None,
    own_transcriber: Transcriber | None = None,
    own_captions: Captions | None = None,
    own_soundtracks: Soundtracks | None = None,
) -> AsyncIterator[Services]:
    """Open all services and run `workers` workers; close everything in reverse order."""
    async with AsyncExitStack() as stack:

        def closing(part: T) -> T:
            stack.push_async_callback(part.close)
            return part

        store: Store = closing(own_store or make_store(settings))
        await store.open()
        embedder, limits, wake = (
            closing(make_embedder(settings)),
            closing(make_limits(settings)),
            closing(make_wake(settings)),
        )
        fetcher, extractor, blobs = (
            closing(make_fetcher(settings)),
            closing(FileExtractor()),
            closing(make_blobs(settings)),
        )
        transcriber = closing(own_transcriber or make_transcriber(settings))
        local, chosen = (
            closing(make_transformer(replace(settings, transformer="local"))),
            closing(make_transformer(settings)),
        )
        access = Access(store, limits, settings)
        stack.push_async_callback(access.flush)
        soundtracks = own_soundtracks or YouTubeSound(fetcher)
        sources = Sources(
            fetcher, extractor, own_captions or YouTubeCaptions(fetcher), soundtracks, settings
        )
        pipeline, quota = IngestPipeline(embedder, local), Quota(store, settings)
        recordings = Recordings(fetcher, soundtracks, blobs, settings, duration)
        epics = Epics(store, embedder.stamp)
        library = Library(
            store,
            embedder,
            access,
            wake,
            sources,
            pipeline,
            quota,
            epics,
            auto_transforms=settings.transformer != "local",
        )
        folders = Folders(store, access, epics)
        similarity = SimilarityScale(embedder)
        duplicates, auto_linker = (
            Duplicates(store, embedder, similarity),
            AutoLinker(store, embedder, similarity),
        )
        entities = Entities(
            store,
            embedder,
            access,
            wake,
            pipeline,
            duplicates,
            auto_linker,
            epics,
            attended=workers > 0 or bool(settings.redis_url),
        )
        search, memory = (
            Search(store, embedder, access, settings),
            Memory(store, access, entities, embedder.stamp),
        )
        reflection = Reflection(
            store, access, embedder, duplicates, closing(make_reflector(settings)), entities, memory
        )
        handlers: dict[str, Handler] = {
            EMBED: EmbedJobs(store, embedder),
            LINK: LinkJobs(store, auto_linker),
            REMOVE: RemoveJobs(store, epics),
            TRANSFORM: TransformJobs(store, local, chosen),
            TRANSCRIBE: TranscribeJobs(
                store, transcriber, recordings, pipeline, quota, wake, embedder.stamp
            ),
        }
        unread = Unread(store, access, wake, library, embedder.stamp)
        uploads = Uploads(store, blobs, extractor, access, library, unread, recordings, settings)
        handlers[INGEST] = IngestJobs(store, library, unread, uploads)
        accounts, members = Accounts(store, access, limits), Members(store, access)
        tasks = Tasks(store, access, pipeline, wake, entities, epics, embedder.stamp)
        passkeys, graph = Passkeys(store, accounts), Graph(store, access, tasks)
        app = Services(
            settings,
            store,
            embedder,
            access,
            People(store, access),
            accounts,
            passkeys,
            members,
            Invitations(store, accounts, passkeys, members),
            AccountDeletion(store, accounts, uploads),
            library,
            folders,
            unread,
            search,
            uploads,
            Feeds(store, fetcher, extractor, access, library, folders, settings),
            Webhooks(wake, settings),
            tasks,
            Planning(store, access, search, graph, similarity),
            entities,
            Disks(store, embedder, access, search, Publisher(store, embedder, local)),
            graph,
            memory,
            reflection,
            Context(store, access, search, entities),
            DelayedDeletes(store, access),
            Overview(store, access, settings, embedder, quota),
            EntitySearch(search, entities),
            Sessions(store, access, entities, memory, reflection),
            Versions(store, access),
            Annotations(store, access, entities),
            LibraryMap(store, access, embedder),
            Worker(store, wake, handlers),
        )
        background = [asyncio.create_task(access.keep_flushing())]
        background += [
            asyncio.create_task(Worker(store, wake, handlers).run()) for _ in range(workers)
        ]
        if workers:
            background += [
                asyncio.create_task(app.feeds.keep_polling()),
                asyncio.create_task(app.uploads.run_cleanup()),
            ]
        stack.push_async_callback(_stop, background)
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
                checkpoint_sections=0,
            )
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
    try:
        store = make_store(settings)
        try:
            await store.open()
            await store.check()
            return await store.load(file, replace=force, advance=advance)
        finally:
            await store.close()
    except Damaged as damage:
        if not force and not damage.data.get("missing"):
            raise
    return await load_beside(settings, file, advance)


def make_asgi(services: Services) -> "HttpApp":
    """Build the HTTP application. The caller runs its lifespan and closes `services`."""
    from commonplace.interfaces.http.app import HttpApp  # interfaces are slow to import
    from commonplace.interfaces.http.metrics import Meters
    from commonplace.interfaces.mcp.http import mcp_endpoints
    from commonplace.interfaces.rest.app import rest_app
    from commonplace.interfaces.web.app import WebApp

    endpoints, running = mcp_endpoints(services)
    meters = Meters()
    return HttpApp(
        services, meters, rest_app(services, meters, running, WebApp(services)), endpoints
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
