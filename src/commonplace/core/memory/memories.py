"""Memories: stored verbatim, found by search, corrected without losing the original words.

A memory is an entity with a capture, its original words, which never change. A correction is a
status that every search, pack and traversal respects. Only deleting removes the words.
"""

from dataclasses import dataclass, field, replace
from functools import partial

from commonplace.core.entities import validation as rules
from commonplace.core.entities.conflicts import (
    Conflicts,
    FoundConflict,
    SimilarStatement,
    packed,
)
from commonplace.core.entities.entities import Entities
from commonplace.core.items.drafts import require_revision
from commonplace.core.people.authorization import GRAPH_WRITE, READ, Service, verb
from commonplace.core.work.tasks import Change, ChangeResult, Tasks
from commonplace.errors import Conflict, Invalid, NotFound
from commonplace.model import (
    STALE,
    SUPERSEDED,
    WRONG,
    Caller,
    Candidate,
    Capture,
    EntityType,
    Item,
    ItemChange,
    ItemRef,
    Json,
    Kind,
    Relation,
    Scope,
    new_id,
    now,
)
from commonplace.store.optimistic import retry_on_conflict

CORRECTED = (SUPERSEDED, WRONG, STALE)
LONGEST_KEY = 200


@dataclass(frozen=True, slots=True)
class Memo:
    """A new memory as requested."""

    entity: rules.NewEntity
    key: str | None = None  # idempotency key
    source: Json = field(default_factory=dict)  # of the words
    owner: str | None = None  # of the key, if not the caller
    derived_from: str | None = None  # id of the item that this was extracted from
    replaces: ItemChange | None = None  # the item that this supersedes, with its new status
    accepts: Candidate | None = None  # the candidate that becomes this memory


@dataclass(frozen=True, slots=True)
class Remembered:
    item: Item
    capture: Capture
    message: str
    conflicts: tuple[FoundConflict, ...] = ()
    similar: tuple[SimilarStatement, ...] = ()
    repeated: bool = False  # the key was used before, and this is the first result


@dataclass(frozen=True, slots=True)
class CorrectionResult:
    """A capture, its entity, and the entity's correction."""

    capture: Capture
    item: Item
    replaced_by: tuple[Item, ...] = ()

    @property
    def correction(self) -> Json:
        """Who corrected it, when and why. Checked, because clients can write any metadata."""
        told = self.item.metadata.get("correction")
        return told if self.item.status in CORRECTED and isinstance(told, dict) else {}

    @property
    def unchanged(self) -> bool:
        """Whether the capture still has the hash that the entity recorded."""
        return self.item.metadata.get("capture_hash") == self.capture.hash


def owner_of(caller: Caller) -> str:
    return caller.token_id or caller.person_id


