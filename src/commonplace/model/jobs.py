"""Background jobs: their kinds and states, and the callbacks that report progress."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from commonplace.model.ids import Json, Stored, now

INGEST = "ingest"  # read the source of an item that was accepted unread
EMBED = "embed"  # compute vectors of sections
TRANSFORM = "transform"  # write summary, key points, tags and category
TRANSCRIBE = "transcribe"  # turn a recording into text
LINK = "link"  # link an entity to similar ones
REMOVE = "remove"  # delete an item once its undo period is over


class JobState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Job(Stored):
    item_id: str
    kind: str
    state: JobState = JobState.QUEUED
    attempts: int = 0
    error: str | None = None
    progress: float = 0.0
    payload: Json = field(default_factory=dict)
    created_at: datetime = field(default_factory=now)
    updated_at: datetime = field(default_factory=now)
    run_after: datetime = field(default_factory=now)


Progress = Callable[[float, str], Awaitable[None]]  # the share done, 0..1, and the next step
Advance = Callable[[int, int], None]  # (done so far, in all)


async def no_progress(share: float, message: str) -> None:
    """Report to nobody."""


def no_advance(done: int, total: int) -> None:
    """Report to nobody."""
