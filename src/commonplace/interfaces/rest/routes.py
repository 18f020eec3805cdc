"""Shared parts of the routes: services and caller, ids, error responses."""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.routing import APIRoute
from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from commonplace.core.services import Services
from commonplace.interfaces.actions.items import check_text
from commonplace.interfaces.http.gate import Json
from commonplace.model import Caller


@dataclass(frozen=True, slots=True)
class ApiRequest:
    services: Services
    caller: Caller


class ApiRoute(APIRoute):
    """A route whose function gets an ApiRequest and whose answer is serialized as it is.

    Its annotation is the schema, checked by mypy. FastAPI's injection and validation take longer
    than reading an item.
    """

    def __init__(self, path: str, endpoint: Callable[..., Awaitable[Any]], **options: Any) -> None:
        self._options = options
        super().__init__(
            path,
            _with_request(endpoint, options.get("status_code") or 200),
            **options | {"response_model": None},
        )

    def for_schema(self) -> APIRoute:
        """Return the route with its response schema: building them all takes a tenth of a start."""
        return APIRoute(self.path, self.endpoint, **self._options)


def _with_request(
    endpoint: Callable[..., Awaitable[Any]], status: int
) -> Callable[..., Awaitable[Response]]:
    signature = inspect.signature(endpoint)
    takes_api, takes_request = "api" in signature.parameters, "request" in signature.parameters

    @wraps(endpoint)
    async def run(request: Request, **values: Any) -> Response:
        if takes_api:
            values["api"] = ApiRequest(request.app.state.services, request.state.caller)
        if takes_request:
            values["request"] = request
        answer = await endpoint(**values)
        if isinstance(answer, Response):
            return answer
        told = values.get("response")  # where the function says by itself which status it is
        return Json(answer, (told and told.status_code) or status)

    asked = inspect.Parameter(
        "request", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Request
    )
    others = [each for name, each in signature.parameters.items() if name not in ("api", "request")]
    run.__signature__ = signature.replace(parameters=[asked, *others])  # type: ignore[attr-defined]
    return run


_Id = Annotated[str, Field(max_length=200), AfterValidator(check_text)]
ItemId = Annotated[
    _Id,
    Path(
        description=(
            "An item's id in any of its spellings: UUID, public_id, or `document_<public_id>`"
        )
    ),
]
Id = Annotated[_Id, Path()]
AtRevision = Annotated[
    int | None,
    Query(
        ge=1,
        le=2**31 - 1,
        description=(
            "Only if it is still at this revision; otherwise 409 `conflict`, with the present one"
        ),
    ),
]


class Problem(TypedDict):
    error: str
    message: str


class Ok(TypedDict):
    ok: Literal[True]


OK: Ok = {"ok": True}

_ERRORS = {
    400: "The body is not JSON",
    401: "`unauthorized`: no token, or one that is unknown, expired or revoked",
    402: "`quota_exceeded`, with `resource`, `tier` and `cap_per_month`",
    403: (
        "`capability_denied`, with what is `required` and what the token has (`have`); or "
        "`forbidden_scope`"
    ),
    404: "`not_found`: not there, or not for this token",
    409: "`name_taken`; or `conflict`: somebody else was first",
    413: "`payload_too_large`",
    415: "`unsupported_media_type`: the body is not sent as `application/json`",
    421: "`unknown_host`: see COMMONPLACE_ALLOWED_HOSTS",
    422: (
        "`invalid_request`, in a sentence; or `ingest_failed`: the source could not be read, and "
        "nothing was stored"
    ),
    429: "`rate_limit_exceeded` with `retry_after`, or `rate_limited` with `retry_after_sec`",
    503: "`storage_failed` or `embedding_failed`: try again later",
}
# Named, not given as a model: FastAPI would make a validator for each error of each route, a
# third of a second at every start.
_PROBLEM = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"content": _PROBLEM, "description": text} for status, text in _ERRORS.items()
}


def api_router(tag: str, prefix: str = "/api/v1") -> APIRouter:
    return APIRouter(prefix=prefix, tags=[tag], responses=RESPONSES, route_class=ApiRoute)
