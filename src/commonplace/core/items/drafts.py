"""Shapes of an add: a draft or an imported record goes in, an added item comes out. And changes
that follow from other changes of an item."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from commonplace.core.ingest.sources import content_of, private_key
from commonplace.errors import Conflict
from commonplace.model import (
    Caller,
    Content,
    EntityType,
    Extracted,
    Item,
    Json,
    new_id,
    new_public_id,
    now,
)
from commonplace.model.tags import choose_tags
from commonplace.model.workflow import MACHINES, enter_state
from commonplace.text.front_matter import LONGEST_LINE, LONGEST_TITLE, Note, first_line


@dataclass(frozen=True, slots=True)
class Draft:
    """A new item as requested."""

    kind: str
    title: str = ""
    text: str = ""
    url: str | None = None
    html: str = ""  # the page at `url`, as a browser showed it
    in_kb: bool = True
    auto_transform: bool = False
    tags: tuple[str, ...] = ()
    entity_type: str = EntityType.DOCUMENT
    created_at: datetime | None = None  # for imports
    metadata: Json = field(default_factory=dict)


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


def note_draft(note: Note, title: str = "", tags: Sequence[str] = (), in_kb: bool = True) -> Draft:
    """Draft an item of a person's note, which its front matter describes."""
    title = title.strip() or note.title.strip() or first_line(note.text)
    about = {
        "author": note.author,
        "published_at": note.created_at.isoformat() if note.created_at else None,
        "front_matter": note.others,
    }
    return Draft(
        "text",
        title[:LONGEST_TITLE] or " ".join(note.text.split())[:LONGEST_LINE],
        note.text,
        in_kb=in_kb and note.front.get("in_kb") is not False,
        tags=tuple(dict.fromkeys((*note.tags, *tags))),
        metadata={name: value for name, value in about.items() if value},
    )


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
        metadata=draft.metadata,
    )


Changes = dict[str, Any]


def require_revision(item: Item, expected: int | None) -> None:
    """Raise Conflict if the item is not at the revision that the caller has read."""
    if expected not in (None, item.revision):
        raise Conflict(
            f"The item is at revision {item.revision}, not {expected}. Read it again first.",
            revision=item.revision,
        )


def derive_changes(item: Item, changes: Changes) -> Changes:
    if "archived" in changes:
        changes = changes | _archive_changes(item, changes["archived"])
    if "category" in changes:
        changes = changes | {"category": changes["category"] or ""}
    return changes | _given(replace(item, metadata=changes.get("metadata", item.metadata)), changes)


def _archive_changes(item: Item, archived: bool) -> Changes:
    """Archive an item, or restore it. For tasks and epics that is a transition and is checked."""
    machine = MACHINES.get(item.entity_type)
    if machine is None or archived == (machine.state(item) == "archived"):
        return {}
    machine.check(item, "archived" if archived else machine.start)
    return enter_state(item, "archived")


def _given(item: Item, changes: Changes) -> Changes:
    """Remember that somebody chose tags or category, so that summaries do not replace them."""
    own = choose_tags(item, changes["tags"]) if "tags" in changes else {}
    if "category" in changes and not item.metadata.get("category_given"):
        own["metadata"] = item.metadata | {"category_given": True}
    return own
