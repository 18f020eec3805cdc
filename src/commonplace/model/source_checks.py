"""What was found when the page of an item was fetched again."""

from dataclasses import replace

from commonplace.model.ids import now
from commonplace.model.items import SOURCE_CHECK, Item

# What was found at the address of an item when it was last fetched again.
UNCHANGED, CHANGED, MOVED, GONE, FAILED = "unchanged", "changed", "moved", "gone", "unreachable"


def mark_source(item: Item, status: str) -> Item:
    """Return an item with what was found at its address now, since when, and how often in a row."""
    last = item.source_check
    again = last.get("status") == status
    check = {
        "status": status,
        "at": now().isoformat(),
        "since": last["since"] if again else now().isoformat(),
        "times": last["times"] + 1 if again else 1,
    }
    return replace(item, metadata=item.metadata | {SOURCE_CHECK: check})
