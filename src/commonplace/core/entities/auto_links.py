"""Automatic RELATED_TO links between similar items: from new entities to patterns, procedures and
decisions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from commonplace.core.entities.similarity import SimilarityScale
from commonplace.core.ingest.pipeline import job_for
from commonplace.core.jobs.worker import run_each
from commonplace.model import (
    EMBED,
    LINK,
    SUPERSEDED,
    WRONG,
    EntityType,
    Item,
    ItemFilter,
    ItemRef,
    Job,
    JobState,
    Kind,
    Relation,
    Scope,
    now,
)
from commonplace.ports import Embedder, Vector
from commonplace.store import Store

ALIKE = 0.75
TO_GUIDANCE = 10  # most links from a new entity
FROM_OLDER = 20  # most links from existing items to new guidance
READ_CHARACTERS = 2_000
WAIT = timedelta(seconds=1)
# rules and templates are stored as these
GUIDANCE = (EntityType.PATTERN, EntityType.PROCEDURE, EntityType.DECISION)
OTHERS = tuple(kind for kind in EntityType if kind not in (*GUIDANCE, EntityType.DOCUMENT))


@dataclass(eq=False)
class AutoLinker:
    _store: Store
    _embedder: Embedder
    _similarity: SimilarityScale

    async def link(self, scope: Scope, item: Item, text: str) -> int:
        """Link an item to similar ones in the scope, and return the number of new relations. A
        relation is only visible to callers who see both ends."""
        labels = " ".join(filter(None, (item.category, *item.technologies)))
        about = "\n".join(filter(None, (item.title, labels, text[:READ_CHARACTERS])))
        [[vector]] = await self._embedder.documents([[about]])
        joined = {
            end
            for relation in await self._store.relations.of_items(Scope(item.library_id), [item.id])
            for end in (relation.from_id, relation.to_id)
        }
        found = [
            self._relation(item.id, other, item, score)
            for other, score in (await self._alike(scope, vector, GUIDANCE, joined | {item.id}))[
                :TO_GUIDANCE
            ]
        ]
        if item.entity_type in GUIDANCE:
            found += [
                self._relation(other, item.id, item, score)
                for other, score in (await self._alike(scope, vector, OTHERS, joined | {item.id}))[
                    :FROM_OLDER
                ]
            ]
        return await self._store.relations.put(Scope(item.library_id), found) if found else 0

    async def _alike(
        self, scope: Scope, vector: Vector, types: Sequence[str], but: set[str]
    ) -> list[tuple[str, float]]:
        scale = await self._similarity.scale()
        near = await self._store.sections.nearest(
            scope,
            vector,
            self._embedder.stamp,
            4 * FROM_OLDER,
            where=ItemFilter(entity_types=tuple(types), not_statuses=(WRONG, SUPERSEDED)),
        )
        scores = {found.section_id: scale(found.score) for found in near}
        passages = await self._store.sections.passages(
            scope, [n for n, score in scores.items() if score >= ALIKE]
        )
        best: dict[str, float] = {}
        for passage in passages:
            if passage.item_id not in but:
                best[passage.item_id] = max(
                    scores[passage.section_id], best.get(passage.item_id, 0.0)
                )
        return sorted(best.items(), key=lambda found: (-found[1], found[0]))

    def _relation(self, from_id: str, to_id: str, item: Item, score: float) -> Relation:
        return Relation(
            item.library_id, from_id, Kind.RELATED_TO, to_id, weight=round(score, 4), explicit=False
        )


@dataclass(eq=False)
class LinkJobs:
    """Runs jobs of kind `link`."""

    at_once = 8

    _store: Store
    _auto_linker: AutoLinker

    async def run(self, worker: str, jobs: Sequence[Job]) -> None:
        await run_each(self._store, worker, jobs, partial(self._link, worker))

    async def _link(self, worker: str, job: Job) -> None:
        item = await self._store.items.get(Scope(job.library_id), ItemRef(id=job.item_id))
        embedding = await self._store.jobs.latest(item, EMBED)
        if embedding and embedding.state in (JobState.QUEUED, JobState.RUNNING):
            # Linked after its vectors are computed, others can find it too.
            await self._store.jobs.postpone(worker, job.id, now() + WAIT)
            return
        folders, kb_only = job.payload.get("folders"), bool(job.payload.get("kb_only"))
        await self._auto_linker.link(
            Scope(job.library_id, None if folders is None else frozenset(folders), kb_only),
            item,
            await self._store.items.text(item),
        )


def link_job(scope: Scope, item: Item) -> Job:
    """Queue linking within the writer's scope: links to items they cannot see would use up the
    limit."""
    return job_for(
        item,
        LINK,
        {
            "folders": None if scope.folders is None else sorted(scope.folders),
            "kb_only": scope.kb_only,
        },
    )
