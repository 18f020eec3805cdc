"""Everything that interfaces may ask of the application: one object, filled by app.py."""

from dataclasses import dataclass

from commonplace.core.disks.disks import Disks
from commonplace.core.entities.annotations import Annotating
from commonplace.core.entities.entities import Entities
from commonplace.core.entities.search import Finding
from commonplace.core.ingest.transcription_webhook import Webhooks
from commonplace.core.items.delayed_delete import Removals
from commonplace.core.items.feeds import Feeds
from commonplace.core.items.library import Library
from commonplace.core.items.overview import Overview
from commonplace.core.items.unread import Unread
from commonplace.core.items.uploads import Uploads
from commonplace.core.items.versions import Versions
from commonplace.core.jobs.worker import Worker
from commonplace.core.map.library_map import Mapping
from commonplace.core.memory.context import Context
from commonplace.core.memory.memories import Memory
from commonplace.core.memory.reflection import Reflection
from commonplace.core.people.accounts import Accounts
from commonplace.core.people.authorization import Access
from commonplace.core.people.invitations import Joining
from commonplace.core.people.members import Members
from commonplace.core.people.passkeys import Passkeys
from commonplace.core.people.tokens import People
from commonplace.core.search.search import Search
from commonplace.core.transfer.account_deletion import Leaving
from commonplace.core.transfer.session_import import Sessions
from commonplace.core.work.graph import Graph
from commonplace.core.work.planning import Planning
from commonplace.core.work.tasks import Work
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
    joining: Joining
    leaving: Leaving
    library: Library
    unread: Unread
    search: Search
    uploads: Uploads
    feeds: Feeds
    webhooks: Webhooks
    work: Work
    planning: Planning
    entities: Entities
    disks: Disks
    graph: Graph
    memory: Memory
    reflection: Reflection
    context: Context
    removals: Removals
    overview: Overview
    finding: Finding
    sessions: Sessions
    versions: Versions
    annotating: Annotating
    mapping: Mapping
    worker: Worker
