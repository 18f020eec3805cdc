"""Actions on items: add, search, read, list, change, delete, versions and jobs."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import orjson
from pydantic import BeforeValidator

from commonplace import model
from commonplace.interfaces.actions.action import Action, Tool
from commonplace.interfaces.actions.fields import (
    NOT_BLANK,
    WHOLE,
    Cli,
    ExpectedRevision,
    FromSection,
    InKb,
    Input,
    ItemId,
    MaxChars,
    OneOf,
    Page,
    PerPage,
    Reference,
    Title,
    Word,
    Words,
    about,
    chars,
    number,
    patch_of,
)
from commonplace.interfaces.actions.ingest import Ingest, IngestSource
from commonplace.interfaces.actions.media import ERROR, MEDIA, PROGRESS, SOURCE, thumbnail_url
from commonplace.interfaces.actions.shapes import (
    Call,
    Field,
    Listing,
    Shape,
    compact,
    many,
    said,
    to_the_second,
    within,
)
from commonplace.model import Caller, ItemFilter, Json

if TYPE_CHECKING:
    from commonplace.core.items.item_parts import ItemPart
    from commonplace.core.services import Services

FETCH_CHARS = 40_000  # of a text over MCP, unless the call says otherwise
SUMMARY_CHARS = 160  # of a summary in a list


# -- inputs


class ReadItem(Input):
    item_id: ItemId
    from_section: FromSection = 0
    max_chars: MaxChars | None = None


class OneItem(Input):
    item_id: ItemId


class OneItemAt(OneItem):
    expected_revision: ExpectedRevision = None


class DeleteItem(OneItemAt):
    permanent: Annotated[bool, about("Delete it for good, not to the trash")] = False


class Paged(Input):
    page: Page = 1
    per_page: PerPage = 20

    @property
    def limit(self) -> int:
        return self.per_page

    @property
    def offset(self) -> int:
        return (self.page - 1) * self.per_page


_CHOICES = {"true": True, "false": False, "any": None}


def _choose(value: object) -> object:
    if value is None or isinstance(value, bool):
        return value
    if (word := str(value).lower()) not in _CHOICES:
        raise ValueError("must be true, false or any")
    return _CHOICES[word]


Choice = Annotated[bool | None, BeforeValidator(_choose)]


class ListItems(Paged):
    folder_id: Annotated[Reference | None, about("Only of this folder"), Cli("--folder")] = None
    in_kb: Annotated[Choice, about("true, false or any"), Cli(hidden=True)] = None
    archived: Annotated[Choice, about("Only archived ones (true), or all (any)")] = False
    q: Annotated[str | None, chars(0, 500, "Words in the title, tags or URL"), Cli("--query")] = (
        None
    )

    @property
    def where(self) -> ItemFilter:
        return ItemFilter(
            folder_id=self.folder_id, in_kb=self.in_kb, archived=self.archived, text=self.q
        )


class RecentItems(Input):
    limit: Annotated[int, number(1, 100, "How many items to return"), WHOLE] = 20


class ItemFields(Input):
    title: Title
    text: Annotated[
        str,
        chars(1, 500_000, "Not of tasks, epics and projects. The old text becomes a version"),
        NOT_BLANK,
    ]
    tags: Annotated[Words, about("Tags, in the place of those that are there"), Cli("--tag")]
    category: Annotated[
        Word | None, about("A category of your own, or one that the transform chooses")
    ]
    in_kb: InKb
    archived: Annotated[bool, about("Whether it is archived")]


ChangeItem = patch_of(
    "ChangeItem",
    ItemFields,
    "title text tags category in_kb archived",
    item_id=(ItemId, ...),
    expected_revision=(ExpectedRevision, None),
)


# -- answers

TRUNCATED = "The source has more text than the 5 MB that are kept of one"
CUT = "This section is cut. Raise max_chars to read all of it."
SOURCE_STATUS = (
    "What the last refresh found: unchanged, changed, moved, gone or unreachable; null: none yet"
)
ORIGIN = "you (a person), agent (a token), web (fetched) or upload (a file)"

ADDED = Shape(
    "AddedItem",
    "commonplace.core.items.drafts.AddedItem",
    status=said(Annotated[str, OneOf(("ready", "transcribing"))], "status"),
    user_item_id="item.id",
    content_id="item.content_id",
    folder_id="folder_id",
    job_id="job_id",
    truncated=Field(
        bool, lambda added, call: added.item.truncated or None, TRUNCATED, optional=True
    ),
)
ADDED_TOOL = Shape(
    "AddedItemByTool",
    "commonplace.core.items.drafts.AddedItem",
    "status",
    user_item_id="item.id",
    content_id="item.content_id",
    folder_id="folder_id",
)
ITEM = Shape(
    "Item",
    model.Item,
    "id public_id entity_id content_id entity_type kind title url summary key_points tags "
    "category visibility in_kb archived status_reason transcription_status word_count truncated "
    "revision published_at created_at updated_at source_checked_at",
    user_item_id="id",
    status="state",
    folder_ids="folders",
    origin=said(str, "origin", ORIGIN),
    source_status=said(str | None, "source_status", SOURCE_STATUS),
    source_status_since="source_status_since",
    **MEDIA,
)
LISTED_ITEM = Shape(
    "ListedItem",
    model.Item,
    id="entity_id",  # half as long as the UUID, and accepted wherever that is
    type="entity_type",
    title="title",
    status=Field(str | None, lambda item, call: None if item.state == "ready" else item.state),
    status_reason="status_reason",
    summary=Field(str | None, lambda item, call: written_summary(item)),
    created_at=Field(datetime, lambda item, call: to_the_second(item.created_at)),
)
FOLDER_REF = Shape("FolderRef", model.Folder, "id name")
PART = "commonplace.core.items.item_parts.ItemPart"
SECTION_PART = "commonplace.core.items.item_parts.SectionPart"
SECTION = Shape(
    "ItemSection",
    SECTION_PART,
    "heading start end",
    index="position",
    locator=Field(Json, lambda section, call: section.locator or None, "Page or seconds", True),
)
FULL_SECTION = Shape("FullItemSection", SECTION_PART, "word_count key_points", base=SECTION)
FULL_ITEM = Shape(
    "FullItem",
    PART,
    "text next_section",
    base=ITEM,
    at="item",
    sections=many(FULL_SECTION, "sections", "Those of `text`, with offsets"),
    folders=many(FOLDER_REF, "folders"),
    transcription_progress=PROGRESS,
    transcription_error=ERROR,
    **SOURCE,
    ai_generated=Field(
        bool,
        lambda part, call: bool(part.item.metadata.get("ai_generated")),
        "Whether a model wrote summary and key points",
    ),
    cost_usd=Field(
        float | None,
        lambda part, call: part.item.metadata.get("cost_usd", 0.0),
        "Cost in US dollars; null if unknown",
    ),
)
FULL_ITEM_TOOL = Shape(  # what agents need of it
    "ItemByTool",
    PART,
    **within("item", "id content_id title kind url"),
    text="text",
    sections=Field(list[Json], lambda part, call: brief_sections(part, call)),
    next_section="next_section",
    cut=Field(bool, lambda part, call: part.cut or None, CUT, True),
    **within("item", "summary key_points tags in_kb"),
    folders=many(FOLDER_REF, "folders"),
    status=Field(str | None, lambda part, call: _unread(part.item)),
    transcription_status="item.transcription_status",
    transcription_progress=PROGRESS,
    transcription_error=ERROR,
    truncated=Field(bool, lambda part, call: part.item.truncated or None, TRUNCATED, True),
    author=Field(str | None, lambda part, call: part.item.author or None),
    language=Field(str | None, lambda part, call: part.item.text_language or None),
    published_at="item.published_at",
    thumbnail_url=Field(
        str, lambda part, call: thumbnail_url(part.item, call), "A small picture", optional=True
    ),
    created_at="item.created_at",
)
WEAK = "Nothing passes the threshold: these are only the closest"
DEGRADED = said(str | None, "degraded", "Why the result is incomplete; null if it is complete")


def shorten(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def written_summary(item: model.Item) -> str | None:
    """Return the summary for a list of titles, if a model wrote it. Those that are taken from the
    text tell agents less than they cost."""
    written = item.summary if item.metadata.get("ai_generated") else ""
    return shorten(written, SUMMARY_CHARS) or None


def brief_sections(part: "ItemPart", call: Call) -> list[Json]:
    """Return where the sections of a part are, with headings only where they change."""
    shown: list[Json] = []
    heading = ""
    for section in part.sections:
        told: Json = {"index": section.position, "start": section.start, "end": section.end}
        if section.heading != heading:
            heading = told["heading"] = section.heading
        if section.locator:
            told["locator"] = section.locator
        shown.append(told)
    return shown


# -- texts of answers, for agents and people


def on_one_line(title: str) -> str:
    """Remove line breaks from a title: the rest must not look like the next entry."""
    return " ".join(title.split())


def list_line(entry: Json) -> str:
    """Return an entry of a list on one line: id (it begins with the type), title, status, date."""
    facts = [entry["status"], entry["created_at"][:10]]
    return f"- [{entry['id']}] {on_one_line(entry['title'])} ({', '.join(filter(None, facts))})"


def as_json(answer: Json, value: Any) -> str:
    return orjson.dumps(compact(answer)).decode()


def _item_text(item: Json, value: Any) -> str:
    facts = {
        "Source": item["url"],
        "Author": on_one_line(item["author"] or ""),
        "Published": str(item["published_at"] or "")[:10],
        "Added": item["created_at"][:10],
        "Tags": ", ".join(item["tags"]),
        "Folders": ", ".join(folder["name"] for folder in item["folders"]),
        "Status": item["status"],
        "Transcription": _transcription(item),
    }
    parts = [
        f"# {on_one_line(item['title'])}",
        "\n".join(f"- {name}: {value}" for name, value in facts.items() if value),
    ]
    if item["summary"]:
        parts.append(f"## Summary\n\n{item['summary']}")
    if item["key_points"]:
        parts.append("## Key points\n\n" + "\n".join(f"- {each}" for each in item["key_points"]))
    parts += ["---", item["text"]]
    if value.cut:
        parts.append(CUT)
    if item["next_section"] is not None:
        parts.append(f"Continues: get_item(item_id, from_section={item['next_section']})")
    return "\n\n".join(parts)


def _unread(item: model.Item) -> str | None:
    """Return the state of an item whose source has not been read."""
    return f"failed: {item.status_reason}" if item.ingest_status == "failed" else item.ingest_status


def _transcription(item: Json) -> str | None:
    status, progress = item["transcription_status"], item["transcription_progress"]
    if status == "failed":
        return f"failed: {item['transcription_error']}"
    return status if progress is None or status == "queued" else f"running, {progress:.0%} done"


def _recent_text(recent: Json, value: Any) -> str:
    return "\n".join(map(list_line, recent["items"])) or "Nothing here yet."


# -- what is done


async def _read(services: "Services", caller: Caller, args: ReadItem) -> "ItemPart":
    from commonplace.core.items.item_parts import part_of

    full = await services.library.read(caller, args.item_id)
    return part_of(full, args.from_section, args.max_chars)


async def _reread(services: "Services", caller: Caller, item: model.Item) -> "ItemPart":
    from commonplace.core.items.item_parts import part_of

    return part_of(await services.library.reread(caller, item))


ACTIONS = (
    Action(
        "add_to_knowledge",
        "Add a text or the content of a URL",
        Ingest,
        "library.add",
        ADDED,
        "POST /api/v1/ingest",
        tool=Tool(
            "Save a URL (web page, YouTube, podcast, feed, audio) or a text with a title to the "
            "user's library. status=ready: searchable now; transcribing: its text follows. Saving "
            "the same URL again returns the existing item. Files: REST /api/v1/uploads.",
            as_json,
            input=IngestSource,
            shape=ADDED_TOOL,
            open_world=True,
        ),
        status=201,
        also={200: "The library already has it: returns the existing item"},
        status_of=lambda added: 201 if added.created else 200,
        example={
            "kind": "text",
            "title": "Standup notes",
            "text": "Decisions: ship the API docs. Folder rename deferred.",
        },
    ),
    Action(
        "list_items",
        "List items, newest first",
        ListItems,
        "library.page",
        Listing("items", ITEM, paged=True),
        "GET /api/v1/items",
        cli="list",
    ),
    Action(
        "list_recent",
        "List recent items",
        RecentItems,
        "library.recent",
        Shape("RecentItems", None, items=many(LISTED_ITEM, "")),
        tool=Tool("List the newest items of the user's library.", _recent_text),
    ),
    Action(
        "get_item",
        "Read an item",
        ReadItem,
        "library.read",
        FULL_ITEM,
        "GET /api/v1/items/{item_id}",
        cli="get",
        tool=Tool(
            "Read one item: its text, summary, key points, tags, folders and transcription "
            "status. Long items come in parts: continue with from_section=next_section.",
            _item_text,
            shape=FULL_ITEM_TOOL,
            shown="id title text sections next_section",
            defaults={"max_chars": FETCH_CHARS},
        ),
        run=_read,
    ),
    Action(
        "update_item",
        "Update an item",
        ChangeItem,
        "library.update",
        FULL_ITEM,
        "PATCH /api/v1/items/{item_id}",
        expand=_reread,
    ),
    Action(
        "delete_item",
        "Delete an item",
        DeleteItem,
        "library.delete",
        route="DELETE /api/v1/items/{item_id}",
        cli="delete",
        description="Moves it to the trash. `permanent=true` needs a whole-library token.",
    ),
    Action(
        "refresh_item",
        "Fetch an item's page again",
        OneItem,
        "library.refresh",
        ITEM,
        "POST /api/v1/items/{item_id}/refresh",
        cli="refresh",
        description="Asks whether the page has changed; if so, replaces text and sections in one "
        "transaction; your title and tags stay. "
        "A text that was edited stays too, and that of the page becomes a version. "
        "Other libraries keep their text; new additions of the URL get the new text.",
    ),
)
