"""Tasks and epics: their state machines as data, and the notes in their metadata."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from commonplace.errors import Invalid
from commonplace.model import STALE, SUPERSEDED, WRONG, EntityType, Item, Json, Ticket, now


@dataclass(frozen=True, slots=True)
class Machine:
    entity_type: EntityType
    start: str
    next: Mapping[str, tuple[str, ...]]

    def state(self, item: Item | Ticket) -> str:
        """Return the status; an item without one, from an import for example, is at the start."""
        return item.status or self.start

    def check(self, item: Item, to: str, *, only_from: tuple[str, ...] = ()) -> None:
        """Raise Invalid unless the transition is allowed, and starts at one of `only_from`."""
        at = self.state(item)
        allowed = self.next.get(at, ())
        if to in allowed and (not only_from or at in only_from):
            return
        if to not in self.next:
            raise Invalid(
                f"There is no status {to!r} for {with_article(self.entity_type)}; "
                f"the statuses are: {', '.join(self.next)}.",
                status=at,
                allowed=list(allowed),
            )
        where = (
            f"from there it can go to: {', '.join(allowed)}"
            if allowed
            else "it cannot go anywhere from there"
        )
        refused = (
            f"it is not {' or '.join(only_from)}"
            if only_from and at not in only_from
            else f"it cannot become {to}"
        )
        actions = [
            name
            for name, step in STEPS.items()
            if step.machine is self
            and step.to in allowed
            and (not step.only_from or at in step.only_from)
        ]
        use = f" Use {' or '.join(actions)}." if actions else ""
        raise Invalid(
            f"The {self.entity_type} {item.title!r} is {at}, so {refused}; {where}.{use}",
            status=at,
            allowed=list(allowed),
            actions=actions,
        )

    def require(self, item: Item) -> None:
        if item.entity_type != self.entity_type:
            raise Invalid(
                f"{item.title!r} ({item.entity_id}) is {with_article(item.entity_type)}, "
                f"not {with_article(self.entity_type)}."
            )


TASK = Machine(
    EntityType.TASK,
    "todo",
    {
        "backlog": ("todo",),
        "todo": ("doing", "archived"),
        "doing": ("blocked", "review", "done", "todo"),
        "blocked": ("doing", "archived"),
        "review": ("doing", "done", "archived"),
        "done": ("archived",),
        "archived": (),
    },
)
EPIC = Machine(
    EntityType.EPIC,
    "planning",
    {
        "planning": ("in_progress", "archived"),
        "in_progress": ("planning", "completed", "archived"),
        "completed": ("in_progress", "archived"),
        "archived": (),
    },
)
MACHINES: Mapping[str, Machine] = {machine.entity_type: machine for machine in (TASK, EPIC)}

STATUSES = tuple(dict.fromkeys((*TASK.next, *EPIC.next, SUPERSEDED, WRONG, STALE)))
CLOSED = ("done", "archived")  # a task that nothing has to wait for
ENDED = (*CLOSED, "completed")  # a task or an epic
UNDERWAY = ("doing", "blocked", "review")
LONGEST_SLUG = 50


def parse_statuses(named: Iterable[str]) -> tuple[str, ...]:
    """Split names of statuses at commas. Invalid: there is no such status."""
    found = tuple(part.strip() for names in named for part in names.split(","))
    if any(status not in STATUSES for status in found):
        raise Invalid(
            f"`status` must be one or more of {', '.join(STATUSES)}, separated by commas."
        )
    return found


@dataclass(frozen=True, slots=True)
class Step:
    """An action that moves a task or an epic."""

    machine: Machine
    to: str
    said: str  # the word for it in the answer
    title: str
    path: str  # of its route
    only_from: tuple[str, ...] = ()


STEPS = {
    "start_task": Step(TASK, "doing", "Started", "Start a task", "start"),
    "block_task": Step(TASK, "blocked", "Blocked", "Block a task, with a reason", "block"),
    "unblock_task": Step(TASK, "doing", "Unblocked", "Unblock a task", "unblock", ("blocked",)),
    "submit_review": Step(
        TASK, "review", "Submitted for review", "Submit a task for review", "review"
    ),
    "complete_task": Step(TASK, "done", "Completed", "Complete a task", "complete"),
    "archive_task": Step(TASK, "archived", "Archived", "Archive a task", "archive"),
    "start_epic": Step(EPIC, "in_progress", "Started", "Start an epic", "start"),
    "complete_epic": Step(
        EPIC, "completed", "Completed", "Complete an epic that has no open tasks", "complete"
    ),
    "archive_epic": Step(EPIC, "archived", "Archived", "Archive an epic", "archive"),
}


def next_epic_status(epic: str, tasks: Mapping[str, int]) -> str:
    """Return the status that follows from the number of the epic's tasks in each status.

    Work on a task starts the epic. It is completed when the last task is closed and one was done;
    a later open task reopens it. An archived epic stays archived.
    """
    still_open = sum(count for state, count in tasks.items() if state not in CLOSED)
    if epic == "planning" and any(tasks.get(state) for state in UNDERWAY):
        return "in_progress"
    if epic == "in_progress" and not still_open and tasks.get("done"):
        return "completed"
    return "in_progress" if epic == "completed" and still_open else epic


def enter_state(item: Item, to: str, about: Json | None = None) -> dict[str, Any]:
    """Return the fields that change when an item enters a status."""
    at = now().isoformat()
    metadata = {key: value for key, value in item.metadata.items() if key != "blocked_reason"} | (
        about or {}
    )
    if to in ("doing", "in_progress"):
        metadata.setdefault("started_at", at)
        metadata.pop("completed_at", None)
    if to in ("done", "completed"):
        metadata["completed_at"] = at
    return {"status": to, "metadata": metadata, "archived": to == "archived"}


def branch_name(task: Item) -> str:
    """Return a name for the branch that a task is done on."""
    words = re.findall(r"[a-z0-9]+", task.title.lower())
    return f"task/{task.entity_id}-{'-'.join(words)[:LONGEST_SLUG].strip('-') or 'work'}"


def with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


# -- notes, oldest first

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
