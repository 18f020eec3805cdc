"""The layer below the store: units of work in threads, SQL as text with :named values.

Both engines run synchronous functions in threads, one hop per unit of work, and run the same
statements. As values, a list is an SQL list (`id IN :ids`), and a time becomes microseconds.
"""

import re
from collections.abc import Callable, Coroutine, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache, wraps
from types import MethodType
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from commonplace.model.people import Usage
from commonplace.telemetry import operation

P = ParamSpec("P")
T = TypeVar("T")
Values = Mapping[str, Any]


class WireVector(bytes):
    """A value in the binary form that Postgres takes for its column: a vector, an array, a UUID."""


class Tx(Protocol):
    """One open transaction."""

    engine: str
    quota: Usage  # of each library

    def all(self, sql: str, /, **values: Any) -> list[Any]: ...

    def batches(self, sql: str, size: int, /, **values: Any) -> Iterator[list[Any]]:
        """Yield the rows, at most `size` at a time."""

    def tuples(self, sql: str, /, **values: Any) -> list[tuple[Any, ...]]:
        """Return rows without column names, which is faster for many."""

    def one(self, sql: str, /, **values: Any) -> Any | None: ...

    def column(self, sql: str, /, **values: Any) -> list[Any]:
        """Return the first column of all rows."""

    def scalar(self, sql: str, /, **values: Any) -> Any:
        """Return the first column of the first row; None if there is no row."""

    def run(self, sql: str, /, **values: Any) -> int:
        """Return the number of rows changed."""

    def many(self, sql: str, rows: Iterable[Values]) -> None: ...

    def insert(self, table: str, columns: str, rows: Sequence[Sequence[Any]]) -> None:
        """Insert new rows, the fastest way for many."""

    def recall(self, work: Callable[..., T], /, *args: Hashable) -> T:
        """Return `work(tx, *args)`, cached for as long as no row is written by any process.

        `work` is a function of a module.
        """

    def defer(self, work: "Deferred", value: Any) -> None:
        """Call `work(tx, values)` once before the commit, with all values deferred to it.

        For locks that all writers of a library take: held this late, they are held only briefly.
        """

    def run_deferred(self) -> None: ...

    def drop_deferred(self) -> None: ...


Deferred = Callable[[Any, list[Any]], None]


class DeferredWork:
    """What a transaction does last."""

    quota = Usage()

    _deferred: dict[Deferred, list[Any]] | None = None  # most transactions defer nothing

    def defer(self, work: Deferred, value: Any) -> None:
        if self._deferred is None:
            self._deferred = {}
        self._deferred.setdefault(work, []).append(value)

    def run_deferred(self) -> None:
        # In one order for all transactions, so that no two wait for each other's locks. Some of it
        # defers more.
        while self._deferred:
            work = min(self._deferred, key=lambda deferred: deferred.__module__)
            work(self, self._deferred.pop(work))

    def drop_deferred(self) -> None:
        self._deferred = None


class Database(Protocol):
    engine: str
    quota: Usage

    async def open(self) -> None: ...

    async def read(
        self, work: Callable[..., T], /, *args: Any, inline: bool = False, **kwargs: Any
    ) -> T:
        """Run `work(tx, *args, **kwargs)` on a snapshot of the database, in another thread.

        `inline` suits a few rows that are found by their keys: SQLite reads them on the event
        loop, because a thread hop costs more than the read. Postgres ignores it.
        """

    async def write(self, work: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        """Run `work(tx, ...)` and commit, or change nothing. It may run again after a deadlock."""

    async def define(self, statement: str) -> None:
        """Run a statement outside of a transaction. Only Postgres has such statements."""

    async def close(self) -> None: ...


@lru_cache(maxsize=512)
def percent_style(sql: str) -> str:
    """`:name` as psycopg wants it. `::type` casts stay."""
    return re.sub(r"(?<!:):([a-z_][a-z0-9_]*)", r"%(\1)s", sql.replace("%", "%%"))


# -- methods that run as one transaction: written with `tx`, called without it and awaited


class Table:
    """A part of the store. Its methods marked `reads` or `writes` run in the database."""

    def __init__(self, db: Database) -> None:
        self._db = db


S = TypeVar("S", bound=Table)
Work = Callable[Concatenate[S, Tx, P], T]
Call = Callable[Concatenate[S, P], Coroutine[Any, Any, T]]


def _name(work: Callable[..., Any]) -> str:
    return f"{work.__module__.rpartition('.')[2]}.{work.__name__}"


def _observed(engine: str, name: str) -> AbstractContextManager[Any]:
    system = "postgresql" if engine == "postgres" else engine
    return operation("db", name, {"db.system.name": system, "db.operation.name": name})


def reads(work: Work[S, P, T]) -> Call[S, P, T]:
    """Run the method on a snapshot of the database."""

    name = _name(work)

    @wraps(work)
    async def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with _observed(self._db.engine, name):
            return await self._db.read(MethodType(work, self), *args, inline=False, **kwargs)

    return call


def reads_inline(work: Work[S, P, T]) -> Call[S, P, T]:
    """Run the method on a snapshot, on SQLite without a thread hop: a few rows by their keys."""

    name = _name(work)

    @wraps(work)
    async def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with _observed(self._db.engine, name):
            return await self._db.read(MethodType(work, self), *args, inline=True, **kwargs)

    return call


def writes(work: Work[S, P, T]) -> Call[S, P, T]:
    """Run the method in a transaction that is committed. It may be run again after a deadlock."""

    name = _name(work)

    @wraps(work)
    async def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with _observed(self._db.engine, name):
            return await self._db.write(MethodType(work, self), *args, **kwargs)

    return call
