"""Read transcripts of Claude Code and Codex (JSON lines). Keeps messages and short mentions of tool
calls; drops tool output and thinking."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from commonplace.core.transfer.bookmark_formats import clean, iso
from commonplace.model import Json

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


Complain = Callable[[str, str], None]  # (place, reason)


def files(root: Path) -> list[Path]:
    return (
        [root]
        if root.is_file()
        else sorted(path for path in root.rglob(f"*{ENDING}") if path.is_file())
    )


def read(file: Path, complain: Complain) -> Session | None:
    """Read a transcript; None if it has no messages. Unreadable lines are reported and skipped: a
    running session ends in the middle of one."""
    talk = _Talk()
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):
                complain(f"{file}:{number}", "is not JSON")
                continue
            if isinstance(entry, dict):
                _take(talk, entry)
    if not talk.turns:
        return None
    return _session(talk, file)


def _session(talk: _Talk, file: Path) -> Session:
    name = talk.id or file.stem
    title = talk.title or next(
        (parts[0] for who, parts in talk.turns if who == "User"), talk.turns[0][1][0]
    )
    about = talk.about | {"program": talk.program, "session_id": name}
    if talk.last:
        about["ended_at"] = talk.last.isoformat()
    return Session(
        f"{talk.program}:{name}"[:120],
        _line(clean(title), LONGEST_TITLE) or name,
        clean("\n\n".join(f"**{who}:** " + "\n\n".join(parts) for who, parts in talk.turns)),
        talk.first,
        about,
    )


def _take(talk: _Talk, entry: Json) -> None:
    payload = entry.get("payload")
    at = iso(entry.get("timestamp"))
    if at is not None:
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
    talk.id = talk.id or str(entry.get("sessionId") or "")
    for name, key in (("cwd", "cwd"), ("branch", "gitBranch")):
        if isinstance(entry.get(key), str) and entry[key]:
            talk.about.setdefault(name, entry[key])
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    who = "User" if entry["type"] == "user" else "Assistant"
    for block in _blocks(content):
        if block.get("type") == "text":
            talk.say(who, _said(block.get("text")))
        elif block.get("type") == "tool_use":
            talk.say(who, _call(block.get("name"), block.get("input")))


# -- Codex


def _codex(talk: _Talk, kind: str, payload: Json) -> None:
    talk.program = talk.program or "codex"
    if kind == "session_meta":
        talk.id = talk.id or str(payload.get("id") or "")
        git = payload.get("git") if isinstance(payload.get("git"), dict) else {}
        for name, value in (
            ("cwd", payload.get("cwd")),
            ("branch", git.get("branch") if git else None),
        ):
            if isinstance(value, str) and value:
                talk.about.setdefault(name, value)
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
