"""Items: kept, listed, read, changed, deleted, filed, searched."""

from typing import Annotated

from fastapi import Body, Query, Response
from pydantic import BeforeValidator, ConfigDict, Field
from typing_extensions import TypedDict

from commonplace.interfaces.actions import disks, items as wire
from commonplace.interfaces.actions.items import (
    NOT_BLANK,
    Ingest,
    Input,
    ModeName,
    SearchRequest,
    Title,
    not_blank,
    whole,
)
from commonplace.interfaces.http.gate import Json
from commonplace.interfaces.rest.routes import OK, AtRevision, Desk, Id, ItemId, Ok, api_router
from commonplace.model import ItemFilter, Mode

router = api_router("items")

IdText = Annotated[str, Field(min_length=1, max_length=200)]
Tag = Annotated[
    str,
    Field(min_length=1, max_length=100, json_schema_extra=NOT_BLANK),
    BeforeValidator(not_blank),
]


class IngestBody(Ingest):
    # Agents are told in words; programs also get it as a schema (several MCP clients take no oneOf).
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "kind": "text",
                    "title": "Standup notes",
                    "text": "Decisions: ship the API docs. Folder rename deferred.",
                },
            ],
            "oneOf": [
                {
                    "properties": {
                        "kind": {"const": "text"},
                        "text": {"type": "string"},
                        "title": {"type": "string"},
                        "url": {"type": "null"},
                    },
                    "required": ["text", "title"],
                },
                {
                    "properties": {
                        "kind": {"const": "url"},
                        "url": {"type": "string", "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://"},
                        "text": {"type": "null"},
                    },
                    "required": ["url"],
                },
            ],
        }
    )


@router.post(
    "/ingest",
    status_code=201,
    summary="Add a text or the content of a URL",
    responses={
        200: {
            "model": wire.Kept,
            "description": "The library already has it: returns the existing item",
        }
    },
)
async def ingest(desk: Desk, body: IngestBody, response: Response) -> wire.Kept:
    """Takes the parameters of the MCP tool `add_to_knowledge`. Items with status `ready` are searchable."""
    added = await desk.services.library.add(desk.caller, body.draft())
    response.status_code = 201 if added.created else 200
    return wire.kept(added)


class ItemsQuery(Input):
    # Query values are text: here, and only here, "2" is a number and "true" is a boolean.
    model_config = ConfigDict(strict=False)

    folder_id: Annotated[str | None, Field(max_length=200)] = None
    in_kb: bool | None = None
    archived: Annotated[
        bool, Field(description="true: the archived items instead of the others")
    ] = False
    q: Annotated[
        str | None, Field(max_length=500, description="Found in title, address or tags")
    ] = None
    page: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    per_page: Annotated[int, Field(ge=1, le=100)] = 20


class ItemsPage(TypedDict):
    items: list[wire.Item]
    total: int
    page: int
    per_page: int


@router.get("/items", summary="List items, newest first")
async def list_items(desk: Desk, query: Annotated[ItemsQuery, Query()]) -> ItemsPage:
    where = ItemFilter(
        folder_id=query.folder_id, in_kb=query.in_kb, archived=query.archived, text=query.q
    )
    items, total = await desk.services.library.page(
        desk.caller, where, limit=query.per_page, offset=(query.page - 1) * query.per_page
    )
    return {
        "items": [wire.item(item) for item in items],
        "total": total,
        "page": query.page,
        "per_page": query.per_page,
    }


@router.get("/items/{item_id}", summary="Read an item in full")
async def read_item(desk: Desk, item_id: ItemId) -> wire.ItemInFull:
    return wire.item_in_full(await desk.services.library.read(desk.caller, item_id))


CHANGEABLE = ("title", "tags", "category", "in_kb", "archived")


