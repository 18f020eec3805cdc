"""Validation of entities: types, limits, defaults, and the error messages that clients know."""

import json
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from commonplace.errors import Invalid
from commonplace.model import (
    AUTHORED,
    BY_MODEL,
    EntityType,
    Item,
    Json,
    Kind,
    now,
    parse_time,
    utc_text,
)
from commonplace.model.tags import choose_tags

T = TypeVar("T")
LONGEST_TITLE = 200
LONGEST_CONTENT = 50_000
LONGEST_LIST = 50
LONGEST_WORD = 100  # of a tag, a language, a technology, a name
LONGEST_URL = 2_000
LONGEST_METADATA = 20_000  # characters as JSON
DEEPEST_METADATA = 16
PRIORITIES = ("critical", "high", "medium", "low", "someday")
TYPES = tuple(kind for kind in EntityType if kind is not EntityType.DOCUMENT)
# these have states and a project, and can have dependencies
WORK = (EntityType.TASK, EntityType.EPIC)
FIRST_STATUSES = {
    EntityType.TASK: ("todo", "backlog"),
    EntityType.EPIC: ("planning",),
}  # the default comes first
TYPED = {
    "supersedes": Kind.SUPERSEDES,
    "contradicts": Kind.CONTRADICTS,
    "requires": Kind.REQUIRES,
    "supports": Kind.SUPPORTS,
}


POINTER = ("capture_id", "capture_hash")
# metadata written by other actions than an update
_NOTED = ("notes", "learnings", "front_matter")


@dataclass(frozen=True, slots=True)
class NewEntity:
    """A new entity as requested. Ids are in any of their forms."""

    title: str
    content: str
    entity_type: str = EntityType.EPISODE
    category: str = ""
    languages: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    related_to: tuple[str, ...] = ()  # ids, or `supersedes:<id>` and the like
    metadata: Json = field(default_factory=dict)
    project: str | None = None
    priority: str | None = None
    assignees: tuple[str, ...] = ()
    due_date: str | None = None
    valid_until: str | None = None
    review_by: str | None = None
    technologies: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    repository_url: str | None = None
    status: str = ""  # "": the first status of the type
    epic: str | None = None
    created_at: datetime | None = None  # for imports


def refuse(*problems: tuple[object, str], field: str = "") -> None:
    """Raise Invalid with the sentence of the first condition that holds."""
    for wrong, sentence in problems:
        if wrong:
            raise Invalid(sentence, field=field)


def valid(value: T, *problems: tuple[object, str], field: str = "") -> T:
    refuse(*problems, field=field)
    return value


def checked(new: NewEntity) -> NewEntity:
    """Strip blanks and fill in defaults. Raises Invalid if any field is not valid."""
    kind = entity_type(new.entity_type)
    new = replace(new, entity_type=kind, title=title(new.title), content=content(new.content))
    named = bool(new.project and new.project.strip())
    refuse(
        (kind is EntityType.TASK and not named, "Tasks require a project"),
        (kind is EntityType.EPIC and not named, "Epics require a project"),
        (
            new.project is not None and not named,
            "`project` is empty; leave it out, or name one by its id",
        ),
        field="project",
    )
    refuse(
        (new.epic and kind is not EntityType.TASK, "Only tasks can be part of an epic"),
        (
            new.depends_on and kind not in WORK,
            "Only tasks and epics can depend on tasks; use related_to for other relations",
        ),
        (
            new.repository_url and kind is not EntityType.PROJECT,
            "Only projects have a repository_url; put other addresses into content or metadata",
        ),
    )
    metadata, status = dict(validate_metadata(new.metadata)), new.status
    if kind in FIRST_STATUSES and not status and "status" in metadata:
        status = metadata.pop("status")
    if new.repository_url:
        metadata["repository_url"] = _address(new.repository_url)
    if kind in WORK and new.priority is None:
        new = replace(new, priority="medium")
    given = {name: getattr(new, name) for name in AUTHORED if getattr(new, name) is not None}
    return replace(
        new,
        metadata=metadata,
        status=_first_status(kind, status),
        **{name: CHECKS[name](value) for name, value in given.items()},
    )


