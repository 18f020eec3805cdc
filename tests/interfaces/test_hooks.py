"""Hooks of coding agents: recorded events on standard input, against a stub and a real server."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from commonplace.core.transfer.session_sources import read_repository
from commonplace.errors import Invalid
from commonplace.hooks import BLOCK, repository_address
from tests.interfaces.live import live_house
from tests.stub_service import Mishap, Request, Stand, StubService, running

SECONDS = 60  # until a test gives up, not until a hook does
REMOTE = "https://ann:ghp_0123456789abcdefghijABCDEFGHIJ012345@git.example.org/ann/zebra.git"
SECRET = "sk-ant-api03-Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4"


class Library(StubService):
    def answer(self, request: Request) -> dict[str, Any]:
        if request.path.endswith("/context"):
            return {"total_items": 1, "markdown": "## Decisions\n- Use stripes"}
        return {"candidates": []}

    @property
    def sent(self) -> list[Any]:
        return [each.json() for each in self.requests]


@pytest.fixture
def library() -> Iterator[Library]:
    with running(Library()) as service:
        yield service


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "zebra"
    folder.mkdir()
    who = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    for command in (
        ["init", "-q", "-b", "stripes"],
        ["remote", "add", "origin", REMOTE],
        [*who, "commit", "-q", "--allow-empty", "-m", "Paint the first stripe"],
    ):
        subprocess.run(["git", "-C", folder, *command], check=True)
    return folder


def claude(who: str, *parts: Any, **more: Any) -> Any:
    return {"type": who, "message": {"role": who, "content": [*parts]}, "sessionId": "s", **more}


def text(words: str) -> Any:
    return {"type": "text", "text": words}


# As Claude Code writes them.
SESSION = [
    {"type": "summary", "summary": "A title"},
    {"type": "user", "message": {"role": "user", "content": f"We use SQLite. Key: {SECRET}"}},
    claude("assistant", {"type": "thinking", "thinking": "HIDDEN thought"}, text("I read it.")),
    claude("assistant", {"type": "tool_use", "name": "Read", "input": {"file_path": "HIDDEN"}}),
    claude("user", {"type": "tool_result", "content": "HIDDEN content"}, toolUseResult="HIDDEN"),
    claude("user", {"type": "tool_result", "content": [text("HIDDEN content")]}),
    claude("user", text("<system-reminder>HIDDEN file</system-reminder>")),
    claude("user", text("Done?<system-reminder>HIDDEN file</system-reminder>")),
    claude("user", text("<bash-stdout>HIDDEN output</bash-stdout>")),
    claude("user", text("HIDDEN expansion"), isMeta=True),
    claude("assistant", text("HIDDEN subagent"), isSidechain=True),
    claude("user", text("HIDDEN summary"), isCompactSummary=True),
    claude("assistant", text("It says:\n```python\nHIDDEN = 1\n```\nWe decided on port 5000.")),
    {"type": "attachment", "attachment": {"content": "HIDDEN file"}},
]
SAID = (
    "User: We use SQLite. Key: [key]\n\nAssistant: I read it.\n\nUser: Done?\n\n"
    "Assistant: It says:\nWe decided on port 5000.\n\n"
)
CODEX = [
    {"type": "session_meta", "payload": {"id": "x", "instructions": "HIDDEN"}},
    {"type": "response_item", "payload": {"type": "message", "role": "developer", "content": [
        {"type": "input_text", "text": "HIDDEN"}]}},
    {"type": "response_item", "payload": {"type": "message", "role": "user", "content": [
        {"type": "input_text", "text": "<environment_context>HIDDEN</environment_context>"}]}},
    {"type": "response_item", "payload": {"type": "message", "role": "user", "content": [
        {"type": "input_text", "text": "We use SQLite."}]}},
    {"type": "event_msg", "payload": {"type": "user_message", "message": "We use SQLite."}},
    {"type": "response_item", "payload": {"type": "function_call_output", "output": "HIDDEN"}},
    {"type": "response_item", "payload": {"type": "message", "role": "assistant", "content": [
        {"type": "output_text", "text": "Noted."}]}},
]  # fmt: skip
CURSOR = [
    {"role": "user", "message": {"content": [
        text("<user_query>\nWe use SQLite.\n</user_query>\n<attached_files>HIDDEN</attached_files>")]}},
    {"role": "assistant", "message": {"content": [
        text("Noted."), {"type": "tool_use", "input": "HIDDEN"}]}},
]  # fmt: skip
GEMINI = {
    "messages": [
        {"type": "info", "content": "HIDDEN"},
        {"type": "user", "content": [{"text": "We use SQLite."}]},
        {"type": "gemini", "content": "Noted.", "toolCalls": [{"result": "HIDDEN"}]},
        {
            "type": "user",
            "content": "Read it.\n--- Content from referenced files ---\nHIDDEN",
        },
    ]
}


def transcript(folder: Path, entries: list[Any]) -> Path:
    file = folder / "session.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in entries))
    return file


def fire(
    event: dict[str, Any] | str, data_dir: Path, *options: str, **settings: str
) -> tuple[str, int]:
    """What the hook says, and its exit code; it says nothing on standard error."""
    given = event if isinstance(event, str) else json.dumps(event)
    environment = {key: value for key, value in os.environ.items() if "COMMONPLACE" not in key}
    environment |= {"COMMONPLACE_DATA_DIR": str(data_dir), "COMMONPLACE_TOKEN": "sk_mine"}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "commonplace.hooks", "--budget", "30", *options],
        input=given,
        env=environment | {f"COMMONPLACE_{key}": value for key, value in settings.items()},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout, done.returncode


def start(folder: Path, **more: Any) -> dict[str, Any]:
    """As Claude Code sends it."""
    return {
        "session_id": "5d9a",
        "transcript_path": str(folder / "session.jsonl"),
        "cwd": str(folder),
        "hook_event_name": "SessionStart",
        "source": "startup",
        **more,
    }


def test_a_session_starts_with_what_is_known(
    library: Library, repository: Path, data_dir: Path
) -> None:
    said, code = fire(start(repository), data_dir, URL=library.url)
    told = json.loads(said)["hookSpecificOutput"]
    assert (code, told["hookEventName"]) == (0, "SessionStart")
    assert told["additionalContext"].endswith("## Decisions\n- Use stripes")
    [asked] = library.sent
    assert asked == {
        "goal": "Work in zebra: stripes; Paint the first stripe",
        "project": "git.example.org/ann/zebra",
        "token_budget": 1500,
    }
    assert library.requests[0].headers["authorization"] == "Bearer sk_mine"


def test_cursor_reads_another_form(library: Library, repository: Path, data_dir: Path) -> None:
    event = {
        "conversation_id": "c1",
        "hook_event_name": "sessionStart",
        "workspace_roots": [str(repository)],
    }
    said, _ = fire(event, data_dir, "--client", "cursor", URL=library.url)
    assert "Use stripes" in json.loads(said)["additional_context"]


@pytest.mark.parametrize("event", ["PreCompact", "SessionEnd"])
def test_what_was_said_is_sent_once_masked_and_without_files(
    library: Library, repository: Path, data_dir: Path, event: str
) -> None:
    transcript(repository, SESSION)
    ended = start(repository, hook_event_name=event)
    assert fire(ended, data_dir, URL=library.url) == ("", 0)
    [sent] = library.sent
    assert sent == {
        "content": SAID,
        "source_title": "Session in zebra",
        "project": "git.example.org/ann/zebra",
        "session_key": "claude-code:5d9a:0",
        "persist": True,
        "review": True,
    }
    assert fire(ended, data_dir, URL=library.url) == ("", 0)
    assert len(library.sent) == 1
    transcript(repository, [*SESSION, claude("user", text("One more."))])
    fire(ended, data_dir, URL=library.url)
    assert library.sent[-1]["content"] == SAID + "User: One more.\n\n"
    assert (data_dir / "hook-progress.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("client", "entries"), [("codex", CODEX), ("cursor", CURSOR), ("gemini", GEMINI)]
)
def test_transcripts_of_others(
    library: Library, repository: Path, data_dir: Path, client: str, entries: Any
) -> None:
    if isinstance(entries, dict):
        (repository / "session.jsonl").write_text(json.dumps(entries))
    else:
        transcript(repository, entries)
    ended = start(repository, hook_event_name="PreCompact")
    fire(ended, data_dir, "--client", client, URL=library.url)
    [sent] = library.sent
    assert sent["session_key"] == f"{client}:5d9a:0"
    assert sent["content"].startswith("User: We use SQLite.\n\nAssistant: Noted.\n\n")
    assert "HIDDEN" not in sent["content"]


def test_the_end_of_a_turn_waits_for_five_prompts(
    library: Library, repository: Path, data_dir: Path
) -> None:
    stopped = start(repository, hook_event_name="Stop", stop_hook_active=False)
    prompts = [claude("user", text(f"Prompt {number}.")) for number in range(12)]
    for count in (1, 4, 5, 9, 10, 12):
        transcript(repository, prompts[:count])
        fire(stopped, data_dir, URL=library.url)
    assert [sent["content"].count("User: ") for sent in library.sent] == [5, 10]


def test_long_conversations_go_in_blocks_that_grow(
    library: Library, repository: Path, data_dir: Path
) -> None:
    words = [claude("user", text(f"{number} " + "word " * 2000)) for number in range(17)]
    transcript(repository, words[:13])
    ended = start(repository, hook_event_name="SessionEnd")
    fire(ended, data_dir, URL=library.url)
    assert [sent["session_key"][-1] for sent in library.sent] == ["1", "2"]
    transcript(repository, words)
    fire(ended, data_dir, URL=library.url)
    keys = [(sent["session_key"][-1], len(sent["content"])) for sent in library.sent]
    assert [key for key, _ in keys] == ["1", "2", "2", "3"]
    assert keys[0][1] == keys[2][1] == BLOCK
    assert library.sent[2]["content"].startswith(library.sent[1]["content"])


def test_off_stops_all(library: Library, repository: Path, data_dir: Path) -> None:
    transcript(repository, SESSION)
    for event in ("SessionStart", "PreCompact", "Stop", "SessionEnd"):
        given = start(repository, hook_event_name=event)
        assert fire(given, data_dir, URL=library.url, HOOKS="off") == ("", 0)
    assert library.requests == []


def test_nothing_is_sent_from_folders_without_a_remote_unless_a_project_is_named(
    library: Library, tmp_path: Path, data_dir: Path
) -> None:
    transcript(tmp_path, SESSION)
    for event in ("SessionStart", "SessionEnd"):
        given = start(tmp_path, hook_event_name=event)
        assert fire(given, data_dir, URL=library.url) == ("", 0)
    assert library.requests == []
    fire(start(tmp_path), data_dir, "--project", "Zebra", URL=library.url)
    assert library.sent[0]["project"] == "Zebra"


@pytest.mark.parametrize("event", ["SessionStart", "SessionEnd"])
@pytest.mark.parametrize(
    "mishap",
    [
        Mishap(401, {"WWW-Authenticate": "Bearer"}, '{"error":"unauthorized"}'),
        Mishap(429, {"Retry-After": "60"}, '{"error":"rate_limit_exceeded"}'),
        Mishap(422, {}, '{"error":"invalid","message":"No project"}'),
        Mishap(500),
        Mishap(200, {}, "<html>garbage"),
        Mishap(200, {}, "[]"),
        Mishap(200, {}, '{"total_items": 3}'),
    ],
    ids=["401", "429", "422", "500", "garbage", "list", "incomplete"],
)
def test_errors_are_silent(
    library: Library, repository: Path, data_dir: Path, event: str, mishap: Mishap
) -> None:
    transcript(repository, SESSION * 5)
    library.mishaps = {"/context": [mishap], "/reflect": [mishap]}
    given = start(repository, hook_event_name=event)
    assert fire(given, data_dir, URL=library.url) == ("", 0)
    assert len(library.requests) == 1


def test_what_could_not_be_sent_is_sent_the_next_time(
    library: Library, repository: Path, data_dir: Path
) -> None:
    transcript(repository, SESSION)
    library.mishaps = {"/reflect": [Mishap(429)]}
    ended = start(repository, hook_event_name="SessionEnd")
    fire(ended, data_dir, URL=library.url)
    fire(ended, data_dir, URL=library.url)
    assert [sent["content"] for sent in library.sent] == [SAID, SAID]


class Dribble(Stand):
    """Sends a byte now and then, so that no timeout of the connection ends it, until the end."""

    def do_POST(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        with suppress(OSError):
            while not self.service.closing.wait(0.1):
                self.wfile.write(b" ")
                self.wfile.flush()


@pytest.mark.parametrize("event", ["SessionStart", "SessionEnd"])
def test_a_slow_server_costs_the_budget_and_no_more(
    repository: Path, data_dir: Path, event: str
) -> None:
    """It answers when the test is over; the hook is gone before."""
    transcript(repository, SESSION)
    given = start(repository, hook_event_name=event)
    with running(Library(), Dribble) as library:
        assert fire(given, data_dir, "--budget", "0.5", URL=library.url) == ("", 0)


def test_an_agent_that_sends_no_event_costs_the_budget_and_no_more() -> None:
    command = [sys.executable, "-P", "-m", "commonplace.hooks", "--budget", "0.5"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.wait(SECONDS) == 0
        assert process.stdout is not None and process.stdout.read() == b""


def test_an_agent_that_does_not_listen_gets_no_error(
    library: Library, repository: Path, data_dir: Path
) -> None:
    read, write = os.pipe()
    os.close(read)
    environment = {"COMMONPLACE_URL": library.url, "COMMONPLACE_TOKEN": "sk_mine"}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "commonplace.hooks", "--budget", "30", "--data-dir", data_dir],
        input=json.dumps(start(repository)).encode(),
        env=os.environ | environment,
        stdout=write,
        stderr=subprocess.PIPE,
        timeout=SECONDS,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr, len(library.sent)) == (0, b"", 1)


@pytest.mark.parametrize(
    "given",
    ["", "garbage", "[]", "{}", '{"hook_event_name": "SessionStart", "cwd": 5}',
     '{"hook_event_name": "SessionEnd", "transcript_path": "/nowhere"}',
     '{"hook_event_name": "Unknown"}'],
)  # fmt: skip
def test_events_that_make_no_sense(library: Library, data_dir: Path, given: str) -> None:
    assert fire(given, data_dir, "--project", "Zebra", URL=library.url)[1] == 0


def test_a_server_that_is_down_and_bad_settings(repository: Path, data_dir: Path) -> None:
    transcript(repository, SESSION)
    for event in ("SessionStart", "SessionEnd"):
        given = start(repository, hook_event_name=event)
        for url in ("http://127.0.0.1:9", "nonsense", "file:///etc/passwd"):
            assert fire(given, data_dir, URL=url) == ("", 0)
        assert fire(given, data_dir, TOKEN="") == ("", 0)
        (data_dir / "server.json").write_text("{")
        assert fire(given, data_dir) == ("", 0)
    assert fire(start(repository), data_dir, "--nonsense", "--budget", "x") == ("", 0)


def test_a_redirect_does_not_take_the_token_along(
    library: Library, repository: Path, data_dir: Path
) -> None:
    with running(Library()) as other:
        moved = Mishap(302, {"Location": f"{other.url}/api/v1/memory/context"})
        library.mishaps = {"/context": [moved]}
        assert fire(start(repository), data_dir, URL=library.url) == ("", 0)
        assert other.requests == []


def test_programs_of_the_folder_do_not_pass_for_ours(
    library: Library, repository: Path, data_dir: Path
) -> None:
    for name in ("json.py", "commonplace.py", "argparse.py"):
        (repository / name).write_text("raise SystemExit('hijacked')")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "commonplace.hooks"],
        input="{}", cwd=repository, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.fixture(params=["signature", "upload-pack", "ext"])
def hostile(request: pytest.FixtureRequest, repository: Path, tmp_path: Path) -> Path:
    """A file that a program of the repository's settings makes, if it is run."""
    ran, program = tmp_path / "ran", tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\nexit 1\n")
    program.chmod(0o755)

    def git(*command: object, **options: Any) -> str:
        done = subprocess.run(
            ["git", "-C", repository, *map(str, command)],
            capture_output=True, text=True, check=False, **options,
        )  # fmt: skip
        return done.stdout.strip()

    if request.param == "signature":
        signed = git("cat-file", "commit", "HEAD").replace("\n\n", f"\n{SIGNATURE}\n\n", 1) + "\n"
        made = git("hash-object", "-t", "commit", "-w", "--stdin", input=signed)
        git("update-ref", "HEAD", made)
        git("config", "log.showSignature", "true")
        git("config", "gpg.program", program)
    else:  # HEAD is to be fetched from a promisor
        git("remote", "add", "promisor", tmp_path if request.param != "ext" else f"ext::{program}")
        for name, value in {
            "core.repositoryformatversion": "1",
            "extensions.partialClone": "promisor",
            "remote.promisor.promisor": "true",
            "remote.promisor.uploadpack": str(program),
            "protocol.allow": "always",
            "protocol.ext.allow": "always",
            "protocol.file.allow": "always",
        }.items():
            git("config", name, value)
        (repository / ".git/refs/heads/stripes").write_text("12" * 20 + "\n")
    git("log", "-1")
    assert ran.exists(), "git runs it unless it is told not to"
    ran.unlink()
    return ran


