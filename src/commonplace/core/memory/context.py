"""Context packs for agents that start work: active work, decisions, constraints, procedures,
gotchas and relevant passages.

What is in a pack, and in which order it gets a place, is what search finds for the goal within the
project. Sections only lay it out. What search finds is left out where it has nothing to do with the
goal: a pack may be short.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from commonplace.core.entities.entities import Entities
from commonplace.core.memory.token_budget import (
    Also,
    Line,
    Packed,
    left_out,
    pack,
    shortened,
    tokens,
)
from commonplace.core.people.authorization import READ, Service, verb
from commonplace.core.search import near_duplicates
from commonplace.core.search.relevance import CLEARLY_RELEVANT, RELEVANT, relevant
from commonplace.core.search.search import Search
from commonplace.core.search.similarity import DEFAULT, SimilarityScale
from commonplace.errors import EmbeddingFailed
from commonplace.model import (
    CONTEXT_SECTIONS as SECTIONS,
    STALE,
    SUPERSEDED,
    WRONG,
    Caller,
    EntityType,
    Hit,
    Intent,
    Item,
    ItemFilter,
    Kind,
    Mode,
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
# useful to every project where they belong to none
_EVERYWHERE = (EntityType.PATTERN, EntityType.PROCEDURE, EntityType.DOMAIN)
_PRIORITY = {"critical": 0.08, "high": 0.05, "medium": 0.02, "low": 0.0, "someday": -0.1}
_UNDERWAY = {"doing": 0.92, "blocked": 0.86, "review": 0.84}
_STALE = 0.6
NOTHING = "Nothing is known yet about this goal. Save what you learn with `remember`."
HITS = 200  # sections found for the goal
GUIDES = 40  # sections of what belongs to no project
UNDERWAY_SHOWN = 2  # tasks in progress, whatever the goal
NEXT_SHOWN = 1  # of the project's tasks to do, whatever the goal
RECENT_SHOWN = 2  # of the project's memories, where none is about the goal
LISTED = 50  # tasks in progress, tasks to do, memories


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
            parts.append(NOTHING)
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
    _similarity: SimilarityScale

    @verb(READ, "context", target=lambda goal: goal.goal[:200])
    async def pack(self, caller: Caller, goal: Goal) -> Pack:
        project = (
            None
            if goal.project is None
            else await self._entities.find_project(caller, goal.project)
        )
        (groups, degraded), own = await asyncio.gather(
            self._found(caller, goal, project), self._of_project(caller, project)
        )
        lines = await self._lines(caller, goal, groups, own)
        packed = pack(
            lines,
            limit=goal.limit,
            budget=goal.token_budget,
            headings=SECTIONS,
            head=_head(goal, project) + ("" if lines else f"\n\n{NOTHING}"),
        )
        return Pack(goal, project, _by_section(packed.lines, goal.intent), packed, degraded)

    async def _found(
        self, caller: Caller, goal: Goal, project: Item | None
    ) -> tuple[list[list[Hit]], str | None]:
        """Return the best hit of each relevant item in the order of search, near duplicates
        together. What belongs to no project and is useful to all follows the project's own."""
        where = ItemFilter(not_statuses=ENDED)
        if project is None:
            hits, degraded = await self._relevant(caller, goal.goal, where)
        else:
            (hits, degraded), (others, _) = await asyncio.gather(
                self._relevant(caller, goal.goal, replace(where, project_id=project.id)),
                self._relevant(
                    caller,
                    goal.goal,
                    replace(where, entity_types=_EVERYWHERE),
                    GUIDES,
                    CLEARLY_RELEVANT,
                ),
            )
            belonging = await self._store.relations.of_items(
                caller.scope,
                [hit.passage.item_id for hit in others],
                [Kind.BELONGS_TO],
                outgoing=True,
            )
            taken = {relation.from_id for relation in belonging}
            hits += [hit for hit in others if hit.passage.item_id not in taken]
        best: dict[str, Hit] = {}
        for hit in hits:
            best.setdefault(hit.passage.item_id, hit)
        found = list(best.values())
        compared, rest = found[: 2 * goal.limit], found[2 * goal.limit :]  # comparing takes time
        groups = near_duplicates.group(compared, lambda hit: (hit.passage.title, hit.passage.text))
        return [*groups, *([hit] for hit in rest)], degraded

    async def _relevant(
        self,
        caller: Caller,
        goal: str,
        where: ItemFilter,
        most: int = HITS,
        least: float = RELEVANT,
    ) -> tuple[list[Hit], str | None]:
        found = await self._search.find(caller, goal, most, Mode.HYBRID, where)
        hits: Sequence[Hit] = found.hits
        try:
            scale = await self._similarity.scale()
        except EmbeddingFailed:  # words say what is relevant
            scale, hits = DEFAULT, [replace(hit, cosine=None) for hit in hits]
        return [
            hit
            for hit in relevant(goal, hits, scale, least)
            if hit.passage.status not in (SUPERSEDED, WRONG)
        ], found.degraded

    async def _of_project(self, caller: Caller, project: Item | None) -> list[list[Item]]:
        """Return the project's tasks in progress, those to do next, and recent memory."""
        if project is None:
            return [[], [], []]
        tasks = ItemFilter(entity_types=(EntityType.TASK,), project_id=project.id)
        wheres = (
            replace(tasks, statuses=UNDERWAY),
            replace(tasks, statuses=("todo",)),
            ItemFilter(
                entity_types=_REMEMBERED,
                not_statuses=(WRONG, SUPERSEDED),
                project_id=project.id,
                archived=False,
            ),
        )
        pages = await asyncio.gather(
            *(
                self._store.items.list_page(
                    caller.scope, where, limit=LISTED, offset=0, count=False
                )
                for where in wheres
            )
        )
        return [list(items) for items, _ in pages]

    async def _lines(
        self, caller: Caller, goal: Goal, groups: list[list[Hit]], own: list[list[Item]]
    ) -> list[Line]:
        """Return the lines in the order in which they get a place."""
        hits = {hit.passage.item_id: hit for group in groups for hit in group}
        underway, waiting, recent = own
        tasks = [
            *(
                item_id
                for item_id, hit in hits.items()
                if hit.passage.entity_type == EntityType.TASK
            ),
            *(item.id for item in (*underway, *waiting)),
        ]
        items = await self._store.items.get_many(caller.scope, tasks)
        blocked = await self._blocked(caller, tasks)

        def line_of(group: list[Hit]) -> Line:
            also = tuple(Also(hit.passage.entity_id, hit.passage.title) for hit in group[1:])
            return replace(_hit_line(group[0], items, blocked), also=also)

        def of_work(item: Item) -> Line:
            hit = hits.get(item.id)
            return _task_line(item, item.summary, hit.score if hit else 0.0, blocked)

        def first(items: Iterable[Item], most: int) -> list[Item]:
            """Those that no other line shows, the most urgent and closest to the goal first."""
            shown = {line.item_id for line in lines}
            return [item for item in items if item.id not in shown][:most]

        def urgent(items: Iterable[Item]) -> list[Item]:
            return sorted(items, key=lambda item: -of_work(item).score)

        found = list(map(line_of, groups))
        places = max(0, goal.limit - UNDERWAY_SHOWN)
        lines, rest = found[:places], found[places:]
        shown = sum(line.status in UNDERWAY for line in lines)
        lines += map(of_work, first(urgent(underway), max(0, UNDERWAY_SHOWN - shown)))
        lines += [line for line in rest if line.item_id not in {one.item_id for one in lines}]
        lines += map(of_work, first(urgent(waiting), NEXT_SHOWN))
        if not found:
            lines += [_recent_line(item) for item in first(recent, RECENT_SHOWN)]
        return lines

    async def _blocked(self, caller: Caller, tasks: Iterable[str]) -> dict[str, str]:
        """Return, for each task that waits for an open one, the title of that one."""
        waits = await self._store.relations.of_items(
            caller.scope, sorted({*tasks}), [Kind.DEPENDS_ON], outgoing=True
        )
        others = await self._store.items.get_many(caller.scope, {one.to_id for one in waits})
        return {
            one.from_id: others[one.to_id].title
            for one in waits
            if one.to_id in others and others[one.to_id].status not in ENDED
        }