def entity_type(value: str) -> EntityType:
    known = valid(
        value,
        (
            value == EntityType.DOCUMENT,
            "Documents are added with add_to_knowledge (texts and pages) and uploads (files); "
            f"here entity_type is one of: {', '.join(TYPES)}",
        ),
        (
            value not in TYPES,
            f"Unknown entity_type {value[:50]!r}; it is one of: {', '.join(TYPES)}",
        ),
    )
    return EntityType(known)


def title(value: str) -> str:
    value = value.strip()
    return valid(
        value,
        (not value, "Title cannot be empty"),
        (
            len(value) > LONGEST_TITLE,
            f"Title has {len(value)} characters; it may have {LONGEST_TITLE}",
        ),
        field="title",
    )


def content(value: str) -> str:
    return valid(
        value,
        (not value.strip(), "Content cannot be empty"),
        (
            len(value) > LONGEST_CONTENT,
            f"Content has {len(value):,} characters; it may have {LONGEST_CONTENT:,}",
        ),
        field="content",
    )


def priority(value: str | None) -> str:
    if value is None:
        return ""
    return valid(
        value,
        (
            value not in PRIORITIES,
            f"Unknown priority {value[:50]!r}; it is one of: {', '.join(PRIORITIES)}",
        ),
    )


def due_date(value: str | None) -> str | None:
    """Normalize an ISO date or datetime."""
    if value is None:
        return None
    for parse in (date.fromisoformat, datetime.fromisoformat):
        with suppress(ValueError):
            return parse(value.strip()).isoformat()
    raise Invalid(
        f"due_date {value[:50]!r} is not an ISO date such as 2026-03-31", field="due_date"
    )


def day_or_time(name: str, value: str | None) -> str | None:
    """Normalize an ISO date, or a time to UTC."""
    if value is None:
        return None
    with suppress(ValueError):
        return date.fromisoformat(value.strip()).isoformat()
    return utc_text(moment(name, value))


def moment(name: str, value: str, *, end: bool = False) -> datetime:
    """Parse an ISO date or time, in UTC if it names no zone. `end`: of the day, for a date."""
    found = parse_time(value)
    if found is None:
        raise Invalid(
            f"`{name}` must be an ISO date or time such as 2026-03-31, not {value[:50]!r}"
        )
    is_day = len(value.strip()) <= len("2026-03-31")
    return found + timedelta(days=1, microseconds=-1) if end and is_day else found


def few(name: str, values: Sequence[str]) -> Sequence[str]:
    return valid(
        values,
        (
            len(values) > LONGEST_LIST,
            f"`{name}` may have {LONGEST_LIST} entries, not {len(values)}",
        ),
        field=name,
    )


def listed(name: str, values: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word(name, value) for value in few(name, values)))


def optional_word(name: str, value: str | None) -> str:
    return word(name, value) if value else ""


def word(name: str, value: str) -> str:
    value = value.strip()
    return valid(
        value,
        (
            not value or len(value) > LONGEST_WORD,
            f"`{name}` takes texts of 1 to {LONGEST_WORD} characters that are not blank",
        ),
        field=name,
    )


def validate_metadata(value: Json, name: str = "metadata") -> Json:
    """Check that metadata is storable JSON: finite numbers, well-formed text, limited depth and
    size."""
    _require_plain(name, value, DEEPEST_METADATA)
    size = len(json.dumps(value, ensure_ascii=False))
    return valid(
        value,
        (
            size > LONGEST_METADATA,
            f"`{name}` may have {LONGEST_METADATA:,} characters as JSON, not {size:,}",
        ),
    )


def _require_plain(name: str, value: Any, depth: int) -> None:
    if depth == 0:
        raise Invalid(f"`{name}` is nested more than {DEEPEST_METADATA} deep")
    if isinstance(value, dict):
        for key, entry in value.items():
            _require_plain(name, key, depth)
            _require_plain(name, entry, depth - 1)
    elif isinstance(value, list | tuple):
        for entry in value:
            _require_plain(name, entry, depth - 1)
    elif isinstance(value, str):
        if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
            raise Invalid(
                f"`{name}` contains NUL characters or lone surrogates; send well-formed text"
            )
    elif isinstance(value, float) and not math.isfinite(value):
        raise Invalid(f"`{name}` contains a number that JSON cannot represent")
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise Invalid(f"`{name}` contains a whole number of more than 64 bits; send it as text")


