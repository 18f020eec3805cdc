"""One library's sections in memory, following the rows in the database.

The rows are the truth, and this can be dropped at any time. Every write records its items in the
change log, and each process reads on from its mark before it searches, so that all of them see a
write at their next search.
"""

import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.database import Tx
from commonplace.malloc_trim import release_memory
from commonplace.search_index import change_log
from commonplace.search_index.checkpoint import Checkpoints, IndexState, Named, prefix_names
from commonplace.search_index.postings import Postings, Rows, Run, merge_runs, pack_postings
from commonplace.search_index.row_owners import Owners, grow, item_keys
from commonplace.search_index.snapshot import Snapshot
from commonplace.search_index.vectors import Vectors, halves

RELOAD_FROM = 20_000  # changed items; reading everything again is faster then
DEAD_SHARE, DEAD_ROWS = 0.2, 1_000  # more than these, and everything is read again
ROOM = 8  # spare rows: an eighth, before arrays are copied; unused ones take no memory
KEEP_SHARE, KEEP_SECONDS = 0.05, 3_600  # a checkpoint is due after this share, or this time
_ITEMS, _ROWS = 500, 4_000  # read at once
_MANY_ITEMS = 10  # from which on the memory that reading took is returned

_TERMS = """SELECT item_id, section_id, terms, counts, length FROM section_terms
            WHERE library_id = :library_id"""
_VECTORS = """SELECT section_id, vector FROM vectors
              WHERE library_id = :library_id AND stamp = :stamp"""


