"""Changes that follow from other changes of an item."""

from dataclasses import replace
from typing import Any

from commonplace.errors import Conflict
from commonplace.model import Item
from commonplace.model.workflow import MACHINES, enter_state

Changes = dict[str, Any]


def require_revision(item: Item, expected: int | None) -> None:
    """Raise Conflict if the item is not at the revision that the caller has read."""
    if expected not in (None, item.revision):
        raise Conflict(
            f"The item is at revision {item.revision}, not {expected}. Read it again first.",
            revision=item.revision,
        )


def derive_changes(item: Item, changes: Changes) -> Changes:
    if "archived" in changes:
        changes = changes | _archive_changes(item, changes["archived"])
    if "category" in changes:
        changes = changes | {"category": changes["category"] or ""}
    return changes | _given(replace(item, metadata=changes.get("metadata", item.metadata)), changes)


def _archive_changes(item: Item, archived: bool) -> Changes:
    """Archive an item, or restore it. For tasks and epics that is a transition and is checked."""
    machine = MACHINES.get(item.entity_type)
    if machine is None or archived == (machine.state(item) == "archived"):
        return {}
    machine.check(item, "archived" if archived else machine.start)
    return enter_state(item, "archived")


def _given(item: Item, changes: Changes) -> Changes:
    """Remember that somebody chose tags or category, so that summaries do not replace them."""
    metadata = {
        name: value
        for name, value in item.metadata.items()
        if name != "tags_derived" or "tags" not in changes
    }
    if "category" in changes:
        metadata["category_given"] = True
    return {"metadata": metadata} if metadata != item.metadata else {}
