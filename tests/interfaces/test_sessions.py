"""Transcripts of agents and git logs become sessions: once each, growing as they grow, whatever state the files are in."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.command import Commands

CLAUDE = [
    {"type": "summary", "summary": "Mend the crawler", "leafUuid": "x"},
    {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
    {
        "type": "user",
        "isMeta": True,
        "sessionId": "s-1",
        "timestamp": "2026-03-01T10:00:00Z",
        "message": {"role": "user", "content": "meta"},
    },
    {
        "type": "user",
        "sessionId": "s-1",
        "cwd": "/home/me/crawler",
        "gitBranch": "main",
        "timestamp": "2026-03-01T10:00:01Z",
        "message": {
            "role": "user",
            "content": "The crawler stalls.<system-reminder>be nice</system-reminder>",
        },
    },
    {
        "type": "assistant",
        "sessionId": "s-1",
        "timestamp": "2026-03-01T10:00:05Z",
        "message": {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "secret thoughts"},
                {"type": "text", "text": "I look at the queue."},
                {
                    "type": "tool_use",
                    "id": "t",
                    "name": "Bash",
                    "input": {"command": "grep -n lease queue.py"},
                },
            ],
        },
    },
    {
        "type": "user",
        "sessionId": "s-1",
        "timestamp": "2026-03-01T10:00:06Z",
        "message": {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t", "content": "a very long answer"}
            ],
        },
    },
    {
        "type": "assistant",
        "isSidechain": True,
        "sessionId": "s-1",
        "message": {"role": "assistant", "content": "side talk"},
    },
    {
        "type": "assistant",
        "sessionId": "s-1",
        "timestamp": "2026-03-01T10:01:00Z",
        "message": {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "We decided to renew the lease every 30 seconds."}
            ],
        },
    },
]
CODEX = [
    {
        "timestamp": "2026-04-01T08:00:00Z",
        "type": "session_meta",
        "payload": {"id": "c-1", "cwd": "/work", "git": {"branch": "dev"}},
    },
    {
        "timestamp": "2026-04-01T08:00:01Z",
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "developer",
            "content": [{"type": "input_text", "text": "permissions"}],
        },
    },
    {
        "timestamp": "2026-04-01T08:00:01Z",
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "<environment_context>cwd</environment_context>"}
            ],
        },
    },
    {
        "timestamp": "2026-04-01T08:00:02Z",
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "Add a flag to the exporter"}],
        },
    },
    {
        "timestamp": "2026-04-01T08:00:03Z",
        "type": "event_msg",
        "payload": {"type": "user_message", "message": "Add a flag to the exporter"},
    },
    {
        "timestamp": "2026-04-01T08:00:04Z",
        "type": "response_item",
        "payload": {
            "type": "function_call",
            "name": "shell",
            "arguments": '{"command": ["ls", "src"]}',
            "call_id": "1",
        },
    },
    {
        "timestamp": "2026-04-01T08:00:05Z",
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "The flag is there now."}],
        },
    },
]


@pytest.fixture
def commands(data_dir: Path) -> Commands:
    return Commands(data_dir)


def write(file: Path, entries: list[Any], end: str = "") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(entry) + "\n" for entry in entries) + end)
    return file


def item(commands: Commands, query: str) -> Any:
    hit = commands.json("search", query)["hits"][0]
    return commands.json("get", hit["item_id"])


def test_a_folder_of_transcripts_is_brought_in_once(commands: Commands, tmp_path: Path) -> None:
    root = tmp_path / "projects"
    write(root / "-home-me-crawler" / "s-1.jsonl", CLAUDE)
    write(root / "sessions" / "2026" / "rollout-c-1.jsonl", CODEX)
    write(root / "empty.jsonl", CLAUDE[:2])
    first = commands.json("import", root)
    assert (first["added"], first["changed"], first["unchanged"]) == (2, 0, 0)
    claude, codex = item(commands, "crawler stalls"), item(commands, "flag exporter")
    assert claude["text"] == (
        "**User:** The crawler stalls.\n\n**Assistant:** I look at the queue.\n\n(used Bash: grep -n lease queue.py)"
        "\n\nWe decided to renew the lease every 30 seconds."
    )
    assert (claude["entity_type"], claude["title"]) == ("session", "Mend the crawler")
    assert claude["created_at"].startswith("2026-03-01T10:00:00")
    assert (
        codex["text"]
        == "**User:** Add a flag to the exporter\n\n**Assistant:** (used shell: ls src)\n\nThe flag is there now."
    )
    second = commands.json("import", root)
    assert (second["added"], second["changed"], second["unchanged"]) == (0, 0, 2)


def test_a_session_that_has_grown_replaces_what_there_was_of_it(
    commands: Commands, tmp_path: Path
) -> None:
    file = write(tmp_path / "s-1.jsonl", CLAUDE, end='{"type": "user", "sess')
    result = commands.run("import", file, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["unread"] == [
        {"path": f"{file}:{len(CLAUDE) + 1}", "reason": "is not JSON"}
    ]
    more = [
        {
            "type": "user",
            "sessionId": "s-1",
            "timestamp": "2026-03-01T11:00:00Z",
            "message": {"role": "user", "content": f"And now the walrus, please. {n}"},
        }
        for n in range(2)
    ]
    for grown in (CLAUDE + more[:1], CLAUDE + more):
        write(file, grown)
        assert commands.json("import", file)["changed"] == 1
        assert commands.json("import", file)["unchanged"] == 1
    listed = [
        one
        for one in commands.json("list", "--limit", "50")["items"]
        if one["entity_type"] == "session"
    ]
    assert len(listed) == 3
    pack = commands.json("context", "mend the crawler")
    shown = [line for part in pack["sections"] for line in part["items"]]
    assert len(shown) == 1
    assert "walrus, please. 1" in item(commands, "walrus please")["text"]


def test_half_an_emoji_that_a_program_cut_off_does_not_end_the_import(
    commands: Commands, tmp_path: Path
) -> None:
    for name, said in (("a", "Ship it \ud83d"), ("b", "Zero \0 bytes"), ("c", "Plain words")):
        write(
            tmp_path / "logs" / f"{name}.jsonl",
            [{"type": "user", "sessionId": name, "message": {"role": "user", "content": said}}],
        )
    assert commands.json("import", tmp_path / "logs")["added"] == 3
    assert {
        entity["title"] for entity in commands.json("list", "--type", "session")["entities"]
    } == {
        "Ship it ?",
        "Zero bytes",
        "Plain words",
    }


def test_long_sessions_are_kept_in_parts(commands: Commands, tmp_path: Path) -> None:
    talk = [
        {
            "type": "user",
            "sessionId": "long",
            "message": {"role": "user", "content": f"Part {n}: " + "word " * 200},
        }
        for n in range(120)
    ]
    file = write(tmp_path / "long.jsonl", talk)
    assert commands.json("import", file)["added"] == 1
    listed = commands.json("list", "--limit", "50")["items"]
    assert len(listed) == 4
    assert commands.json("import", file)["unchanged"] == 1


def test_decisions_go_to_the_review_queue_when_asked(commands: Commands, tmp_path: Path) -> None:
    file = write(tmp_path / "s-1.jsonl", CLAUDE)
    assert commands.json("import", file)["added"] == 1
    assert commands.json("review", "list")["total"] == 0
    said = {"role": "user", "content": "We decided to renew the lease every 30 seconds."}
    entries = [*CLAUDE, {"type": "user", "message": said}]
    other = write(tmp_path / "c.jsonl", [{**entry, "sessionId": "s-2"} for entry in entries])
    assert commands.json("import", other, "--reflect")["added"] == 1
    [candidate] = commands.json("review", "list")["candidates"]  # the assistant's words bring none
    assert candidate["title"] == "Renew the lease every 30 seconds"
    commands.text("review", "reject", candidate["id"])
    assert commands.json("import", other, "--reflect")["unchanged"] == 1
    # Nor is what was rejected asked again.
    assert commands.json("review", "list", "--state", "all")["total"] == 1
    assert commands.json("import", file, "--reflect")["unchanged"] == 1
    assert commands.json("review", "list", "--state", "all")["total"] == 1


def commit(repository: Path, message: str, at: str) -> None:
    env = os.environ | {
        "GIT_AUTHOR_DATE": at,
        "GIT_COMMITTER_DATE": at,
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    (repository / "file.txt").write_text(message)
    for arguments in (
        ["add", "."],
        ["-c", "user.name=Ann", "-c", "user.email=a@example.org", "commit", "-qm", message],
    ):
        subprocess.run(["git", "-C", str(repository), *arguments], check=True, env=env)


def test_a_repository_is_a_session_a_month(commands: Commands, tmp_path: Path) -> None:
    repository = tmp_path / "crawler"
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    commit(repository, "Renew leases\n\nThey ran out under load.", "2026-01-10T10:00:00+00:00")
    commit(repository, "Count retries", "2026-02-10T10:00:00+00:00")
    assert commands.json("import", repository)["added"] == 2
    assert commands.json("import", repository)["unchanged"] == 2
    found = item(commands, "leases under load")
    assert found["title"] == "Commits of crawler in 2026-01"
    assert "They ran out under load." in found["text"]
    assert "Files: file.txt" in found["text"]
    commit(repository, "Stop after five", "2026-02-12T10:00:00+00:00")
    again = commands.json("import", repository)
    assert (again["changed"], again["unchanged"]) == (1, 1)
    log = tmp_path / "log.txt"
    log.write_text(
        subprocess.run(
            ["git", "-C", str(repository), "log"], check=True, capture_output=True, text=True
        ).stdout
    )
    saved = Commands(tmp_path / "other")
    assert saved.json("import", log)["added"] == 2
    assert saved.json("import", log)["unchanged"] == 2


def test_a_vault_that_is_kept_in_git_is_still_a_vault(commands: Commands, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    subprocess.run(["git", "init", "-q", str(vault)], check=True)
    (vault / "note.md").write_text("# Note\n\nA note about the walrus.")
    commit(vault, "First note", "2026-01-10T10:00:00+00:00")
    assert commands.json("import", vault)["added"] == 1
    assert item(commands, "walrus")["entity_type"] == "document"
    assert commands.json("import", vault, "--as", "git")["added"] == 1


def test_what_is_no_transcript_is_refused(commands: Commands, tmp_path: Path) -> None:
    assert "contains no messages" in commands.fails(
        "import", write(tmp_path / "x.jsonl", [{"a": 1}, [1], "text"], end="garbage")
    )
    assert "markdown, transcripts or git" in commands.fails("import", tmp_path, "--as", "music")
