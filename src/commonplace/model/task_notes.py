"""Notes on tasks, in the item's metadata, oldest first."""

from commonplace.errors import Invalid
from commonplace.model import Item, Json, now

_SAID = ("at", "author", "text")


def with_note(item: Item, author: str, text: str) -> Json:
    """Return the item's metadata with one more note."""
    kept = item.metadata.get("notes")
    if kept is not None and notes(item) != kept:
        raise Invalid("Its metadata keeps something else under `notes`; rename that first.")
    return item.metadata | {
        "notes": [*notes(item), {"at": now().isoformat(), "author": author, "text": text}]
    }


def notes(item: Item) -> list[Json]:
    """Return the item's notes. Metadata is free: other values of that name are ignored."""
    kept = item.metadata.get("notes")
    return (
        [
            note
            for note in kept
            if isinstance(note, dict) and all(isinstance(note.get(name), str) for name in _SAID)
        ]
        if isinstance(kept, list)
        else []
    )


def searchable(item: Item, text: str) -> str:
    """Return the text that an item is found by: its own, and its notes."""
    found = notes(item)
    return (
        "\n\n".join([text, "## Notes", *(f"{note['author']}: {note['text']}" for note in found)])
        if found
        else text
    )
