"""Recent changes of a person. Each kind of change has one inverse, whatever made the change."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, islice

from commonplace.core.ingest.pipeline import IngestPipeline
from commonplace.core.items.epic_status import Epics
from commonplace.core.items.text_editor import TextEditor
from commonplace.core.items.trash import Trash
from commonplace.core.people.authorization import (
    FULL_SCOPE,
    FULL_WRITE,
    READ,
    WRITE,
    Service,
    verb,
)
from commonplace.errors import CommonplaceError, Conflict, Invalid, NameTaken, NotFound
from commonplace.model import Caller, Change, Did, Item, ItemRef
from commonplace.store.undo.steps import earlier_fields

AT_ONCE = 200  # items in one transaction
NAMED = 3
LONGEST = 200  # characters of what a step said
# Another text of the sections that search uses has to be made.
_SEARCHED = {"content_id", "title", "in_kb"}

Invert = Callable[["RecentChanges", Caller, Change], Awaitable[set[str]]]


@dataclass(frozen=True, slots=True)
class RecentChange:
    """A step of the caller, and those of its items that are still there."""

    id: str
    at: datetime
    said: str
    items: Sequence[Item]


@dataclass(eq=False)
class RecentChanges(Service):
    _pipeline: IngestPipeline
    _editor: TextEditor
    _epics: Epics
    _trash: Trash

    @verb(READ, "recent_changes", needs=FULL_SCOPE)
    async def list_changes(self, caller: Caller) -> list[RecentChange]:
        """Return what the caller can undo, newest first."""
        steps = await self._store.undo.list_steps(caller.library_id, caller.person_id)
        ids = {item_id for step in steps for item_id in step.item_ids}
        found = await self._store.items.get_many(caller.scope, ids)
        return [
            RecentChange(
                step.id,
                step.at,
                step.said,
                [found[item_id] for item_id in step.item_ids if item_id in found],
            )
            for step in steps
        ]

    async def name(self, caller: Caller, step_id: str, said: str) -> None:
        """Say what the caller has just done. The caller is authorized already."""
        await self._store.undo.name_step(caller.library_id, step_id, said[:LONGEST])

    @verb(WRITE, "undo", target="step_id", needs=FULL_WRITE)
    async def undo(self, caller: Caller, step_id: str) -> list[str]:
        """Undo a step, and return why some of its changes stay. Conflict: all of them do."""
        store, library_id = self._store.undo, caller.library_id
        changes = await store.claim(library_id, caller.person_id, step_id)
        undone, refused, epics = list[int](), list[str](), set[str]()
        try:
            for some in _together(changes):
                failed: dict[int, str] = {}
                if _is_simple(some[0]):
                    failed = {
                        change.seq: reason
                        for change, reason in await store.put_back_fields(caller.scope, some)
                    }
                    for change in some:
                        epics |= await self._epics_of(caller, change)
                else:
                    try:
                        epics |= await _INVERSES[some[0].kind](self, caller, some[0])
                    except (Conflict, Invalid, NameTaken, NotFound) as error:
                        failed = {some[0].seq: _reason(error)}
                undone += [change.seq for change in some if change.seq not in failed]
                refused += failed.values()
        finally:
            await store.release(library_id, step_id, undone)
        await self._epics.follow(caller.scope, sorted(epics))
        refused = list(dict.fromkeys(refused))
        if refused and not undone:
            raise Conflict(f"Nothing was undone. {' '.join(refused[:NAMED])}")
        return refused

    # -- the inverse of each kind of change; returns epics whose status may follow

    async def _change_back(self, caller: Caller, change: Change) -> set[str]:
        item = await self._store.undo.find_changed(caller.scope, change)
        if item is None:
            return set()
        fields = earlier_fields(item, change)
        if "content_id" in (change.before or {}):
            version = await self._store.versions.get(caller.scope, item.id, change.was)
            after = await self._editor.restore(caller.scope, item, version, item.revision, fields)
        else:
            after, _ = await self._pipeline.change(caller.scope, item, fields, item.revision)
        await self._store.undo.follow(change, item, after)
        return await self._epics_of(caller, change)

    async def _remove(self, caller: Caller, change: Change) -> set[str]:
        if item := await self._store.undo.find_changed(caller.scope, change):
            await self._epics.delete(caller.scope, item, item.revision)
        return set()

    async def _delete_again(self, caller: Caller, change: Change) -> set[str]:
        item = await self._store.items.get(caller.scope, ItemRef(id=change.item_id))
        await self._epics.delete(caller.scope, item)
        return set()

    async def _restore(self, caller: Caller, change: Change) -> set[str]:
        await self._trash.put_back(caller, ItemRef(id=change.item_id))
        return set()

    async def _take_out(self, caller: Caller, change: Change) -> set[str]:
        for folder_id in (change.after or {})["folders"]:
            await self._store.items.unfile(caller.scope, ItemRef(id=change.item_id), folder_id)
        return set()

    async def _file_again(self, caller: Caller, change: Change) -> set[str]:
        folders = (change.before or {})["folders"]
        ref = ItemRef(id=change.item_id)
        await self._store.items.file(caller.scope, ref, folders, token_id=None)
        return set()

    async def _folder_back(self, caller: Caller, change: Change) -> set[str]:
        await self._store.folders.put_back(caller.scope, change.before, change.after or {})
        return set()

    async def _folder_again(self, caller: Caller, change: Change) -> set[str]:
        await self._store.folders.put_back_deleted(
            caller.scope, change.before or {}, change.after or {}
        )
        return set()

    async def _publish_back(self, caller: Caller, change: Change) -> set[str]:
        await self._store.disks.put_back(
            caller.scope, str(change.item_id), change.before, change.after
        )
        return set()

    async def _decide_again(self, caller: Caller, change: Change) -> set[str]:
        await self._store.undo.put_back_candidate(change.before or {}, change.after or {})
        return set()

    async def _relate_back(self, caller: Caller, change: Change) -> set[str]:
        await self._store.undo.put_back_relation(caller.scope, change.before, change.after)
        return {row["to_id"] for row in (change.before, change.after) if row}

    async def _epics_of(self, caller: Caller, change: Change) -> set[str]:
        if not {"status", "archived"} & {*(change.before or {})}:
            return set()
        found = await self._store.items.get_many(caller.scope, [str(change.item_id)])
        return {epic for item in found.values() for epic in await self._epics.of(item)}


_INVERSES: Mapping[Did, Invert] = {
    Did.CHANGED: RecentChanges._change_back,
    Did.ADDED: RecentChanges._remove,
    Did.DELETED: RecentChanges._restore,
    Did.RESTORED: RecentChanges._delete_again,
    Did.FILED: RecentChanges._take_out,
    Did.UNFILED: RecentChanges._file_again,
    Did.FOLDER: RecentChanges._folder_back,
    Did.FOLDER_DELETED: RecentChanges._folder_again,
    Did.PUBLISHED: RecentChanges._publish_back,
    Did.CANDIDATE: RecentChanges._decide_again,
    Did.RELATION: RecentChanges._relate_back,
}


def _together(changes: Sequence[Change]) -> Iterator[list[Change]]:
    """Group what one transaction can undo: fields of many items that search does not use."""
    for simple, some in groupby(changes, _is_simple):
        while part := list(islice(some, AT_ONCE if simple else 1)):
            yield part


def _is_simple(change: Change) -> bool:
    before, after = change.before or {}, change.after or {}
    notes = {"notes"} & {*before.get("metadata", ()), *after.get("metadata", ())}
    return change.kind is Did.CHANGED and not notes and not _SEARCHED & {*before}


def _reason(error: CommonplaceError) -> str:
    return "Something of it was deleted since." if isinstance(error, NotFound) else error.message
