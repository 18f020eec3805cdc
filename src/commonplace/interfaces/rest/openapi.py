"""/openapi.json for programs and /docs for people, made of the actions."""

import json
from collections.abc import Iterable
from functools import cache
from html import escape
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

import commonplace
from commonplace.core.people.authorization import Requirement
from commonplace.interfaces.actions.action import Action
from commonplace.interfaces.actions.registry import ROOMS
from commonplace.interfaces.actions.shapes import Shape, said
from commonplace.interfaces.http.gate import Json
from commonplace.interfaces.rest import probes
from commonplace.interfaces.rest.routes import IF_REVISION, LONGEST_KEY, creates, has_etag
from commonplace.model import Json as Schema

DESCRIPTION = (
    "Keep texts and pages in a library, file them in folders, and search them by meaning and by "
    "words. Every request carries `Authorization: Bearer sk_...`; `commonplace token create` "
    "makes a token."
)
PROBLEM = Shape("Problem", None, error=said(str, "error"), message=said(str, "message"))
ERRORS = {
    400: "`invalid_json`: the body is not JSON; of batches, `bad_request` or `batch_too_large`",
    401: "`unauthorized`: no token, or one that is unknown, expired or revoked",
    402: "`quota_exceeded`, with `resource`; transcription: `tier` and `cap_per_month`; items, "
    "sections and megabytes of the library: `cap` and `used`",
    403: "`capability_denied` with `required` and `have`, or `forbidden_scope`",
    404: "`not_found`: not there, or not for this token",
    409: "`conflict` with the present `revision`, or `name_taken`",
    412: "`precondition_failed`: `If-Match` is stale; with the present `revision`",
    413: "`payload_too_large`",
    415: "`unsupported_media_type`: the body is not `application/json`",
    422: "`invalid_request`, in a sentence; or `ingest_failed`: the source could not be read",
    429: "`rate_limit_exceeded` with `retry_after`, or `rate_limited` with `retry_after_sec`",
    500: "`search_failed`: the embedder is down",
    503: "`storage_failed` or `embedding_failed`: try again later",
}
_ALWAYS = (401, 422, 429, 503)
_WITH_BODY = (400, 413, 415)
# beside what the input and the route tell
_BY_VERB = {
    402: "entities.add entities.update library.add library.refresh library.retry library.update "
    "memory.remember reflection.accept reflection.reflect tasks.note uploads.announce "
    "uploads.finish versions.restore",
    404: "crawls.begin feeds.subscribe graph.list library.page members.accept people.create_token "
    "uploads.finish",
    409: "folders.create folders.update members.change_role members.remove reflection.accept "
    "reflection.edit reflection.reject",
    500: "disks.page",
}
_OF_PROBES = {"/readyz": (503,), "/metrics": (401, 429, 503)}
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 54rem; margin: 2rem auto; padding: 0 1rem }
body { overflow-wrap: anywhere }
summary { cursor: pointer; padding: .4rem 0 }
code, pre { font-family: ui-monospace, monospace; font-size: .9em }
pre { overflow: auto; padding: .8rem; border: 1px solid #8884; border-radius: 4px }
:root { color-scheme: light dark } b { display: inline-block; width: 4.5rem }
details { border-bottom: 1px solid #8884 } details details { border: 0; margin-left: 1rem }
td { padding: .1rem 1rem .1rem 0; vertical-align: top }
"""


def docs_routes() -> list[Route]:
    """Serve the document also where Graniite and Sibyl have theirs."""
    documents = ("/openapi.json", "/api/v1/openapi.json", "/api/openapi.json")
    return [
        *(Route(path, _openapi) for path in documents),
        *(Route(path, _docs) for path in ("/docs", "/api/docs")),
    ]


async def _openapi(request: Request) -> Response:
    return Json({**openapi(), "servers": [{"url": str(request.base_url).rstrip("/")}]})


async def _docs(request: Request) -> Response:
    return HTMLResponse(page(openapi()), headers={"Content-Security-Policy": POLICY})


@cache
def openapi() -> Schema:
    """Return the document of all routes, built once."""
    paths: Schema = {}
    schemas: Schema = {}
    for tag, (_, actions) in ROOMS.items():
        for action in actions:
            if action.route:
                operation = _operation(action, schemas) | {"tags": [tag]}
                paths.setdefault(action.path, {})[action.method.lower()] = operation
    for route in probes.ROUTES:
        paths[route.path] = {"get": _probe(route)}
    _add_shape(PROBLEM, schemas)
    tags = [{"name": tag, "description": text} for tag, (text, _) in ROOMS.items()]
    bearer = {"type": "http", "scheme": "bearer", "description": "`sk_...`, or a JWT"}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Commonplace",
            "version": commonplace.__version__,
            "description": DESCRIPTION,
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "tags": [*tags, {"name": "probes", "description": "Health, readiness and metrics"}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {"token": bearer},
        },
    }


def _operation(action: Action, schemas: Schema) -> Schema:
    shape = action.input.model_json_schema(ref_template="#/components/schemas/{model}")
    fields, needed = shape["properties"], shape.get("required", [])
    in_body = action.method in ("POST", "PATCH")
    outside = [*action.path_fields, *(action.query if in_body else fields)]
    operation: Schema = {"operationId": action.name, "summary": action.title}
    if action.description:
        operation["description"] = action.description
    parameters = [
        {
            "name": name,
            "in": "path" if name in action.path_fields else "query",
            "required": name in action.path_fields or name in needed,
            "schema": _refuse_nul(_as_parameter(fields[name])),
        }
        for name in dict.fromkeys(outside)
    ]
    parameters += _headers(action)
    if parameters:
        operation["parameters"] = parameters
    body = {name: _bare(each) for name, each in fields.items() if name not in outside}
    if in_body and body:
        schemas[f"{action.input.__name__}Body"] = _refuse_nul(
            {
                **{key: value for key, value in shape.items() if key != "description"},
                "title": f"{action.input.__name__}Body",
                "properties": body,
                "required": [name for name in needed if name in body],
            }
            | (_some_change(body) if action.method == "PATCH" else {})
            | ({"examples": [action.example]} if action.example else {})
        )
        reference = {"$ref": f"#/components/schemas/{action.input.__name__}Body"}
        operation["requestBody"] = {
            "content": {"application/json": {"schema": reference}},
            "required": action.method == "PATCH" or any(name in body for name in needed),
        }
    operation["responses"] = _responses(action, schemas, bool(body) and in_body)
    return operation


def _headers(action: Action) -> list[Schema]:
    """The headers that an action takes, beside the token."""
    shown = {}
    if creates(action):
        shown["Idempotency-Key"] = (
            "Within 24 hours, the same key and body return the first answer instead of creating "
            "a second one"
        )
    if IF_REVISION in action.input.model_fields:
        shown["If-Match"] = "The ETag that you read; 412 if it is stale"
    if action.method == "GET" and has_etag(action):
        shown["If-None-Match"] = "The ETag that you have; 304 if it is still right"
    printable = {"maxLength": LONGEST_KEY, "pattern": "^[!-~]([ -~]*[!-~])?$"}
    return [
        {
            "name": name,
            "in": "header",
            "description": text,
            "schema": {"type": "string"} | (printable if name == "Idempotency-Key" else {}),
        }
        for name, text in shown.items()
    ]


def _responses(action: Action, schemas: Schema, has_body: bool) -> Schema:
    """Describe the answers that an action can have."""
    _add_shape(action.output, schemas)
    content = {"application/json": {"schema": action.output.reference}}
    answers = {action.status: "Success"} | dict(action.also)
    shown: Schema = {
        str(status): {"description": text, "content": content} for status, text in answers.items()
    }
    if action.method == "GET" and has_etag(action):
        shown["304"] = {"description": "Not changed"}
    needs, guarded = action.needs, IF_REVISION in action.input.model_fields
    for_all = needs is not None and needs.requirement is Requirement.NONE and not action.writes
    possible = {
        *_ALWAYS,
        *(_WITH_BODY if has_body else ()),
        *(() if for_all else (403,)),
        *((404,) if action.path_fields else ()),
        *((409,) if guarded or creates(action) else ()),
        *((412,) if guarded else ()),
        *(status for status, verbs in _BY_VERB.items() if action.verb in verbs.split()),
    }
    return shown | _problems(sorted(possible))


def _problems(statuses: Iterable[int]) -> Schema:
    content = {"application/json": {"schema": PROBLEM.reference}}
    return {str(each): {"description": ERRORS[each], "content": content} for each in statuses}


def _add_shape(shape: Shape, schemas: Schema) -> None:
    if shape.name not in schemas:
        schemas[shape.name] = {"title": shape.name, **shape.schema}
        for part in shape.parts:
            _add_shape(part, schemas)


def _probe(route: Route) -> Schema:
    text = " ".join((route.endpoint.__doc__ or "").split())
    title, _, description = text.partition(". ")
    plain: Schema = {"text/plain": {}} if route.path == "/metrics" else {"application/json": {}}
    shown: Schema = {
        "operationId": route.endpoint.__name__,
        "summary": title.rstrip("."),
        "tags": ["probes"],
        "security": [{"token": []}] if route.path == "/metrics" else [],
        "responses": {"200": {"description": "Success", "content": plain}}
        | _problems(_OF_PROBES.get(route.path, ())),
    }
    return shown | ({"description": description} if description else {})


def _as_parameter(schema: Schema) -> Schema:
    """Leave out null: a query has no way to say it."""
    choices = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(choices) == 1:
        schema = {key: value for key, value in schema.items() if key != "anyOf"} | choices[0]
    return _bare(schema)


def _bare(schema: Schema) -> Schema:
    """Leave out names that pydantic invents, and null as a default, which leaving out says too."""
    return {k: v for k, v in schema.items() if k != "title" and not (k == "default" and v is None)}


def _some_change(body: Schema) -> Schema:
    """State that a PATCH changes something, beside saying at which revision."""
    only_revision = {"required": [IF_REVISION], "maxProperties": 1}
    return {"minProperties": 1} | ({"not": only_revision} if IF_REVISION in body else {})


def _refuse_nul(schema: Schema) -> Schema:
    """State that no text may contain NUL, as `check_text` requires."""
    schema = dict(schema)
    if schema.get("type") == "string" and "enum" not in schema:
        schema["allOf"] = [{"pattern": r"^[^\x00]*$"}]
    for key in ("properties", "$defs"):
        if key in schema:
            schema[key] = {name: _refuse_nul(each) for name, each in schema[key].items()}
    if "anyOf" in schema:
        schema["anyOf"] = [_refuse_nul(each) for each in schema["anyOf"]]
    if isinstance(schema.get("items"), dict):
        schema["items"] = _refuse_nul(schema["items"])
    schema.pop("title", None) if "properties" not in schema else None
    return schema


def page(schema: Schema) -> str:
    info = schema["info"]
    operations = "".join(
        _entry(schema, path, method, operation)
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    )
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport "
        "content='width=device-width'>"
        f"<title>{escape(info['title'])} API</title><style>{STYLE}</style>"
        f"<h1>{escape(info['title'])} "
        f"{escape(info['version'])}</h1><p>{escape(info['description'])}"
        f"<p>For programs: <a href=/openapi.json>/openapi.json</a>{operations}</html>"
    )


def _entry(schema: Schema, path: str, method: str, operation: Schema) -> str:
    parts = [f"<p>{escape(operation.get('description', ''))}"]
    if "parameters" in operation:
        parts.append(
            f"<table>{''.join(_parameter(each) for each in operation['parameters'])}</table>"
        )
    if "requestBody" in operation:
        parts.append(_block("Body", _content(schema, operation["requestBody"])))
    parts += [
        _block(f"{status} {answer['description']}", _content(schema, answer))
        for status, answer in operation["responses"].items()
    ]
    return (
        f"<details><summary><b>{method.upper()}</b> <code>{escape(path)}</code> "
        f"{escape(operation['summary'])}"
        f"</summary>{''.join(parts)}</details>"
    )


def _parameter(parameter: Schema) -> str:
    required = "required" if parameter.get("required") else ""
    shown = {key: value for key, value in parameter["schema"].items() if key != "description"}
    text = parameter.get("description") or parameter["schema"].get("description", "")
    return (
        f"<tr><td><code>{escape(parameter['name'])}</code><td>{parameter['in']} "
        f"{required}<td><code>{escape(json.dumps(shown))}"
        f"</code><td>{escape(text)}</tr>"
    )


def _block(title: str, content: Any) -> str:
    body = (
        f"<pre>{escape(json.dumps(content, indent=2, ensure_ascii=False))}</pre>" if content else ""
    )
    return f"<details><summary>{escape(title)}</summary>{body}</details>"


def _content(schema: Schema, holder: Schema) -> Any:
    """Return the schema of a JSON body, by name where it has one."""
    shape = holder.get("content", {}).get("application/json", {}).get("schema")
    if shape and "$ref" in shape:
        return schema["components"]["schemas"][shape["$ref"].rpartition("/")[2]]
    return shape
