"""All services of the core in one object, and how they depend on each other."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from commonplace.core.disks.disks import Disks
from commonplace.core.disks.publishing import Publisher
from commonplace.core.entities.annotations import Annotations
from commonplace.core.entities.auto_links import AutoLinker, LinkJobs
from commonplace.core.entities.candidates import Candidates
from commonplace.core.entities.conflicts import Conflicts
from commonplace.core.entities.entities import Entities
from commonplace.core.entities.model_verdicts import Verdicts
from commonplace.core.entities.neighbours import Neighbours
from commonplace.core.events.events import Events, Poller
from commonplace.core.events.webhooks import Sender, WebhookJobs, Webhooks
from commonplace.core.ingest.pictures import Pictures
from commonplace.core.ingest.pipeline import EmbedJobs, IndexJobs, IngestPipeline, TransformJobs
from commonplace.core.ingest.sources import Sources
from commonplace.core.ingest.transcription import (
    Quota,
    Recordings,
    TranscribeJobs,
    TranscriptionWebhooks,
)
from commonplace.core.items.bulk_import import BulkImport
from commonplace.core.items.crawler import Crawler
from commonplace.core.items.crawls import Crawls
from commonplace.core.items.epic_status import Epics
from commonplace.core.items.feeds import Feeds
from commonplace.core.items.folders import Folders
from commonplace.core.items.library import Library
from commonplace.core.items.originals import Originals
from commonplace.core.items.overview import Overview
from commonplace.core.items.page_updates import PageUpdates
from commonplace.core.items.queued_items import IngestJobs, QueuedItems
from commonplace.core.items.site_reader import SiteReader
from commonplace.core.items.source_files import SourceFiles
from commonplace.core.items.tags import Tags
from commonplace.core.items.text_editor import TextEditor
from commonplace.core.items.trash import Trash
from commonplace.core.items.upload_checks import UploadLinks
from commonplace.core.items.uploads import Uploads
from commonplace.core.items.versions import Versions
from commonplace.core.jobs.worker import Handler, Worker
from commonplace.core.map.library_map import LibraryMap
from commonplace.core.memory.context import Context
from commonplace.core.memory.memories import Memory
from commonplace.core.memory.reflection import Reflection
from commonplace.core.people.accounts import Accounts
from commonplace.core.people.admin import Admin
from commonplace.core.people.authorization import Access
from commonplace.core.people.members import Invitations, Members
from commonplace.core.people.oauth import OAuth
from commonplace.core.people.oauth_clients import OAuthClients
from commonplace.core.people.passkeys import Passkeys
from commonplace.core.people.tokens import People
from commonplace.core.search.ask import Ask
from commonplace.core.search.model_answers import ModelAnswers
from commonplace.core.search.search import EntitySearch, Search
from commonplace.core.search.similarity import SimilarityScale
from commonplace.core.transfer.account_deletion import AccountDeletion
from commonplace.core.transfer.import_jobs import ImportJobs, Imports
from commonplace.core.transfer.program_import import ProgramImport
from commonplace.core.transfer.sample import Samples
from commonplace.core.transfer.session_import import Sessions
from commonplace.core.undo.recent_changes import RecentChanges
from commonplace.core.work.graph import Graph
from commonplace.core.work.planning import Planning
from commonplace.core.work.tasks import Tasks
from commonplace.model import (
    EMBED,
    IMPORT,
    INDEX,
    INGEST,
    LINK,
    TRANSCRIBE,
    TRANSFORM,
    WEBHOOK,
    Chapter,
)
from commonplace.ports import (
    Blobs,
    Embedder,
    Extractor,
    Fetcher,
    Limits,
    Model,
    ModelDownload,
    Reflector,
    Transcriber,
    Transformer,
    Videos,
    Wake,
)
from commonplace.settings import Settings
from commonplace.store import Store


@dataclass(frozen=True, slots=True)
class Services:
    settings: Settings
    store: Store
    embedder: Embedder
    models: ModelDownload
    access: Access
    people: People
    accounts: Accounts
    passkeys: Passkeys
    oauth: OAuth
    members: Members
    invitations: Invitations
    account_deletion: AccountDeletion
    library: Library
    bulk_import: BulkImport
    folders: Folders
    tags: Tags
    samples: Samples
    program_import: ProgramImport
    imports: Imports
    queued_items: QueuedItems
    search: Search
    uploads: Uploads
    originals: Originals
    files: SourceFiles
    page_updates: PageUpdates
    feeds: Feeds
    crawls: Crawls
    crawler: Crawler
    transcription_webhooks: TranscriptionWebhooks
    tasks: Tasks
    planning: Planning
    entities: Entities
    disks: Disks
    graph: Graph
    memory: Memory
    reflection: Reflection
    context: Context
    trash: Trash
    recent_changes: RecentChanges
    overview: Overview
    entity_search: EntitySearch
    ask: Ask
    sessions: Sessions
    versions: Versions
    annotations: Annotations
    library_map: LibraryMap
    admin: Admin
    events: Events
    webhooks: Webhooks
    worker: Worker


def build_services(
    settings: Settings,
    *,
    store: Store,
    embedder: Embedder,
    models: ModelDownload,
    limits: Limits,
    wake: Wake,
    fetcher: Fetcher,
    extractor: Extractor,
    blobs: Blobs,
    videos: Videos,
    transcriber: Transcriber,
    model: Model | None,
    local: Transformer,
    chosen: Transformer,
    reflector: Reflector,
    measure: Callable[[Path], tuple[float, tuple[Chapter, ...]]],
    require_speech: Callable[[], None],
    attended: bool,
) -> Services:
    """Connect the services with each other and with the adapters.

    `local`, `chosen`: the summarizer of this machine, and the model's if there is one. `measure`:
    measures a recording in seconds. `require_speech`: see Sources. `attended`: whether workers run
    here or can be woken.
    """
    access = Access(store, limits, settings)
    pictures = Pictures(fetcher, extractor)
    sources = Sources(fetcher, extractor, videos, settings, pictures, require_speech)
    pipeline, quota = IngestPipeline(store, embedder, local, wake), Quota(store, settings)
    recordings = Recordings(fetcher, videos, blobs, settings, measure)
    epics = Epics(store, pipeline, settings.trash_days == 0)
    editor = TextEditor(store, embedder, pipeline, wake)
    files = SourceFiles(store, access, blobs)
    library = Library(
        store,
        access,
        embedder,
        wake,
        sources,
        pipeline,
        quota,
        epics,
        editor,
        files,
        auto_transforms=model is not None,
    )
    folders = Folders(store, access, epics)
    trash = Trash(store, access, embedder, wake, epics, settings)
    similarity = SimilarityScale(embedder)
    neighbours = Neighbours(store, embedder, similarity)
    conflicts = Conflicts(store, Candidates(store, embedder, similarity), Verdicts(model))
    auto_linker = AutoLinker(store, neighbours)
    entities = Entities(
        store,
        access,
        embedder,
        wake,
        pipeline,
        conflicts,
        auto_linker,
        epics,
        attended=attended,
    )
    tasks = Tasks(store, access, pipeline, entities, epics)
    search, memory = (
        Search(store, access, embedder, settings, similarity),
        Memory(store, access, entities, tasks, conflicts),
    )
    reflection = Reflection(store, access, embedder, conflicts, reflector, entities, memory)
    sender = Sender(fetcher, settings)
    handlers: dict[str, Handler] = {
        EMBED: EmbedJobs(store, embedder),
        INDEX: IndexJobs(store, embedder),
        WEBHOOK: WebhookJobs(store, access, sender),
        LINK: LinkJobs(store, auto_linker),
        TRANSFORM: TransformJobs(store, local, chosen),
        TRANSCRIBE: TranscribeJobs(
            store,
            transcriber,
            recordings,
            pipeline,
            quota,
            wake,
            embedder.stamp,
            settings.keep_originals,
        ),
    }
    queued_items = QueuedItems(store, access, wake, library, files, embedder.stamp)
    originals = Originals(store, access, blobs, extractor, settings)
    uploads = Uploads(
        store,
        access,
        blobs,
        extractor,
        library,
        queued_items,
        recordings,
        UploadLinks(store, settings),
        originals,
        files,
        pictures,
        settings,
    )
    handlers[INGEST] = IngestJobs(
        store, library, queued_items, uploads.read_queued, uploads.discard
    )
    bulk_import = BulkImport(store, access, embedder, wake)
    feeds = Feeds(store, access, fetcher, extractor, library, folders, settings)
    sessions = Sessions(store, access, entities, memory, reflection)
    annotations = Annotations(store, access, entities, editor)
    site = SiteReader(store, fetcher, extractor, limits)
    program_import = ProgramImport(
        store,
        access,
        library,
        bulk_import,
        folders,
        annotations,
        uploads,
        feeds,
        sessions,
        extractor,
    )
    handlers[IMPORT] = ImportJobs(store, access, blobs, program_import)
    people, accounts = People(store, access), Accounts(store, access, limits)
    members = Members(store, access)
    clients = OAuthClients(store, limits, fetcher, settings)
    passkeys, graph = Passkeys(store, accounts), Graph(store, access, tasks)
    return Services(
        settings,
        store,
        embedder,
        models,
        access,
        people,
        accounts,
        passkeys,
        OAuth(store, access, clients, accounts, people, settings),
        members,
        Invitations(store, accounts, passkeys, members),
        AccountDeletion(store, accounts, uploads),
        library,
        bulk_import,
        folders,
        Tags(store, access),
        Samples(store, access, library, folders),
        program_import,
        Imports(store, access, blobs, wake, settings),
        queued_items,
        search,
        uploads,
        originals,
        files,
        PageUpdates(store, sources, files, editor, library),
        feeds,
        Crawls(store, access, folders),
        Crawler(store, access, extractor, sources, library, site),
        TranscriptionWebhooks(wake, settings),
        tasks,
        Planning(store, access, search, graph, similarity),
        entities,
        Disks(store, access, embedder, search, neighbours, Publisher(store, embedder)),
        graph,
        memory,
        reflection,
        Context(store, access, search, entities, similarity),
        trash,
        RecentChanges(store, access, pipeline, editor, epics, trash),
        Overview(store, access, settings, embedder, quota),
        EntitySearch(store, search),
        Ask(store, access, search, similarity, ModelAnswers(model) if model else None),
        sessions,
        Versions(store, access, editor),
        annotations,
        LibraryMap(store, access, embedder),
        Admin(store, access),
        Events(store, access, Poller(store)),
        Webhooks(store, access, sender),
        Worker(store, wake, handlers, settings.trash_days),
    )
