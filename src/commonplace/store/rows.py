"""Between rows and values, and the one WHERE clause that keeps every read within its scope."""

import json
from datetime import datetime
from typing import Any

import orjson

from commonplace.database.columns import (
    as_json,
    from_micros,
    from_optional_micros,
    json_value,
    micros,
    texts,
)
from commonplace.model import (
    Capability,
    Event,
    Folder,
    Item,
    Job,
    JobState,
    Passage,
    Person,
    Relation,
    Role,
    Section,
    Token,
)

ITEM_COLUMNS = (
    "library_id",
    "id",
    "public_id",
    "content_id",
    "entity_type",
    "kind",
    "title",
    "url",
    "summary",
    "key_points",
    "tags",
    "category",
    "visibility",
    "in_kb",
    "archived",
    "transcription_status",
    "metadata",
    "revision",
    "word_count",
    "created_by",
    "created_at",
    "updated_at",
    "status",
    "priority",
    "due_date",
    "languages",
    "technologies",
    "assignees",
    "annotates",
    "origin",
    "ingest_status",
    "status_reason",
)
_JSON = frozenset({"key_points", "tags", "metadata", "languages", "technologies", "assignees"})
_TUPLES = _JSON - {"metadata"}
SELECT_ITEM = "SELECT " + ", ".join(f"i.{c}" for c in ITEM_COLUMNS) + " FROM items AS i"


def item_values(item: Item) -> tuple[Any, ...]:
    """As ITEM_COLUMNS has them."""
    return tuple(column_value(column, getattr(item, column)) for column in ITEM_COLUMNS)


def column_value(column: str, value: Any) -> Any:
    if column in _JSON:
        return as_json(value) if value else "{}" if column == "metadata" else "[]"
    if column in ("in_kb", "archived"):
        return int(value)
    return micros(value) if isinstance(value, datetime) else value


def unless_chosen(column: str) -> str:
    """To write a column with what was worked out. What people choose themselves stays, if somebody has changed the item since
    it was read, at `:revision`."""
    chosen = column in ("tags", "category", "metadata")
    return (
        f"{column} = CASE WHEN revision = :revision THEN :{column} ELSE {column} END"
        if chosen
        else f"{column} = :{column}"
    )


def item(row: Any, folders: tuple[str, ...] = ()) -> Item:
    values = {column: row[column] for column in ITEM_COLUMNS}
    for column in _TUPLES:
        values[column] = texts(values[column])
    return Item(
        **values
        | {
            "metadata": json_value(values["metadata"]),
            "in_kb": bool(values["in_kb"]),
            "archived": bool(values["archived"]),
            "created_at": from_micros(values["created_at"]),
            "updated_at": from_micros(values["updated_at"]),
            "folders": folders,
        }
    )


def relation(row: Any) -> Relation:
    return Relation(
        row["library_id"],
        row["from_id"],
        row["kind"],
        row["to_id"],
        row["weight"],
        bool(row["explicit"]),
        from_micros(row["created_at"]),
    )


def section(row: Any, vector: bytes | None = None) -> Section:
    return Section(
        position=row["position"],
        text=row["text"],
        heading=row["heading"],
        extra=row["extra"],
        word_count=row["word_count"],
        key_points=texts(row["key_points"]),
        locator=json_value(row["locator"]),
        vector=vector,
    )


def passage(row: tuple[Any, ...]) -> Passage:
    """Of columns in the order of its fields."""
    (
        *first,
        key_points,
        locator,
        status,
        visibility,
        category,
        tags,
        metadata,
        created_at,
        origin,
        added_by,
    ) = row
    return Passage._make(
        (
            *first,
            tuple(orjson.loads(key_points)),
            orjson.loads(locator),
            status,
            visibility,
            category,
            tuple(orjson.loads(tags)),
            {} if metadata == "{}" else json.loads(metadata),
            from_micros(created_at),
            origin,
            added_by,
        )
    )


def person(row: Any) -> Person:
    return Person(row["id"], row["name"], row["email"], from_micros(row["created_at"]))


def folder(row: Any) -> Folder:
    return Folder(
        row["id"], row["library_id"], row["name"], from_micros(row["created_at"]), row["item_count"]
    )


def token(row: Any, folders: frozenset[str]) -> Token:
    return Token(
        id=row["id"],
        library_id=row["library_id"],
        person_id=row["person_id"],
        name=row["name"],
        capabilities=frozenset(Capability(c) for c in row["capabilities"].split()),
        folders=None if row["whole_library"] else folders,
        kb_only=bool(row["kb_only"]),
        created_at=from_micros(row["created_at"]),
        expires_at=from_optional_micros(row["expires_at"]),
        revoked_at=from_optional_micros(row["revoked_at"]),
        last_used_at=from_optional_micros(row["last_used_at"]),
        role=Role(row["role"]) if row["role"] else None,
    )


def event(row: Any) -> Event:
    return Event(
        row["library_id"],
        row["token_id"],
        row["action"],
        row["target"],
        bool(row["ok"]),
        from_micros(row["at"]),
    )


def job(row: Any) -> Job:
    return Job(
        id=row["id"],
        library_id=row["library_id"],
        item_id=row["item_id"],
        kind=row["kind"],
        state=JobState(row["state"]),
        attempts=row["attempts"],
        error=row["error"],
        progress=row["progress"],
        payload=json.loads(row["payload"]),
        created_at=from_micros(row["created_at"]),
        updated_at=from_micros(row["updated_at"]),
        run_after=from_micros(row["run_after"]),
    )
