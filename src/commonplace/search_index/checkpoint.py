"""Checkpoints: index files, so that a process need not read a library row by row at its start.

The rows are the truth, and a file can be deleted at any time. It matches the rows at its mark in
the change log; later changes are read as always. The database names its files in a row that is
written after the file, so whatever has the row has all that is in the file. An older copy of the
database, or another one in its place, has no such row. Files are written under a
temporary name, flushed, and verified by checksums.
"""

import json
import logging
import os
import shutil
import struct
import time
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from commonplace.database import Tx
from commonplace.model import new_id
from commonplace.search_index import change_log

FORMAT = 5  # changes with the meaning of the arrays
UNUSED_DAYS = 1  # after which an outdated file is deleted
_PIECE = 1 << 20
_END = struct.Struct("<QI")

_MIGRATIONS = "(SELECT count(*) FROM schema_version)"

Arrays = dict[str, NDArray[Any]]
Named = Iterable[tuple[str, NDArray[Any], int]]  # part and name, array, spare rows

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IndexState:
    """An index at a mark. Changes after the mark may alter the arrays while they are written."""

    library_id: str
    mark: int
    stamp: str | None
    count: int
    arrays: Named


@dataclass(frozen=True, slots=True)
class Draft:
    """A file that has no row and no name yet."""

    id: str
    path: Path
    state: IndexState
    before: str | None  # id of the file that it replaces


@dataclass(frozen=True, slots=True)
class Checkpoint:
    path: Path
    mark: int
    stamp: str | None
    written_at: float
    count: int
    listed: list[tuple[str, str, list[int], int, int, int]]

    def parts(self) -> dict[str, Arrays] | None:
        """Map each array from the file: writes to it stay in memory, and it is freed by itself."""
        parts: dict[str, Arrays] = {}
        try:
            with self.path.open("rb") as file:
                for name, kind, (length, *others), room, offset, checksum in self.listed:
                    shape = (length + room, *others)
                    array: Any = (
                        np.memmap(file, kind, "c", offset, shape)
                        if all(shape)
                        else np.zeros(shape, kind)
                    )
                    if zlib.crc32(array[:length]) != checksum:
                        _log_damage(self.path)
                        return None
                    part, own = name.split()
                    parts.setdefault(part, {})[own] = array.view(np.ndarray)
        except (OSError, ValueError):  # it was just replaced by a shorter one, or is unreadable
            return None
        return parts


class Checkpoints:
    def __init__(self, folder: Path, least: int) -> None:
        self._folder, self._least = folder, least

    def wanted(self, rows: int) -> bool:
        return 0 < self._least <= rows

    def find(self, tx: Tx, library_id: str) -> Checkpoint | None:
        """Return the library's checkpoint, if this database knows it."""
        path = self._path(library_id)
        header = _header(path) if self._least else None
        if header is None or header["library_id"] != library_id:
            return None
        row = tx.one(
            f"""SELECT mark FROM checkpoints
                WHERE library_id = :library_id AND id = :id AND migrations = {_MIGRATIONS}""",
            library_id=library_id,
            id=header["id"],
        )
        return (
            Checkpoint(
                path,
                row["mark"],
                header["stamp"],
                header["written_at"],
                header["count"],
                header["arrays"],
            )
            if row
            else None
        )

    def write(self, state: IndexState) -> Draft | None:
        """Write a file; None if the disk is full or not writable."""
        draft = Draft(
            new_id(),
            self._folder / f".{new_id()}",
            state,
            (_header(self._path(state.library_id)) or {}).get("id"),
        )
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            with open(
                os.open(draft.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb"
            ) as file:
                _write(file, draft)
        except OSError as error:
            self.drop(draft)
            self._least = 0  # no retries: a full disk is needed for rows
            log.info(
                "The search index cannot be saved in %s: %s.",
                self._folder,
                error.strerror,
            )
            return None
        return draft

    def register(self, tx: Tx, draft: Draft) -> None:
        """Insert the row of a draft, to be committed before the draft gets its name."""
        held = draft.state
        tx.run(
            """DELETE FROM checkpoints
               WHERE library_id = :library_id AND (id = :before OR mark <= (SELECT mark
               FROM forgotten WHERE library_id = :library_id))""",
            library_id=held.library_id,
            before=draft.before or "",
        )
        tx.run(
            f"""INSERT INTO checkpoints (library_id, id, mark, migrations) SELECT id,
                :id, :mark, {_MIGRATIONS}
                FROM libraries
                WHERE id = :library_id""",
            library_id=held.library_id,
            id=draft.id,
            mark=held.mark,
        )

    def publish(self, draft: Draft) -> None:
        draft.path.replace(self._path(draft.state.library_id))

    def drop(self, draft: Draft) -> None:
        draft.path.unlink(missing_ok=True)

    def forget(self, library_id: str) -> None:
        self._path(library_id).unlink(missing_ok=True)

    def size(self) -> int:
        return sum(512 * path.stat().st_blocks for path in self._folder.glob("*.index"))

    def tidy(self, tx: Tx) -> None:
        """Delete outdated files, which may hold what was deleted from the rows."""
        for path in self._folder.glob("*"):
            if time.time() - path.stat().st_mtime > UNUSED_DAYS * 86_400:
                found = self.find(tx, path.stem)
                news = change_log.since(tx, path.stem, found.mark) if found else None
                if news is None or news.items or not news.complete:
                    path.unlink(missing_ok=True)

    def _path(self, library_id: str) -> Path:
        return self._folder / f"{library_id}.index"


def _write(file: IO[bytes], draft: Draft) -> None:
    listed = []
    for name, array, room in draft.state.arrays:
        file.write(bytes(-file.tell() % 64))
        offset, checksum = file.tell(), 0
        if shutil.disk_usage(draft.path.parent).free < 2 * array.nbytes:
            raise OSError(28, "the disk is nearly full")
        step = max(1, _PIECE * len(array) // max(1, array.nbytes))
        for start in range(0, len(array), step):
            # A copy: the array may change between the checksum and the write.
            piece = array[start : start + step].tobytes()
            checksum = zlib.crc32(piece, checksum)
            file.write(piece)
        # A hole, which takes no space on the disk.
        file.seek(array.nbytes // max(1, len(array)) * room, os.SEEK_CUR)
        listed.append([name, array.dtype.str, array.shape, room, offset, checksum])
    header = json.dumps(
        {
            "format": FORMAT,
            "id": draft.id,
            "library_id": draft.state.library_id,
            "stamp": draft.state.stamp,
            "written_at": time.time(),
            "count": draft.state.count,
            "arrays": listed,
        }
    ).encode()
    file.write(header + _END.pack(len(header), zlib.crc32(header)))
    file.flush()
    os.fsync(file.fileno())


def _header(path: Path) -> dict[str, Any] | None:
    """Read the header of a file; None if it is damaged or missing."""
    try:
        with path.open("rb") as file:
            file.seek(-_END.size, os.SEEK_END)
            length, checksum = _END.unpack(file.read())
            file.seek(-_END.size - length, os.SEEK_END)
            text = file.read(length)
            header: dict[str, Any] | None = (
                json.loads(text) if zlib.crc32(text) == checksum else None
            )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, OverflowError):
        header = None
    if header is None:
        _log_damage(path)
    return header if header and header["format"] == FORMAT else None


def _log_damage(path: Path) -> None:
    log.warning("The index file %s is damaged; the index is built again from the database.", path)


def prefix_names(part: str, arrays: Iterable[tuple[str, NDArray[Any]]], room: int = 0) -> Named:
    return ((f"{part} {name}", array, room) for name, array in arrays)
