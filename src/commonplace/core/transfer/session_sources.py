"""Read sessions from transcripts of Claude Code and Codex (JSON lines), and from git history.

Of transcripts, messages and short mentions of tool calls are kept, tool output and thinking are
not. Of git history, a session is one month of commits.
"""

import asyncio
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from commonplace.errors import Invalid
from commonplace.hooks import GIT, GIT_ENVIRONMENT
from commonplace.model import Json, parse_time
from commonplace.text import front_matter

ENDING = ".jsonl"
LONGEST_TITLE = 120
LONGEST_CALL = 160
_REMINDERS = re.compile(
    r"<(system-reminder|environment_context|user_instructions|command-message|"
    r"local-command-stdout)>"
)
_COMMANDS = re.compile(r"<(command-name|command-args)>")
# Arguments that describe a tool call, in order of preference.
_TELLING = (
    "command",
    "cmd",
    "file_path",
    "path",
    "pattern",
    "query",
    "url",
    "prompt",
    "description",
    "input",
)
MOST_FILES = 20  # listed per commit
_COMMIT = re.compile(r"^commit ([0-9a-f]{7,64})\b", re.MULTILINE)
_UNIT, _RECORD = "\x1f", "\x1e"
_FORMAT = _RECORD + _UNIT.join(("%H", "%an", "%aI", "%B")) + _UNIT


@dataclass(slots=True)
class Session:
    """One conversation, or one month of a project's history."""

    key: str  # a stable identifier
    title: str
    text: str
    at: datetime | None = None  # when it began
    about: Json = field(default_factory=dict)


@dataclass(slots=True)
class _Talk:
    program: str = ""
    id: str = ""
    title: str = ""
    first: datetime | None = None
    last: datetime | None = None
    about: Json = field(default_factory=dict)
    turns: list[tuple[str, list[str]]] = field(default_factory=list)

    def say(self, who: str, text: str) -> None:
        if not text.strip():
            return
        if not self.turns or self.turns[-1][0] != who:
            self.turns.append((who, []))
        self.turns[-1][1].append(text.strip())

    def identify(self, session_id: Any, cwd: Any, branch: Any) -> None:
        self.id = self.id or str(session_id or "")
        for name, value in (("cwd", cwd), ("branch", branch)):
            if isinstance(value, str) and value:
                self.about.setdefault(name, value)


def files(root: Path) -> list[Path]:
    return (
        [root]
        if root.is_file()
        else sorted(path for path in root.rglob(f"*{ENDING}") if path.is_file())
    )


def read(file: Path, complain: Callable[[str, str], None]) -> Session | None:
    """Read a transcript; None if it has no messages. Unreadable lines are reported with their place
    and skipped: a running session ends in the middle of one."""
    talk = _Talk()
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                entry = json.loads(line) if line.strip() else None
            except (ValueError, RecursionError):
                complain(f"{file}:{number}", "is not JSON")
                continue
            if isinstance(entry, dict):
                _take(talk, entry)
    return _session(talk, file) if talk.turns else None


def _session(talk: _Talk, file: Path) -> Session:
    name = talk.id or file.stem
    title = talk.title or next(
        (parts[0] for who, parts in talk.turns if who == "User"), talk.turns[0][1][0]
    )
    return Session(
        f"{talk.program}:{name}"[:120],
        _line(clean(title), LONGEST_TITLE) or name,
        clean("\n\n".join(f"**{who}:** " + "\n\n".join(parts) for who, parts in talk.turns)),
        talk.first,
        talk.about
        | {"program": talk.program, "session_id": name}
        | ({"ended_at": talk.last.isoformat()} if talk.last else {}),
    )


def _take(talk: _Talk, entry: Json) -> None:
    payload = entry.get("payload")
    if at := parse_time(entry.get("timestamp")):
        talk.first, talk.last = min(talk.first or at, at), max(talk.last or at, at)
    if isinstance(payload, dict):
        _codex(talk, str(entry.get("type")), payload)
    elif (
        isinstance(entry.get("message"), dict)
        or "sessionId" in entry
        or entry.get("type") == "summary"
    ):
        _claude_code(talk, entry)
    else:
        # as early versions wrote it
        _codex(talk, "response_item" if "type" in entry else "session_meta", entry)


