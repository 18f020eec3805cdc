"""All services of the application in one object, filled by app.py."""

from dataclasses import dataclass

from commonplace.core.disks.disks import Disks
from commonplace.core.entities.annotations import Annotations
from commonplace.core.entities.entities import Entities
from commonplace.core.entities.search import EntitySearch
from commonplace.core.ingest.transcription_webhook import Webhooks
from commonplace.core.items.delayed_delete import DelayedDeletes
from commonplace.core.items.feeds import Feeds
from commonplace.core.items.folders import Folders
from commonplace.core.items.library import Library
from commonplace.core.items.overview import Overview
from commonplace.core.items.unread import Unread
from commonplace.core.items.uploads import Uploads
from commonplace.core.items.versions import Versions
from commonplace.core.jobs.worker import Worker
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
from commonplace.core.transfer.account_deletion import AccountDeletion
from commonplace.core.transfer.session_import import Sessions
from commonplace.core.work.graph import Graph
from commonplace.core.work.planning import Planning
from commonplace.core.work.tasks import Tasks
from commonplace.ports import Embedder
from commonplace.settings import Settings
from commonplace.store import Store


@dataclass(frozen=True, slots=True)
class Services:
    settings: Settings
    store: Store
    embedder: Embedder
    access: Access
    people: People
    accounts: Accounts
    passkeys: Passkeys
    members: Members
    invitations: Invitations
    account_deletion: AccountDeletion
    library: Library
    folders: Folders
    unread: Unread
    search: Search
    uploads: Uploads
    feeds: Feeds
    webhooks: Webhooks
    tasks: Tasks
    planning: Planning
    entities: Entities
    disks: Disks
    graph: Graph
    memory: Memory
    reflection: Reflection
    context: Context
    delayed_deletes: DelayedDeletes
    overview: Overview
    entity_search: EntitySearch
    sessions: Sessions
    versions: Versions
    annotations: Annotations
    library_map: LibraryMap
    worker: Worker
