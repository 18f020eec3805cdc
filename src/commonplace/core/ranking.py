"""Which of the open tasks matter most, and why. Pure: the same tasks on the same day give the same order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from commonplace.core.states import TASK
from commonplace.model import Item

PRIORITY = {"critical": 100, "high": 70, "medium": 40, "low": 20, "someday": 0}
BEGUN = ("doing", "review")
_BEGUN_POINTS = 15
_DUE = ((0, 60), (3, 45), (8, 25), (31, 10))      # (due in fewer days than, points)
_WAITING_POINTS, _MOST_WAITING = 5, 25
_NAMED = 3

Needs = Mapping[str, Sequence[str]]               # by id: the open tasks and epics that it depends on


@dataclass(frozen=True, slots=True)
class Ranked:
    item: Item
    score: int
    reasons: tuple[str, ...]
    waits_for: tuple[Item, ...]
    unblocks: tuple[Item, ...]                    # what waits for it, directly or not

    @property
    def ready(self) -> bool:
        return not self.waits_for and TASK.state(self.item) != "blocked"


def rank(tasks: Sequence[Item], needs: Needs, today: date) -> list[Ranked]:
    """Most important first; and nothing before what it waits for, because that is at least as important as it is."""
    by_id = {task.id: task for task in tasks}
    waiting = _waiting(by_id, needs)
    ranked = [_ranked(task, [by_id[other] for other in needs.get(task.id, ()) if other in by_id],
                      [by_id[other] for other in waiting[task.id]], today) for task in tasks]
    return sorted(ranked, key=lambda r: (-r.score, -len(r.unblocks), r.item.due_date or "9", r.item.created_at, r.item.id))


def _waiting(by_id: Mapping[str, Item], needs: Needs) -> dict[str, list[str]]:
    """For each task, those that wait for it, directly or not."""
    direct: dict[str, list[str]] = {item_id: [] for item_id in by_id}
    for item_id in by_id:
        for need in needs.get(item_id, ()):
            if need in direct:
                direct[need].append(item_id)
    found: dict[str, list[str]] = {}
    for item_id in by_id:
        seen, frontier = {item_id: None}, list(direct[item_id])
        while frontier:
            other = frontier.pop(0)
            if other not in seen:
                seen[other] = None
                frontier += direct[other]
        found[item_id] = list(seen)[1:]
    return found


def _ranked(task: Item, needs: Sequence[Item], waiting: Sequence[Item], today: date) -> Ranked:
    own, reasons = _own(task, today)
    pressing = max(waiting, key=lambda other: _own(other, today)[0], default=None)
    score = own
    if pressing is not None:
        reasons.append(f"{_counted(waiting)} for it: {_names(waiting)}")
        inherited, why = _own(pressing, today)
        if inherited > own:
            score = inherited
            reasons.append(f"{pressing.title!r}, which waits for it, has {' and is '.join(why[:2])}")
        score += min(_WAITING_POINTS * len(waiting), _MOST_WAITING)
    if TASK.state(task) == "blocked":
        reason = task.metadata.get("blocked_reason")
        reasons.append(f"blocked: {reason}" if reason else "blocked")
    if needs:
        reasons.append(f"waits for {_names(needs)}")
    return Ranked(task, score, tuple(reasons), tuple(needs), tuple(waiting))


def _own(task: Item, today: date) -> tuple[int, list[str]]:
    priority = task.priority if task.priority in PRIORITY else "medium"
    score, reasons = PRIORITY[priority], [f"priority {priority}"]
    days = _days_until(task.due_date, today)
    if days is not None:
        score += next((points for before, points in _DUE if days < before), 0)
        reasons.append(f"overdue by {_days(-days)}" if days < 0 else "due today" if days == 0 else f"due in {_days(days)}")
    if task.status in BEGUN:
        score += _BEGUN_POINTS
        reasons.append("already begun" if task.status == "doing" else "in review")
    return score, reasons


def _days_until(due: str | None, today: date) -> int | None:
    return None if not due else (datetime.fromisoformat(due).date() - today).days


def _days(number: int) -> str:
    return f"{number} day{'s' * (number != 1)}"


def _counted(waiting: Sequence[Item]) -> str:
    return f"{len(waiting)} task{'s wait' if len(waiting) != 1 else ' waits'}"


def _names(items: Sequence[Item]) -> str:
    rest = len(items) - _NAMED
    return ", ".join(item.title for item in items[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")
