"""Tasks and epics: transitions, updates, notes.

Changes use optimistic locking: they are derived from the row as read, written only if it is
unchanged, and derived again otherwise. So a transition is always checked against the current state.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from commonplace.core.entities import validation as rules
from commonplace.core.entities.entities import Entities, Entity
from commonplace.core.ingest.pipeline import IngestPipeline
from commonplace.core.items.drafts import require_revision
from commonplace.core.items.epic_status import Epics
from commonplace.core.people.authorization import GRAPH_WRITE, READ, Service, verb
from commonplace.core.search.search import resolve_filter
from commonplace.errors import Invalid, NotFound
from commonplace.model import (
    Caller,
    Item,
    ItemFilter,
    ItemRef,
    Json,
    Kind,
    Relation,
    Scope,
)
from commonplace.model.workflow import (
    CLOSED,
    ENDED,
    EPIC,
    STEPS,
    TASK,
    Machine,
    Step,
    branch_name,
    enter_state,
    with_article,
    with_note,
)
from commonplace.store.optimistic import retry_on_conflict

NAMED = 5  # open tasks named in a refusal
NOTED_ON = ("task", "epic", "project")


@dataclass(frozen=True, slots=True)
class Change:
    """A change of an item."""

    fields: dict[str, Any] = field(default_factory=dict)
    relations: list[Relation] = field(default_factory=list)
    dropped: list[Relation] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ChangeResult:
    item: Item
    message: str
    more: Json = field(default_factory=dict)  # further results


Derive = Callable[[Item], Awaitable[Change]]


@dataclass(eq=False)
class Tasks(Service):
    _pipeline: IngestPipeline
    _entities: Entities
    _epics: Epics

    @verb(GRAPH_WRITE, lambda action: action, target="entity_id")
    async def step(
        self,
        caller: Caller,
        entity_id: str,
        action: str,
        *,
        reason: str = "",
        learnings: str = "",
        assignee: str = "",
        about: Json | None = None,
        expected_revision: int | None = None,
    ) -> ChangeResult:
        """Make one of the transitions in STEPS. `about`: more metadata to record. `learnings` also
        become an episode, derived from the task. `assignee` joins those that it has."""
        step = STEPS[action]
        noted = {
            "blocked_reason": reason,
            "learnings": rules.content(learnings) if learnings else "",
        }
        noted = {name: text for name, text in noted.items() if text} | (about or {})
        item = await self.change(
            caller,
            entity_id,
            partial(self._enter, caller, step, noted, assignee),
            expected_revision,
        )
        message = f"{step.said}: {item.title}" + (f" ({reason})" if reason else "")
        if step.machine is TASK and (epic := await self._follow(caller, item)):
            message += f"; the epic {epic.title} is now {epic.status}"
        if step.to == "completed":
            item = await self._still_completed(caller, item)
        more: Json = {}
        if action == "start_task":
            more["branch_name"] = item.metadata["branch_name"]
        if step.to == "doing" and (waiting := await self._unfinished_dependencies(caller, item)):
            message += f"; unfinished dependencies: {_named(waiting)}"
            more["waits_for"] = [other.entity_id for other in waiting]
        if learnings:
            episode = await self._add_learnings(caller, item, learnings)
            message += f"; learnings saved as {episode.entity_id}"
            more["learnings_id"] = episode.entity_id
        return ChangeResult(item, message, more)

    async def _enter(
        self, caller: Caller, step: Step, noted: Json, assignee: str, item: Item
    ) -> Change:
        step.machine.require(item)
        step.machine.check(item, step.to, only_from=step.only_from)
        await self._require_closed_tasks(caller, step.machine, step.to, item)
        fields = enter_state(item, step.to, noted)
        if step is STEPS["start_task"]:
            fields["metadata"].setdefault("branch_name", branch_name(item))
        if assignee and assignee not in item.assignees:
            fields["assignees"] = (*item.assignees, assignee)
        return Change(fields)

    @verb(GRAPH_WRITE, lambda machine: f"update_{machine.entity_type}", target="entity_id")
    async def update(
        self,
        caller: Caller,
        entity_id: str,
        machine: Machine,
        changes: dict[str, Any],
        expected_revision: int | None = None,
    ) -> ChangeResult:
        """Change fields, `status`, `project`, and for tasks `epic` and `depends_on`, which replace
        the current ones."""
        return await self.apply(caller, entity_id, machine, changes, expected_revision)

    async def apply(
        self,
        caller: Caller,
        entity_id: str,
        machine: Machine,
        wish: dict[str, Any],
        expected_revision: int | None = None,
    ) -> ChangeResult:
        """Update a task or epic. The caller is authorized already."""
        if not wish:
            raise Invalid("There is nothing to change. Name at least one field.")
        left: list[str] = []
        fields = {
            name: rules.CHECKS[name](value) for name, value in wish.items() if name in rules.CHECKS
        }
        derive = partial(self._derive, caller, machine, wish, fields, left)
        item = await self.change(caller, entity_id, derive, expected_revision)
        if machine is TASK and wish.keys() & {"status", "epic"}:
            await self._follow(caller, item, also=left)
        elif wish.get("status") == "completed":
            item = await self._still_completed(caller, item)
        return ChangeResult(item, f"Updated: {item.title}")

    async def _derive(
        self,
        caller: Caller,
        machine: Machine,
        wish: dict[str, Any],
        fields: dict[str, Any],
        left: list[str],
        item: Item,
    ) -> Change:
        """Derive the change of an item. `left`: takes the epics that the task is moved out of."""
        machine.require(item)
        change = Change(dict(fields))
        status = wish.get("status")
        if status not in (None, machine.state(item)):
            machine.check(item, status)
            await self._require_closed_tasks(caller, machine, status, item)
            change.fields.update(enter_state(item, status))
        relation = partial(Relation, item.library_id, item.id)
        if "project" in wish:  # the store replaces the current one, and the epic below
            project = await self._entities.find_project(caller, wish["project"])
            change.relations.append(relation(Kind.BELONGS_TO, project.id))
        if "epic" in wish:
            left[:] = await self._epics.of(item)
            if wish["epic"] is None:
                change.dropped.extend(relation(Kind.PART_OF, epic_id) for epic_id in left)
            else:
                epic = await self.find(caller, wish["epic"], (EPIC,))
                change.relations.append(relation(Kind.PART_OF, epic.id))
        if "depends_on" in wish:
            current = await self._dependencies(caller, item)
            wanted = [(await self.find(caller, ref, (TASK, EPIC))).id for ref in wish["depends_on"]]
            change.relations.extend(
                relation(Kind.DEPENDS_ON, to_id)
                for to_id in dict.fromkeys(wanted)
                if to_id not in current
            )
            change.dropped.extend(
                relation(Kind.DEPENDS_ON, to_id) for to_id in current if to_id not in wanted
            )
        return change

    @verb(GRAPH_WRITE, "add_note", target="entity_id")
    async def note(
        self, caller: Caller, entity_id: str, text: str, expected_revision: int | None = None
    ) -> ChangeResult:

        async def derive(item: Item) -> Change:
            if item.entity_type not in NOTED_ON:
                raise Invalid(
                    f"{item.title!r} ({item.entity_id}) is {with_article(item.entity_type)}, not "
                    f"a {' or '.join(NOTED_ON)}. Only these have notes; use `remember` instead."
                )
            return Change({"metadata": with_note(item, caller.name, rules.content(text))})

        item = await self.change(caller, entity_id, derive, expected_revision)
        return ChangeResult(item, f"Noted: {item.title}")

    @verb(READ, "list", target=lambda project, epic: epic or project)
    async def page(
        self,
        caller: Caller,
        where: ItemFilter,
        *,
        project: str | None = None,
        epic: str | None = None,
        limit: int,
        offset: int,
    ) -> tuple[list[Entity], int]:
        """Return a page of tasks or epics, newest first, and the total."""
        where = await resolve_filter(self._store, caller.scope, where, project)
        if epic is not None:
            where = replace(where, epic_id=(await self.find(caller, epic, (EPIC,))).id)
        items, total = await self._store.items.list_page(
            caller.scope, where, limit=limit, offset=offset
        )
        return await self._entities.described(caller, items), total

    async def find(self, caller: Caller, entity_id: str, machines: Sequence[Machine]) -> Item:
        """Return the task or epic with this id, for a relation."""
        names = " or ".join(machine.entity_type for machine in machines)
        try:
            item = await self._store.items.get(caller.scope, ItemRef.parse(entity_id))
        except NotFound:
            raise Invalid(f"There is no {names} {entity_id[:200]!r}.", id=entity_id[:200]) from None
        if all(item.entity_type != machine.entity_type for machine in machines):
            raise Invalid(
                f"{item.title!r} ({item.entity_id}) is {with_article(item.entity_type)}, not "
                f"{with_article(names)}."
            )
        return item

    async def change(
        self, caller: Caller, entity_id: str, derive: Derive, expected_revision: int | None
    ) -> Item:
        """Change an item as `derive` says, which is called again if somebody else was faster. The
        caller is authorized already."""
        return await retry_on_conflict(
            partial(self._try, caller, ItemRef.parse(entity_id), derive, expected_revision),
            guarded=expected_revision is not None,
        )

    # -- how

    async def _try(
        self, caller: Caller, ref: ItemRef, derive: Derive, expected_revision: int | None
    ) -> Item:
        item = await self._store.items.get(caller.scope, ref)
        require_revision(item, expected_revision)
        change = await derive(item)
        changed, _ = await self._pipeline.change(
            caller.scope,
            item,
            change.fields,
            item.revision,
            relations=change.relations,
            dropped=change.dropped,
        )
        return changed

    async def _follow(self, caller: Caller, task: Item, also: Sequence[str] = ()) -> Item | None:
        """Update the statuses of the task's epics, old and new. Returns a changed one that the
        caller sees."""
        moved = await self._epics.follow(caller.scope, [*await self._epics.of(task), *also])
        seen = await self._store.items.get_many(caller.scope, [epic.id for epic in moved])
        return next(iter(seen.values()), None)

    async def _require_closed_tasks(
        self, caller: Caller, machine: Machine, to: str, epic: Item
    ) -> None:
        """Refuse to complete an epic with open tasks. All its tasks count, but only those the
        caller sees are named."""
        if machine is not EPIC or to != "completed":
            return
        tasks, total = await self._store.items.list_page(
            caller.scope,
            ItemFilter(entity_types=(TASK.entity_type,), epic_id=epic.id, not_statuses=CLOSED),
            limit=NAMED,
            offset=0,
        )
        if tasks:
            raise Invalid(
                f"The epic {epic.title!r} has {total} open task{'s' * (total > 1)}: "
                f"{_named(tasks, total)}. "
                "Complete or archive them, or move them out of it, first.",
                open_tasks=[task.entity_id for task in tasks],
            )
        if await self._store.relations.has_task(Scope(epic.library_id), epic.id, CLOSED, but=True):
            raise Invalid(
                f"The epic {epic.title!r} cannot be completed yet. It is completed automatically "
                "when all its tasks are closed.",
                open_tasks=[],
            )

    async def _still_completed(self, caller: Caller, epic: Item) -> Item:
        """Reopen the epic if a task was added meanwhile: the later writer sees both."""
        return next(iter(await self._epics.follow(caller.scope, [epic.id])), epic)

    async def _add_learnings(self, caller: Caller, task: Item, learnings: str) -> Item:
        projects = await self._store.relations.of_items(
            caller.scope, [task.id], [Kind.BELONGS_TO], outgoing=True
        )
        added = await self._entities.keep(
            caller,
            rules.NewEntity(
                title=f"Learnt: {task.title}"[: rules.LONGEST_TITLE],
                content=learnings,
                project=projects[0].to_id if projects else None,
                tags=task.tags,
                technologies=task.technologies,
                languages=task.languages,
            ),
            sync=True,
            check_conflicts=False,
            relations=lambda item_id: [
                Relation(caller.library_id, item_id, Kind.DERIVED_FROM, task.id)
            ],
        )
        return added.item

    async def _dependencies(self, caller: Caller, item: Item) -> list[str]:
        return [
            relation.to_id
            for relation in (
                await self._store.relations.of_items(
                    caller.scope, [item.id], [Kind.DEPENDS_ON], outgoing=True
                )
            )
        ]

    async def _unfinished_dependencies(self, caller: Caller, task: Item) -> list[Item]:
        """Return the open tasks that it depends on."""
        ids = await self._dependencies(caller, task)
        found = await self._store.items.get_many(caller.scope, ids)
        return [
            other
            for other in map(found.get, ids)
            if other is not None and other.status not in ENDED
        ]


def _named(items: Sequence[Item], total: int | None = None) -> str:
    rest = (total or len(items)) - len(items)
    return ", ".join(f"{item.title} ({item.entity_id})" for item in items) + (
        f" and {rest} more" if rest > 0 else ""
    )