# -- Claude Code


def _claude_code(talk: _Talk, entry: Json) -> None:
    talk.program = "claude-code"
    if isinstance(entry.get("summary"), str) and entry.get("type") == "summary":
        talk.title = talk.title or entry["summary"]
    if (
        entry.get("isSidechain")
        or entry.get("isMeta")
        or entry.get("type") not in ("user", "assistant")
    ):
        return
    talk.identify(entry.get("sessionId"), entry.get("cwd"), entry.get("gitBranch"))
    message = entry.get("message")
    who = "User" if entry["type"] == "user" else "Assistant"
    for block in _blocks(message.get("content") if isinstance(message, dict) else None):
        if block.get("type") == "text":
            talk.say(who, _said(block.get("text")))
        elif block.get("type") == "tool_use":
            talk.say(who, _call(block.get("name"), block.get("input")))


# -- Codex


def _codex(talk: _Talk, kind: str, payload: Json) -> None:
    talk.program = talk.program or "codex"
    if kind == "session_meta":
        git = payload.get("git")
        talk.identify(
            payload.get("id"),
            payload.get("cwd"),
            git.get("branch") if isinstance(git, dict) else None,
        )
        return
    if kind != "response_item":
        return  # screen events repeat the same words
    match payload.get("type"):
        case "message" if payload.get("role") in ("user", "assistant"):
            for block in _blocks(payload.get("content")):
                if str(block.get("type")).endswith("text"):
                    talk.say(str(payload["role"]).capitalize(), _said(block.get("text")))
        case "function_call" | "custom_tool_call":
            talk.say(
                "Assistant",
                _call(payload.get("name"), payload.get("arguments", payload.get("input"))),
            )
        case "local_shell_call":
            talk.say("Assistant", _call("shell", payload.get("action")))


# -- parts


def clean(text: str) -> str:
    """Remove NUL characters, and replace lone surrogates, which programs leave when they cut
    texts."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _blocks(content: Any) -> Iterator[Json]:
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    elif isinstance(content, list):
        yield from (block for block in content if isinstance(block, dict))


def _said(text: Any) -> str:
    """Remove blocks that programs insert into the user's words."""
    plain = _without(_REMINDERS, text) if isinstance(text, str) else ""
    plain = _without(_COMMANDS, plain, keep=True).strip()
    return (
        ""
        if plain.startswith(("# AGENTS.md instructions", "Caveat: The messages below"))
        else plain
    )


def _without(opening: re.Pattern[str], text: str, *, keep: bool = False) -> str:
    """Remove blocks from an opening tag to its closing one, or only the tags."""
    kept, at = [], 0
    unclosed: set[str] = set()  # tags without a closing one: do not search again
    for tag in opening.finditer(text):
        if tag.start() < at or tag[1] in unclosed:
            continue
        end = text.find(f"</{tag[1]}>", tag.end())
        if end < 0:
            unclosed.add(tag[1])
            continue
        kept += [text[at : tag.start()], f"{text[tag.end() : end].strip()} " if keep else ""]
        at = end + len(tag[1]) + 3
        while text[at : at + 1].isspace():
            at += 1
    return "".join([*kept, text[at:]])


def _call(name: Any, given: Any) -> str:
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            given = {"input": given}
    about = (
        next((given[key] for key in _TELLING if given.get(key)), "")
        if isinstance(given, dict)
        else ""
    )
    words = " ".join(map(str, about)) if isinstance(about, list) else str(about)
    return f"(used {name or 'a tool'}{f': {_line(words, LONGEST_CALL)}' if words else ''})"


