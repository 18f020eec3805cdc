"""Items: add, list, read, change, delete, file, search."""

from typing import Annotated

from fastapi import Body, Query, Response
from pydantic import BeforeValidator, ConfigDict, Field
from typing_extensions import TypedDict

from commonplace.interfaces.actions import disks as disk_shapes, items as item_shapes
from commonplace.interfaces.actions.items import (
    NOT_BLANK,
    Ingest,
    Input,
    ModeName,
    SearchRequest,
    Title,
    not_blank,
    whole_number,
)
from commonplace.interfaces.http.gate import Json
from commonplace.interfaces.rest.routes import (
    OK,
    ApiRequest,
    AtRevision,
    Id,
    ItemId,
    Ok,
    api_router,
)
from commonplace.model import ItemFilter, Mode

router = api_router("items")

IdText = Annotated[str, Field(min_length=1, max_length=200)]
Tag = Annotated[
    str,
    Field(min_length=1, max_length=100, json_schema_extra=NOT_BLANK),
    BeforeValidator(not_blank),
]


class IngestBody(Ingest):
    # Agents are told in words; programs also get it as a schema (several MCP clients take no
    # oneOf).
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
            "model": item_shapes.AddResult,
            "description": "The library already has it: returns the existing item",
        }
    },
)
async def ingest(api: ApiRequest, body: IngestBody, response: Response) -> item_shapes.AddResult:
    """Takes the parameters of the MCP tool `add_to_knowledge`. Items with status `ready` are
    searchable."""
    added = await api.services.library.add(api.caller, body.to_draft())
    response.status_code = 201 if added.created else 200
    return item_shapes.add_result(added)


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
    items: list[item_shapes.Item]
    total: int
    page: int
    per_page: int


@router.get("/items", summary="List items, newest first")
async def list_items(api: ApiRequest, query: Annotated[ItemsQuery, Query()]) -> ItemsPage:
    where = ItemFilter(
        folder_id=query.folder_id, in_kb=query.in_kb, archived=query.archived, text=query.q
    )
    items, total = await api.services.library.page(
        api.caller, where, limit=query.per_page, offset=(query.page - 1) * query.per_page
    )
    return {
        "items": [item_shapes.item(item) for item in items],
        "total": total,
        "page": query.page,
        "per_page": query.per_page,
    }


@router.get("/items/{item_id}", summary="Read an item in full")
async def read_item(api: ApiRequest, item_id: ItemId) -> item_shapes.ItemInFull:
    return item_shapes.item_in_full(await api.services.library.read(api.caller, item_id))


CHANGEABLE = ("title", "tags", "category", "in_kb", "archived")


class ItemChanges(Input):
    """Fields that are left out or null do not change; at least one must change."""

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
    in_kb: Annotated[bool | None, Field(description="Whether it is searchable")] = None
    archived: bool | None = None
    expected_revision: Annotated[
        Annotated[int, Field(ge=1, le=2**31 - 1), BeforeValidator(whole_number)] | None,
        Field(
            description=("Change it only if it is still at this revision; otherwise 409 `conflict`")
        ),
    ] = None


@router.patch("/items/{item_id}", summary="Update an item")
async def change_item(api: ApiRequest, item_id: ItemId, body: ItemChanges) -> item_shapes.Item:
    changes = body.model_dump(exclude_none=True, exclude={"expected_revision"})
    if "tags" in changes:
        changes["tags"] = tuple(dict.fromkeys(changes["tags"]))
    return item_shapes.item(
        await api.services.library.update(api.caller, item_id, changes, body.expected_revision)
    )


@router.delete("/items/{item_id}", summary="Delete an item")
async def delete_item(api: ApiRequest, item_id: ItemId, expected_revision: AtRevision = None) -> Ok:
    await api.services.library.delete(api.caller, item_id, expected_revision)
    return OK


@router.post("/items/{item_id}/refresh", summary="Fetch an item's page again")
async def refresh_item(api: ApiRequest, item_id: ItemId) -> item_shapes.Item:
    """Replaces text and sections in one transaction; your title and tags stay. Other libraries keep
    their text; new additions of the URL get the new text."""
    return item_shapes.item(await api.services.library.refresh(api.caller, item_id))


@router.post("/items/{item_id}/retry", summary="Retry failed work of an item")
async def retry_item(api: ApiRequest, item_id: ItemId) -> item_shapes.Item:
    return item_shapes.item(await api.services.library.retry(api.caller, item_id))


class FilingRequest(Input):
    folder_ids: Annotated[list[IdText], Field(min_length=1, max_length=100)]


class FilingResult(Ok):
    added_folder_ids: list[str]


@router.post("/items/{item_id}/folders", summary="File an item in folders")
async def file_item(api: ApiRequest, item_id: ItemId, body: FilingRequest) -> FilingResult:
    """Every folder must be in the token's scope. Tokens for one folder file automatically and
    cannot use this."""
    return {
        "ok": True,
        "added_folder_ids": await api.services.folders.file(api.caller, item_id, body.folder_ids),
    }


@router.delete("/items/{item_id}/folders/{folder_id}", summary="Remove an item from a folder")
async def unfile_item(api: ApiRequest, item_id: ItemId, folder_id: Id) -> Ok:
    await api.services.folders.unfile(api.caller, item_id, folder_id)
    return OK


SEARCH_EXAMPLE = {
    "query": "How do I scope a token to multiple folders?",
    "limit": 5,
    "mode": "hybrid",
}


class SearchResult(disk_shapes.SectionHit, item_shapes.Provenance):
    pass


class SearchAnswer(TypedDict):
    query: str
    mode: ModeName
    hits: list[item_shapes.Hit]
    results: list[
        SearchResult
    ]  # the same passages as disks show them; those of tasks and the like are left out
    degraded: str | None


@router.post(
    "/search", summary="Search by meaning, by keywords, or both", response_model=SearchAnswer
)
async def search(
    api: ApiRequest, body: Annotated[SearchRequest, Body(examples=[SEARCH_EXAMPLE])]
) -> Response:
    """Takes the parameters of the MCP tool `search_knowledge_base`. `degraded` says why a result is
    incomplete."""
    found = await api.services.search.search(
        api.caller, body.query, limit=body.limit, mode=Mode(body.mode)
    )
    hits = item_shapes.hits(found.hits)
    results = await api.services.disks.hits(
        api.caller, [(hit.score, hit.passage) for hit in found.hits]
    )
    answer: SearchAnswer = {
        "query": found.query,
        "mode": found.mode.value,
        "hits": hits,
        "degraded": found.degraded,
        "results": [
            {**disk_shapes.section_hit(each), **item_shapes.provenance(each)} for each in results
        ],
    }
    return Json(answer)


@router.get("/jobs/{job_id}", summary="Read the status of a job")
async def read_job(api: ApiRequest, job_id: Id) -> item_shapes.Job:
    return item_shapes.job(await api.services.library.job(api.caller, job_id))


@router.post("/jobs/{job_id}/retry", summary="Retry a failed job")
async def retry_job(api: ApiRequest, job_id: Id) -> item_shapes.Job:
    return item_shapes.job(await api.services.library.retry_job(api.caller, job_id))
