"""Context packs for agents that start work: active work, decisions, constraints, procedures,
gotchas and relevant passages. The most useful come first, within a token budget."""

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from commonplace.core.entities.entities import Entities
from commonplace.core.memory.token_budget import Line, Packed, left_out, pack, shortened, tokens
from commonplace.core.people.authorization import READ, Service, verb
from commonplace.core.search.corrections import newest_first
from commonplace.core.search.search import Search
from commonplace.model import (
    CONTEXT_SECTIONS as SECTIONS,
    STALE,
    SUPERSEDED,
    WRONG,
    Caller,
    EntityType,
    Intent,
    Item,
    ItemFilter,
    Kind,
    Mode,
    Passage,
    Relation,
)
from commonplace.model.workflow import ENDED, UNDERWAY

_OF_TYPE = {
    EntityType.DECISION: "decisions",
    EntityType.PATTERN: "constraints",
    EntityType.CLAIM: "constraints",
    EntityType.PROCEDURE: "procedures",
    EntityType.PLAN: "plans",
    EntityType.IDEA: "plans",
    EntityType.TASK: "active_work",
    EntityType.EPIC: "active_work",
}
# Sections that an intent makes more or less useful. The others have weight 1.
WEIGHTS: dict[str, dict[str, float]] = {
    "build": {"active_work": 1.1, "procedures": 1.15, "constraints": 1.15},
    "plan": {"active_work": 1.2, "plans": 1.3, "decisions": 1.2, "gotchas": 0.9},
    "debug": {"gotchas": 1.4, "procedures": 1.15, "plans": 0.7, "decisions": 0.9},
    "decide": {"decisions": 1.3, "constraints": 1.2, "plans": 1.15, "procedures": 0.8},
    "research": {"passages": 1.25, "constraints": 1.15, "active_work": 0.8},
    "review": {"constraints": 1.3, "decisions": 1.2, "gotchas": 1.2, "plans": 0.8},
    "learn": {"passages": 1.25, "procedures": 1.2, "active_work": 0.6},
    "ideate": {"plans": 1.4, "passages": 1.1, "active_work": 0.7},
    "general": {},
}
_TROUBLE = re.compile(
    r"\b(?:gotcha|bug|crash\w*|fail\w*|broke\w*|error|outage|incident|regression|workaround|"
    r"pitfall|beware|timeout|timed out|leak\w*|deadlock\w*|root cause|fix(?:ed)?|stall\w*|"
    r"careful)\b",
    re.IGNORECASE,
)
_REMEMBERED = tuple(
    kind
    for kind in EntityType
    if kind not in (EntityType.DOCUMENT, EntityType.TASK, EntityType.EPIC, EntityType.PROJECT)
)
# useful to other projects too
_EVERYWHERE = (EntityType.PATTERN, EntityType.PROCEDURE, EntityType.DOCUMENT, EntityType.DOMAIN)
_LEFT_OUT = (WRONG, SUPERSEDED, *ENDED)
_PRIORITY = {"critical": 0.2, "high": 0.12, "medium": 0.05, "low": 0.0, "someday": -0.1}
HITS = 80  # sections found for the goal
UNDERWAY_READ, NEXT_READ, RECENT_READ = 50, 60, 12


@dataclass(frozen=True, slots=True)
class Goal:
    goal: str
    intent: Intent = "build"
    project: str | None = None
    limit: int = 24
    token_budget: int = 4_000


@dataclass(frozen=True, slots=True)
class Pack:
    goal: Goal
    project: Item | None
    sections: tuple[tuple[str, tuple[Line, ...]], ...]
    packed: Packed
    degraded: str | None

    def markdown(self) -> str:
        parts = [_head(self.goal, self.project)]
        for name, lines in self.sections:
            parts.append(
                "\n".join([f"## {SECTIONS[name]}", "", *(line.markdown() for line in lines)])
            )
        if not self.sections and not self.packed.left_out:
            parts.append("Nothing is known yet. Save what you learn with `remember`.")
        if self.packed.left_out:
            parts.append(left_out(self.packed.left_out, SECTIONS))
        return "\n\n".join(parts)


