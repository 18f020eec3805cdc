"""Optimistic changes: derived from what was read, and written only if that is unchanged."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from commonplace.errors import Conflict

T = TypeVar("T")

RIVALS = 25  # conflicts before giving up


async def retry_on_conflict(attempt: Callable[[], Awaitable[T]], *, guarded: bool) -> T:
    """Run `attempt` again after a Conflict.

    `guarded`: the caller named a revision, and gets the Conflict.
    """
    for _ in range(0 if guarded else RIVALS):
        try:
            return await attempt()
        except Conflict:
            continue
    return await attempt()
