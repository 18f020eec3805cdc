"""Backups: one file that both engines can restore, of gzipped JSON lines, each [table, row].

The first line names the schema, the last the number of rows, so that half a file is detected.
Sections are written without their index, which is built again when they are restored. Uploaded
files and raw pages follow the rows: a line ["files", {key, size}] each, then their
bytes and a line feed.
"""

import gzip
import json
import os
import re
import shutil
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain, groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from commonplace.database import Tx, usage
from commonplace.database.migrations import check_version
from commonplace.errors import Conflict, Invalid
from commonplace.model import Advance, Scope, Upload
from commonplace.search_index.index import SectionIndex
from commonplace.store import rows
from commonplace.store.files.source_files import read_file
from commonplace.store.queues import job_queues
from commonplace.store.section_rows import put_section_rows, section_rows
from commonplace.store.trash.moves import delete_items

FORMAT = 2
AT_ONCE = 500
# In an order in which they can be written again.
TABLES = (
    "people",
    "libraries",
    "members",
    "directory",
    "folders",
    "tokens",
    "token_folders",
    "events",
    "oauth_clients",
    "oauth_secrets",
    "contents",
    "sources",
    "source_libraries",
    "transcribing",
    "items",
    "folder_items",
    "versions",
    "aliases",
    "trash",
    "trash_rows",
    "trash_folders",
    "undo_steps",
    "undo_rows",
    "sections",
    "jobs",
    "transcriptions",
    "uploads",
    "source_files",
    "feeds",
    "feed_entries",
    "crawls",
    "crawl_pages",
    "relations",
    "captures",
    "candidates",
    "idempotency_keys",
    "passwords",
    "passkeys",
    "web_sessions",
    "once_only",
    "published",
    "saves",
    "invitations",
    "event_counters",
    "event_log",
    "webhooks",
)

FILES = "files"
_KEY = re.compile(r"(?:uploads|sources)/[\w-]+/[\w-]+")
_BUFFER = 1024 * 1024

Counts = dict[str, int]
Dump = tuple[Counts, list[str]]  # rows by table, and the keys of the uploaded files


def draft_of(file: Path) -> Path:
    """Create the temporary file that a backup is written to, which nobody else can read."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    draft.touch(0o600)
    return draft


def dump(tx: Tx, index: SectionIndex, draft: Path, files: bool, advance: Advance) -> Dump:
    """Write all rows, to be followed by `files` and `close`."""
    keys: list[str] = []
    with gzip.open(draft, "wb", compresslevel=3) as out:
        counts = _write(tx, index, out, files, keys, lambda share: advance(round(40 * share), 100))
    return counts, keys


def append_file(draft: Path, key: str, file: Path) -> None:
    """Append an uploaded file: not compressed, as most are already."""
    with gzip.open(draft, "ab", compresslevel=0) as out, file.open("rb") as stored:
        _line(out, FILES, {"key": key, "size": os.fstat(stored.fileno()).st_size})
        shutil.copyfileobj(stored, out, _BUFFER)
        out.write(b"\n")


def close(draft: Path, counts: Counts, advance: Advance) -> None:
    """Append the last line, and read everything back."""
    with gzip.open(draft, "ab") as out:
        _line(out, "end", counts)
    for _ in _read(draft, lambda share: advance(round(50 + 50 * share), 100)):
        pass


def load(tx: Tx, index: SectionIndex, file: Path, replace: bool, advance: Advance) -> Counts:
    _make_room(tx, index, replace)
    counts = dict.fromkeys([*TABLES, FILES], 0)
    for (table, _), lines in groupby(
        _read(file, lambda share: advance(round(100 * share), 100)),
        key=lambda line: (line[0], tuple(line[1])),
    ):
        if table == FILES:
            counts[FILES] = sum(1 for _ in lines)
            continue
        if table == "sections":
            counts[table] += put_section_rows(tx, index, (row for _, row in lines))
            continue
        while batch := [row for _, row in islice(lines, AT_ONCE)]:
            names = list(batch[0])
            tx.many(
                f"""INSERT INTO {table} ({", ".join(names)})
                    VALUES ({", ".join(":" + name for name in names)})""",
                batch,
            )
            counts[table] += len(batch)
    # Another version may have derived them by other rules.
    tx.run("UPDATE published SET derived = 0")
    usage.recount(tx)
    job_queues.rebuild(tx)
    return counts


# -- writing


def _write(
    tx: Tx,
    index: SectionIndex,
    out: gzip.GzipFile,
    files: bool,
    keys: list[str],
    tell: Callable[[float], None],
) -> Counts:
    total = sum(tx.scalar(f"SELECT count(*) FROM {table}") for table in TABLES)
    schema = tx.scalar("SELECT max(version) FROM schema_version")
    _line(out, "commonplace", {"format": FORMAT, "schema": schema, FILES: files})
    counts = dict.fromkeys([*TABLES, FILES], 0)
    for table in TABLES:
        stored = chain.from_iterable(tx.batches(f"SELECT * FROM {table}", AT_ONCE))
        for row in _sections(tx, index) if table == "sections" else stored:
            if table == "uploads" and row["has_file"]:
                keys.append(rows.value(Upload, row).key)
            elif table == "source_files":
                keys.append(read_file(row).key)
            _line(out, table, row)
            counts[table] += 1
            if counts[table] % AT_ONCE == 0:
                tell(sum(counts.values()) / total)
    return counts


def _line(out: gzip.GzipFile, table: str, row: dict[str, Any]) -> None:
    out.write(json.dumps([table, row], ensure_ascii=False).encode() + b"\n")


def _sections(tx: Tx, index: SectionIndex) -> Iterator[dict[str, Any]]:
    for batch in tx.batches("SELECT library_id, id FROM items ORDER BY library_id, id", AT_ONCE):
        for library_id, items in groupby(batch, key=itemgetter("library_id")):
            yield from section_rows(tx, index, library_id, [item["id"] for item in items])


# -- reading


def stored_files(file: Path, place: Path) -> Iterator[str]:
    """Yield the key of each file of a backup; its bytes are in `place` until the next one."""
    if _has_files(file):
        for table, row in _read(file, lambda share: None, place):
            if table == FILES:
                yield row["key"]


def _read(
    file: Path, tell: Callable[[float], None], place: Path | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every row. Invalid: the file is damaged, or of an unknown version. The bytes of files
    are written to `place`."""
    counts: Counter[str] = Counter()
    end: Counts | None = None
    try:
        with file.open("rb") as packed, gzip.open(packed) as lines:
            _check_head(lines.readline(), file)
            for number, line in enumerate(iter(lines.readline, b"")):
                if number % AT_ONCE == 0:
                    tell(packed.tell() / file.stat().st_size)
                table, row = json.loads(line)
                if table == "end":
                    end = row
                elif table == FILES and _KEY.fullmatch(row["key"]):
                    counts[table] += 1
                    _copy(lines, row["size"], place)
                    yield table, row
                elif table in TABLES and all(re.fullmatch("[a-z_]+", name) for name in row):
                    counts[table] += 1
                    yield table, row
                else:
                    raise Invalid(f"{file} has rows that this version does not know ({table}).")
    except (
        gzip.BadGzipFile,
        EOFError,
        zlib.error,
        ValueError,
        TypeError,
        AttributeError,
        KeyError,
    ):
        raise _damaged(file) from None
    if end is None or any(counts[table] != count for table, count in end.items()):
        raise _damaged(file)


