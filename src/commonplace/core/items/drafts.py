"""Shapes of an add: a draft or an imported record goes in, an added item comes out."""

from dataclasses import dataclass, replace
from datetime import datetime

from commonplace.core.ingest.sources import content_of, private_key
from commonplace.model import (
    Caller,
    Content,
    EntityType,
    Extracted,
    Item,
    new_id,
    new_public_id,
    now,
)


@dataclass(frozen=True, slots=True)
class Draft:
    """A new item as requested."""

    kind: str
    title: str = ""
    text: str = ""
    url: str | None = None
    in_kb: bool = True
    auto_transform: bool = False
    tags: tuple[str, ...] = ()
    entity_type: str = EntityType.DOCUMENT
    created_at: datetime | None = None  # for imports


@dataclass(frozen=True, slots=True)
class Record:
    """A complete item with its text, from an import. See Entry for `once` and `dated`."""

    item: Item
    text: str
    once: bool = True
    origin: str = ""  # from an export; otherwise that of the importing caller
    dated: bool = False  # whether the source has a date
    # whether a document without a summary gets one, with key points and tags
    describe: bool = True


@dataclass(frozen=True, slots=True)
class AddedItem:
    status: str  # ready, transcribing; queued when it is read later
    item: Item
    folder_id: str | None
    created: bool
    job_id: str | None = None  # of the remaining work


def text_content(caller: Caller, draft: Draft) -> Content:
    content = content_of(Extracted(draft.title, draft.text))
    return replace(content, key=private_key(caller, "text", content.hash))


def new_item(caller: Caller, draft: Draft, title: str) -> Item:
    return Item(
        id=new_id(),
        library_id=caller.library_id,
        public_id=new_public_id(),
        content_id="",
        entity_type=draft.entity_type,
        kind=draft.kind,
        title=title,
        url=draft.url,
        tags=draft.tags,
        in_kb=draft.in_kb or caller.kb_only,
        created_by=caller.token_id,
        origin=caller.origin(draft.kind),
        created_at=draft.created_at or now(),
    )
