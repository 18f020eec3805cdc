"""Tools of the knowledge endpoint: add, search, read an item, list recent items."""

from typing import Annotated

from pydantic import BeforeValidator, Field
from typing_extensions import TypedDict

from commonplace.core.services import Services
from commonplace.interfaces.actions import items as item_shapes
from commonplace.interfaces.mcp.tools import Tool, as_text
from commonplace.model import Caller, Capability, FullItem, Item, Mode, SearchResult
from commonplace.model.progress import Progress, no_progress


class McpAddResult(TypedDict):
    status: Annotated[
        str,
        Field(
            json_schema_extra={"enum": ["ready", "transcribing"]},
            description="transcribing: call get_item until transcription_status is done",
        ),
    ]
    user_item_id: Annotated[str, Field(description="Id for get_item")]
    content_id: str
    folder_id: Annotated[
        str | None, Field(description="Folder of the item, if the token has exactly one")
    ]


async def _add(
    services: Services, caller: Caller, args: item_shapes.Ingest, tell: Progress = no_progress
) -> tuple[str, McpAddResult]:
    added = await services.library.add(caller, args.to_draft(), tell)
    answer: McpAddResult = {
        "status": added.status,
        "user_item_id": added.item.id,
        "content_id": added.item.content_id,
        "folder_id": added.folder_id,
    }
    return as_text(answer), answer


class SearchHits(TypedDict):
    query: str
    mode: item_shapes.ModeName
    hits: list[item_shapes.Hit]
    degraded: Annotated[
        str | None, Field(description="Why the result is incomplete; null if it is complete")
    ]


async def _search(
    services: Services, caller: Caller, args: item_shapes.SearchRequest
) -> tuple[str, SearchHits]:
    found = await services.search.search(caller, args.query, limit=args.limit, mode=Mode(args.mode))
    return _hits_as_text(found), {
        "query": found.query,
        "mode": found.mode.value,
        "hits": item_shapes.hits(found.hits),
        "degraded": found.degraded,
    }


def _hits_as_text(found: SearchResult) -> str:
    lines = [f"Note: {found.degraded}"] if found.degraded else []
    if not found.hits:
        lines.append("Nothing found.")
    for hit in found.hits:
        lines.append(f"{hit.rank}. ({hit.score:.2f}) {_on_one_line(hit.passage.title)}")
        lines += [
            "   " + line if line.strip() else line
            for line in f'"...{hit.passage.text.strip()}..."'.split("\n")
        ]
        lines.append(f"   item_id: {hit.passage.item_id}")
    return "\n".join(lines)


def _on_one_line(title: str) -> str:
    """Remove line breaks from a title: the rest must not look like the next entry."""
    return " ".join(title.split())


class GetItem(item_shapes.Input):
    item_id: Annotated[
        str,
        Field(
            min_length=1, max_length=200, description="Id of an item, as returned by other tools"
        ),
    ]


async def _get(
    services: Services, caller: Caller, args: GetItem
) -> tuple[str, item_shapes.ItemInFull]:
    reading = await services.library.read(caller, args.item_id)
    return _item_as_markdown(reading), item_shapes.item_in_full(reading)


def _item_as_markdown(reading: FullItem) -> str:
    item = reading.item
    facts = {
        "Source": item.url,
        "Added": item.created_at.date().isoformat(),
        "Tags": ", ".join(item.tags),
        "Folders": ", ".join(folder.name for folder in reading.folders),
        "Status": _unread(item),
        "Transcription": _transcription(reading),
    }
    parts = [
        f"# {_on_one_line(item.title)}",
        "\n".join(f"- {name}: {value}" for name, value in facts.items() if value),
    ]
    if item.summary:
        parts.append(f"## Summary\n\n{item.summary}")
    if item.key_points:
        parts.append("## Key points\n\n" + "\n".join(f"- {point}" for point in item.key_points))
    return "\n\n".join([*parts, "---", reading.text])


def _unread(item: Item) -> str | None:
    """Return the state of an item whose source has not been read."""
    return f"failed: {item.status_reason}" if item.ingest_status == "failed" else item.ingest_status


def _transcription(reading: FullItem) -> str | None:
    job = reading.transcription
    if job is None or reading.item.transcription_status == "queued":
        return reading.item.transcription_status
    return (
        f"failed: {job.error}"
        if reading.item.transcription_status == "failed"
        else f"running, {job.progress:.0%} done"
    )


class ListRecent(item_shapes.Input):
    limit: Annotated[
        int,
        Field(ge=1, le=100, description="How many items to return"),
        BeforeValidator(item_shapes.whole_number),
    ] = 20


class RecentItems(TypedDict):
    items: list[item_shapes.Item]


async def _recent(services: Services, caller: Caller, args: ListRecent) -> tuple[str, RecentItems]:
    items = await services.library.recent(caller, args.limit)
    text = "\n".join(_recent_line(number, item) for number, item in enumerate(items, 1))
    return text or "Nothing here yet.", {"items": [item_shapes.item(item) for item in items]}


def _recent_line(number: int, item: Item) -> str:
    unread = f", {_on_one_line(said)}" if (said := _unread(item)) else ""
    return (
        f"{number}. {_on_one_line(item.title)} ({item.created_at.date().isoformat()}{unread})\n   "
        f"item_id: {item.id}"
    )


TOOLS = (
    Tool(
        "search_knowledge_base",
        "Search the knowledge base",
        "Search the user's library of saved pages, texts, files and transcripts, and get the "
        "passages that match "
        "best. Use it before answering from memory whenever the user may have saved something on "
        "the subject. The "
        "default mode, hybrid, suits most questions; use keyword for exact strings such as "
        "function names and error "
        "codes, semantic for paraphrases. Each hit has an item_id: pass it to get_item to read the "
        "whole item.",
        Capability.READ,
        item_shapes.SearchRequest,
        SearchHits,
        _search,
    ),
    Tool(
        "add_to_knowledge",
        "Add to the knowledge base",
        "Add something to the user's library: a text (kind=text, with a title) or the content of "
        "a URL (kind=url). It is searchable when the answer says status=ready; with "
        "status=transcribing, call get_item until transcription_status is done. Adding something "
        "that the library already has returns the existing item. To change, delete or file items,"
        " or to upload files, use the REST API.",
        Capability.WRITE,
        item_shapes.Ingest,
        McpAddResult,
        _add,
        open_world=True,
        telling=_add,
    ),
    Tool(
        "get_item",
        "Read an item",
        "Read one item of the user's library in full, as Markdown: its text, summary, key points,"
        " tags and folders. Use it when a passage from search_knowledge_base is not enough, or to"
        " check the progress of a transcription.",
        Capability.READ,
        GetItem,
        item_shapes.ItemInFull,
        _get,
    ),
    Tool(
        "list_recent",
        "List recent items",
        "List the items that were added to the user's library last, newest first. Use it for an "
        "overview, or to find something that was just added.",
        Capability.READ,
        ListRecent,
        RecentItems,
        _recent,
    ),
)
