"""Changes that are worked out from what was read, and written only if that is still so."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from commonplace.errors import Conflict

T = TypeVar("T")

RIVALS = 25  # how often others may be first before we give up


async def retry_on_conflict(attempt: Callable[[], Awaitable[T]], *, guarded: bool) -> T:
    """Whoever comes second works it out anew. `guarded`: the caller named a revision, and hears that it is gone."""
    for _ in range(0 if guarded else RIVALS):
        try:
            return await attempt()
        except Conflict:
            continue
    return await attempt()
