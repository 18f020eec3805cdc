"""One library's vectors in memory: exact within small scopes, a scan of sign bits and exact rescoring over large ones."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.adapters.store.follower import Follower, Owners, Ranking, Rows, item_key, room_for
from commonplace.adapters.store.halves import Format
from commonplace.adapters.store.signs import bits, sign_bits
from commonplace.ports import Vector

EXACT_UP_TO = 2_000   # rows that are cheaper to compare than to scan
# Best by sign bits that are compared exactly: a twentieth, within bounds. recall@10 stays above .99 on real vectors.
RESCORED, MOST_RESCORED = 1_000, 2_500
SPARSE = 8            # how much wider than dense the numbers of a library's sections may lie for a table of them
AT_ONCE, SCANNED_AT_ONCE = 256, 16_384  # rows, so that what is worked out on the way stays in the processor's cache


class Shelf(Follower):
    """Rows are dense: a dropped row's place is taken by the last one, so that nothing dead is ever scanned."""

    def __init__(self, library_id: str, stamp: str, dimensions: int, form: Format) -> None:
        self._stamp, self._dimensions, self._form = stamp, dimensions, form
        super().__init__(library_id)

    def clear(self) -> None:
        self._owners = Owners()
        self._ids = np.empty(0, np.uint32)
        self._places: NDArray[np.uint32] | None = None  # rows by section id, from the first id on; made when it is needed
        self._first = 0
        self._matrix = np.empty((0, self._dimensions), np.float16)
        # Word by word of the sign bits, each for all rows: a scan reads them one after the other.
        self._signs = [np.empty(0, np.uint64) for _ in range(-(-bits(self._dimensions) // 64))]

    @property
    def source(self) -> str:
        return f"""item_id, section_id, {self._form.column} AS vector FROM vectors
                   WHERE library_id = :library_id AND stamp = :stamp"""

    @property
    def values(self) -> dict[str, Any]:
        return {"library_id": self.library_id, "stamp": self._stamp}

    def reserve(self, size: int) -> None:
        self._owners.reserve(size)
        self._ids, self._matrix = room_for(self._ids, size, 0), room_for(self._matrix, size, 0)
        self._signs = [room_for(word, size, 0) for word in self._signs]

    def append(self, found: Sequence[Any]) -> None:
        if not found:
            return
        self._places = None
        start, end = self._owners.count, self._owners.count + len(found)
        matrix = self._form.matrix([row["vector"] for row in found])
        self._ids = room_for(self._ids, end, start)
        self._ids[start:end] = [row["section_id"] for row in found]
        self._matrix = room_for(self._matrix, end, start)
        self._matrix[start:end] = matrix
        for place, word in enumerate(_sign_words(matrix)):
            self._signs[place] = room_for(self._signs[place], end, start)
            self._signs[place][start:end] = word
        self._owners.append([item_key(row["item_id"]) for row in found])

    def drop(self, items: NDArray[np.int64]) -> None:
        self._places = None
        gone, count = self.rows_of(items), self._owners.count
        left = count - len(gone)
        gaps = np.sort(gone[gone < left])
        movers = np.setdiff1d(np.arange(left, count), gone[gone >= left])
        arrays: list[NDArray[Any]] = [self._ids, self._matrix, *self._signs]
        for array in arrays:
            array[gaps] = array[movers]
        self._owners.move(gaps, movers, left)

    @property
    def size(self) -> int:
        return self._owners.count

    def rows_of(self, items: NDArray[np.int64]) -> Rows:
        return self._owners.rows_of(items)

    def nearest(self, vector: Vector, limit: int, also: NDArray[np.int64], rows: Rows | None) -> Ranking:
        """`rows` in order; None: all."""
        count = self._owners.count
        size = count if rows is None else len(rows)
        if size > EXACT_UP_TO:
            candidates = self._nearest_by_signs(vector, max(limit, min(size, MOST_RESCORED, max(RESCORED, size // 20))), rows)
        else:
            candidates = np.arange(count) if rows is None else rows
        scores = self._cosines(candidates, vector)
        if len(candidates) > limit:
            best = np.argpartition(-scores, limit)[:limit]
            candidates, scores = candidates[best], scores[best]
        if len(also):
            more = np.setdiff1d(self._among(also, rows), candidates)
            candidates, scores = np.append(candidates, more), np.append(scores, self._cosines(more, vector))
        ids = self._ids[candidates].astype(np.int64)
        order = np.lexsort((ids, -scores))
        return ids[order], scores[order]

    def _nearest_by_signs(self, vector: Vector, wanted: int, rows: Rows | None) -> Rows:
        distances = self._distances(vector, rows)
        low, high = 0, 64 * len(self._signs)
        while low < high:  # the smallest distance that enough rows are within
            middle = (low + high) // 2
            if np.count_nonzero(distances <= middle) >= wanted:
                high = middle
            else:
                low = middle + 1
        best = np.flatnonzero(distances <= low)
        return best if rows is None else rows[best]

    def _among(self, section_ids: NDArray[np.int64], rows: Rows | None) -> Rows:
        """The rows of these sections that are in scope."""
        found = self._rows_with(section_ids)
        if rows is None or not len(found):
            return found
        inside: NDArray[np.bool_] = rows[np.minimum(np.searchsorted(rows, found), len(rows) - 1)] == found if len(rows) \
            else np.zeros(len(found), bool)
        return found[inside]

    def _rows_with(self, section_ids: NDArray[np.int64]) -> Rows:
        ids = self._ids[:self._owners.count]
        if self._places is None and len(ids):
            self._first = int(ids.min())
            span = int(ids.max()) - self._first + 1
            if span > SPARSE * len(ids):  # numbers of other libraries lie between
                return np.flatnonzero(np.isin(ids, section_ids))
            self._places = np.zeros(span, np.uint32)
            self._places[ids - np.uint32(self._first)] = np.arange(len(ids), dtype=np.uint32)
        if self._places is None:
            return np.empty(0, np.intp)
        near = section_ids[(section_ids >= self._first) & (section_ids < self._first + len(self._places))]
        found: Rows = self._places[near - self._first].astype(np.intp)
        same: NDArray[np.bool_] = ids[found] == near
        return found[same]

    def _cosines(self, rows: Rows, vector: Vector) -> NDArray[np.float32]:
        # float16 to float32 by shifting bits, which is seven times faster than numpy's own way; the exponent is then
        # 112 too small, and one multiplication of the sums makes up for that. A part at a time stays in the cache.
        sums, scaled = np.empty(len(rows), np.float32), vector * np.float32(2.0 ** 62)
        for start in range(0, len(rows), AT_ONCE):
            shifted = self._matrix[rows[start:start + AT_ONCE]].view(np.int16).astype(np.int32)
            shifted <<= 13
            shifted &= np.int32(-0x70002000)
            np.matmul(shifted.view(np.float32), scaled, out=sums[start:start + AT_ONCE])
        sums *= np.float32(2.0 ** 50)
        return sums

    def _distances(self, vector: Vector, rows: Rows | None) -> NDArray[np.uint16]:
        """Differing sign bits, word by word."""
        count = self._owners.count
        # Picking rows out of sixteen arrays is slower than reading all of them when many are wanted.
        some = rows if rows is not None and len(rows) * 8 < count else None
        total = np.zeros(count if some is None else len(some), np.uint16)
        words = _sign_words(vector.reshape(1, -1))[:, 0]
        if some is not None:
            for signs, word in zip(self._signs, words, strict=True):
                total += np.bitwise_count(signs[some] ^ word)
            return total
        for start in range(0, count, SCANNED_AT_ONCE):
            part = slice(start, min(start + SCANNED_AT_ONCE, count))
            for signs, word in zip(self._signs, words, strict=True):
                total[part] += np.bitwise_count(signs[part] ^ word)
        return total if rows is None else total[rows]


def _sign_words(matrix: NDArray[np.floating]) -> NDArray[np.uint64]:
    """Signs packed into 64-bit words, one word a row of the result."""
    packed = np.packbits(sign_bits(matrix), axis=1)
    padded = np.zeros((len(matrix), -(-packed.shape[1] // 8) * 8), np.uint8)
    padded[:, :packed.shape[1]] = packed
    return np.ascontiguousarray(padded.view(np.uint64).T)