def _copy(lines: gzip.GzipFile, size: int, place: Path | None) -> None:
    with open(place or os.devnull, "wb") as out:
        while size:
            part = lines.read(min(size, _BUFFER))
            if not part:
                raise EOFError
            out.write(part)
            size -= len(part)
    if lines.read(1) != b"\n":
        raise EOFError


def _has_files(file: Path) -> bool:
    try:
        with gzip.open(file) as lines:
            return bool(_check_head(lines.readline(), file).get(FILES))
    except (
        gzip.BadGzipFile,
        EOFError,
        zlib.error,
        ValueError,
        TypeError,
        AttributeError,
        KeyError,
    ):
        raise _damaged(file) from None


def _check_head(line: bytes, file: Path) -> dict[str, Any]:
    kind, head = json.loads(line) if line.startswith(b'["commonplace"') else ("", {})
    if kind != "commonplace":
        raise Invalid(f"{file} is not a backup of Commonplace.")
    check_version(head["schema"], "backup")
    if head["format"] != FORMAT:
        raise Invalid(f"{file} has a format that this version does not know ({head['format']}).")
    return dict(head)


def _damaged(file: Path) -> Invalid:
    return Invalid(f"{file} is damaged or incomplete; nothing was restored from it.")


def _make_room(tx: Tx, index: SectionIndex, replace: bool) -> None:
    held = {
        table: tx.scalar(f"SELECT count(*) FROM {table}")
        for table in ("items", "folders", "tokens")
    }
    if any(held.values()) and not replace:
        there = ", ".join(
            f"{count:,} {table[:-1] if count == 1 else table}"
            for table, count in held.items()
            if count
        )
        raise Conflict(
            f"There is a library already ({there}); --force replaces all of it by the backup."
        )
    while found := tx.tuples(f"SELECT library_id, id FROM items LIMIT {AT_ONCE}"):
        for library_id, item_id in found:
            delete_items(tx, index, Scope(library_id), [item_id], permanent=True)
    tx.drop_deferred()  # the log is replaced too
    index.clear(tx)
    for table in reversed(TABLES):
        if table != "sections":
            tx.run(f"DELETE FROM {table}")
