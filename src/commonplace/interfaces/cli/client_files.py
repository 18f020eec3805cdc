"""Change configuration files of clients: take nothing of others, and give back what was there.

Each edit puts our entry into the text of a file and can take it out again. A ledger in the data
folder keeps a hash of what we wrote, so that a file that nobody changed since is restored byte for
byte from its backup.
"""

import json
import os
import tempfile
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import unified_diff
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from commonplace.core.people.client_setup import NAME, toml_table
from commonplace.errors import Invalid
from commonplace.model import Json
from commonplace.text import jsonc

LEDGER = "connections.json"
BACKUP = ".commonplace.bak"
HOOK_MARKS = ("commonplace.hooks", "commonplace-hook")
BEGIN, END = "<!-- commonplace:begin -->", "<!-- commonplace:end -->"


class Edit(Protocol):
    def put(self, text: str) -> str: ...

    def take(self, text: str) -> str: ...


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an object in JSON, which may have comments."""

    path: tuple[str, ...]
    value: Any

    def put(self, text: str) -> str:
        return jsonc.put(text, self.path, self.value)

    def take(self, text: str) -> str:
        return jsonc.remove(text, self.path)


@dataclass(frozen=True, slots=True)
class HookElement:
    """Our element of a list of hooks in JSON."""

    path: tuple[str, ...]
    value: Any

    def put(self, text: str) -> str:
        return jsonc.put_into_list(text, self.path, self.value, _is_our_hook)

    def take(self, text: str) -> str:
        return jsonc.remove_from_list(text, self.path, _is_our_hook)


@dataclass(frozen=True, slots=True)
class McpTable:
    """Our table of TOML."""

    value: Json

    def put(self, text: str) -> str:
        lines = text.splitlines(keepends=True)
        at, end = _table(lines)
        newline = "\r\n" if "\r\n" in text else "\n"
        table = toml_table(self.value).replace("\n", newline) + newline
        if _server(text) == self.value:
            return text
        if at is None:
            gap = newline * (2 - text.endswith("\n")) if text.strip() else ""
            new = text + gap + table
        else:
            new = "".join([*lines[:at], table, *lines[end:]])
        return self._checked(text, new, self.value)

    def take(self, text: str) -> str:
        before = text
        while True:
            lines = text.splitlines(keepends=True)
            at, end = _table(lines, with_inner=True)
            if at is None:
                return self._checked(before, text, None)
            if at and not lines[at - 1].strip():
                at -= 1
            text = "".join([*lines[:at], *lines[end:]])

    @staticmethod
    def _checked(before: str, after: str, wanted: Json | None) -> str:
        """Refuse where a table stands in a way that lines do not tell."""
        try:
            found = tomllib.loads(after)
        except tomllib.TOMLDecodeError:
            found = None
        if found is not None:
            ours = found.get("mcp_servers", {}).get(NAME)
            same = _without_ours(found) == _without_ours(tomllib.loads(before))
            if same and (
                ours is None if wanted is None else ours is not None and ours | wanted == ours
            ):
                return after
        raise ValueError(f"has mcp_servers.{NAME} in a form that only you can change")


@dataclass(frozen=True, slots=True)
class Block:
    """Text between markers."""

    text: str  # with its markers

    def put(self, text: str) -> str:
        start, end = text.find(BEGIN), text.find(END)
        block = self.text.strip()
        if 0 <= start < end:
            return text[:start] + block + text[end + len(END) :]
        gap = "\n" * (2 - text.endswith("\n")) if text.strip() else ""
        return text + gap + block + "\n"

    def take(self, text: str) -> str:
        start, end = text.find(BEGIN), text.find(END)
        if not 0 <= start < end:
            return text
        after = text[end + len(END) :].removeprefix("\r").removeprefix("\n")
        head = text[:start]
        return (head.removesuffix("\n") if head.endswith("\n\n") else head) + after


@dataclass(frozen=True, slots=True)
class Whole:
    """A file of ours. One that somebody changed since stays."""

    text: str

    def put(self, text: str) -> str:
        return self.text

    def take(self, text: str) -> str:
        return "" if text == self.text else text


@dataclass(frozen=True, slots=True)
class Change:
    path: Path
    action: str  # created, changed, unchanged, removed or restored
    before: str
    after: str

    @property
    def diff(self) -> str:
        before, after = self.before.splitlines(), self.after.splitlines()
        return "\n".join(unified_diff(before, after, str(self.path), str(self.path), lineterm=""))


class ClientFiles:
    """Puts edits into files and takes them out. With `dry_run`, nothing is written."""

    def __init__(self, data_dir: Path, dry_run: bool = False) -> None:
        self._ledger_file, self._dry_run = data_dir / LEDGER, dry_run
        self._ledger: Json = {}
        with suppress(OSError, ValueError):
            self._ledger = json.loads(self._ledger_file.read_text())

    def put(self, path: Path, edits: Sequence[Edit], private: bool = False) -> Change:
        path = path.resolve()  # of dotfiles that are links, what they lead to
        old = _read(path)
        text = before = _decoded(path, old)
        for edit in edits:
            text = _attempt(path, edit.put, text)
        if text == before and old is not None:
            return Change(path, "unchanged", before, text)
        if not self._dry_run:
            known = self._as_we_left_it(path, old)
            if known is None:  # a backup of what we wrote before is not what to go back to
                known = {"backup": old is not None, "restores": str(path) not in self._ledger}
                if old is not None:
                    write_private(_backup(path), old, path)
            write(path, text.encode(), private)
            self._note(path, known | {"sha256": _hash(text.encode())})
        return Change(path, "created" if old is None else "changed", before, text)

    def take(self, path: Path, edits: Sequence[Edit]) -> Change | None:
        path = path.resolve()
        old = _read(path)
        if old is None:
            return None
        text = before = _decoded(path, old)
        known = self._as_we_left_it(path, old)
        if known and known["restores"] and (not known["backup"] or _backup(path).exists()):
            restored = _backup(path).read_bytes() if known["backup"] else None
            if not self._dry_run:
                if restored is None:
                    path.unlink()
                else:
                    write(path, restored)
                    _backup(path).unlink()
                self._note(path, None)
            return Change(
                path,
                "removed" if restored is None else "restored",
                before,
                _decoded(path, restored),
            )
        for edit in edits:
            text = _attempt(path, edit.take, text)
        if text == before:
            return None
        if not self._dry_run:
            if text or not any(isinstance(edit, Whole) for edit in edits):
                write(path, text.encode())
            else:
                path.unlink()
            self._note(path, None)
        return Change(path, "changed", before, text)

    def _as_we_left_it(self, path: Path, content: bytes | None) -> Json | None:
        known = self._ledger.get(str(path))
        if content is None or not isinstance(known, dict) or known.get("sha256") != _hash(content):
            return None
        return known

    def _note(self, path: Path, known: Json | None) -> None:
        self._ledger.pop(str(path), None)
        if known:
            self._ledger[str(path)] = known
        write_private(self._ledger_file, json.dumps(self._ledger, indent=1).encode())


def write(path: Path, content: bytes, private: bool = False) -> None:
    """Replace a file at once, with the rights that it has."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700 if private else 0o777)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(name, mode & 0o600 if private else mode)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def write_private(path: Path, content: bytes, like: Path | None = None) -> None:
    """Replace a file that only its owner may read, or who may read the file that it is like."""
    write(path, content, private=True)
    if like is not None:
        path.chmod(like.stat().st_mode & 0o777)


