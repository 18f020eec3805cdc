"""Priorities of open tasks, with reasons. Pure: the same tasks on the same day give the same order.

In two steps, since there may be many: all are scored, and only those shown are explained.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from heapq import nsmallest

from commonplace.model import Item, TaskWeights, Ticket
from commonplace.model.workflow import TASK

PRIORITY = {"critical": 100, "high": 70, "medium": 40, "low": 20, "someday": 0}
BEGUN = ("doing", "review")
_BEGUN_POINTS = 15
_DUE = ((0, 60), (3, 45), (8, 25), (31, 10))  # (due in fewer days than, points)
_WAITING_POINTS, _MOST_COUNTED = 5, 5  # per dependent task, up to a limit
_NAMED = 3
_COUNTED = 1_000  # dependents of a task shown

Needs = Mapping[str, Sequence[str]]  # by id: the open tasks and epics that it depends on


@dataclass(frozen=True, slots=True)
class Ranked:
    """A task with its score and reasons."""

    item: Item
    score: int
    reasons: tuple[str, ...]
    waits_for: tuple[Item, ...]
    ready: bool


@dataclass(frozen=True, slots=True)
class Ranking:
    """Scores and dependencies of tasks. Not sorted, since few are shown."""

    scores: Mapping[str, int]
    heights: Mapping[str, int]  # by id: the length of the chain of dependents above it
    needs: Needs
    waiting: Needs  # by id: its dependents
    pressing: Mapping[str, Ticket]  # by id: its most important direct or indirect dependent

    def first(
        self, tasks: Iterable[Ticket], most: int, *, begun_first: bool = False
    ) -> list[Ticket]:
        """Return the most important tasks, in order. A task never comes before its dependencies,
        which are at least as important."""

        def place(task: Ticket) -> tuple[object, ...]:
            return (
                begun_first and task.status not in BEGUN,
                -self.scores[task.id],
                -self.heights.get(task.id, 0),
                task.due_date or "9",
                task.created_at,
                task.id,
            )

        return nsmallest(most, tasks, key=place)

    def ready(self, task: Ticket) -> bool:
        return not self.needs.get(task.id) and TASK.state(task) != "blocked"

    def named(self, shown: Iterable[Ticket]) -> set[str]:
        """Return ids of the items that explanations of these tasks mention."""
        found: set[str] = set()
        for task in shown:
            found |= {
                task.id,
                *self.needs.get(task.id, ()),
                *_reached(task.id, self.waiting, _NAMED),
            }
            if task.id in self.pressing:
                found.add(self.pressing[task.id].id)
        return found

    def explained(self, task: Ticket, items: Mapping[str, Item], today: date) -> Ranked:
        """Explain a task. `items`: the mentioned items that still exist."""
        item, needs, reasons = items[task.id], self.needs.get(task.id, ()), _reasons(task, today)
        if (above := self.pressing.get(task.id)) is not None:
            waiting = _reached(task.id, self.waiting, _COUNTED)
            reasons.append(f"{_counted(len(waiting))} for it: {_names(waiting, items)}")
            if _points(above, today) > _points(task, today) and above.id in items:
                why = " and is ".join(_reasons(above, today)[:2])
                reasons.append(f"{items[above.id].title!r}, which waits for it, has {why}")
        if TASK.state(task) == "blocked":
            reason = item.metadata.get("blocked_reason")
            reasons.append(f"blocked: {reason}" if reason else "blocked")
        if needs:
            reasons.append(f"waits for {_names(needs, items)}")
        return Ranked(
            item,
            self.scores[task.id],
            tuple(reasons),
            tuple(items[need] for need in needs if need in items),
            self.ready(task),
        )


def worth(today: date) -> TaskWeights:
    return TaskWeights(
        tuple(PRIORITY.items()),
        PRIORITY["medium"],
        tuple(((today + timedelta(days=before)).isoformat(), points) for before, points in _DUE),
        BEGUN,
    )


def rank(tasks: Sequence[Ticket], needs: Needs, today: date) -> Ranking:
    by_id = {task.id: task for task in tasks}
    needs = {
        task_id: [need for need in needed if need in by_id and need != task_id]
        for task_id, needed in needs.items()
        if task_id in by_id
    }
    waiting: dict[str, list[str]] = {}
    for task_id, needed in needs.items():
        for need in needed:
            waiting.setdefault(need, []).append(task_id)
    points = {
        key: _points(task, today)
        for key, task in {(t.priority, t.due_date, t.status): t for t in tasks}.items()
    }
    scores = {task.id: points[task.priority, task.due_date, task.status] for task in tasks}
    pressing = _pressing(needs, scores)
    scores |= {
        task_id: max(scores[task_id], scores[above])
        + _WAITING_POINTS * len(_reached(task_id, waiting, _MOST_COUNTED))
        for task_id, above in pressing.items()
    }
    return Ranking(
        scores,
        _heights(needs, waiting),
        needs,
        waiting,
        {task_id: by_id[above] for task_id, above in pressing.items()},
    )


def _reached(start: str, ways: Mapping[str, Sequence[str]], most: int) -> list[str]:
    """Return the ids reachable from a start, the nearest first, up to a limit."""
    found = list(ways.get(start, ()))
    seen = {start, *found}
    for place in range(most):
        if place >= len(found) or len(found) >= most:
            break
        for other in ways.get(found[place], ()):
            if other not in seen:
                seen.add(other)
                found.append(other)
    return found[:most]


def _pressing(needs: Needs, scores: Mapping[str, int]) -> dict[str, str]:
    """Return each task's most important direct or indirect dependent. Visits each task once."""
    found: dict[str, str] = {}
    for task_id in sorted(needs, key=lambda one: -scores[one]):
        frontier = [task_id]
        while frontier:
            for need in needs.get(frontier.pop(), ()):
                if need != task_id and need not in found:
                    found[need] = task_id
                    frontier.append(need)
    return found


