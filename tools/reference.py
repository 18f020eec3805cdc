"""Writes docs/reference/ from the code: settings, tools, routes, commands. tests/docs checks that it is up to date."""

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_type_hints

import typer

from commonplace.app import make_asgi, open_app
from commonplace.interfaces.cli.main import app as command_line
from commonplace.interfaces.mcp.server import ALL_TOOLS, DOORS
from commonplace.interfaces.rest.openapi import openapi
from commonplace.settings import PREFIX, Settings

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
MADE = "<!-- Made by `make docs` from the code: change it there. -->"


def settings_page() -> str:
    types = get_type_hints(Settings)
    lines = [
        "# Settings",
        "",
        "Environment variables; the command line reads the same.",
        "",
        "| name | type | default | meaning |",
        "|---|---|---|---|",
    ]
    for f in fields(Settings):
        default = (
            "`~/.local/share/commonplace`"
            if f.default is MISSING
            else f"`{f.default}`"
            if f.default != ""
            else ""
        )
        kind = {
            "str": "text",
            "int": "whole number",
            "float": "number",
            "bool": "true or false",
            "Path": "folder",
        }[types[f.name].__name__]
        lines.append(f"| `{PREFIX}{f.name.upper()}` | {kind} | {default} | {f.metadata['help']} |")
    return "\n".join(lines)


def tools_page() -> str:
    lines = [
        "# MCP tools",
        "",
        "`/mcp` and `/api/mcp` show all doors; `/mcp/<door>` shows one. "
        "Streamable HTTP (2026-07-28 and 2025-11-25, stateless) and stdio (`commonplace mcp`).",
    ]
    doors = {f"Door `{door}`": tools for door, tools in DOORS.items()}
    beside = tuple(tool for tool in ALL_TOOLS if not any(tool in tools for tools in DOORS.values()))
    for door, tools in {**doors, "Where all doors are": beside}.items():
        lines += ["", f"## {door}"]
        for tool in tools:
            lines += [
                "",
                f"### `{tool.name}`",
                "",
                tool.listing.description or "",
                "",
                f"Needs: {tool.needs}",
                "",
                "| field | type | required | default | meaning |",
                "|---|---|---|---|---|",
            ]
            schema = tool.input_schema
            for name, field in schema["properties"].items():
                required = "yes" if name in schema.get("required", ()) else ""
                default = f"`{field['default']}`" if field.get("default") is not None else ""
                lines.append(
                    f"| `{name}` | {_kind(field)} | {required} | {default} | {field.get('description', '')} |"
                )
            answer = tool.listing.output_schema or {}
            lines += [
                "",
                "Answers: " + ", ".join(f"`{name}`" for name in answer.get("properties", {})),
            ]
    return "\n".join(lines)


def _kind(field: dict[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(
            _kind(option) for option in field["anyOf"] if option.get("type") != "null"
        )
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    low = field.get("minimum", field.get("minLength"))
    high = field.get("maximum", field.get("maxLength"))
    bounds = f" {low if low is not None else 0:,}..{high:,}" if high is not None else ""
    return f"{field.get('type', 'object')}{bounds}"


async def rest_page() -> str:
    with TemporaryDirectory() as folder:
        async with open_app(Settings(data_dir=Path(folder), embedder="static")) as app:
            schema = openapi(make_asgi(app).api)
    lines = [
        "# REST",
        "",
        'The same as `/openapi.json`, in short. Every error is `{"error": code, "message": text, ...}`.',
        "",
        "| route | does |",
        "|---|---|",
    ]
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            names = [p["name"] for p in operation.get("parameters", ()) if p["in"] == "query"]
            query = f"?{'&'.join(names)}" if names else ""
            says = operation.get("description") or operation["summary"]
            lines.append(f"| `{method.upper()} {path}{query}` | {' '.join(says.split())} |")
    return "\n".join(lines)


def commands_page() -> str:
    lines = [
        "# Command line",
        "",
        "Every command takes `--json`, `--data-dir` and `--token`; `--help` says more.",
        "",
        "| command | does |",
        "|---|---|",
    ]
    lines += [
        f"| `{usage}` | {says} |"
        for usage, says in _commands(typer.main.get_command(command_line), "commonplace")
    ]
    return "\n".join(lines)


def _commands(command: Any, path: str) -> Iterator[tuple[str, str]]:
    if hasattr(command, "commands"):
        for name, child in command.commands.items():
            yield from _commands(child, f"{path} {name}")
        return
    shared = {"data_dir", "token", "as_json", "help"}
    arguments = [p.name.upper() for p in command.params if p.param_type_name == "argument"]
    options = [
        f"[{p.opts[0]}]"
        for p in command.params
        if p.param_type_name == "option" and p.name not in shared
    ]
    yield (
        " ".join([path, *arguments, *options]),
        (command.help or "").split("\n\n")[0].replace("\n", " "),
    )


async def pages() -> dict[str, str]:
    made = {
        "settings.md": settings_page(),
        "mcp.md": tools_page(),
        "rest.md": await rest_page(),
        "cli.md": commands_page(),
    }
    return {name: f"{MADE}\n{page}\n" for name, page in made.items()}


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, page in asyncio.run(pages()).items():
        (FOLDER / name).write_text(page)
    sys.stdout.write(f"Wrote {FOLDER}\n")