def _line(text: str, longest: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


# -- git history


@dataclass(frozen=True, slots=True)
class Commit:
    hash: str
    author: str
    at: datetime
    message: str
    files: tuple[str, ...] = ()


def is_repository(path: Path) -> bool:
    return path.is_dir() and (
        (path / ".git").exists() or ((path / "HEAD").is_file() and (path / "objects").is_dir())
    )


def is_saved_log(head: str) -> bool:
    return _COMMIT.match(head) is not None


async def read_repository(path: Path) -> list[Session]:
    commits = list(
        _records(
            await _git(
                path,
                "log",
                "--reverse",
                "--no-color",
                "--no-ext-diff",
                "--no-textconv",
                "--name-only",
                f"--format={_FORMAT}",
                "--",
            )
        )
    )
    if not commits:
        raise Invalid(f"{path} has no commits.")
    roots = (await _git(path, "rev-list", "--max-parents=0", "HEAD", "--")).split()
    return list(
        _sessions(commits, min(roots), (path.name or "the repository").removesuffix(".git"))
    )


def read_log(file: Path) -> list[Session]:
    """Read the output of `git log`. The oldest commit identifies the project, so that a longer log
    updates it."""
    commits = sorted(
        _printed(front_matter.decode(file.read_bytes(), str(file))), key=lambda commit: commit.at
    )
    if not commits:
        raise Invalid(f"{file.stem} is not a git log.")
    return list(_sessions(commits, commits[0].hash, file.stem))


async def _git(path: Path, *arguments: str) -> str:
    try:
        running = await asyncio.create_subprocess_exec(
            *GIT,
            "-C",
            str(path),
            *arguments,
            env=os.environ | GIT_ENVIRONMENT,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except FileNotFoundError:
        raise Invalid(
            "git is not installed. Save a log elsewhere with `git log > log.txt`, and import that."
        ) from None
    out, err = await running.communicate()
    if running.returncode:
        raise Invalid(f"git could not read {path}: {err.decode(errors='replace').strip()[:300]}")
    return out.decode(errors="replace")


def _records(log: str) -> Iterator[Commit]:
    for record in log.split(_RECORD)[1:]:
        commit, author, at, message, files = (record.split(_UNIT, 4) + [""] * 5)[:5]
        if when := parse_time(at):
            yield Commit(
                commit,
                author,
                when,
                message.strip(),
                tuple(line for line in files.splitlines() if line.strip()),
            )


def _printed(text: str) -> Iterator[Commit]:
    _, *parts = _COMMIT.split(text)  # hashes and what follows each
    for commit, printed in zip(parts[::2], parts[1::2], strict=True):
        head, _, body = printed.partition("\n\n")
        fields = dict(line.split(":", 1) for line in head.splitlines() if ":" in line)
        if when := _date(fields.get("Date", fields.get("AuthorDate", "")).strip()):
            message = "\n".join(
                line[4:] for line in body.splitlines() if line.startswith("    ") or not line
            )
            yield Commit(
                commit, fields.get("Author", "").split("<")[0].strip(), when, message.strip()
            )


def _date(text: str) -> datetime | None:
    for form in ("%a %b %d %H:%M:%S %Y %z", "%Y-%m-%d %H:%M:%S %z"):
        try:
            return datetime.strptime(text, form)
        except ValueError:
            continue
    return parse_time(text)


def _sessions(commits: Iterable[Commit], project: str, name: str) -> Iterator[Session]:
    # stable: keeps the log's order
    by_month = sorted(commits, key=lambda commit: commit.at.astimezone().strftime("%Y-%m"))
    for month, group in groupby(
        by_month, key=lambda commit: commit.at.astimezone().strftime("%Y-%m")
    ):
        inside = list(group)
        yield Session(
            f"git:{project[:40]}:{month}",
            f"Commits of {name} in {month}"[:190],
            "\n\n".join(map(_told, inside)),
            inside[0].at,
            {
                "program": "git",
                "project": name,
                "month": month,
                "first": inside[0].hash,
                "last": inside[-1].hash,
                "commits": len(inside),
            },
        )


def _told(commit: Commit) -> str:
    subject, _, body = commit.message.partition("\n")
    more = len(commit.files) - MOST_FILES
    files = ", ".join(commit.files[:MOST_FILES]) + (f" and {more} more" if more > 0 else "")
    lines = (
        f"## {subject.strip() or commit.hash[:12]}",
        f"{commit.hash[:12]}, {commit.author}, {commit.at:%Y-%m-%d %H:%M}",
        body.strip(),
        f"Files: {files}" if files else "",
    )
    return "\n\n".join(filter(None, lines)).replace("\0", "")