def _backup(path: Path) -> Path:
    return path.with_name(path.name + BACKUP)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _decoded(path: Path, content: bytes | None) -> str:
    try:
        return (content or b"").decode()
    except UnicodeDecodeError as error:
        raise Invalid(f"{path} is not UTF-8 text. Nothing was changed in it.") from error


def _attempt(path: Path, change: Any, text: str) -> str:
    try:
        return str(change(text))
    except ValueError as error:
        raise Invalid(
            f"{path} {error}. Nothing was changed in it; add the entry by hand: leave out --write "
            "to see it."
        ) from error


def _hash(content: bytes) -> str:
    return sha256(content).hexdigest()


def _is_our_hook(element: Any) -> bool:
    text = json.dumps(element)
    return any(mark in text for mark in HOOK_MARKS)


def _server(text: str) -> Any:
    try:
        return tomllib.loads(text).get("mcp_servers", {}).get(NAME)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"is not TOML ({error})") from error


def _without_ours(document: Json) -> Json:
    servers = document.get("mcp_servers")
    if not isinstance(servers, dict):
        return document
    left = {name: each for name, each in servers.items() if name != NAME}
    others = {name: each for name, each in document.items() if name != "mcp_servers"}
    return others | ({"mcp_servers": left} if left else {})


def _table(lines: Sequence[str], with_inner: bool = False) -> tuple[int | None, int]:
    """Return the first line of our table and the line after its last, without the comments that
    belong to what follows."""
    wanted = [f"mcp_servers.{NAME}", f'mcp_servers."{NAME}"']
    for at, line in enumerate(lines):
        name = line.strip().removeprefix("[").partition("]")[0].replace(" ", "")
        if not line.lstrip().startswith("[") or not (
            name in wanted or (with_inner and name.startswith(tuple(f"{each}." for each in wanted)))
        ):
            continue
        end = at + 1
        while end < len(lines) and not lines[end].lstrip().startswith("["):
            end += 1
        while end > at + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip()[0] == "#"):
            end -= 1
        return at, end
    return None, 0
