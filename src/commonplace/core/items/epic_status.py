"""Epic status: an epic's status follows its tasks, also for callers who do not see the epic."""

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from commonplace.core.ingest.pipeline import IngestPipeline
from commonplace.errors import NotFound
from commonplace.model import Item, ItemFilter, ItemRef, Kind, Scope
from commonplace.model.workflow import CLOSED, EPIC, TASK, UNDERWAY, enter_state, next_epic_status
from commonplace.store import Store
from commonplace.store.optimistic import retry_on_conflict

MOST = 10_000  # tasks of a folder


@dataclass(eq=False)
class Epics:
    _store: Store
    _pipeline: IngestPipeline
    without_trash: bool  # deletes are for good

    async def of(self, item: Item) -> list[str]:
        """Return ids of a task's epics, in scope or not. Never shown to callers."""
        return await self._of(
            Scope(item.library_id), {item.id} if item.entity_type == TASK.entity_type else ()
        )

    async def of_folder(self, library_id: str, folder_id: str) -> list[str]:
        """Return ids of the epics of all tasks in a folder."""
        scope, where = (
            Scope(library_id),
            ItemFilter(entity_types=(TASK.entity_type,), folder_id=folder_id),
        )
        tasks, _ = await self._store.items.list_page(
            scope, where, limit=MOST, offset=0, count=False
        )
        return await self._of(scope, {task.id for task in tasks})

    async def _of(self, scope: Scope, task_ids: Collection[str]) -> list[str]:
        joined = (
            await self._store.relations.of_items(
                scope, sorted(task_ids), [Kind.PART_OF], outgoing=True
            )
            if task_ids
            else []
        )
        return [relation.to_id for relation in joined]

    async def follow(self, scope: Scope, epic_ids: Iterable[str]) -> list[Item]:
        """Update these epics' statuses and return the changed ones. Call after the change of a
        task: of two callers who close the last two tasks, the later one sees both closed. They
        may lie out of the caller's scope."""
        found = [await self._follow(scope.library, epic_id) for epic_id in dict.fromkeys(epic_ids)]
        return [epic for epic in found if epic is not None]

    async def delete(
        self,
        scope: Scope,
        item: Item,
        expected_revision: int | None = None,
        *,
        permanent: bool = False,
    ) -> None:
        """Delete an item, and update the status of its epics."""
        left = await self.of(item)
        await self._store.items.delete(
            scope,
            item.id,
            expected_revision=expected_revision,
            permanent=permanent or self.without_trash,
        )
        await self.follow(scope, left)

    async def _states(self, scope: Scope, epic: Item) -> dict[str, int]:
        """Return one status of the tasks, the one that decides the epic's. Counting all is slow."""
        has_task, found = partial(self._store.relations.has_task, scope, epic.id), ""
        if EPIC.state(epic) == "planning":
            found = UNDERWAY[0] if await has_task(UNDERWAY) else ""
        elif EPIC.state(epic) != "archived":
            found = (
                TASK.start
                if await has_task(CLOSED, but=True)
                else "done"
                if await has_task(("done",))
                else ""
            )
        return {found: 1} if found else {}

    async def _follow(self, scope: Scope, epic_id: str) -> Item | None:
        async def attempt() -> Item | None:
            epic = await self._store.items.get(scope, ItemRef(id=epic_id))
            to = next_epic_status(EPIC.state(epic), await self._states(scope, epic))
            if epic.entity_type != EPIC.entity_type or to == EPIC.state(epic):
                return None
            changed, _ = await self._pipeline.change(
                scope, epic, enter_state(epic, to), epic.revision
            )
            return changed

        with suppress(NotFound):
            return await retry_on_conflict(attempt, guarded=False)
        return None
