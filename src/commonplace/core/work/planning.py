"""Planning: task suggestions, estimates and cycles, each with an explanation."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from statistics import median

from commonplace.core.entities.duplicates import SimilarityScale
from commonplace.core.entities.search import find_project
from commonplace.core.people.authorization import READ, Service, verb
from commonplace.core.search.search import Search
from commonplace.core.work.graph import Graph
from commonplace.core.work.priorities import Ranked, Ranking, rank, worth
from commonplace.model import Caller, EntityType, Item, ItemFilter, ItemRef, Mode, Ticket, now
from commonplace.model.workflow import CLOSED, ENDED, TASK

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
    hours: float | None
    days: float | None
    low: float | None  # hours
    high: float | None
    confidence: str  # none, low, medium, high
    explanation: str
    precedents: tuple[Precedent, ...]


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
        found, _ = await self._search.rank(
            caller,
            query,
            Mode.SEMANTIC,
            CANDIDATES,
            ItemFilter(entity_types=(EntityType.TASK,), statuses=CLOSED),
        )
        passages = (
            {
                p.section_id: p.item_id
                for p in await self._store.sections.passages(
                    caller.scope, [scored.section_id for scored in found]
                )
            }
            if found
            else {}
        )
        scale, likeness = await self._similarity.scale(), dict[str, float]()
        for scored in found:
            if (item_id := passages.get(scored.section_id)) not in (None, task.id):
                likeness[str(item_id)] = max(likeness.get(str(item_id), 0.0), scale(scored.score))
        close = {item_id: alike for item_id, alike in likeness.items() if alike >= ALIKE}
        done = await self._store.items.get_many(caller.scope, close.keys())
        precedents = [
            precedent(done[item_id], alike) for item_id, alike in close.items() if item_id in done
        ]
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
        return Estimate(
            None,
            None,
            None,
            None,
            "none",
            "There is no similar finished task to base an estimate on.",
            (),
        )
    if not hours:
        explanation = (
            f"{_count(precedents)} took {_middle(days):g} calendar days. "
            "No hours were recorded (pass actual_hours to complete_task)."
        )
        return Estimate(None, _middle(days), None, None, "low", explanation, tuple(precedents))
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
        f"{_count(precedents)}, {len(hours)} with recorded hours, took {low:g} to {high:g} "
        f"hours. They are {'very' if close else 'somewhat'} similar to it and "
        f"{'agree' if agree else 'differ much'}."
    )
    return Estimate(
        _middle(hours),
        _middle(days) if days else None,
        low,
        high,
        confidence,
        explanation,
        tuple(precedents),
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
    began, ended = (_moment(task.metadata.get(name)) for name in ("started_at", "completed_at"))
    return Precedent(
        task,
        round(likeness, 3),
        float(hours) if isinstance(hours, int | float) and hours > 0 else None,
        round((ended - began).total_seconds() / 86_400, 2)
        if began and ended and ended >= began
        else None,
    )


def _moment(value: object) -> datetime | None:
    """Parse a time. Checked, because clients can write any metadata."""
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None


def _count(precedents: Sequence[Precedent]) -> str:
    return f"{len(precedents)} similar finished task{'s' * (len(precedents) != 1)}"
