"""Methods that run as one transaction: written with `tx`, called without it and awaited."""

from collections.abc import Callable, Coroutine
from functools import wraps
from types import MethodType
from typing import Any, Concatenate, ParamSpec, TypeVar

from commonplace.database.transaction import Database, Tx

P = ParamSpec("P")
T = TypeVar("T")


class Table:
    """A part of the store. Its methods marked `reads` or `writes` run in the database."""

    def __init__(self, db: Database) -> None:
        self._db = db


S = TypeVar("S", bound=Table)
Work = Callable[Concatenate[S, Tx, P], T]
Call = Callable[Concatenate[S, P], Coroutine[Any, Any, T]]


def reads(work: Work[S, P, T]) -> Call[S, P, T]:
    """Run the method on a snapshot of the database."""

    @wraps(work)
    async def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._db.read(MethodType(work, self), *args, inline=False, **kwargs)

    return call


def reads_inline(work: Work[S, P, T]) -> Call[S, P, T]:
    """Run the method on a snapshot, on SQLite without a thread hop: a few rows by their keys."""

    @wraps(work)
    async def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._db.read(MethodType(work, self), *args, inline=True, **kwargs)

    return call


def writes(work: Work[S, P, T]) -> Call[S, P, T]:
    """Run the method in a transaction that is committed. It may be run again after a deadlock."""

    @wraps(work)
    async def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._db.write(MethodType(work, self), *args, **kwargs)

    return call
