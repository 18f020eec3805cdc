"""Planning: priorities of open tasks, suggestions, estimates and cycles, each with an explanation.

Priorities are pure: the same tasks on the same day give the same order. They are computed in two
steps, since there may be many: all are scored, and only those shown are explained.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from heapq import nsmallest
from statistics import median

from commonplace.core.people.authorization import READ, Service, verb
from commonplace.core.search.search import Search, find_project
from commonplace.core.search.similarity import SimilarityScale
from commonplace.core.work.graph import Graph
from commonplace.model import (
    Caller,
    EntityType,
    Item,
    ItemFilter,
    ItemRef,
    Mode,
    TaskWeights,
    Ticket,
    now,
    parse_time,
)
from commonplace.model.workflow import CLOSED, ENDED, TASK

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
    order = [task_id for task_id in needs if task_id not in left]
    for task_id in order:  # grows during the loop
        for need in needs.get(task_id, ()):
            heights[need] = max(heights.get(need, 0), heights.get(task_id, 0) + 1)
            left[need] -= 1
            if not left[need]:
                order.append(need)
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


# similarity, on the calibrated scale, from which a task counts as a precedent
ALIKE = 0.45
CANDIDATES, BASIS = 40, 8
_NEXT = {
    "backlog": "update_task",
    "todo": "start_task",
    "doing": "complete_task",
    "review": "complete_task",
}


@dataclass(frozen=True, slots=True)
class Suggestion:
    ranked: Ranked
    action: str  # of `manage`, the next step


@dataclass(frozen=True, slots=True)
class Precedent:
    """A finished task that an estimate is based on."""

    item: Item
    likeness: float
    hours: float | None  # as recorded on completion
    days: float | None  # from start to end


@dataclass(frozen=True, slots=True)
class Estimate:
    confidence: str  # none, low, medium, high
    explanation: str
    precedents: tuple[Precedent, ...] = ()
    hours: float | None = None
    days: float | None = None
    low: float | None = None  # hours
    high: float | None = None


@dataclass(eq=False)
class Planning(Service):
    _search: Search
    _graph: Graph
    _similarity: SimilarityScale

    @verb(READ, target="project")
    async def prioritize(
        self,
        caller: Caller,
        project: str | None = None,
        *,
        limit: int = 20,
        today: date | None = None,
    ) -> tuple[list[Ranked], int]:
        """Return open tasks, most important first, and their number."""
        today = today or now().date()
        places, theirs, total = await self._open(caller, project, today)
        return await self._explained(caller, places, places.first(theirs, limit), today), len(
            theirs
        ) if total is None else total

    @verb(READ, target="project")
    async def suggest(
        self,
        caller: Caller,
        project: str | None = None,
        *,
        assignee: str | None = None,
        limit: int = 5,
        today: date | None = None,
    ) -> tuple[list[Suggestion], str]:
        """Return tasks that can be worked on now, started ones first, and a sentence about them."""
        today = today or now().date()
        places, tasks, total = await self._open(caller, project, today, assignee)
        some = "At least " if total else ""
        theirs = [task for task in tasks if task.theirs]
        ready = [task for task in theirs if places.ready(task)]
        if ready:
            shown = await self._explained(
                caller, places, places.first(ready, limit, begun_first=True), today
            )
            return (
                [
                    Suggestion(r, _NEXT[TASK.state(r.item)])
                    for r in shown
                    if TASK.state(r.item) in _NEXT
                ],
                f"{some}{len(ready)} of {len(tasks) if total is None else total} open tasks can "
                "be worked on now.",
            )
        if theirs:
            most = "the most important " if total else ""
            return (
                [],
                f"None of {most}{len(theirs)} open tasks can be worked on: each is blocked or "
                "waits for another.",
            )
        return (
            [],
            "There are no open tasks."
            if not tasks and total is None
            else f"No open task is assigned to {assignee} or unassigned.",
        )

    @verb(READ, "detect_cycles", target="project")
    async def cycles(self, caller: Caller, project: str | None = None) -> Sequence[Sequence[Item]]:
        """Return cycles of dependent tasks. Each ends with its first task."""
        return await self._graph.cycles(caller.scope, project)

    @verb(READ, target="entity_id")
    async def estimate(self, caller: Caller, entity_id: str) -> tuple[Item, Estimate]:
        """Estimate a task from similar finished ones."""
        task = await self._store.items.get(caller.scope, ItemRef.parse(entity_id))
        TASK.require(task)
        query = f"{task.title}\n{await self._store.items.text(task)}"
        found = await self._search.find(
            caller,
            query,
            CANDIDATES,
            Mode.HYBRID,
            ItemFilter(entity_types=(EntityType.TASK,), statuses=CLOSED),
        )
        scale, likeness = await self._similarity.scale(), dict[str, float]()
        for hit in found.hits:
            like = 0.0 if hit.cosine is None else scale(hit.cosine)
            if hit.passage.item_id != task.id and like >= ALIKE:
                own = hit.passage.item_id
                likeness[own] = max(like, likeness.get(own, 0.0))
        done = await self._store.items.get_many(caller.scope, likeness.keys())
        precedents = [precedent(item, likeness[item_id]) for item_id, item in done.items()]
        return task, estimated(
            sorted((p for p in precedents if p.hours or p.days), key=lambda p: -p.likeness)[:BASIS]
        )

    async def _open(
        self, caller: Caller, project: str | None, today: date, assignee: str | None = None
    ) -> tuple[Ranking, list[Ticket], int | None]:
        """Load open work. Tasks of other projects count, since work may depend on them. Beyond a
        thousand, only the most important are loaded, and the total is returned."""
        wanted = None if project is None else await find_project(self._store, caller.scope, project)
        tickets, waits, total = await self._store.relations.tickets(
            caller.scope,
            ItemFilter(not_statuses=ENDED),
            project_id=wanted.id if wanted else None,
            assignee=assignee,
            worth=worth(today),
        )
        needs: dict[str, list[str]] = {}
        for from_id, to_id in waits:
            needs.setdefault(from_id, []).append(to_id)
        places = await asyncio.to_thread(rank, tickets, needs, today)
        return (
            places,
            [task for task in tickets if task.inside and task.entity_type == EntityType.TASK],
            total,
        )

    async def _explained(
        self, caller: Caller, places: Ranking, shown: Sequence[Ticket], today: date
    ) -> list[Ranked]:
        items = await self._store.items.get_many(caller.scope, places.named(shown))
        return [places.explained(task, items, today) for task in shown if task.id in items]


def estimated(precedents: Sequence[Precedent]) -> Estimate:
    """Return the median of precedents, weighted by similarity."""
    hours = [(p.hours, p.likeness) for p in precedents if p.hours is not None]
    days = [(p.days, p.likeness) for p in precedents if p.days is not None]
    if not precedents:
        return Estimate("none", "There is no similar finished task to base an estimate on.")
    similar = f"{len(precedents)} similar finished task{'s' * (len(precedents) != 1)}"
    if not hours:
        explanation = (
            f"{similar} took {_middle(days):g} calendar days. "
            "No hours were recorded (pass actual_hours to complete_task)."
        )
        return Estimate("low", explanation, tuple(precedents), days=_middle(days))
    amounts = [amount for amount, _ in hours]
    low, high = min(amounts), max(amounts)
    close = median(likeness for _, likeness in hours) >= 0.75
    agree = high <= 2 * low
    confidence = (
        "high"
        if len(hours) >= 5 and close and agree
        else "medium"
        if len(hours) >= 3 and (close or agree)
        else "low"
    )
    explanation = (
        f"{similar}, {len(hours)} with recorded hours, took {low:g} to {high:g} "
        f"hours. They are {'very' if close else 'somewhat'} similar to it and "
        f"{'agree' if agree else 'differ much'}."
    )
    return Estimate(
        confidence,
        explanation,
        tuple(precedents),
        _middle(hours),
        _middle(days) if days else None,
        low,
        high,
    )


def _middle(weighted: Sequence[tuple[float, float]]) -> float:
    total, passed = sum(weight for _, weight in weighted), 0.0
    for amount, weight in sorted(weighted):
        passed += weight
        if passed >= total / 2:
            return round(amount, 2)
    raise AssertionError("a median of nothing")


def precedent(task: Item, likeness: float) -> Precedent:
    hours = task.metadata.get("actual_hours")
    began, ended = (parse_time(task.metadata.get(name)) for name in ("started_at", "completed_at"))
    return Precedent(
        task,
        round(likeness, 3),
        float(hours) if isinstance(hours, int | float) and hours > 0 else None,
        round((ended - began).total_seconds() / 86_400, 2)
        if began and ended and ended >= began
        else None,
    )
