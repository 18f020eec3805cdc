"""Steps that a person can undo, and what each of them changed."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from commonplace.model.ids import Json, new_id

UNDO_KEPT = timedelta(days=1)


class Did(StrEnum):
    """What a step did to an item; or the table in which it changed a row."""

    CHANGED = "changed"
    ADDED = "added"
    DELETED = "deleted"
    RESTORED = "restored"
    FILED = "filed"
    UNFILED = "unfiled"
    FOLDER = "folders"
    FOLDER_DELETED = "folder_deleted"
    PUBLISHED = "published"
    CANDIDATE = "candidates"
    RELATION = "relations"


@dataclass(eq=False, slots=True)
class Step:
    """What somebody does with one request. Its changes are undone together."""

    person_id: str
    id: str = field(default_factory=new_id)
    recorded: bool = False  # whether it has changed something


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a step; `before` and `after` hold what it changed, None: there was nothing."""

    library_id: str
    step_id: str
    seq: int
    kind: Did
    item_id: str | None
    before: Json | None
    after: Json | None
    was: int  # the revision of the item before the change
    revision: int  # and after it


@dataclass(frozen=True, slots=True)
class StepSummary:
    id: str
    at: datetime
    said: str
    item_ids: tuple[str, ...]  # the first items that it changed