def _hit_line(hit: Hit, tasks: Mapping[str, Item], blocked: Mapping[str, str]) -> Line:
    passage = hit.passage
    text = _text(passage.title, passage.text)
    if passage.item_id in tasks:
        return _task_line(tasks[passage.item_id], text, hit.score, blocked)
    return Line(
        _section(passage.entity_type, f"{passage.title} {passage.text} {passage.category}"),
        passage.entity_id,
        passage.item_id,
        passage.entity_type,
        passage.title,
        text,
        passage.status,
        hit.score * (_STALE if passage.status == STALE else 1.0),
        "matches the goal",
    )


def _task_line(item: Item, text: str, score: float, blocked: Mapping[str, str]) -> Line:
    reason = _why(item)
    score = max(score, _UNDERWAY.get(item.status, 0.2)) + _PRIORITY.get(item.priority, 0.0)
    if item.status == "todo" and item.id in blocked:
        score, reason = score - 0.3, f"{reason}, waits for {blocked[item.id]}"
    score = min(1.0, max(0.0, score))
    return _line("active_work", item, f"{reason}. {_text(item.title, text)}", score, reason)


def _recent_line(item: Item) -> Line:
    score = 0.1 * (_STALE if item.status == STALE else 1.0)
    return _line("recent_memory", item, _text(item.title, item.summary), score, "recent")


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
        text,
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


def _by_section(lines: Sequence[Line], intent: Intent) -> tuple[tuple[str, tuple[Line, ...]], ...]:
    """Group lines by section: the best section for the intent first, its best line first."""
    found: dict[str, list[Line]] = {}
    for line in sorted(lines, key=lambda line: -line.score):
        found.setdefault(line.section, []).append(line)
    weights = WEIGHTS[intent]
    order = sorted(found, key=lambda name: -found[name][0].score * weights.get(name, 1.0))
    return tuple((name, tuple(found[name])) for name in order)
