"""A note beside a database that it was closed in order, so that not every start reads all of it.

It is taken away while the database is open, and only holds for the file as it was closed: after a
crash, or when something else wrote to the file, nothing is known of it.
"""

import json
import time
from contextlib import suppress
from pathlib import Path

NAME = "commonplace.closed"
TRUSTED_SECONDS = 7 * 86_400  # after the last check of all pages; disks lose bits by themselves


def take(database: Path) -> float:
    """Return when all pages were last checked, or 0 if that is not known."""
    note, checked_at = database.with_name(NAME), 0.0
    with suppress(OSError, ValueError, KeyError, TypeError):
        told = json.loads(note.read_text())
        if told["file"] == _file(database):
            checked_at = float(told["checked_at"])
    note.unlink(missing_ok=True)
    return checked_at


def leave(database: Path, checked_at: float) -> None:
    with suppress(OSError):
        note = database.with_name(NAME)
        note.touch(0o600)
        note.write_text(json.dumps({"checked_at": checked_at, "file": _file(database)}))


def is_recent(checked_at: float) -> bool:
    return 0 <= time.time() - checked_at < TRUSTED_SECONDS


def _file(database: Path) -> list[int]:
    found = database.stat()
    return [found.st_ino, found.st_size, found.st_mtime_ns]
