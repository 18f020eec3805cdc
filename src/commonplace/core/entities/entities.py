"""Entities: typed items and their relations."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any

from commonplace.core.entities import validation as rules
from commonplace.core.entities.auto_links import AutoLinker
from commonplace.core.entities.candidates import PARTS, Draft, Part
from commonplace.core.entities.conflicts import (
    Conflicts,
    Findings,
    FoundConflict,
    SimilarStatement,
)
from commonplace.core.entities.judgement import BAR
from commonplace.core.ingest.pipeline import IN_CALL, IngestPipeline, Prepared, link_job, unpacked
from commonplace.core.ingest.sources import private_key
from commonplace.core.items.epic_status import Epics
from commonplace.core.people.authorization import GRAPH_WRITE, READ, Service, verb
from commonplace.core.search.search import find_project, resolve_filter
from commonplace.errors import EmbeddingFailed, Invalid, NotFound
from commonplace.model import (
    AUTHORED,
    BY_MODEL,
    SUPERSEDED,
    WRONG,
    Caller,
    Candidate,
    Capture,
    Content,
    EntityType,
    Item,
    ItemChange,
    ItemFilter,
    ItemRef,
    Json,
    Kind,
    Relation,
    Scope,
    new_id,
    new_public_id,
    now,
)
from commonplace.model.tags import derive_tags
from commonplace.model.workflow import with_article
from commonplace.ports import Embedder, Wake
from commonplace.store.optimistic import retry_on_conflict
from commonplace.text import keyword_tags

ALL_SECTIONS = 10_000
TASKS_READ = 200  # of a project, to find the tags they share
SEEN_WORKING = timedelta(minutes=10)
_OF_THE_TEXT = ("summary", "key_points", "tags", "auto_tags", "word_count")
HELD = ItemFilter(not_statuses=(WRONG, SUPERSEDED))  # corrected items are not conflicts
_SHOWN = (Kind.BELONGS_TO, Kind.PART_OF, Kind.DEPENDS_ON)


@dataclass(frozen=True, slots=True)
class AddedEntity:
    item: Item
    message: str
    conflicts: tuple[FoundConflict, ...] = ()
    similar: tuple[SimilarStatement, ...] = ()
    linked: int = 0
    queued: bool = False  # a worker has something left to do


@dataclass(frozen=True, slots=True)
class Entity:
    """An item as the graph API shows it: with text if requested, project, epic and dependencies."""

    item: Item
    text: str | None = None
    project: Item | None = None
    epic: Item | None = None
    depends_on: tuple[Item, ...] = ()


@dataclass(eq=False)
class Entities(Service):
    _embedder: Embedder
    _wake: Wake
    _pipeline: IngestPipeline
    _conflicts: Conflicts
    _auto_linker: AutoLinker
    _epics: Epics
    attended: bool  # whether this process runs jobs, or can wake a process that does

    @verb(GRAPH_WRITE, target=lambda new: new.title[: rules.LONGEST_TITLE])
    async def add(
        self,
        caller: Caller,
        new: rules.NewEntity,
        *,
        sync: bool = False,
        check_conflicts: bool = True,
        threshold: float = BAR,
    ) -> AddedEntity:
        """Add an entity. With `sync`, it is linked and embedded on return."""
        return await self.keep(
            caller, new, sync=sync, check_conflicts=check_conflicts, threshold=threshold
        )

    async def keep(
        self,
        caller: Caller,
        new: rules.NewEntity,
        *,
        sync: bool = False,
        check_conflicts: bool = True,
        threshold: float = BAR,
        capture: Callable[[str, Findings], Capture] | None = None,
        relations: Callable[[str], Sequence[Relation]] | None = None,
        later: bool = False,
        beside: ItemChange | None = None,
        folders: tuple[str, ...] = (),
        annotates: str | None = None,
        accepts: Candidate | None = None,
    ) -> AddedEntity:
        """Add an entity in one transaction. The caller is authorized already.

        `capture`, `relations`: called with the new item's id, and the first with what was found,
        return rows to write with it. `later`: leave vectors and links to jobs, for bulk adds.
        `beside`: a change of another item in the same transaction. `folders`: where to file the
        entity, unless the token has a folder of its own. `annotates`: the item that this is a note
        on. `accepts`: the candidate that becomes this entity.
        """
        new = rules.checked(new)
        if capture is None:
            rules.without_pointer(new.metadata, {})
        item = replace(await self._item(caller, new), folders=folders, annotates=annotates)
        joins = [
            *await self._resolve_relations(caller, item, new),
            *(relations(item.id) if relations else ()),
        ]
        item = await self._tagged(caller, item, new, joins)
        fallback = not (
            sync
            or later
            or self.attended
            or await self._store.jobs.has_activity(caller.library_id, now() - SEEN_WORKING)
        )
        made = await self._prepared(
            item,
            new.content,
            embed_up_to=ALL_SECTIONS if sync or fallback else IN_CALL if check_conflicts else 0,
            embed_first=PARTS if check_conflicts else 0,
        )
        found = Findings()
        if check_conflicts:
            found = await self._compared(caller, made, new, joins, threshold)
        complete = all(section.vector is not None for section in made.sections)
        in_call = (sync or fallback) and complete
        content = Content(new_id(), "", new.content)
        item, _ = await self._store.items.add(
            made.item,
            replace(content, key=private_key(caller, "text", content.hash)),
            made.sections,
            scope=caller.scope,
            folder_id=caller.single_folder,
            stamp=self._embedder.stamp,
            relations=joins,
            once=False,
            jobs=made.jobs if in_call else [*made.jobs, link_job(caller.scope, made.item)],
            capture=capture(made.item.id, found) if capture else None,
            beside=beside,
            accepts=accepts,
        )
        await self._epics.follow(
            caller.scope,
            [relation.to_id for relation in joins if relation.kind == Kind.PART_OF],
        )
        heard = await self._wake.signal()
        added = AddedEntity(
            item,
            f"Queued: {item.title} (processing in background)",
            found.conflicts,
            found.similar,
            queued=True,
        )
        if not (in_call or (not heard and complete)):
            return added
        linked = await self._link(caller, item)
        message = f"Added: {item.title}{f' (linked: {linked})' if linked else ''}"
        return replace(
            added,
            message=message if sync else f"Added (sync fallback): {item.title}",
            linked=linked,
            queued=False,
        )

    @verb(READ, "read", target="entity_id")
    async def get(self, caller: Caller, entity_id: str) -> Entity:
        return await self.with_text(
            caller, await self._store.items.get(caller.scope, ItemRef.parse(entity_id))
        )

    async def with_text(self, caller: Caller, item: Item) -> Entity:
        [entity] = await self.described(caller, [item])
        return replace(entity, text=await self._store.items.text(item))

    @verb(READ, "list", target="project")
    async def page(
        self,
        caller: Caller,
        where: ItemFilter,
        *,
        project: str | None = None,
        limit: int = 20,
        offset: int = 0,
    ) -> tuple[list[Entity], int]:
        """Return a page of entities, newest first, and the total."""
        where = await resolve_filter(self._store, caller.scope, where, project)
        items, total = await self._store.items.list_page(
            caller.scope, where, limit=limit, offset=offset
        )
        return await self.described(caller, items), total

    async def find_project(self, caller: Caller, text: str) -> Item:
        """Return a project by its id, title or repository_url."""
        return await find_project(self._store, caller.scope, text)

    async def project_id(self, caller: Caller, text: str | None) -> str | None:
        return None if text is None else (await self.find_project(caller, text)).id

    async def described(self, caller: Caller, items: Sequence[Item]) -> list[Entity]:
        """Load project, epic and dependencies of items, in as few queries for many as for one."""
        found = (
            await self._store.relations.of_items(
                caller.scope, [item.id for item in items], _SHOWN, outgoing=True
            )
            if items
            else []
        )
        ends = {item.id: item for item in items}
        ends |= await self._store.items.get_many(
            caller.scope, {relation.to_id for relation in found} - ends.keys()
        )

        def of(item: Item, kind: Kind) -> list[Item]:
            return [
                ends[r.to_id]
                for r in found
                if r.from_id == item.id and r.kind == kind and r.to_id in ends
            ]

        return [
            Entity(
                item,
                None,
                next(iter(of(item, Kind.BELONGS_TO)), None),
                next(iter(of(item, Kind.PART_OF)), None),
                tuple(of(item, Kind.DEPENDS_ON)),
            )
            for item in items
        ]

    @verb(GRAPH_WRITE, target="entity_id")
    async def update(
        self,
        caller: Caller,
        entity_id: str,
        changes: dict[str, Any],
        expected_revision: int | None = None,
    ) -> Item:
        """Change fields of an entity: title, content, those of AUTHORED, metadata (merged; null
        removes a key). The status of tasks and epics is changed with `manage`."""
        return await retry_on_conflict(
            partial(self._update, caller, entity_id, changes, expected_revision),
            guarded=expected_revision is not None,
        )

    async def _update(
        self, caller: Caller, entity_id: str, changes: dict[str, Any], expected_revision: int | None
    ) -> Item:
        item = await self._store.items.get(caller.scope, ItemRef.parse(entity_id))
        expected_revision = item.revision if expected_revision is None else expected_revision
        if item.entity_type == EntityType.DOCUMENT:
            raise Invalid("Documents are changed with PATCH /api/v1/items")
        if not changes:
            raise Invalid("There is nothing to change. Name at least one field.")
        text, changes = changes.get("content"), rules.validate_changes(item, changes)
        if text is None and changes.get("title", item.title) == item.title:
            updated, _ = await self._pipeline.change(caller.scope, item, changes, expected_revision)
            return updated
        text = text if text is not None else await self._store.items.text(item)
        return await self.rewrite(caller, caller.scope, item, text, changes, expected_revision)

    async def rewrite(
        self,
        caller: Caller,
        scope: Scope,
        item: Item,
        text: str,
        changes: dict[str, Any],
        expected_revision: int,
        extends: Capture | None = None,
    ) -> Item:
        """Give an entity another text. The caller is authorized already. `extends`: see
        Items.replace_content."""
        made = await self._prepared(replace(item, **changes), text, embed_up_to=IN_CALL)
        changes |= {name: getattr(made.item, name) for name in (*_OF_THE_TEXT, "metadata")}
        content = Content(new_id(), "", text)
        updated = await self._store.items.replace_content(
            scope,
            item.id,
            replace(content, key=private_key(caller, "text", content.hash)),
            changes,
            sections=made.sections,
            stamp=self._embedder.stamp,
            jobs=[*made.jobs, link_job(scope, made.item)],
            expected_revision=expected_revision,
            extends=extends,
        )
        await self._wake.signal()
        return updated

    # -- how

    async def _item(self, caller: Caller, new: rules.NewEntity) -> Item:
        metadata: Json = dict(new.metadata)
        if new.entity_type == EntityType.TASK and (
            found := keyword_tags.task_type(new.title, new.content)
        ):
            metadata.setdefault("task_type", found)
        return Item(
            id=new_id(),
            library_id=caller.library_id,
            public_id=new_public_id(),
            content_id="",
            entity_type=new.entity_type,
            kind="text",
            title=new.title,
            created_by=caller.token_id,
            metadata=metadata,
            origin=caller.origin("text"),
            status=new.status,
            created_at=new.created_at or now(),
            **{name: getattr(new, name) or default for name, default in AUTHORED.items()},
        )

    async def _resolve_relations(
        self, caller: Caller, item: Item, new: rules.NewEntity
    ) -> list[Relation]:
        """Resolve all references of a new entity. Raises Invalid before anything is written."""
        wanted: list[tuple[Kind, str]] = []
        if new.project:
            wanted.append((Kind.BELONGS_TO, (await self.find_project(caller, new.project)).id))
        if new.epic:
            wanted.append(
                (Kind.PART_OF, (await self._named(caller, "epic", new.epic, [EntityType.EPIC])).id)
            )
        for reference in rules.few("depends_on", new.depends_on):
            wanted.append(
                (
                    Kind.DEPENDS_ON,
                    (await self._named(caller, "depends_on", reference, rules.WORK)).id,
                )
            )
        for kind, reference in map(rules.parse_relation, rules.few("related_to", new.related_to)):
            wanted.append((kind, (await self._named(caller, "related_to", reference)).id))
        return [
            Relation(item.library_id, item.id, kind, to_id) for kind, to_id in dict.fromkeys(wanted)
        ]

    async def _named(
        self, caller: Caller, name: str, reference: str, types: Sequence[str] = ()
    ) -> Item:
        try:
            item = await self._store.items.get(caller.scope, ItemRef.parse(reference.strip()))
        except NotFound:
            raise Invalid(
                f"There is no entity {reference[:100]!r} for `{name}`",
                id=reference[:100],
            ) from None
        if types and item.entity_type not in types:
            raise Invalid(
                f"`{name}` must name {with_article(' or '.join(types))}; {reference[:100]!r} is "
                f"{with_article(item.entity_type)}",
                id=reference[:100],
            )
        return item

    async def _tagged(
        self, caller: Caller, item: Item, new: rules.NewEntity, joins: Iterable[Relation]
    ) -> Item:
        if item.entity_type != EntityType.TASK:
            return item
        project_id = next(relation.to_id for relation in joins if relation.kind == Kind.BELONGS_TO)
        project = await self._store.items.get(caller.scope, ItemRef(id=project_id))
        tasks, _ = await self._store.items.list_page(
            caller.scope,
            ItemFilter(entity_types=(EntityType.TASK,), project_id=project_id),
            limit=TASKS_READ,
            offset=0,
            count=False,
        )
        usual = [*project.tags, *keyword_tags.common_tags(task.tags for task in tasks)]
        found = keyword_tags.tags(new.title, new.content, new.technologies, usual)
        return replace(item, **derive_tags(item, found))

    async def _prepared(
        self, item: Item, text: str, *, embed_up_to: int, embed_first: int = 0
    ) -> Prepared:
        """Cut, summarize and embed a text, keeping the given category and metadata. Only the
        pipeline says whether a model wrote the summary: published views show model-written ones."""
        item = replace(item, metadata=rules.without_model_fields(item.metadata))
        made = await self._pipeline.prepare(
            item, text, embed_up_to=embed_up_to, embed_first=embed_first
        )
        by_model = {
            name: made.item.metadata[name] for name in BY_MODEL if name in made.item.metadata
        }
        return replace(
            made,
            item=replace(
                item,
                metadata=item.metadata | by_model,
                **{name: getattr(made.item, name) for name in _OF_THE_TEXT},
            ),
        )

    async def _compared(
        self,
        caller: Caller,
        made: Prepared,
        new: rules.NewEntity,
        joins: Sequence[Relation],
        threshold: float,
    ) -> Findings:
        parts = [
            Part(section.text, unpacked(section.vector) if section.vector else None)
            for section in made.sections
        ] or [Part(new.content, None)]
        known = [
            relation.to_id
            for relation in joins
            if relation.kind in (Kind.SUPERSEDES, Kind.CONTRADICTS)
        ]
        project = next((each.to_id for each in joins if each.kind == Kind.BELONGS_TO), None)
        item = made.item
        draft = Draft(item.title, new.content, parts, item.entity_type, project, item.created_at)
        try:
            return await self._conflicts.find(
                caller.scope, draft, threshold=threshold, but=known, where=HELD, ask_model=True
            )
        except EmbeddingFailed:
            return Findings()

    async def _link(self, caller: Caller, item: Item) -> int:
        try:
            return await self._auto_linker.link(caller.scope, item)
        except (EmbeddingFailed, NotFound):
            # the embedder is down, or an item was deleted; the added one stays
            return 0
