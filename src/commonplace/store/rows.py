"""Between rows and values, and the one WHERE clause that keeps every read within its scope."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from commonplace.model import (
    Capability,
    Event,
    Folder,
    Item,
    ItemFilter,
    Job,
    JobState,
    Json,
    Passage,
    Person,
    Relation,
    Role,
    Scope,
    Section,
    Token,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(at: datetime | None) -> int | None:
    return None if at is None else (at - _EPOCH) // timedelta(microseconds=1)


def moment(value: int | None) -> datetime | None:
    return None if value is None else _EPOCH + timedelta(microseconds=value)


def when(value: int) -> datetime:
    return _EPOCH + timedelta(microseconds=value)


def visible(scope: Scope, items: str = "i") -> tuple[str, dict[str, Any]]:
    """The condition on `items AS i` (or another name for it) for what this scope sees, with its values."""
    sql = f"{items}.library_id = :library_id"
    values: dict[str, Any] = {"library_id": scope.library_id}
    if scope.kb_only:
        sql += f" AND {items}.in_kb = 1"
    if scope.folders is not None:
        sql += f" AND {filed(f'{items}.library_id', f'{items}.id')}"
        values["scope_folders"] = sorted(scope.folders)
    return sql, values


def filed(library_id: str, item_id: str) -> str:
    """The condition for an item that lies in the scope's folders: all there is to a scope of folders."""
    return (
        f"EXISTS (SELECT 1 FROM folder_items AS fi WHERE fi.library_id = {library_id} AND fi.item_id = {item_id}"
        " AND fi.folder_id IN :scope_folders)"
    )


def matching(where: ItemFilter, *, probed: bool = False) -> tuple[str, dict[str, Any]]:
    """The condition on `items AS i` for what the filter asks for, with its values; TRUE when it asks for nothing. It goes with
    that of `visible`, which says which library. `probed`: each item is asked for its project or epic, which is better where so
    many are joined to it that the first ones in some order soon fill a page."""
    joined = _PROBED if probed else _JOINED
    conditions: dict[str, tuple[bool, Any]] = {
        # A list that is made once: asked of each item in turn, it took forty times as long on SQLite.
        """i.id IN (SELECT w.item_id FROM folder_items AS w WHERE w.library_id = :library_id
           AND w.folder_id = :w_folder)""": (where.folder_id is not None, where.folder_id),
        "i.in_kb = :w_in_kb": (where.in_kb is not None, int(where.in_kb or 0)),
        "i.archived = :w_archived": (where.archived is not None, int(where.archived or 0)),
        "i.entity_type IN :w_types": (bool(where.entity_types), list(where.entity_types)),
        "NOT i.entity_type IN :w_not_types": (
            bool(where.not_entity_types),
            list(where.not_entity_types),
        ),
        "i.status IN :w_statuses": (bool(where.statuses), list(where.statuses)),
        "NOT i.status IN :w_not_statuses": (bool(where.not_statuses), list(where.not_statuses)),
        "i.priority = :w_priority": (where.priority is not None, where.priority),
        "i.category = :w_category": (where.category is not None, where.category),
        "CASE WHEN i.annotates IS NULL THEN 0 ELSE 1 END = :w_notes": (
            where.notes is not None,
            int(where.notes or 0),
        ),
        "i.visibility = :w_visibility": (where.visibility is not None, where.visibility),
        "i.created_at >= :w_since": (where.since is not None, micros(where.since)),
        "i.created_at <= :w_until": (where.until is not None, micros(where.until)),
        listing("i.tags", "w_tag"): (where.tag is not None, in_list(where.tag)),
        listing("i.languages", "w_language"): (where.language is not None, in_list(where.language)),
        listing("i.assignees", "w_assignee"): (where.assignee is not None, in_list(where.assignee)),
        joined.format(kind="BELONGS_TO", name="w_project"): (
            where.project_id is not None,
            where.project_id,
        ),
        joined.format(kind="PART_OF", name="w_epic"): (where.epic_id is not None, where.epic_id),
        having("w_text", where.text, "i.title", "i.url", "i.tags"): (
            bool(where.text),
            like(where.text),
        ),
    }
    asked = {sql: value for sql, (is_asked, value) in conditions.items() if is_asked}
    return " AND ".join(asked) or "TRUE", {
        _PARAMETER.findall(sql)[0]: value for sql, value in asked.items()
    }