class LibraryIndex:
    """One row per section. Rows are only added, and deleted ones marked: snapshots stay valid."""

    def __init__(self, library_id: str, checkpoints: Checkpoints) -> None:
        self._guard = threading.Lock()
        self._library_id, self._checkpoints = library_id, checkpoints
        self._stamp: str | None = None
        self._snapshot: Snapshot | None = None
        self._read_much = False  # since the last snapshot
        self._clear()

    def snapshot(self, tx: Tx, stamp: str | None) -> tuple[Snapshot, bool]:
        """Return a snapshot of what the transaction sees, and whether it is exactly that.

        It has vectors of this stamp, or with None of any or none.
        """
        with self._guard:
            current = self._catch_up(tx)
            if stamp is not None and stamp != self._stamp:
                self._read_vectors(tx, stamp)
                if not current:
                    self._invalidate()  # newer vectors may be missing, and nothing would tell
            if self._snapshot is None:
                count = self._owners.count
                self._vectors.reserve(count)
                self._snapshot = Snapshot(
                    self._owners,
                    self._ids[:count],
                    self._lengths[:count],
                    self._alive[:count],
                    self._runs,
                    self._vectors,
                )
                if self._read_much:
                    release_memory()  # reading and sorting take several times what is kept
                    self._read_much = False
            return self._snapshot, current

    @property
    def count(self) -> int:
        return self._owners.count

    def checkpoint_state(self, stopping: bool) -> IndexState | None:
        """Return the index if a checkpoint is due: much has changed, or deleted rows are in it."""
        with self._guard:
            count, now = self.count, time.time()
            due = (
                self._changed > KEEP_SHARE * count
                or (self._changed and now - self._kept_at > KEEP_SECONDS)
                or (self._gone and stopping)
            )
            if self._mark is None or not due:
                return None
            self._mark_saved(now)
            self._vectors.reserve(count)
            alive = self._alive[:count].copy()
            return IndexState(
                self._library_id,
                self._mark,
                self._stamp,
                int(np.count_nonzero(alive)),
                _arrays(alive, self._ids, self._lengths, self._owners, self._runs, self._vectors),
            )

    def _mark_saved(self, at: float) -> None:
        self._kept_at = at
        self._changed = 0  # rows since then
        self._gone = False  # rows were deleted since then

    def _invalidate(self) -> None:
        self._mark: int | None = None  # where to continue in the change log

    def _clear(self) -> None:
        self._invalidate()  # until everything is there: reading may fail half-way
        self._owners = Owners()
        self._ids = np.empty(0, np.uint32)
        self._lengths = np.empty(0, np.uint16)
        self._alive = np.empty(0, bool)
        self._dead = 0
        self._runs: list[Run] = []
        self._fresh: list[Postings] = []  # postings that are in no run yet
        self._vectors = Vectors()
        self._snapshot = None
        self._mark_saved(at=0)

    def _catch_up(self, tx: Tx) -> bool:
        if self._mark is None:
            self._restore(tx)
        news = tx.recall(change_log.since, self._library_id, self._mark)
        changed = news.items
        if not news.complete or len(changed) > RELOAD_FROM:
            self._reload(tx)
        elif changed:
            self._read_much |= len(changed) > _MANY_ITEMS
            for start in range(0, len(changed), _ITEMS):
                self._follow(tx, changed[start : start + _ITEMS])
            if self._dead > DEAD_SHARE * self._owners.count + DEAD_ROWS:
                self._reload(tx)
        self._mark = news.horizon
        if self._fresh:
            self._runs, self._fresh = merge_runs(self._runs, self._fresh, self._owners.count), []
        return not news.behind

    def _restore(self, tx: Tx) -> None:
        """Load a checkpoint, if there is one that is not too far behind."""
        found = self._checkpoints.find(tx, self._library_id)
        news = tx.recall(change_log.since, self._library_id, found.mark) if found else None
        near = (
            news is not None
            and news.complete
            and not news.behind
            and len(news.items) <= RELOAD_FROM
        )
        if found and near and (parts := found.parts()):
            self._clear()
            self._ids, self._lengths = parts["rows"]["ids"], parts["rows"]["lengths"]
            self._owners = Owners(parts["owners"]["items"], found.count)
            self._alive = np.zeros(len(self._ids), bool)
            self._alive[: found.count] = True
            self._runs = [
                Run.of(arrays) for name, arrays in parts.items() if name.startswith("run")
            ]
            self._stamp, self._vectors = found.stamp, Vectors(parts["vectors"])
            self._mark = found.mark
            self._mark_saved(found.written_at)

    def _reload(self, tx: Tx) -> None:
        """Read everything again, in batches: parts of one big result would stay in memory."""
        self._clear()
        self._read_much = True
        [row] = tx.all(
            "SELECT count(*) AS n FROM section_terms WHERE library_id = :library_id",
            library_id=self._library_id,
        )
        self._reserve(row["n"] + row["n"] // ROOM)
        for found in tx.batches(_TERMS, _ROWS, library_id=self._library_id):
            self._append(found)
        self._changed = self._owners.count
        if self._stamp is not None:
            self._read_vectors(tx, self._stamp)

    def _read_vectors(self, tx: Tx, stamp: str) -> None:
        self._snapshot, self._vectors, self._read_much, self._stamp = None, Vectors(), True, None
        self._vectors.reserve(len(self._ids))
        rows = np.arange(self._owners.count)
        for found in tx.batches(_VECTORS, _ROWS, library_id=self._library_id, stamp=stamp):
            self._give_vectors(rows, found)
        self._stamp, self._changed = stamp, self._owners.count  # all vectors are there

    def _follow(self, tx: Tx, item_ids: Sequence[str]) -> None:
        self._snapshot = None
        which = {"library_id": self._library_id, "ids": list(item_ids)}
        rows = self._rows_of(item_ids)
        there = np.array(
            [
                row["section_id"]
                for row in tx.all(
                    """SELECT section_id FROM section_terms
                       WHERE library_id = :library_id AND item_id IN :ids""",
                    **which,
                )
            ],
            np.int64,
        )
        known = self._ids[rows]
        gone = rows[~np.isin(known, there)]
        self._alive[gone] = False
        self._dead += len(gone)
        self._changed, self._gone = (
            self._changed + len(there) + len(gone),
            self._gone or len(gone) > 0,
        )
        # A section's terms never change, so only those of new ones are read.
        new = np.setdiff1d(there, known)
        if len(new):
            # The sign: else SQLite looks for every item with every section.
            self._append(
                tx.all(
                    f"{_TERMS} AND item_id IN :ids AND +section_id IN :new",
                    **which,
                    new=new.tolist(),
                )
            )
        if self._stamp is not None:
            rows = self._rows_of(item_ids)
            found = tx.all(f"{_VECTORS} AND item_id IN :ids", **which, stamp=self._stamp)
            self._vectors.reserve(self._owners.count)
            # Those that have one keep it all the while: others search the same rows.
            self._vectors.forget(
                rows[~np.isin(self._ids[rows], [row["section_id"] for row in found])]
            )
            self._give_vectors(rows, found)

    def _reserve(self, size: int) -> None:
        self._owners.reserve(size)
        count = self._owners.count
        self._ids, self._lengths = (
            grow(self._ids, size, count),
            grow(self._lengths, size, count),
        )
        self._alive = grow(self._alive, size, count)

    def _append(self, found: Sequence[Any]) -> None:
        if not found:
            return
        start, end = self._owners.count, self._owners.count + len(found)
        self._reserve(end)
        self._ids[start:end] = [row["section_id"] for row in found]
        self._lengths[start:end] = [min(row["length"], 65_535) for row in found]
        self._alive[start:end] = True
        self._owners.append(item_keys(row["item_id"] for row in found))
        counts = np.frombuffer(b"".join(row["counts"] for row in found), np.uint8)
        numbers = np.repeat(
            np.arange(start, end, dtype=np.uint32), [len(row["counts"]) for row in found]
        )
        self._fresh.append(
            pack_postings(
                np.frombuffer(b"".join(row["terms"] for row in found), np.uint32), numbers, counts
            )
        )

    def _give_vectors(self, rows: Rows, found: Sequence[Any]) -> None:
        """`rows`: where these sections are, if anywhere."""
        if not found or not len(rows):
            return
        order = rows[np.argsort(self._ids[rows])]
        ids, wanted = self._ids[order], np.array([row["section_id"] for row in found], np.uint32)
        places = np.minimum(ids.searchsorted(wanted), len(ids) - 1)
        here = ids[places] == wanted
        self._vectors.set(order[places[here]], halves([row["vector"] for row in found])[here])

    def _rows_of(self, item_ids: Sequence[str]) -> Rows:
        rows = self._owners.rows_of(item_keys(item_ids))
        return rows[self._alive[rows]]


def _arrays(
    alive: NDArray[np.bool_],
    ids: NDArray[np.uint32],
    lengths: NDArray[np.uint16],
    owners: Owners,
    runs: Sequence[Run],
    vectors: Vectors,
) -> Named:
    """Yield the arrays of rows that are alive; nothing deleted is in them."""
    whole = bool(alive.all())
    rows: Rows | slice = slice(len(alive)) if whole else alive.nonzero()[0]
    yield from prefix_names(
        "rows", [("ids", ids[rows]), ("lengths", lengths[rows])], len(alive) // ROOM
    )
    yield from prefix_names("owners", [("items", owners.items[rows])], len(alive) // ROOM)
    yield from prefix_names("vectors", vectors.arrays(rows), len(alive) // ROOM)
    for n, run in enumerate(runs):
        yield from prefix_names(f"run{n}", (run if whole else run.without_dead(alive)).arrays())
