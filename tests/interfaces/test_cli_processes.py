"""The real command: servers, several processes on one data folder, pipes, signals."""

import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from tests.interfaces.command import COMMAND, Commands

pytestmark = pytest.mark.slow
SECONDS = 60
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@pytest.fixture
def data_dir(new_data_dir: Path) -> Path:
    return new_data_dir


@pytest.fixture
def cli(data_dir: Path) -> Commands:
    return Commands(data_dir, rate_requests_per_minute="0")


@contextmanager
def serving(
    cli: Commands, *options: str
) -> Iterator[tuple[str, dict[str, str], subprocess.Popen[str]]]:
    """(address, what it said, process) once it answers."""
    process = cli.start("serve", "--port", "0", "--json", *options, start_new_session=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        said = json.loads(line)
        yield said["address"], said, process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def finish(process: subprocess.Popen[str], stdin: str | None = None) -> tuple[str, str]:
    try:
        return process.communicate(stdin, timeout=SECONDS)
    finally:
        process.kill()


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def test_serve_prints_the_owners_token_once_and_a_line_that_connects(
    cli: Commands, data_dir: Path
) -> None:
    server_file = data_dir / "server.json"
    with serving(cli) as (address, said, process):
        secret = said["token"]
        line = f"claude mcp add --transport http commonplace {address}/mcp/core"
        assert said["connect"] == line
        assert httpx.get(f"{address}/api/v1/items", headers=bearer(secret)).json()["total"] == 0
        assert httpx.get(f"{address}/api/v1/items").status_code == 401
        assert "Create account" in httpx.get(said["claim"], headers={"Accept": "text/html"}).text
        told = json.loads(server_file.read_text())
        assert (told["url"], told["pid"]) == (address, process.pid)
        result = cli.run("connect", "claude-code")
        assert f"{address}/mcp/core" in result.stdout
        assert "answers" not in result.stderr
        process.send_signal(signal.SIGTERM)
        out, err = finish(process)
        assert (process.returncode, out, err) == (0, "", "")
        assert not server_file.exists()
    with serving(cli) as (_, said, process):
        assert said["token"] is None
        assert "claude mcp add" in said["connect"]
        process.send_signal(signal.SIGINT)
        assert finish(process)[1] == ""
        assert process.returncode == 0


def test_the_owners_token_lasts_a_year_and_can_be_revoked_for_good(cli: Commands) -> None:
    for start in range(2):
        with serving(cli) as (_, said, process):
            if start == 0:
                [token] = cli.json("token", "list")["tokens"]
                days = datetime.fromisoformat(token["expires_at"]) - datetime.now(UTC)
                assert timedelta(364) < days <= timedelta(365)
                cli.text("token", "revoke", token["id"])
            else:
                assert said["token"] is None, "it does not come again"
            process.send_signal(signal.SIGTERM)
            finish(process)
    assert [each["id"] for each in cli.json("token", "list")["tokens"]] == [token["id"]]


def test_serve_limits_headers_and_connections_and_signs_nobody_in(cli: Commands) -> None:
    cli.env["COMMONPLACE_MAX_CONNECTIONS"] = "5"
    with serving(cli) as (url, _, _):
        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        with socket.create_connection(address, timeout=20) as peer:
            peer.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: " + b"a" * 70_000)
            assert peer.recv(12) == b"HTTP/1.1 431"
        assert httpx.post(f"{url}/sign-in/open").status_code == 401
        peers = [socket.create_connection(address, timeout=20) for _ in range(6)]
        for peer in peers:
            peer.sendall(b"GET /favicon.ico HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        statuses = sorted(peer.recv(12)[-3:] for peer in peers)
        assert statuses[:4] == [b"200"] * 4 and statuses[-1] == b"503"
        assert httpx.get(f"{url}/healthz").status_code == 200
        for peer in peers:
            peer.close()


def test_serve_speaks_to_people_too(cli: Commands) -> None:
    process = cli.start("serve", "--port", "0")
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(12)]
    process.send_signal(signal.SIGTERM)
    finish(process)
    said = "".join(lines)
    assert re.search(r"Commonplace is at http://127\.0\.0\.1:\d+ ", said)
    assert re.search(r"http://127\.0\.0\.1:\d+/claim/[\w-]{43}\n", said)
    assert re.search(r"shown this once: sk_[\w-]{43}\n", said)
    assert re.search(
        r"  claude mcp add --transport http commonplace http://127\.0\.0\.1:\d+/mcp/core\n"
        r"  claude mcp login commonplace\n",
        said,
    )


def test_a_port_in_use_says_what_to_do(cli: Commands, data_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = cli.start("serve", "--port", port)
        out, err = finish(process)
    assert process.returncode == 1
    assert f"Port {port} is in use" in err
    assert "--port" in err
    assert not data_dir.exists(), "nothing is touched by a server that cannot start"
    assert out == ""


def test_a_server_a_stdio_server_and_commands_share_one_folder(cli: Commands) -> None:
    call = {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {
            "name": "add_to_knowledge",
            "arguments": {
                "kind": "text",
                "title": "By stdio",
                "text": "penguins were added over standard input",
            },
        },
    }
    with serving(cli) as (address, said, _):
        stdio = cli.start("mcp", stdin=subprocess.PIPE)
        assert stdio.stdin is not None and stdio.stdout is not None
        adding = [
            cli.start("add", "-", "--title", f"By command {n}", stdin=subprocess.PIPE)
            for n in range(3)
        ]
        for message in (
            INITIALIZE,
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            call,
        ):
            stdio.stdin.write(json.dumps(message) + "\n")
            stdio.stdin.flush()
        for n, process in enumerate(adding):
            _, err = finish(process, f"walruses number {n} were added by a command")
            assert (process.returncode, err) == (0, "")
        answers = [
            json.loads(stdio.stdout.readline()) for _ in range(2)
        ]  # nothing but answers is on stdout
        assert [answer["id"] for answer in answers] == [1, 2]
        assert answers[1]["result"]["structuredContent"]["status"] == "ready"
        for query, count in (("penguins", 1), ("walruses", 3)):
            found = httpx.post(
                f"{address}/api/v1/search",
                headers=bearer(said["token"]),
                json={"query": query, "mode": "keyword"},
            )
            assert len(found.json()["results"]) == count
        meaning = httpx.post(
            f"{address}/api/v1/search",
            headers=bearer(said["token"]),
            json={"query": "cold sea animals", "mode": "semantic"},
        ).json()
        assert len(meaning["results"]) == 4
        finish(stdio)
        assert stdio.returncode == 0


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("command", ["mcp", "worker"])
def test_a_signal_ends_it_though_nothing_comes_in(
    cli: Commands, command: str, sign: signal.Signals
) -> None:
    process = cli.start(command, stdin=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    if command == "mcp":
        process.stdin.write(json.dumps(INITIALIZE) + "\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
    else:
        assert process.stderr.readline() == "Working on jobs.\n"
    process.send_signal(sign)
    assert process.wait(SECONDS) == 0
    finish(process)


def test_an_interrupt_from_the_keyboard_ends_it_quietly_with_all_its_processes(
    cli: Commands,
) -> None:
    with (
        serving(cli) as (address, said, process),
        httpx.Client(base_url=address, headers=bearer(said["token"])) as client,
    ):
        page = b"<p>A page of several words about owls, long enough to be kept.</p>"
        promised = client.post(
            "/api/v1/uploads/signed-url",
            json={"filename": "page.html", "content_type": "text/html", "size": len(page)},
        ).json()
        httpx.put(promised["url"], content=page)
        assert client.post(
            "/api/v1/uploads/finalize-document", json={"upload_id": promised["upload_id"]}
        ).is_success
        os.killpg(process.pid, signal.SIGINT)
        assert (finish(process)[1], process.returncode) == ("", 0)


def test_a_worker_works_and_stops_when_told(cli: Commands, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# Alpha\n\nwaits for the worker")
    assert cli.json("import", tmp_path / "notes")["waiting"] == 1  # its summary
    process = cli.start("worker")
    deadline = time.monotonic() + SECONDS
    while cli.json("import", tmp_path / "notes")["waiting"]:
        assert time.monotonic() < deadline
    process.send_signal(signal.SIGTERM)
    finish(process)
    assert process.returncode == 0


def test_bars_on_a_terminal_none_in_a_pipe(cli: Commands, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    for n in range(3):
        (tmp_path / "notes" / f"{n}.md").write_text(f"# Note {n}\n\nsome words")
    piped = cli.start("import", tmp_path / "notes", "--wait", "--json")
    out, err = finish(piped)
    assert json.loads(out)["added"] == 3
    assert err == ""
    assert at_a_terminal(cli, "import", tmp_path / "notes") == b"0 added, 0 changed, 3 unchanged\n"
    assert at_a_terminal(cli, "backup", tmp_path / "all.backup").startswith(b"Backed up")
    assert (
        at_a_terminal(cli, "restore", tmp_path / "all.backup", "--force") == b"Restored: 3 items.\n"
    )


def at_a_terminal(cli: Commands, *arguments: object) -> bytes:
    """What it answers, when there was a bar beside it."""
    master, terminal = pty.openpty()
    env = {
        **os.environ,
        **cli.env,
        "TERM": "xterm",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)], env=env, stdout=subprocess.PIPE, stderr=terminal
    )
    os.close(terminal)
    shown = b""
    while select.select([master], [], [], SECONDS)[0]:
        try:
            shown += os.read(master, 65536)
        except OSError:  # how the end of a terminal reads
            break
    os.close(master)
    assert process.wait(SECONDS) == 0
    assert "━".encode() in shown
    assert process.stdout is not None
    with process.stdout as answer:
        return answer.read()


@pytest.mark.skipif(
    os.geteuid() == 0 and shutil.which("setpriv") is None, reason="root may write everywhere"
)
def test_a_data_folder_without_permission_is_named(tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    without_privilege = ["setpriv", "--bounding-set=-dac_override"] if os.geteuid() == 0 else []
    env = {
        **os.environ,
        "COMMONPLACE_DATA_DIR": str(locked / "data"),
        "COMMONPLACE_EMBEDDER": "static",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    result = subprocess.run(
        [*without_privilege, *COMMAND, "list"],
        env=env,
        text=True,
        capture_output=True,
        timeout=SECONDS,
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert "Permission denied" in result.stderr
    assert str(locked / "data") in result.stderr
    assert "Traceback" not in result.stderr


def test_help_is_quick_and_loads_no_model() -> None:
    watched = (
        "import sys; sys.argv = ['commonplace', '--help']\nfrom commonplace.interfaces.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "heavy = {'numpy', 'onnxruntime', 'starlette', 'mcp', 'psycopg', 'redis', 'yaml'} & set(sys.modules)\n"
        "print(sorted(heavy), file=sys.stderr)"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    result = subprocess.run(
        [sys.executable, "-P", "-c", watched],
        env=env,
        text=True,
        capture_output=True,
        timeout=SECONDS,
    )
    assert result.stderr == "[]\n"
    assert "eval" in result.stdout
