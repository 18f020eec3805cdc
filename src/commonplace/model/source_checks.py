"""What was found when the page of an item was fetched again."""

from dataclasses import replace

from commonplace.model.ids import Json, now
from commonplace.model.items import SOURCE_CHECK, Item

# What was found at the address of an item when it was last fetched again.
UNCHANGED, CHANGED, MOVED, GONE, FAILED = "unchanged", "changed", "moved", "gone", "unreachable"

TIMES_GONE = 2  # in a row, after which a page is archived


def mark_source(item: Item, status: str) -> Item:
    """Return an item with what was found at its address now, since when, and how often in a row."""
    return replace(
        item, metadata=item.metadata | {SOURCE_CHECK: found_at_source(status, item.source_check)}
    )


def found_at_source(status: str, last: Json) -> Json:
    """Return the note of a check, after the `last` one."""
    again = last.get("status") == status
    return {
        "status": status,
        "at": now().isoformat(),
        "since": last["since"] if again else now().isoformat(),
        "times": last["times"] + 1 if again else 1,
    }
