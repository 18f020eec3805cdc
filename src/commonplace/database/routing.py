"""Which database answers a call: the primary, or a read replica.

Each library counts its writes in its row of `usage`, in the transaction of the write. A call reads
that number on the primary once; a replica that has it has everything up to that write. So it does
not matter which server a caller wrote through, nor how the replica is fed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class Route:
    """Where the reads of one call go."""

    library_id: str
    primary: bool  # once it writes, a call reads what it has written
    writes: int | None = None  # of the library, when the call first read; None: not known yet


_route: ContextVar[Route | None] = ContextVar("route", default=None)


def current() -> Route | None:
    """Return the route of the call that is running; None: it is no caller's."""
    return _route.get()


@contextmanager
def route_call(library_id: str, *, primary: bool) -> Iterator[None]:
    """Route what runs inside. A call inside of another one takes its route."""
    outer = _route.get()
    if outer is not None and outer.library_id == library_id:
        outer.primary = outer.primary or primary
        yield
        return
    route = Route(library_id, primary)
    token = _route.set(route)
    try:
        yield
    finally:
        _route.reset(token)
        route.primary = True  # for tasks that it has started