def _heights(needs: Needs, waiting: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return the length of the chain of dependents above each task. Cycles have none."""
    left = {task_id: len(others) for task_id, others in waiting.items()}
    heights: dict[str, int] = {}
    frontier = deque(task_id for task_id in needs if task_id not in left)
    while frontier:
        task_id = frontier.popleft()
        for need in needs.get(task_id, ()):
            heights[need] = max(heights.get(need, 0), heights.get(task_id, 0) + 1)
            left[need] -= 1
            if not left[need]:
                frontier.append(need)
    return heights


def _points(task: Ticket, today: date) -> int:
    score = PRIORITY.get(task.priority, PRIORITY["medium"])
    days = _days_until(task.due_date, today)
    if days is not None:
        score += next((points for before, points in _DUE if days < before), 0)
    return score + (_BEGUN_POINTS if task.status in BEGUN else 0)


def _reasons(task: Ticket, today: date) -> list[str]:
    """Return the reasons that lie in the task itself."""
    reasons = [f"priority {task.priority if task.priority in PRIORITY else 'medium'}"]
    days = _days_until(task.due_date, today)
    if days is not None:
        reasons.append(
            f"overdue by {_days(-days)}"
            if days < 0
            else "due today"
            if days == 0
            else f"due in {_days(days)}"
        )
    if task.status in BEGUN:
        reasons.append("already begun" if task.status == "doing" else "in review")
    return reasons


def _days_until(due: str | None, today: date) -> int | None:
    return None if not due else (datetime.fromisoformat(due).date() - today).days


def _days(number: int) -> str:
    return f"{number} day{'s' * (number != 1)}"


def _counted(waiting: int) -> str:
    at_least = "at least " if waiting == _COUNTED else ""
    return f"{at_least}{waiting} task{'s wait' if waiting != 1 else ' waits'}"


def _names(ids: Sequence[str], items: Mapping[str, Item]) -> str:
    rest = len(ids) - _NAMED
    return ", ".join(items[one].title for one in ids[:_NAMED] if one in items) + (
        f" and {rest} more" if rest > 0 else ""
    )