class ItemChanges(Input):
    """What is left out, or null, stays as it is; something must change."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": [name], "properties": {name: {"not": {"type": "null"}}}}
                for name in CHANGEABLE
            ]
        }
    )

    title: Title | None = None
    tags: Annotated[list[Tag] | None, Field(max_length=50)] = None
    category: Annotated[
        Tag | None, Field(description="One of those that the transform chooses from, or your own")
    ] = None
    in_kb: Annotated[bool | None, Field(description="Whether search finds it")] = None
    archived: bool | None = None
    expected_revision: Annotated[
        Annotated[int, Field(ge=1, le=2**31 - 1), BeforeValidator(whole)] | None,
        Field(
            description=("Change it only if it is still at this revision; otherwise 409 `conflict`")
        ),
    ] = None


@router.patch("/items/{item_id}", summary="Update an item")
async def change_item(desk: Desk, item_id: ItemId, body: ItemChanges) -> wire.Item:
    changes = body.model_dump(exclude_none=True, exclude={"expected_revision"})
    if "tags" in changes:
        changes["tags"] = tuple(dict.fromkeys(changes["tags"]))
    return wire.item(
        await desk.services.library.update(desk.caller, item_id, changes, body.expected_revision)
    )


@router.delete("/items/{item_id}", summary="Delete an item")
async def delete_item(desk: Desk, item_id: ItemId, expected_revision: AtRevision = None) -> Ok:
    await desk.services.library.delete(desk.caller, item_id, expected_revision)
    return OK


@router.post("/items/{item_id}/refresh", summary="Fetch an item's page again")
async def refresh_item(desk: Desk, item_id: ItemId) -> wire.Item:
    """Replaces text and sections in one transaction; your title and tags stay. Other libraries keep
    their text; new additions of the URL get the new text."""
    return wire.item(await desk.services.library.refresh(desk.caller, item_id))


@router.post("/items/{item_id}/retry", summary="Retry failed work of an item")
async def retry_item(desk: Desk, item_id: ItemId) -> wire.Item:
    return wire.item(await desk.services.library.retry(desk.caller, item_id))


class Filing(Input):
    folder_ids: Annotated[list[IdText], Field(min_length=1, max_length=100)]


class Filed(Ok):
    added_folder_ids: list[str]


@router.post("/items/{item_id}/folders", summary="File an item in folders")
async def file_item(desk: Desk, item_id: ItemId, body: Filing) -> Filed:
    """Every folder must be in the token's scope. Tokens for one folder file automatically and cannot
    use this."""
    return {
        "ok": True,
        "added_folder_ids": await desk.services.folders.file(desk.caller, item_id, body.folder_ids),
    }


@router.delete("/items/{item_id}/folders/{folder_id}", summary="Remove an item from a folder")
async def unfile_item(desk: Desk, item_id: ItemId, folder_id: Id) -> Ok:
    await desk.services.folders.unfile(desk.caller, item_id, folder_id)
    return OK


SEARCH_EXAMPLE = {
    "query": "How do I scope a token to multiple folders?",
    "limit": 5,
    "mode": "hybrid",
}


class SearchResult(disks.Hit, wire.FromWhere):
    pass


class SearchAnswer(TypedDict):
    query: str
    mode: ModeName
    hits: list[wire.Hit]
    results: list[
        SearchResult
    ]  # the same passages as disks show them; those of tasks and the like are left out
    degraded: str | None


@router.post(
    "/search", summary="Search by meaning, by keywords, or both", response_model=SearchAnswer
)
async def search(
    desk: Desk, body: Annotated[SearchRequest, Body(examples=[SEARCH_EXAMPLE])]
) -> Response:
    """Takes the parameters of the MCP tool `search_knowledge_base`. `degraded` says why a result is
    incomplete."""
    found = await desk.services.search.search(
        desk.caller, body.query, limit=body.limit, mode=Mode(body.mode)
    )
    hits = wire.hits(found.hits)
    results = await desk.services.disks.hits(
        desk.caller, [(hit.score, hit.passage) for hit in found.hits]
    )
    answer: SearchAnswer = {
        "query": found.query,
        "mode": found.mode.value,
        "hits": hits,
        "degraded": found.degraded,
        "results": [{**disks.hit(each), **wire.from_where(each)} for each in results],
    }
    return Json(answer)


@router.get("/jobs/{job_id}", summary="Read the status of a job")
async def read_job(desk: Desk, job_id: Id) -> wire.Job:
    return wire.job(await desk.services.library.job(desk.caller, job_id))


@router.post("/jobs/{job_id}/retry", summary="Retry a failed job")
async def retry_job(desk: Desk, job_id: Id) -> wire.Job:
    return wire.job(await desk.services.library.retry_job(desk.caller, job_id))
