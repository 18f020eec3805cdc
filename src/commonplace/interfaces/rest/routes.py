"""Routes made of the actions: read the input, run the action, write the answer."""

import hashlib
import json
import re
from typing import Any
from urllib.parse import urlencode

import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from commonplace.core.services import Services
from commonplace.errors import (
    Conflict,
    Invalid,
    InvalidJson,
    PreconditionFailed,
    UnsupportedMediaType,
)
from commonplace.interfaces.actions.action import Action, Answer
from commonplace.interfaces.actions.fields import Input, Patch, is_list, parse
from commonplace.interfaces.actions.registry import ACTIONS
from commonplace.interfaces.http.gate import Json
from commonplace.interfaces.rest.events import STREAM, stream_events
from commonplace.model import Caller, Json as Values

LONGEST_KEY = 200  # of an Idempotency-Key
IF_REVISION = "expected_revision"
NEVER = 0  # a revision that nothing has
_WHOLE = re.compile("[0-9]{1,10}")
_IN_BODY = ("POST", "PATCH")


class NamedRoute(Route):
    """A route that metrics can name."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child = super().matches(scope)
        return match, {**child, "route": self}


def action_routes() -> list[Route]:
    return [action_route(action) for action in ACTIONS.values() if action.route]


def action_route(action: Action) -> Route:
    stream = STREAMS.get(action.name)

    async def endpoint(request: Request) -> Response:
        if stream is not None and STREAM in request.headers.get("accept", ""):
            return await stream(request)
        return await respond(action, request)

    return NamedRoute(action.path, endpoint, methods=[action.method], name=action.name)


async def respond(action: Action, request: Request) -> Response:
    services: Services = request.app.state.services
    caller: Caller = request.state.caller
    if action.needs is not None:
        target = next(iter(request.path_params.values()), None)
        services.access.require(caller, action.needs, target)  # before the body
    given = await _values(action, request)
    if action.check is not None:
        action.check(given["values"])
    args = parse(action.input, **given, hidden=request.path_params)
    if action.method == "PATCH" and isinstance(args, Patch) and not args.changes:
        raise Invalid("There is nothing to change. Name at least one field.")
    expected = _expected_revision(request) if IF_REVISION in action.input.model_fields else None
    if expected is not None:
        alike = getattr(args, IF_REVISION) in (None, expected)
        args = args.model_copy(update={IF_REVISION: expected if alike else NEVER})
    key = request.headers.get("idempotency-key")
    if key is not None and creates(action) and caller.person_id:  # nobody's could be anybody's
        return await _once(action, request, args, key)
    try:
        answer = await _answer(action, request, args)
    except Conflict as error:
        present = error.data.get("revision")
        if expected is None or present in (None, expected):
            raise
        stale = f"`If-Match` is stale: this is revision {present} now. Read it again first."
        raise PreconditionFailed(stale, **error.data) from None
    return _response(action, request, answer, args)


def creates(action: Action) -> bool:
    """Whether the action takes an Idempotency-Key."""
    return action.method == "POST" and action.status == 201


def has_etag(action: Action) -> bool:
    """Whether the revision in an answer tells if it is still right."""
    tells = {"revision", "updated_at"} <= action.output.properties.keys()
    return tells and action.method in ("GET", "PATCH")


def _response(action: Action, request: Request, answer: Answer, args: Input) -> Response:
    body = answer.json
    if {"next", "total"} <= action.output.properties.keys():
        body["next"] = _next_page(request, args, body["total"])
    status = action.status_for(answer)
    if not has_etag(action):
        return Json(body, status)
    tag = f'W/"{body["revision"]}"'
    if action.method == "GET" and _matches(request.headers.get("if-none-match"), tag):
        return Response(status_code=304, headers={"ETag": tag})
    return Json(body, status, {"ETag": tag})


async def stream_answer(request: Request) -> Response:
    """Answer a question as events: each sentence, then the whole."""
    response = await respond(ACTIONS["ask"], request)
    whole = bytes(response.body)
    sentences = orjson.loads(whole)["sentences"]
    events = [*(("sentence", orjson.dumps(each)) for each in sentences), ("done", whole)]
    body = b"".join(b"event: %s\ndata: %s\n\n" % (name.encode(), data) for name, data in events)
    return Response(body, media_type=STREAM)


# Actions that also answer as a stream, where the client accepts one.
STREAMS = {"list_events": stream_events, "ask": stream_answer}


# -- the input


async def _values(action: Action, request: Request) -> dict[str, Any]:
    """Return the values of path, query and body, as `parse` takes them."""
    path = request.path_params
    if action.method not in _IN_BODY:
        return {"values": _query(action, request) | path, "as_text": True}
    values = await _body(request)
    if not isinstance(values, dict):
        raise Invalid("The body must be an object.")
    if wrong := values.keys() & {*path, *action.query}:
        raise Invalid(f"Send `{min(wrong)}` as a query parameter, not in the body.")
    asked = _query(action, request)
    if unknown := asked.keys() - {*action.query}:
        raise Invalid(f"Unknown query parameter `{min(unknown)[:100]}`. Send it in the body.")
    asked = {name: _as_bool(name, value) for name, value in asked.items()}
    return {"values": values | asked | _numbered(action, path)}


def _numbered(action: Action, path: Values) -> Values:
    """Return the fields of the path, with numbers where the input has them."""
    fields = action.input.model_fields
    return {
        name: int(value) if fields[name].annotation is int and _WHOLE.fullmatch(value) else value
        for name, value in path.items()
    }


def _query(action: Action, request: Request) -> Values:
    """Return the query; fields that are lists may be given several times."""
    fields = action.input.model_fields
    values: Values = {}
    for name, value in request.query_params.multi_items():
        if name in request.path_params:
            raise Invalid(f"Unknown field `{name}`; it is part of the path.")
        if name in fields and is_list(fields[name]):
            values.setdefault(name, []).append(value)
        elif name in values:
            raise Invalid(f"`{name}` is given more than once.")
        else:
            values[name] = value
    return values


def _as_bool(name: str, value: str) -> bool:
    known = {"true": True, "1": True, "false": False, "0": False}
    if value.lower() not in known:
        raise Invalid(f"`{name}` must be true or false.")
    return known[value.lower()]


async def _body(request: Request) -> Any:
    """Return the JSON of the body; an empty one is an empty object."""
    try:
        body = await request.body()
    except ClientDisconnect:
        raise Invalid("The connection was lost before the whole request arrived.") from None
    if not body:
        return {}
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise UnsupportedMediaType("Send the body with `Content-Type: application/json`.")
    try:
        return json.loads(body)
    except json.JSONDecodeError as error:
        raise InvalidJson(f"The body is not JSON: {error}.") from None
    except (ValueError, RecursionError):
        raise InvalidJson(
            "The body cannot be read as JSON: send UTF-8, not nested too deep, with numbers that "
            "are not too long."
        ) from None


# -- headers


def _expected_revision(request: Request) -> int | None:
    """Return the revision of If-Match, if there is one; `*` matches any. Of several it is the
    newest: revisions only grow."""
    header = request.headers.get("if-match", "*").strip()
    if header == "*":
        return None
    tags = [tag.strip().removeprefix("W/").strip('"') for tag in header.split(",")]
    return max((int(tag) for tag in tags if tag.isdecimal() and len(tag) < 10), default=NEVER)


def _matches(header: str | None, tag: str) -> bool:
    tags = [each.strip().removeprefix("W/") for each in (header or "").split(",")]
    return tag.removeprefix("W/") in tags or tags == ["*"]


def _next_page(request: Request, args: Any, total: int) -> str | None:
    """Return the address of the next page, with the same filters."""
    after = args.offset + args.limit
    if after >= total:
        return None
    by_page = "page" in type(args).model_fields
    name, value = ("page", args.page + 1) if by_page else ("offset", after)
    others = [pair for pair in request.query_params.multi_items() if pair[0] != name]
    return f"{request.url.path}?{urlencode([*others, (name, value)])}"


async def _answer(action: Action, request: Request, args: Input) -> Answer:
    services: Services = request.app.state.services
    answer = await action.answer(services, request.state.caller, args)
    for name in action.address.split():
        if answer.json.get(name, "").startswith("/"):
            server = services.settings.public_url or str(request.base_url)
            answer.json[name] = server.rstrip("/") + answer.json[name]
    return answer


async def _once(action: Action, request: Request, args: Input, key: str) -> Response:
    """Answer a repeated Idempotency-Key with the first answer, without its secret."""
    services: Services = request.app.state.services
    caller: Caller = request.state.caller
    if not 0 < len(key) <= LONGEST_KEY or not (key.isascii() and key.isprintable()):
        raise Invalid(f"`Idempotency-Key` must have 1 to {LONGEST_KEY} printable ASCII characters.")
    digest = hashlib.sha256(f"{action.name} {args.model_dump_json()}".encode()).hexdigest()
    owner = caller.token_id or caller.person_id  # with whom the answer is deleted
    keys, where = services.store.idempotency, (caller.library_id, owner, key)
    first = await keys.claim(*where, digest)
    if first is not None:
        if first.request_digest != digest:
            raise Invalid("This `Idempotency-Key` was used with another request.")
        if first.status is None:
            raise Conflict("The first request with this `Idempotency-Key` is still running.")
        return Response(
            first.answer, first.status, {"Idempotent-Replayed": "true"}, "application/json"
        )
    try:
        answer = await _answer(action, request, args)
    except BaseException:
        await keys.release(*where)
        raise
    status = action.status_for(answer)
    kept = {name: value for name, value in answer.json.items() if name != action.secret}
    made = getattr(getattr(answer.value, "added", answer.value), "item", None)
    item_id = made.id if made else None  # with which the answer is deleted
    await keys.finish(*where, status, orjson.dumps(kept).decode(), item_id)
    return Json(answer.json, status)