_PARAMETER = re.compile(r":(w_[a-z_]+)")
# From the few that are joined to it, not from all items that might be.
_JOINED = """i.id IN (SELECT r.from_id FROM relations AS r WHERE r.library_id = :library_id AND r.to_id = :{name}
             AND r.kind = '{kind}')"""
_PROBED = """EXISTS (SELECT 1 FROM relations AS r WHERE r.library_id = :library_id AND r.from_id = i.id AND r.kind = '{kind}'
             AND r.to_id = :{name})"""


def listing(column: str, name: str) -> str:
    """Whether a list of texts has what `in_list` made of one. Every element is looked for from the comma before it: a quote
    within a text has none that is not escaped."""
    return f"""instr(replace({column}, '["', ', "'), :{name}) > 0"""


def in_list(value: str | None) -> str:
    """As an element of a list of texts is written in JSON."""
    return ", " + as_json(value)


def having(name: str, text: str | None, *columns: str) -> str:
    """Whether one of these has what `like` made of the text. SQLite's own `lower` knows no letters but English ones; ours does,
    and takes longer."""
    lower = "lowered" if text and not text.isascii() else "lower"
    return (
        "(" + " OR ".join(f"{lower}({column}) LIKE :{name} ESCAPE '!'" for column in columns) + ")"
    )


def like(text: str | None) -> str:
    escaped = (text or "").lower().replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return f"%{escaped}%"


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


as_json = json.JSONEncoder(ensure_ascii=False).encode  # `json.dumps` would make one each time


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
        values[column] = _texts(values[column])
    return Item(
        **values
        | {
            "metadata": _json(values["metadata"]),
            "in_kb": bool(values["in_kb"]),
            "archived": bool(values["archived"]),
            "created_at": when(values["created_at"]),
            "updated_at": when(values["updated_at"]),
            "folders": folders,
        }
    )


def _texts(column: str) -> tuple[str, ...]:
    return () if column == "[]" else tuple(orjson.loads(column))


def _json(column: str) -> Json:
    """By the reader that keeps a number as long as it is."""
    found: Json = {} if column == "{}" else json.loads(column)
    return found


def relation(row: Any) -> Relation:
    return Relation(
        row["library_id"],
        row["from_id"],
        row["kind"],
        row["to_id"],
        row["weight"],
        bool(row["explicit"]),
        when(row["created_at"]),
    )


def section(row: Any, vector: bytes | None = None) -> Section:
    return Section(
        position=row["position"],
        text=row["text"],
        heading=row["heading"],
        extra=row["extra"],
        word_count=row["word_count"],
        key_points=_texts(row["key_points"]),
        locator=_json(row["locator"]),
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
            when(created_at),
            origin,
            added_by,
        )
    )


def person(row: Any) -> Person:
    return Person(row["id"], row["name"], row["email"], when(row["created_at"]))


def folder(row: Any) -> Folder:
    return Folder(
        row["id"], row["library_id"], row["name"], when(row["created_at"]), row["item_count"]
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
        created_at=when(row["created_at"]),
        expires_at=moment(row["expires_at"]),
        revoked_at=moment(row["revoked_at"]),
        last_used_at=moment(row["last_used_at"]),
        role=Role(row["role"]) if row["role"] else None,
    )


def event(row: Any) -> Event:
    return Event(
        row["library_id"],
        row["token_id"],
        row["action"],
        row["target"],
        bool(row["ok"]),
        when(row["at"]),
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
        created_at=when(row["created_at"]),
        updated_at=when(row["updated_at"]),
        run_after=when(row["run_after"]),
    )