@dataclass(eq=False)
class Memory(Service):
    _entities: Entities
    _tasks: Tasks
    _conflicts: Conflicts

    @verb(GRAPH_WRITE, target=lambda memo: memo.entity.title[:200])
    async def remember(
        self, caller: Caller, memo: Memo, *, sync: bool = False, check_conflicts: bool = True
    ) -> Remembered:
        """Store a capture and its entity in one transaction. The same key returns the first result,
        also to concurrent calls."""
        return await self.keep(caller, memo, sync=sync, check_conflicts=check_conflicts)

    async def keep(
        self,
        caller: Caller,
        memo: Memo,
        *,
        sync: bool = False,
        check_conflicts: bool = True,
        later: bool = False,
    ) -> Remembered:
        """Remember. The caller is authorized already. `later`: see Entities.keep."""
        rules.validate_metadata(memo.source, "source")
        owner = memo.owner or owner_of(caller)
        if memo.key is not None and (known := await self._known(caller, owner, memo)):
            return known
        capture = Capture(
            new_id(),
            caller.library_id,
            "",
            memo.entity.title.strip(),
            memo.entity.content,
            owner,
            memo.key,
            memo.source,
        )
        metadata = dict(memo.entity.metadata) | {
            "capture_id": capture.id,
            "capture_hash": capture.hash,
        }

        def joins(item_id: str) -> list[Relation]:
            return [
                Relation(caller.library_id, item_id, kind, to_id)
                for kind, to_id in (
                    (
                        (Kind.DERIVED_FROM, memo.derived_from),
                        (Kind.SUPERSEDES, memo.replaces and memo.replaces.item_id),
                    )
                )
                if to_id
            ]

        try:
            added = await self._entities.keep(
                caller,
                replace(memo.entity, metadata=metadata),
                sync=sync,
                check_conflicts=check_conflicts,
                later=later,
                capture=lambda item_id, found: replace(
                    capture, item_id=item_id, answer=packed(found)
                ),
                relations=joins,
                beside=memo.replaces,
                accepts=memo.accepts,
            )
        except Conflict:
            known = await self._known(caller, owner, memo) if memo.key is not None else None
            if known is None:
                raise
            return known
        return Remembered(
            added.item,
            replace(capture, item_id=added.item.id),
            added.message,
            added.conflicts,
            added.similar,
        )

    async def extend(self, caller: Caller, kept: Remembered, text: str) -> Remembered:
        """Extend a kept text, entity and capture, to a later state of it; one that does not begin
        with the kept text follows below it. The caller is authorized already."""
        return await retry_on_conflict(partial(self._extend, caller, kept, text), guarded=False)

    async def _extend(self, caller: Caller, kept: Remembered, text: str) -> Remembered:
        assert kept.capture.idempotency_key is not None
        item = await self._store.items.get(Scope(caller.library_id), ItemRef(id=kept.item.id))
        capture = await self._store.captures.by_key(
            caller.library_id, kept.capture.owner, kept.capture.idempotency_key
        )
        if capture is None or capture.item_id != item.id:
            raise NotFound("The session was deleted.")
        scope = caller.scope
        if not await self._store.items.get_many(scope, [item.id]):
            if item.folders or item.created_by != caller.token_id:
                return kept  # filed where the caller does not see it
            scope = Scope(caller.library_id)  # its own, which nobody has filed yet
        if text.strip() in capture.text:
            return replace(kept, capture=capture)
        words = capture.text.rstrip()
        added = text[len(words) :] if text.startswith(words) else f"\n\n{text}"
        longer = replace(capture, id=new_id(), text=rules.content(words + added))
        pointer = {"capture_id": longer.id, "capture_hash": longer.hash}
        item = await self._entities.rewrite(
            caller,
            scope,
            item,
            rules.content((await self._store.items.text(item)).rstrip() + added),
            {"metadata": item.metadata | pointer},
            item.revision,
            longer,
        )
        return replace(kept, item=item, capture=longer, repeated=False)

    @verb(READ, "read", target="entity_id")
    async def capture(self, caller: Caller, entity_id: str) -> Capture:
        """Return the original words of an entity."""
        item = await self._store.items.get(caller.scope, ItemRef.parse(entity_id))
        return await self._store.captures.of_item(caller.scope, item.id)

    @verb(READ)
    async def captures(
        self, caller: Caller, *, limit: int = 20, offset: int = 0
    ) -> tuple[list[CorrectionResult], int]:
        """Return captures, newest first, and the total."""
        captures, total = await self._store.captures.list_page(
            caller.scope, limit=limit, offset=offset
        )
        ids = [capture.item_id for capture in captures]
        replaced = (
            [
                relation
                for relation in await self._store.relations.of_items(
                    caller.scope, ids, [Kind.SUPERSEDES]
                )
                if relation.to_id in ids
            ]
            if ids
            else []
        )
        items = await self._store.items.get_many(
            caller.scope, {*ids, *(relation.from_id for relation in replaced)}
        )
        return [
            CorrectionResult(
                capture,
                items[capture.item_id],
                tuple(
                    items[each.from_id]
                    for each in replaced
                    if each.to_id == capture.item_id and each.from_id in items
                ),
            )
            for capture in captures
            if capture.item_id in items
        ], total

    # -- corrections

    @verb(GRAPH_WRITE, target="entity_id")
    async def supersede(
        self,
        caller: Caller,
        entity_id: str,
        *,
        by: str | None = None,
        title: str | None = None,
        content: str | None = None,
        reason: str = "",
        expected_revision: int | None = None,
    ) -> ChangeResult:
        """Supersede a memory: `by` another one, or by a new one with this `content` (and
        `title`)."""
        old = await self._memory(caller, entity_id)
        rules.refuse(
            (
                (by is None) == (content is None),
                "Name the replacement: pass `by`, the id of another memory, or `content` (and "
                "`title`) for a new one.",
            ),
            (by is not None and title is not None, "`title` goes with `content`, not with `by`."),
        )
        if by is not None:
            new = await self._memory(caller, by)
            updated = await self._correct(
                caller, old, SUPERSEDED, reason, expected_revision, by=new
            )
        else:
            write = partial(
                self._replacement, caller, old, title, content or "", reason, expected_revision
            )
            new = await retry_on_conflict(write, guarded=expected_revision is not None)
            updated = await self._store.items.get(caller.scope, ItemRef(id=old.id))
        return ChangeResult(
            updated,
            f"Superseded: {old.title}, by {new.title} ({new.entity_id})",
            {"superseded_by": new.entity_id},
        )

    @verb(GRAPH_WRITE, target="entity_id")
    async def mark_wrong(
        self, caller: Caller, entity_id: str, reason: str = "", expected_revision: int | None = None
    ) -> ChangeResult:
        """Mark a memory as wrong: search and context leave it out."""
        return await self._mark(caller, entity_id, WRONG, reason, expected_revision)

    @verb(GRAPH_WRITE, target="entity_id")
    async def mark_stale(
        self, caller: Caller, entity_id: str, reason: str = "", expected_revision: int | None = None
    ) -> ChangeResult:
        """Mark a memory as stale: it is still found, but flagged and ranked lower."""
        return await self._mark(caller, entity_id, STALE, reason, expected_revision)

    @verb(GRAPH_WRITE, target="entity_id")
    async def restore(
        self, caller: Caller, entity_id: str, expected_revision: int | None = None
    ) -> ChangeResult:
        """Undo a correction."""
        item = await self._memory(caller, entity_id)
        if item.status not in CORRECTED:
            raise Invalid(f"{item.title!r} was not corrected; there is nothing to restore.")

        async def derive(current: Item) -> Change:
            # Also drop replacements that the caller does not see: they would keep it superseded.
            joined = await self._store.relations.of_items(
                Scope(caller.library_id), [item.id], [Kind.SUPERSEDES]
            )
            replaced = [relation for relation in joined if relation.to_id == item.id]
            metadata = {
                name: value for name, value in current.metadata.items() if name != "correction"
            }
            return Change({"status": "", "metadata": metadata}, dropped=replaced)

        return ChangeResult(
            await self._tasks.change(caller, item.id, derive, expected_revision),
            f"Restored: {item.title}",
        )

    # -- how

    async def _known(self, caller: Caller, owner: str, memo: Memo) -> Remembered | None:
        assert memo.key is not None
        capture = await self._store.captures.by_key(caller.library_id, owner, memo.key)
        if capture is None:
            return None
        # A capture's owner may see it even if its entity is filed elsewhere, but not the entity.
        item = await self._store.items.get(Scope(caller.library_id), ItemRef(id=capture.item_id))
        same = capture.text == memo.entity.content and capture.title == memo.entity.title.strip()
        told = "" if same else "; the new text was not stored: its idempotency_key was used before"
        # The first answer may have been another caller's: of a candidate that two have accepted.
        found = await self._conflicts.recalled(
            caller.scope, capture.answer or {}, capture.title, capture.text
        )
        return Remembered(
            item,
            capture,
            f"Remembered before: {capture.title}{told}",
            found.conflicts,
            found.similar,
            repeated=True,
        )

    async def _memory(self, caller: Caller, entity_id: str) -> Item:
        item = await self._store.items.get(caller.scope, ItemRef.parse(entity_id))
        if item.entity_type in rules.WORK:
            raise Invalid(
                f"{item.title!r} ({item.entity_id}) is {item.entity_type}, which has its own "
                f"states. Use archive_{item.entity_type} or update_{item.entity_type}."
            )
        return item

    async def _mark(
        self,
        caller: Caller,
        entity_id: str,
        status: str,
        reason: str,
        expected_revision: int | None,
    ) -> ChangeResult:
        item = await self._memory(caller, entity_id)
        return ChangeResult(
            await self._correct(caller, item, status, reason, expected_revision),
            f"Marked as {status}: {item.title}" + (f" ({reason})" if reason else ""),
        )

    async def _replacement(
        self,
        caller: Caller,
        old: Item,
        title: str | None,
        content: str,
        reason: str,
        expected_revision: int | None,
    ) -> Item:
        """Build a replacement of the same type, project and tags. It is written in one transaction
        with the old memory's status, checked by revision."""
        if old.entity_type == EntityType.DOCUMENT:
            raise Invalid(
                "A document is superseded by another document. Add it first, then pass its id in "
                "`by`."
            )
        old = await self._store.items.get(caller.scope, ItemRef(id=old.id))
        require_revision(old, expected_revision)
        projects = await self._store.relations.of_items(
            caller.scope, [old.id], [Kind.BELONGS_TO], outgoing=True
        )
        entity = rules.NewEntity(
            title=title if title is not None else old.title,
            content=content,
            entity_type=old.entity_type,
            category=old.category,
            languages=old.languages,
            tags=old.tags,
            technologies=old.technologies,
            project=projects[0].to_id if projects else None,
        )
        told = ItemChange(old.id, _corrected(caller, old, SUPERSEDED, reason), old.revision)
        return (await self.keep(caller, Memo(entity, replaces=told), check_conflicts=False)).item

    async def _correct(
        self,
        caller: Caller,
        item: Item,
        status: str,
        reason: str,
        expected_revision: int | None,
        by: Item | None = None,
    ) -> Item:
        joined = [Relation(caller.library_id, by.id, Kind.SUPERSEDES, item.id)] if by else []

        async def derive(current: Item) -> Change:
            return Change(_corrected(caller, current, status, reason), joined)

        return await self._tasks.change(caller, item.id, derive, expected_revision)


def _corrected(caller: Caller, item: Item, status: str, reason: str) -> Json:
    """Return an item's fields with a correction: status, and in the metadata who, when and why. The
    replacement is only stored as a relation, because not all who see one item see the other."""
    told = {"status": status, "at": now().isoformat(), "author": caller.name} | (
        {"reason": reason} if reason else {}
    )
    return {"status": status, "metadata": item.metadata | {"correction": told}}
