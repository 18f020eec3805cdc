"""Values of the model and the core as JSON, in the shapes of the API. Imported only for --json."""

from collections.abc import Callable
from typing import Any

from commonplace import model
from commonplace.core.disks.disk_views import Disk, DiskLine
from commonplace.core.entities.duplicates import SimilarItem
from commonplace.core.entities.entities import AddedEntity, Entity
from commonplace.core.items.versions import VersionDiff
from commonplace.core.memory.memories import Remembered
from commonplace.core.memory.reflection import ReviewedCandidate
from commonplace.core.work.planning import Suggestion
from commonplace.interfaces.actions import (
    disks as disk_shapes,
    entities as entity_shapes,
    items as item_shapes,
    memory as memory_shapes,
    people as people_shapes,
    tasks as task_shapes,
    versions as version_shapes,
)
from commonplace.settings import Settings

SHAPES: dict[type, Callable[[Any], Any]] = {
    model.Candidate: memory_shapes.candidate,
    model.Folder: item_shapes.folder,
    model.FullItem: item_shapes.item_in_full,
    model.Hit: item_shapes.hit,
    model.Invitation: people_shapes.invitation,
    model.Item: item_shapes.item,
    model.Member: people_shapes.member,
    model.Published: disk_shapes.publication,
    model.Subscription: item_shapes.feed,
    model.Token: people_shapes.token,
    model.Version: version_shapes.version,
    AddedEntity: entity_shapes.add_entity_result,
    ReviewedCandidate: memory_shapes.candidate_in_full,
    SimilarItem: entity_shapes.conflict,
    VersionDiff: version_shapes.difference,
    Disk: disk_shapes.disk,
    DiskLine: disk_shapes.disk_summary,
    Remembered: memory_shapes.remember_result,
    Suggestion: task_shapes.suggestion,
}


def to_shape(value: Any, settings: Settings) -> Any:
    """Return the value in its shape, or as text when it has none."""
    if isinstance(value, Entity):
        return entity_shapes.entity(value, settings)
    shape = SHAPES.get(type(value))
    return shape(value) if shape else str(value)