def _head(goal: Goal, project: Item | None) -> str:
    """Return a heading that leaves most of the budget to the lines: in some scripts every character
    is a token or two."""
    heads = (_titled(goal, project, longest) for longest in (80, 40, 20))
    return next(
        (head for head in heads if tokens(head) <= goal.token_budget // 3),
        _titled(goal, project, 10),
    )


def _titled(goal: Goal, project: Item | None, longest: int) -> str:
    title = f"# Context: {shortened(goal.goal, longest)}"
    return (
        f"{title}\n\nProject: [{project.entity_id}] {shortened(project.title, longest)}"
        if project
        else title
    )


@dataclass(eq=False)
class Context(Service):
    _search: Search
    _entities: Entities

    @verb(READ, "context", target=lambda goal: goal.goal[:200])
    async def pack(self, caller: Caller, goal: Goal) -> Pack:
        project = (
            None
            if goal.project is None
            else await self._entities.find_project(caller, goal.project)
        )
        project_id = project.id if project else None
        (hits, degraded), work, recent = await asyncio.gather(
            self._found(caller, goal, project_id),
            self._work(caller, project_id),
            self._recent(caller, project_id),
        )
        ends = {item.id: item for item in (*work, *recent)}
        joined = await self._store.relations.of_items(
            caller.scope,
            sorted({p.item_id for _, p in hits} | ends.keys()),
            [Kind.BELONGS_TO, Kind.DEPENDS_ON],
            outgoing=True,
        )
        scores: dict[str, float] = {}
        for score, passage in hits:
            scores[passage.item_id] = max(score, scores.get(passage.item_id, 0.0))
        lines = [
            *_work_lines(work, joined, scores),
            *_hit_lines(
                _within(hits, joined, project_id), ends.keys() - {item.id for item in recent}
            ),
            *_recent_lines(recent, scores),
        ]
        weights = WEIGHTS[goal.intent]
        packed = pack(
            [replace(line, score=line.score * weights.get(line.section, 1.0)) for line in lines],
            limit=goal.limit,
            budget=goal.token_budget,
            headings=SECTIONS,
            head=_head(goal, project),
        )
        return Pack(goal, project, _by_section(packed.lines), packed, degraded)

    async def _found(
        self, caller: Caller, goal: Goal, project_id: str | None
    ) -> tuple[list[tuple[float, Passage]], str | None]:
        """Search for the goal, first within the project, so that a large library does not crowd it
        out."""
        everywhere = ItemFilter(not_statuses=_LEFT_OUT)
        filters = (
            [everywhere]
            if project_id is None
            else [replace(everywhere, project_id=project_id), everywhere]
        )
        found: dict[int, tuple[float, Passage]] = {}
        degraded = None
        for where in filters:
            hits, degraded = await self._search.passages(
                caller, goal.goal, Mode.HYBRID, HITS, where
            )
            found = {passage.section_id: (score, passage) for score, passage in hits} | found
        best = sorted(
            (one for one in found.values() if one[1].entity_type != EntityType.PROJECT),
            key=lambda one: -one[0],
        )
        return await newest_first(self._store, caller.scope, everywhere, best), degraded

    async def _work(self, caller: Caller, project_id: str | None) -> list[Item]:
        where = ItemFilter(entity_types=(EntityType.TASK,), project_id=project_id)
        underway, waiting = await asyncio.gather(
            self._store.items.list_page(
                caller.scope,
                replace(where, statuses=UNDERWAY),
                limit=UNDERWAY_READ,
                offset=0,
                count=False,
            ),
            self._store.items.list_page(
                caller.scope,
                replace(where, statuses=("todo",)),
                limit=NEXT_READ,
                offset=0,
                count=False,
            ),
        )
        return [*underway[0], *waiting[0]]

    async def _recent(self, caller: Caller, project_id: str | None) -> list[Item]:
        where = ItemFilter(
            entity_types=_REMEMBERED,
            not_statuses=(WRONG, SUPERSEDED),
            project_id=project_id,
            archived=False,
        )
        return (
            await self._store.items.list_page(
                caller.scope, where, limit=RECENT_READ, offset=0, count=False
            )
        )[0]


def _within(
    hits: Sequence[tuple[float, Passage]], joined: Iterable[Relation], project_id: str | None
) -> list[tuple[float, Passage]]:
    """Drop hits that only belong to other projects, except types that are useful anywhere."""
    projects: dict[str, set[str]] = {}
    for relation in joined:
        if relation.kind == Kind.BELONGS_TO:
            projects.setdefault(relation.from_id, set()).add(relation.to_id)
    return [
        (score * (1.2 if project_id in projects.get(p.item_id, ()) else 1.0), p)
        for score, p in hits
        if project_id is None
        or p.entity_type in _EVERYWHERE
        or project_id in projects.get(p.item_id, {project_id})
    ]


def _work_lines(
    work: Sequence[Item], joined: Sequence[Relation], scores: dict[str, float]
) -> Iterable[Line]:
    open_ids = {item.id: item for item in work}
    waits_for = {
        relation.from_id: open_ids[relation.to_id]
        for relation in joined
        if relation.kind == Kind.DEPENDS_ON and relation.to_id in open_ids
    }
    base = {"doing": 1.0, "blocked": 0.92, "review": 0.88, "todo": 0.5}
    for item in work:
        score = (
            base.get(item.status, 0.4)
            + _PRIORITY.get(item.priority, 0.0)
            + 0.4 * scores.get(item.id, 0.0)
        )
        reason = _why(item)
        if item.status == "todo" and (other := waits_for.get(item.id)):
            score, reason = score - 0.3, f"{reason}, waits for {other.title}"
        yield _line("active_work", item, f"{reason}. {item.summary}", score, reason)


def _why(item: Item) -> str:
    blocked = item.metadata.get("blocked_reason")
    states = {
        "todo": "next",
        "blocked": f"blocked: {blocked}" if isinstance(blocked, str) else "blocked",
    }
    more = [
        f"{item.priority} priority" if item.priority else "",
        item.due,
        f"by {', '.join(item.assignees)}" if item.assignees else "",
    ]
    return ", ".join(filter(None, [states.get(item.status, item.status), *more]))


def _hit_lines(hits: Iterable[tuple[float, Passage]], shown: Iterable[str]) -> Iterable[Line]:
    """Yield a line for the best passage of each item that is not shown yet."""
    seen = set(shown)
    for score, passage in sorted(hits, key=lambda one: -one[0]):
        if passage.item_id in seen:
            continue
        seen.add(passage.item_id)
        yield Line(
            _section(passage.entity_type, f"{passage.title} {passage.text} {passage.category}"),
            f"{passage.entity_type}_{passage.public_id}",
            passage.item_id,
            passage.entity_type,
            passage.title,
            _text(passage.title, passage.text),
            passage.status,
            score * {STALE: 0.6, SUPERSEDED: 0.5}.get(passage.status, 1.0),
            "matches the goal",
        )


def _recent_lines(recent: Sequence[Item], scores: dict[str, float]) -> Iterable[Line]:
    for age, item in enumerate(recent):
        if item.id not in scores:
            score = (0.34 - 0.01 * age) * (0.6 if item.status == STALE else 1.0)
            yield _line("recent_memory", item, item.summary, score, "recent")


def _section(entity_type: str, text: str) -> str:
    if entity_type in (EntityType.EPISODE, EntityType.SESSION) and _TROUBLE.search(text):
        return "gotchas"
    return _OF_TYPE.get(EntityType(entity_type), "passages")


def _line(section: str, item: Item, text: str, score: float, reason: str) -> Line:
    return Line(
        section,
        item.entity_id,
        item.id,
        item.entity_type,
        item.title,
        _text(item.title, text),
        item.status,
        score,
        reason,
    )


def _text(title: str, text: str) -> str:
    """Remove a heading or sentence that repeats the title."""
    plain = text.strip().lstrip("# ")
    rest = plain[len(title) :]
    return (
        rest.lstrip(" .:-—\n")
        if plain.startswith(title) and not rest.lstrip(" ")[:1].isalnum()
        else plain
    )


def _by_section(lines: Sequence[Line]) -> tuple[tuple[str, tuple[Line, ...]], ...]:
    """Group lines by section, the best line first."""
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line.section, []).append(line)
    return tuple((name, tuple(each)) for name, each in found.items())
