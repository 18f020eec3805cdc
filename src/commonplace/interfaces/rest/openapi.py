"""/openapi.json for programs and /docs for people, with nothing loaded from elsewhere."""

import json
from html import escape
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from commonplace.interfaces.http.gate import OPEN, Json
from commonplace.interfaces.rest.routes import ApiRoute
from commonplace.model import Json as Schema

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
    return [Route("/openapi.json", _openapi), Route("/docs", _docs)]


async def _openapi(request: Request) -> Response:
    return Json(openapi(request.app))


async def _docs(request: Request) -> Response:
    return HTMLResponse(page(openapi(request.app)), headers={"Content-Security-Policy": POLICY})


def openapi(app: FastAPI) -> Schema:
    """Return FastAPI's document (built once), with the bearer token that the gate requires."""
    if app.openapi_schema is None:
        routes = [
            route.for_schema() if isinstance(route, ApiRoute) else route for route in app.routes
        ]
        schema = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=routes
        )
        schema["components"]["securitySchemes"] = {
            "token": {
                "type": "http",
                "scheme": "bearer",
                "description": "`sk_...`, or a JWT where the server takes them",
            }
        }
        for path, operations in schema["paths"].items():
            for operation in operations.values():
                operation["security"] = [] if path in OPEN else [{"token": []}]
        _refuse_nul(schema)
        app.openapi_schema = schema
    return app.openapi_schema


def _refuse_nul(schema: Schema) -> None:
    """State in the schema that no text may contain NUL, as `check_text` requires."""
    operations = [
        operation for methods in schema["paths"].values() for operation in methods.values()
    ]
    shapes = [
        parameter["schema"]
        for operation in operations
        for parameter in operation.get("parameters", ())
    ]
    shapes += [
        _content(schema, operation["requestBody"])
        for operation in operations
        if "requestBody" in operation
    ]
    while shapes:
        shape = shapes.pop()
        if shape.get("type") == "string" and "enum" not in shape:
            shape["allOf"] = [{"pattern": r"^[^\x00]*$"}]
        shapes += [
            *shape.get("properties", {}).values(),
            *shape.get("anyOf", ()),
            *filter(None, [shape.get("items")]),
        ]


def page(schema: Schema) -> str:
    info = schema["info"]
    operations = "".join(
        _operation(schema, path, method, operation)
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


def _operation(schema: Schema, path: str, method: str, operation: Schema) -> str:
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
    kind = json.dumps(
        {
            key: value
            for key, value in parameter["schema"].items()
            if key not in ("title", "description")
        }
    )
    return (
        f"<tr><td><code>{escape(parameter['name'])}</code><td>{parameter['in']} "
        f"{required}<td><code>{escape(kind)}"
        f"</code><td>{escape(parameter.get('description', ''))}</tr>"
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