SIGNATURE = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ==\n -----END PGP SIGNATURE-----"


def test_programs_that_a_repository_names_are_not_run(
    library: Library, repository: Path, data_dir: Path, hostile: Path
) -> None:
    fire(start(repository), data_dir, URL=library.url)
    assert [each["project"] for each in library.sent] == ["git.example.org/ann/zebra"]
    with suppress(Invalid):
        asyncio.run(read_repository(repository))
    assert not hostile.exists()


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("https://github.com/ann/zebra.git", "github.com/ann/zebra"),
        ("https://user:secret@github.com/ann/zebra", "github.com/ann/zebra"),
        ("git@github.com:ann/zebra.git", "github.com/ann/zebra"),
        ("ssh://git@git.example.org:2222/ann/zebra.git/", "git.example.org/ann/zebra"),
        ("/srv/git/zebra.git", ""),
        ("file:///srv/git/zebra.git", ""),
        ("../zebra", ""),
        ("", ""),
    ],
)
def test_remotes(remote: str, address: str) -> None:
    assert repository_address(remote) == address


def test_memory_comes_by_itself_with_a_real_server(
    repository: Path, data_dir: Path, tmp_path: Path
) -> None:
    with live_house(data_dir) as (address, house):
        http = httpx.Client(
            base_url=address, headers={"Authorization": f"Bearer {house.tokens['owner']}"}
        )

        def add(**body: Any) -> Any:
            answer = http.post("/api/entities?sync=true", json=body)
            assert answer.status_code == 201, answer.text
            return answer.json()["id"]

        project = add(
            entity_type="project",
            title="Stripes",
            content="Painting zebras.",
            repository_url="https://git.example.org/ann/zebra",
        )
        add(
            entity_type="decision",
            title="Stripes are black",
            content="Stripes are black, because white ones do not show.",
            project=project,
        )
        settings = {"URL": address, "TOKEN": house.tokens["owner"]}
        home = tmp_path / "home"
        said, _ = fire(start(repository), home, **settings)
        assert "Stripes are black" in json.loads(said)["hookSpecificOutput"]["additionalContext"]
        transcript(
            repository,
            [claude("user", text("We decided to deploy zebra with Ansible instead of Puppet."))],
        )
        ended = start(repository, hook_event_name="SessionEnd")
        for _ in range(2):
            assert fire(ended, home, **settings) == ("", 0)
        found = http.get("/api/v1/memory/candidates").json()
        assert found["total"] == 1
        assert "Ansible" in found["candidates"][0]["content"]
        http.close()