def parse_relation(reference: str) -> tuple[Kind, str]:
    """Parse `supersedes:<id>` and the like. A plain id means RELATED_TO."""
    prefix, colon, rest = reference.strip().rpartition(":")
    if not colon:
        return Kind.RELATED_TO, reference.strip()
    if prefix.strip().lower() not in TYPED:
        raise Invalid(
            f"Unknown relation {prefix[:50]!r} in related_to; write an id alone, or one of: "
            f"{', '.join(f'{name}:<id>' for name in TYPED)}"
        )
    return TYPED[prefix.strip().lower()], rest.strip()


def _first_status(kind: EntityType, status: Any) -> str:
    first = FIRST_STATUSES.get(kind, ())
    return valid(
        str(status or next(iter(first), "")),
        (status and not first, f"A new {kind} has no status; leave it out"),
        (
            status and status not in first,
            f"A new {kind} starts as {' or '.join(first)}, not {str(status)[:50]!r}; "
            "change it later with `manage`",
        ),
    )


def _address(value: str) -> str:
    value = value.strip()
    return valid(
        value,
        (
            not 0 < len(value) <= LONGEST_URL or any(character.isspace() for character in value),
            f"repository_url must be an address of at most {LONGEST_URL:,} characters without "
            "blanks",
        ),
    )


def since(value: str, at: datetime | None = None) -> datetime:
    """Parse an ISO date or datetime, or an age such as 12h, 7d, 2w."""
    amount, unit = value.strip()[:-1], value.strip()[-1:]
    hours = {"h": 1, "d": 24, "w": 24 * 7}
    try:
        if unit in hours and amount.isascii() and amount.isdecimal() and len(amount) <= 4:
            return (at or now()) - timedelta(hours=int(amount) * hours[unit])
        found = datetime.fromisoformat(value.strip())
        return (
            found.astimezone(now().tzinfo) if found.tzinfo else found.replace(tzinfo=now().tzinfo)
        )
    except (ValueError, OverflowError):
        raise Invalid(
            f"`since` must be an ISO date such as 2026-03-01, or 12h, 7d, 2w; not {value[:50]!r}"
        ) from None


# of fields that can be changed; None clears
CHECKS: dict[str, Callable[[Any], Any]] = {
    **{
        name: partial(listed if isinstance(default, tuple) else optional_word, name)
        for name, default in AUTHORED.items()
    },
    "title": title,
    "priority": priority,
    "due_date": due_date,
    "valid_until": partial(day_or_time, "valid_until"),
    "review_by": partial(day_or_time, "review_by"),
}


def validate_changes(item: Item, changes: dict[str, Any]) -> dict[str, Any]:
    checks = CHECKS | {
        "content": content,
        "metadata": partial(_joined, item.metadata),
    }
    if unknown := changes.keys() - checks.keys():
        raise Invalid(
            f"{', '.join(sorted(unknown))} cannot be changed here; "
            "the status of tasks and epics is changed with `manage`"
        )
    found = {name: checks[name](value) for name, value in changes.items()}
    found.pop("content", None)  # not a field of the item
    return found | (choose_tags(item, found["tags"]) if "tags" in found else {})


def _joined(held: Json, sent: Json) -> Json:
    """Merge metadata. Notes and learnings may be long and do not count against the size limit."""
    found = {
        name: value
        for name, value in (held | without_model_fields(without_pointer(sent, held))).items()
        if value is not None
    }
    validate_metadata(
        {name: value for name, value in found.items() if name not in _NOTED or name in sent}
    )
    return found


def without_pointer(metadata: Json, held: Json) -> Json:
    """Refuse changes to the fields that lead an entity to its capture."""
    return valid(
        metadata,
        (
            any(name in metadata and metadata[name] != held.get(name) for name in POINTER),
            f"{' and '.join(POINTER)} lead to an entity's capture and cannot be set or changed",
        ),
    )


def without_model_fields(metadata: Json) -> Json:
    return {name: value for name, value in metadata.items() if name not in BY_MODEL}
