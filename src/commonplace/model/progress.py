"""Callbacks by which long work reports its progress."""

from collections.abc import Awaitable, Callable

Progress = Callable[[float, str], Awaitable[None]]  # the share done, 0..1, and the next step
Advance = Callable[[int, int], None]  # (done so far, in all)


async def no_progress(share: float, message: str) -> None:
    """Report to nobody."""


def no_advance(done: int, total: int) -> None:
    """Report to nobody."""
