"""Backups: one file that both engines can restore, of gzipped JSON lines, each [table, row].

The first line names the schema, the last the number of rows, so that half a file is detected.
Sections are written without their index, which is built again when they are restored.
"""

import gzip
import json
import os
import re
import zlib
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import IO, Any

from commonplace.database import Tx
from commonplace.database.migrations import check_version
from commonplace.errors import Conflict, Invalid
from commonplace.model import Advance
from commonplace.search_index.index import SectionIndex
from commonplace.store import rows
from commonplace.store.items import delete_items

FORMAT = 1
AT_ONCE = 500
# In an order in which they can be written again.
TABLES = (
    "people",
    "libraries",
    "members",
    "folders",
    "tokens",
    "token_folders",
    "events",
    "oauth_clients",
    "oauth_secrets",
    "contents",
    "redirects",
    "items",
    "folder_items",
    "versions",
    "aliases",
    "sections",
    "jobs",
    "transcriptions",
    "uploads",
    "feeds",
    "feed_entries",
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
_SECTION = ("position", "heading", "text", "extra", "word_count", "key_points", "locator")

Counts = dict[str, int]


def dump(tx: Tx, index: SectionIndex, file: Path, advance: Advance) -> Counts:
    """Write a backup under a temporary name, read it back, and only then name it."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        draft.touch(0o600)  # from its first byte on
        with gzip.open(draft, "wt", encoding="utf-8", compresslevel=3) as out:
            counts = _write(tx, index, out, lambda share: advance(round(50 * share), 100))
        for _ in _read(draft, lambda share: advance(round(50 + 50 * share), 100)):
            pass
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)
    return counts


def load(tx: Tx, index: SectionIndex, file: Path, replace: bool, advance: Advance) -> Counts:
    _make_room(tx, index, replace)
    counts = dict.fromkeys(TABLES, 0)
    for (table, _), lines in groupby(
        _read(file, lambda share: advance(round(100 * share), 100)),
        key=lambda line: (line[0], tuple(line[1])),
    ):
        if table == "sections":
            counts[table] += _restore_sections(tx, index, (row for _, row in lines))
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
    tx.run("UPDATE published SET change = change + 1")
    return counts


# -- writing


def _write(tx: Tx, index: SectionIndex, out: IO[str], tell: Callable[[float], None]) -> Counts:
    total = sum(tx.scalar(f"SELECT count(*) FROM {table}") for table in TABLES)
    _line(
        out,
        "commonplace",
        {"format": FORMAT, "schema": tx.scalar("SELECT max(version) FROM schema_version")},
    )
    counts = dict.fromkeys(TABLES, 0)
    for table in TABLES:
        stored = chain.from_iterable(tx.batches(f"SELECT * FROM {table}", AT_ONCE))
        for row in _sections(tx, index) if table == "sections" else stored:
            _line(out, table, row)
            counts[table] += 1
            if counts[table] % AT_ONCE == 0:
                tell(sum(counts.values()) / total)
    _line(out, "end", counts)
    return counts


def _line(out: IO[str], table: str, row: dict[str, Any]) -> None:
    out.write(json.dumps([table, row], ensure_ascii=False) + "\n")


def _sections(tx: Tx, index: SectionIndex) -> Iterator[dict[str, Any]]:
    for batch in tx.batches("SELECT library_id, id FROM items ORDER BY library_id, id", AT_ONCE):
        for library_id, items in groupby(batch, key=itemgetter("library_id")):
            ids = [item["id"] for item in items]
            vectors = index.vectors(tx, library_id, ids)
            for row in tx.all(
                f"SELECT id, item_id, {', '.join(_SECTION)} FROM sections"
                " WHERE library_id = :library_id AND item_id IN :ids ORDER BY item_id, position",
                library_id=library_id,
                ids=ids,
            ):
                stamp, vector = vectors.get(row["id"], (None, b""))
                yield {
                    "library_id": library_id,
                    "item_id": row["item_id"],
                    **{name: row[name] for name in _SECTION},
                    "stamp": stamp,
                    "vector": b64encode(vector).decode(),
                }


# -- reading


def _read(file: Path, tell: Callable[[float], None]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every row. Invalid: the file is damaged, or of an unknown version."""
    counts: Counter[str] = Counter()
    end: Counts | None = None
    try:
        with file.open("rb") as packed, gzip.open(packed, "rt", encoding="utf-8") as lines:
            _check_head(next(lines, ""), file)
            for number, line in enumerate(lines):
                if number % AT_ONCE == 0:
                    tell(packed.tell() / file.stat().st_size)
                table, row = json.loads(line)
                if table == "end":
                    end = row
                elif table in TABLES and all(re.fullmatch("[a-z_]+", name) for name in row):
                    counts[table] += 1
                    yield table, row
                else:
                    raise Invalid(f"{file} has rows that this version does not know ({table}).")
    except (gzip.BadGzipFile, EOFError, zlib.error, ValueError, TypeError, AttributeError):
        raise _damaged(file) from None
    if end is None or any(counts[table] != count for table, count in end.items()):
        raise _damaged(file)


def _check_head(line: str, file: Path) -> None:
    kind, head = json.loads(line) if line.startswith('["commonplace"') else ("", {})
    if kind != "commonplace":
        raise Invalid(f"{file} is not a backup of Commonplace.")
    check_version(head["schema"], "backup")
    if head["format"] != FORMAT:
        raise Invalid(f"{file} has a format that this version does not know ({head['format']}).")


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
            delete_items(tx, index, library_id, [item_id], None)
    tx.drop_deferred()  # the log is replaced too
    tx.run("DELETE FROM checkpoints")
    for table in reversed(TABLES):
        if table != "sections":
            tx.run(f"DELETE FROM {table}")


def _restore_sections(tx: Tx, index: SectionIndex, found: Iterable[dict[str, Any]]) -> int:
    count = 0
    for (library_id, item_id, stamp), group in groupby(
        found, key=lambda s: (s["library_id"], s["item_id"], s["stamp"])
    ):
        item = tx.one(
            f"{rows.SELECT_ITEM} WHERE i.library_id = :library_id AND i.id = :id",
            library_id=library_id,
            id=item_id,
        )
        sections = [rows.section(row, b64decode(row["vector"]) or None) for row in group]
        index.insert(tx, [(rows.item(item), sections)], stamp or "")
        count += len(sections)
    return count
