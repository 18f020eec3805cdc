"""REST and MCP calls made up from the published schemas: no 5xx, no traceback, errors in words."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any
from urllib.parse import quote

import httpx

from tests.interfaces.test_schemathesis import PARTS
from torture.harness import Broken, Part, Play, Round, Stage, require
from torture.schema import Generator, Schema
from torture.server import MCP_HEADERS, Place, Server

GROWN_MB = 150.0
CALLS = 30  # of a round
EXAMPLES = 5  # of schemathesis for each operation and phase
# Would end the access of the fuzzer itself; the suite tries these with tokens of their own.
AVOID = re.compile(r"^(DELETE /api/v1/(tokens|members)|POST /api/v1/members)")
METHODS = ("get", "post", "put", "patch", "delete")


class Calls:
    def __init__(self, server: Server) -> None:
        self._server = server
        document = server.client.get("/openapi.json").json()
        self._definitions: Schema = document["components"]["schemas"]
        self._operations = [
            (method.upper(), path, operation)
            for path, ways in document["paths"].items()
            for method, operation in ways.items()
            if method in METHODS and not AVOID.match(f"{method.upper()} {path}")
        ]
        listed = server.client.post(
            "/mcp", headers=MCP_HEADERS, json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        )
        self._tools = [
            (tool["name"], tool["inputSchema"]) for tool in listed.json()["result"]["tools"]
        ]
        self._known = self._furnish()

    def _furnish(self) -> tuple[str, ...]:
        """Ids of things of several kinds, for calls to go deeper than `not_found`."""
        known = [
            self._server.add(f"A heron waits for fish in river {n}.").json()["user_item_id"]
            for n in range(5)
        ]
        known.append(
            self._server.client.post("/api/v1/folders", json={"name": "Birds"}).json()["id"]
        )
        for kind in ("project", "decision", "procedure"):
            made = self._server.client.post(
                "/api/entities?sync=true",
                json={
                    "entity_type": kind,
                    "title": f"A {kind} about herons",
                    "content": "Herons wait for fish.",
                },
            ).json()
            known.append(made["id"])
        return tuple(str(each) for each in known)

    def play(self, round: Round) -> None:
        for _ in range(CALLS):
            make = self._call_tool if round.random.random() < 0.5 else self._request
            make(Generator(round.random, self._definitions, self._known), round.random)

    def _call_tool(self, generator: Generator, random: Random) -> None:
        name, schema = random.choice(self._tools)
        inner = Generator(random, schema.get("$defs", {}), self._known)
        arguments = inner.object_of(schema.get("properties", {}), schema.get("required", []))
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": name, "arguments": arguments},
        }
        answer = self._send("POST", "/mcp", message, MCP_HEADERS)
        if answer.status_code == 200:
            body = answer.json()
            said = str(body.get("error", ""))
            require(
                "result" in body or said,
                f"{name} answers neither with a result nor an error: {answer.text[:300]}",
            )
            require(
                "its log says" not in said,
                f"{name} failed unexpectedly on {json.dumps(arguments)[:2000]}: {said}",
            )

    def _request(self, generator: Generator, random: Random) -> None:
        method, path, operation = random.choice(self._operations)
        query: dict[str, Any] = {}
        for parameter in operation.get("parameters", []):
            value = generator.value(parameter["schema"])
            if parameter["in"] == "path":
                text = quote(str(value).encode("utf-8", "surrogatepass"), safe="")
                path = path.replace("{" + parameter["name"] + "}", text or "x")
            elif parameter["in"] == "query" and (
                parameter.get("required") or random.random() < 0.4
            ):
                query[parameter["name"]] = value
        content = operation.get("requestBody", {}).get("content", {})
        body = (
            generator.value(content["application/json"]["schema"])
            if "application/json" in content
            else None
        )
        self._send(method, path, body, {}, query)

    def _send(
        self,
        method: str,
        path: str,
        body: Any,
        headers: dict[str, str],
        query: dict[str, Any] | None = None,
    ) -> httpx.Response:
        content = None if body is None else json.dumps(body).encode()
        if query:
            path = f"{path}?{_query(query)}"
        if content:
            headers = {**headers, "Content-Type": "application/json"}
        asked = f"{method} {path} {(content or b'')[:2000]!r}"
        try:
            answer = self._server.client.request(method, path, content=content, headers=headers)
        except httpx.HTTPError as error:
            raise Broken(f"{asked}: no answer ({error!r})") from None
        if answer.status_code >= 500:
            raise Broken(f"{asked}: {answer.status_code} {answer.text[:500]}")
        if answer.status_code >= 400 and path.startswith("/api"):
            said = answer.json()
            require(
                isinstance(said, dict) and {"error", "message"} <= said.keys(),
                f"{asked}: {answer.text[:500]}",
            )
        return answer

    def run_schemathesis(self, random: Random, folder: Any) -> None:
        """Its own way of making requests up, on one part of the paths."""
        paths = random.choice(list(PARTS.values()))
        run = subprocess.run(
            [
                sys.executable,
                "-m",
                "schemathesis.cli",
                "run",
                f"{self._server.address}/openapi.json",
                "--header",
                f"Authorization: Bearer {self._server.token}",
                "--max-examples",
                str(EXAMPLES),
                "--seed",
                str(random.randrange(1 << 30)),
                "--include-path-regex",
                paths,
                "--checks",
                "not_a_server_error",
                "--phases",
                "fuzzing",
                "--exclude-path-regex",
                "/api/v1/(tokens|members)",
            ],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        require(
            run.returncode == 0, f"schemathesis {paths}:\n{run.stdout[-3000:]}{run.stderr[-1000:]}"
        )


def _query(values: dict[str, Any]) -> str:
    """A query string, also of what is no text."""
    return "&".join(
        f"{name}={quote(str(each).encode('utf-8', 'surrogatepass'), safe='')}"
        for name, value in values.items()
        for each in (value if isinstance(value, list) else [value])
    )


@contextmanager
def open_calls(stage: Stage, schemathesis_every: int = 25) -> Iterator[Play]:
    with Place(stage.folder / "data").serve() as server:
        calls = Calls(server)

        def play(round: Round) -> None:
            if round.seed % schemathesis_every == 0:
                calls.run_schemathesis(round.random, round.folder)
            else:
                calls.play(round)
            server.require_quiet()

        with server.watch(stage.vitals):
            yield play
        require(server.search("heron"), "Search does not work afterwards.")
        stage.require_calm(GROWN_MB)


PART = Part("calls", rounds=100, long_rounds=1_000_000, share=4, open=open_calls)
