"""Something in memory that follows a library's rows in the database.

The rows are the truth; this can always be thrown away. Every write notes the items it touched in `changes`, and each
process reads on from where it was before it searches, so that all of them see a write at their next search.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.adapters.store import changes
from commonplace.adapters.store.database import Tx

RELOAD_FROM = 20_000  # changed items; reading everything again is faster then
_ITEMS, _ROWS = 500, 4_000  # read at once

Rows = NDArray[np.intp]
Ranking = tuple[NDArray[np.int64], NDArray[np.float32]]  # section ids and scores, best first
NOTHING: Ranking = (np.empty(0, np.int64), np.empty(0, np.float32))


def item_key(item_id: str) -> int:
    """A UUID's first 64 bits, signed: eight bytes a row instead of a string. Passages are checked by SQL anyway."""
    value = int(item_id.replace("-", "")[:16], 16)
    return value - (1 << 64) if value >> 63 else value


class Follower(ABC):
    """A subclass says how to forget everything, how to forget some items, and how to take in rows."""

    def __init__(self, library_id: str) -> None:
        self.guard = threading.RLock()
        self.library_id = library_id
        self._mark: int | None = None
        self._seen: frozenset[int] = frozenset()
        self._scopes: dict[frozenset[str], Rows] = {}
        self.clear()

    @abstractmethod
    def clear(self) -> None: ...

    @abstractmethod
    def drop(self, items: NDArray[np.int64]) -> None: ...

    @property
    @abstractmethod
    def source(self) -> str:
        """Where its rows are read: `columns FROM table WHERE ...`, with `values`."""

    @property
    def values(self) -> dict[str, Any]:
        return {"library_id": self.library_id}

    @abstractmethod
    def reserve(self, size: int) -> None:
        """Make room for so many rows, when everything is about to be read."""

    @abstractmethod
    def append(self, found: Sequence[Any]) -> None: ...

    @abstractmethod
    def rows_of(self, items: NDArray[np.int64]) -> Rows:
        """In order."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many rows there are."""

    def catch_up(self, tx: Tx) -> None:
        news = changes.since(tx, self.library_id, self._mark)
        changed = list({item_id for seq, item_id in news.items.items() if seq not in self._seen})
        if not news.complete or len(changed) > RELOAD_FROM:
            self.reload(tx)
        elif changed:
            self.drop(np.array([item_key(item_id) for item_id in changed], np.int64))
            for start in range(0, len(changed), _ITEMS):
                self.append(tx.all(f"SELECT {self.source} AND item_id IN :ids", **self.values,
                                   ids=changed[start:start + _ITEMS]))
            self._scopes.clear()
        self._mark, self._seen = news.horizon, news.again

    def reload(self, tx: Tx) -> None:
        """Everything anew, a lot at a time: small leftovers of one big answer would stay in the process for good."""
        self.clear()
        self._scopes.clear()
        self.reserve(tx.all(f"SELECT count(*) AS n FROM ({'SELECT ' + self.source})", **self.values)[0]["n"])
        for found in tx.lots(f"SELECT {self.source}", _ROWS, **self.values):
            self.append(found)

    def within(self, folders: frozenset[str] | None, items: Callable[[], NDArray[np.int64]]) -> Rows | None:
        """The rows of a set of folders, found once per change of the library; None for all."""
        if folders is None:
            return None
        rows = self._scopes.get(folders)
        if rows is None:
            rows = self._scopes[folders] = self.rows_of(items())
        return rows

    def without(self, rows: Rows | None, items: NDArray[np.int64]) -> Rows:
        inside = np.ones(self.size, bool) if rows is None else np.zeros(self.size, bool)
        if rows is not None:
            inside[rows] = True
        inside[self.rows_of(items)] = False
        return np.flatnonzero(inside)


class Owners:
    """Which item each row belongs to, and where the rows of an item are."""

    def __init__(self) -> None:
        self._items = np.empty(0, np.int64)
        self._order: Rows = np.empty(0, np.intp)  # the first rows, by item
        self.count = 0

    def reserve(self, size: int) -> None:
        self._items = room_for(self._items, size, self.count)

    def append(self, items: Sequence[int]) -> None:
        self._items = room_for(self._items, self.count + len(items), self.count)
        self._items[self.count:self.count + len(items)] = items
        self.count += len(items)

    def move(self, gaps: Rows, movers: Rows, left: int) -> None:
        self._items[gaps] = self._items[movers]
        self._order = np.empty(0, np.intp)
        self.count = left

    def rows_of(self, items: NDArray[np.int64]) -> Rows:
        """By binary search over the sorted part, by comparison over what came since."""
        if self.count - len(self._order) > 0.05 * self.count + 1_000:
            self._order = np.argsort(self._items[:self.count], kind="stable")
        sorted_part, wanted = len(self._order), np.unique(items)
        first, last = (np.searchsorted(self._items[:sorted_part], wanted, side, sorter=self._order) for side in ("left", "right"))
        lengths = last - first
        places = np.arange(lengths.sum()) + np.repeat(first - np.cumsum(lengths) + lengths, lengths)
        tail = np.flatnonzero(np.isin(self._items[sorted_part:self.count], wanted)) + sorted_part
        return np.sort(np.concatenate([self._order[places], tail]))


def room_for(array: NDArray[Any], size: int, used: int) -> NDArray[Any]:
    """The same array, or a larger copy of the part in use."""
    if size <= len(array):
        return array
    grown = np.empty((max(size, int(len(array) * 1.125), 256), *array.shape[1:]), array.dtype)
    grown[:used] = array[:used]
    return grown
