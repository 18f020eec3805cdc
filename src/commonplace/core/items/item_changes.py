"""What else changes in an item when somebody changes some of it."""

from dataclasses import replace
from typing import Any

from commonplace.model import Item
from commonplace.model.workflow import MACHINES, enter_state

Changes = dict[str, Any]


def derive_changes(item: Item, changes: Changes) -> Changes:
    if "archived" in changes:
        changes = changes | _shelved(item, changes["archived"])
    return changes | _given(replace(item, metadata=changes.get("metadata", item.metadata)), changes)


def _shelved(item: Item, archived: bool) -> Changes:
    """Archived, or taken out again. Of tasks and epics that is a state, and only a step leads there."""
    machine = MACHINES.get(item.entity_type)
    if machine is None or archived == (machine.state(item) == "archived"):
        return {}
    machine.check(item, "archived" if archived else machine.start)
    return enter_state(item, "archived")


def _given(item: Item, changes: Changes) -> Changes:
    """What somebody chose is not chosen anew when the item is described again."""
    metadata = {
        name: value
        for name, value in item.metadata.items()
        if name != "tags_derived" or "tags" not in changes
    }
    if "category" in changes:
        metadata["category_given"] = True
    return {"metadata": metadata} if metadata != item.metadata else {}
