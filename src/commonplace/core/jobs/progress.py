"""Word from work that takes a while, to whoever waits for it."""

from collections.abc import Awaitable, Callable

Tell = Callable[[float, str], Awaitable[None]]  # the share that is done, 0..1, and what comes next


async def silent(share: float, message: str) -> None:
    """For those who do not ask."""
