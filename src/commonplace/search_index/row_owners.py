"""The item of each row of an index, and the rows of an item."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.search_index.postings import Rows

_NO_ITEMS = np.empty(0, np.int64)


class Owners:
    def __init__(self, items: NDArray[np.int64] = _NO_ITEMS, count: int = 0) -> None:
        """`items`: of each row, its item's key; `count` rows are in use."""
        self.items, self.count = items, count
        # Of the first rows: their items in order, and where each was.
        self._sorted = (_NO_ITEMS, np.empty(0, np.intp))

    def reserve(self, size: int) -> None:
        self.items = grow(self.items, size, self.count)

    def append(self, items: NDArray[np.int64]) -> None:
        self.reserve(self.count + len(items))
        self.items[self.count : self.count + len(items)] = items
        self.count += len(items)

    def rows_of(self, items: NDArray[np.int64]) -> Rows:
        """Return the rows of items, in order: a binary search of the sorted part, then a scan."""
        (in_order, order), count = self._sorted, self.count
        if count - len(order) > 0.05 * count + 1_000:
            order = np.argsort(self.items[:count], kind="stable")
            in_order, _ = self._sorted = self.items[order], order
        sorted_part, wanted = len(order), _distinct(items)
        first, last = (in_order.searchsorted(wanted, side) for side in ("left", "right"))
        lengths = last - first
        places = np.arange(lengths.sum()) + np.repeat(first - np.cumsum(lengths) + lengths, lengths)
        rows = np.sort(order[places])
        if sorted_part == count:
            return rows
        return np.concatenate(
            [rows, np.flatnonzero(np.isin(self.items[sorted_part:count], wanted)) + sorted_part]
        )


def item_keys(item_ids: Iterable[str]) -> NDArray[np.int64]:
    """Return the last 64 bits of UUIDs, signed. The first ones are the time, which many share."""
    halves = np.frombuffer(bytes.fromhex("".join(item_ids).replace("-", "")), ">i8")
    return halves[1::2].astype(np.int64)


def _distinct(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the keys in order, each once. np.unique imports masked arrays, at every start."""
    ordered = np.sort(keys)
    return np.concatenate([ordered[:1], ordered[1:][ordered[1:] != ordered[:-1]]])


def grow(array: NDArray[Any], size: int, used: int) -> NDArray[Any]:
    """Return the array, or a larger copy of the part in use, with zeros behind it."""
    if size <= len(array):
        return array
    grown = np.zeros((max(size, int(len(array) * 1.125), 256), *array.shape[1:]), array.dtype)
    grown[:used] = array[:used]
    return grown
