"""One library's vectors in memory: exact within small scopes, a scan of sign bits and exact rescoring over large ones.

The rows in SQLite are the truth; this can always be thrown away. It catches up by the sequence numbers of `changes`,
so every process on the file sees a write at its next search.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.adapters.store.signs import sign_bits
from commonplace.adapters.store.sqlite import SqliteTx
from commonplace.model import Scored
from commonplace.ports import Vector

EXACT_UP_TO = 2_000   # rows that are cheaper to compare than to scan
RESCORED = 2_000      # best by sign bits that are compared exactly: recall@10 stays above .99 on real vectors
UNSORTED_SHARE = 0.05
_CHUNK = 500

Rows = NDArray[np.intp]


def item_key(item_id: str) -> int:
    """A UUID's first 64 bits, signed: eight bytes a row instead of a string. Passages are checked by SQL anyway."""
    value = int(item_id.replace("-", "")[:16], 16)
    return value - (1 << 64) if value >> 63 else value


class Shelf:
    def __init__(self, library_id: str, stamp: str, dimensions: int) -> None:
        self.guard = threading.RLock()
        self._library_id, self._stamp, self._dimensions = library_id, stamp, dimensions
        self._seq = -1
        self._clear()

    def _clear(self) -> None:
        words = -(-2 * self._dimensions // 64)
        self._count = 0
        self._ids = np.empty(0, np.int64)            # section ids
        self._items = np.empty(0, np.int64)          # item keys
        self._matrix = np.empty((0, self._dimensions), np.float16)
        self._signs = np.empty((words, 0), np.uint64)  # a column a row: each word of the signs lies in one run
        self._order: Rows = np.empty(0, np.intp)     # the first rows by item key, for scopes
        self._scopes: dict[frozenset[str], Rows] = {}

    # -- keeping up

    def catch_up(self, tx: SqliteTx) -> None:
        row = tx.one("SELECT coalesce((SELECT min(seq) FROM changes), 0) AS oldest,"
                     " coalesce((SELECT max(seq) FROM changes), 0) AS newest")
        oldest, newest = (row["oldest"], row["newest"]) if row else (0, 0)
        if newest == self._seq:
            return
        changed = [] if self._seq < oldest - 1 else [r["item_id"] for r in tx.all(
            "SELECT DISTINCT item_id FROM changes WHERE seq > :seq AND library_id = :library_id",
            seq=self._seq, library_id=self._library_id)]
        if self._seq < oldest - 1 or len(changed) > 20_000:
            self._clear()
            self._append(tx.all("SELECT item_id, section_id, vector FROM vectors"
                                " WHERE library_id = :library_id AND stamp = :stamp",
                                library_id=self._library_id, stamp=self._stamp))
        elif changed:
            self._drop([item_key(item_id) for item_id in changed])
            for start in range(0, len(changed), _CHUNK):
                self._append(tx.all("SELECT item_id, section_id, vector FROM vectors"
                                    " WHERE library_id = :library_id AND stamp = :stamp AND item_id IN :ids",
                                    library_id=self._library_id, stamp=self._stamp, ids=changed[start:start + _CHUNK]))
        self._seq = newest

    def _append(self, found: Sequence[SqliteTx | object]) -> None:
        if not found:
            return
        rows: list[tuple[str, int, bytes]] = [(r["item_id"], r["section_id"], r["vector"]) for r in found]  # type: ignore[index]
        start, end = self._count, self._count + len(rows)
        self._reserve(end)
        matrix = np.frombuffer(b"".join(v for _, _, v in rows), np.float16).reshape(len(rows), self._dimensions)
        self._ids[start:end] = [s for _, s, _ in rows]
        self._items[start:end] = [item_key(i) for i, _, _ in rows]
        self._matrix[start:end] = matrix
        self._signs[:, start:end] = _sign_words(matrix)
        self._count = end
        self._scopes.clear()

    def _reserve(self, size: int) -> None:
        if size <= len(self._ids):
            return
        room = max(size, int(len(self._ids) * 1.25), 256)
        def grown(old: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
            new = np.empty(shape, old.dtype)
            new[..., :self._count] = old[..., :self._count]
            return new

        self._ids = grown(self._ids, (room,))
        self._items = grown(self._items, (room,))
        self._signs = grown(self._signs, (len(self._signs), room))
        matrix = np.empty((room, self._dimensions), np.float16)
        matrix[:self._count] = self._matrix[:self._count]
        self._matrix = matrix

    def _drop(self, keys: list[int]) -> None:
        gone = self._rows_of(np.array(keys, np.int64))
        if not len(gone):
            return
        # The last rows move into the gaps, so that the arrays stay dense and nothing dead is ever scanned.
        left = self._count - len(gone)
        gaps = np.sort(gone[gone < left])
        movers = np.setdiff1d(np.arange(left, self._count), gone[gone >= left])
        for array in (self._ids, self._items, self._matrix):
            array[gaps] = array[movers]
        self._signs[:, gaps] = self._signs[:, movers]
        self._count = left
        self._order = np.empty(0, np.intp)
        self._scopes.clear()

    # -- asking

    def remember(self, folders: frozenset[str], keys: Callable[[], list[int]]) -> Rows:
        """The rows of a set of folders, found once per change of the library."""
        rows = self._scopes.get(folders)
        if rows is None:
            rows = self._scopes[folders] = self._rows_of(np.array(keys(), np.int64))
        return rows

    def nearest(self, vector: Vector, limit: int, also: Sequence[int], rows: Rows | None) -> list[Scored]:
        size = self._count if rows is None else len(rows)
        if size > EXACT_UP_TO:
            distances = self._distances(vector, rows)
            bound = np.searchsorted(np.cumsum(np.bincount(distances)), min(max(RESCORED, limit), size))
            best = np.flatnonzero(distances <= bound)
            candidates = best if rows is None else rows[best]
        else:
            candidates = np.arange(self._count) if rows is None else rows
        scores = self._cosines(candidates, vector)
        top = candidates[np.argsort(-scores, kind="stable")[:limit]]
        if also:
            wanted = np.flatnonzero(np.isin(self._ids[:self._count], np.array(also, np.int64)))
            if rows is not None:
                wanted = np.intersect1d(wanted, rows)
            top = np.union1d(top, wanted)
        scores = self._cosines(top, vector)
        order = np.lexsort((self._ids[top], -scores))
        return [Scored(int(self._ids[top[n]]), float(scores[n])) for n in order]

    def _cosines(self, rows: Rows, vector: Vector) -> NDArray[np.float32]:
        # Not `@`: BLAS would wake a thread per core for it, and their spinning costs more than the product.
        result: NDArray[np.float32] = np.einsum("ij,j->i", self._matrix[rows].astype(np.float32), vector)
        return result

    def _distances(self, vector: Vector, rows: Rows | None) -> NDArray[np.uint16]:
        """Differing sign bits, word by word."""
        query = _sign_words(vector.reshape(1, -1).astype(np.float16))
        total = np.zeros(self._count if rows is None else len(rows), np.uint16)
        for signs, word in zip(self._signs, query[:, 0], strict=True):
            column = signs[:self._count] if rows is None else signs[rows]
            total += np.bitwise_count(column ^ word)
        return total

    def _rows_of(self, keys: NDArray[np.int64]) -> Rows:
        """Rows of these items: by binary search over the sorted part, by comparison over what came since."""
        if self._count - len(self._order) > UNSORTED_SHARE * self._count + 1_000:
            self._order = np.argsort(self._items[:self._count], kind="stable")
        known = self._items[self._order]
        keys = np.unique(keys)
        first, last = np.searchsorted(known, keys, "left"), np.searchsorted(known, keys, "right")
        spans = [self._order[a:b] for a, b in zip(first, last, strict=True) if b > a]
        tail = np.flatnonzero(np.isin(self._items[len(self._order):self._count], keys)) + len(self._order)
        return np.concatenate([*spans, tail]).astype(np.intp)


def _sign_words(matrix: NDArray[np.float16]) -> NDArray[np.uint64]:
    """Signs packed into 64-bit words, one word a row of the result."""
    bits = np.packbits(sign_bits(matrix), axis=1)
    padded = np.zeros((len(matrix), -(-bits.shape[1] // 8) * 8), np.uint8)
    padded[:, :bits.shape[1]] = bits
    return np.ascontiguousarray(padded.view(np.uint64).T)
