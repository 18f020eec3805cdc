"""Import git history: one session per month of commits, from a repository or a saved log."""

import asyncio
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from pathlib import Path

from commonplace.core.transfer.agent_transcripts import Session
from commonplace.core.transfer.bookmark_formats import iso
from commonplace.errors import Invalid
from commonplace.text import front_matter

MOST_FILES = 20  # listed per commit
_COMMIT = re.compile(r"^commit ([0-9a-f]{7,64})\b", re.MULTILINE)
_UNIT, _RECORD = "\x1f", "\x1e"
_FORMAT = _RECORD + _UNIT.join(("%H", "%an", "%aI", "%B")) + _UNIT
# A repository's settings can name programs to run. None is needed to read commits.
_READ_ONLY = (
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "log.showSignature=false",
    "-c",
    "core.pager=cat",
    "-c",
    "protocol.allow=never",
)


@dataclass(frozen=True, slots=True)
class Commit:
    hash: str
    author: str
    at: datetime
    message: str
    files: tuple[str, ...] = field(default=())


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


def read_file(file: Path) -> list[Session]:
    """Read a saved log; empty for a folder."""
    return (
        []
        if file.is_dir()
        else read_saved(front_matter.decode(file.read_bytes(), str(file)), file.stem)
    )


def read_saved(text: str, name: str) -> list[Session]:
    """Parse the output of `git log`. The oldest commit identifies the project, so that a longer log
    updates it."""
    commits = sorted(_printed(text), key=lambda commit: commit.at)
    if not commits:
        raise Invalid(f"{name} is not a git log.")
    return list(_sessions(commits, commits[0].hash, name))


async def _git(path: Path, *arguments: str) -> str:
    try:
        running = await asyncio.create_subprocess_exec(
            "git",
            *_READ_ONLY,
            "-C",
            str(path),
            *arguments,
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
        when = iso(at)
        if when is not None:
            yield Commit(
                commit,
                author,
                when,
                message.strip(),
                tuple(line for line in files.splitlines() if line.strip()),
            )


def _printed(text: str) -> Iterator[Commit]:
    starts = [*_COMMIT.finditer(text)]
    for number, start in enumerate(starts):
        head, _, body = text[
            start.end() : starts[number + 1].start() if number + 1 < len(starts) else len(text)
        ].partition("\n\n")
        fields = dict(line.split(":", 1) for line in head.splitlines() if ":" in line)
        when = _date(fields.get("Date", fields.get("AuthorDate", "")).strip())
        if when is not None:
            message = "\n".join(
                line[4:] for line in body.splitlines() if line.startswith("    ") or not line
            )
            yield Commit(
                start[1], fields.get("Author", "").split("<")[0].strip(), when, message.strip()
            )


def _date(text: str) -> datetime | None:
    for form in ("%a %b %d %H:%M:%S %Y %z", "%Y-%m-%d %H:%M:%S %z"):
        try:
            return datetime.strptime(text, form)
        except ValueError:
            continue
    return iso(text)


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
    lines = [
        f"## {subject.strip() or commit.hash[:12]}",
        f"{commit.hash[:12]}, {commit.author}, {commit.at:%Y-%m-%d %H:%M}",
        body.strip(),
    ]
    if commit.files:
        more = (
            f" and {len(commit.files) - MOST_FILES} more" if len(commit.files) > MOST_FILES else ""
        )
        lines.append("Files: " + ", ".join(commit.files[:MOST_FILES]) + more)
    return "\n\n".join(filter(None, lines)).replace("\0", "")
