"""Between rows and values, and the one WHERE clause that keeps every read within its scope."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from commonplace.model import Capability, Event, Folder, Item, Job, JobState, Passage, Person, Scope, Section, Token

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(at: datetime | None) -> int | None:
    return None if at is None else (at - _EPOCH) // timedelta(microseconds=1)


def moment(value: int | None) -> datetime | None:
    return None if value is None else _EPOCH + timedelta(microseconds=value)


def when(value: int) -> datetime:
    return _EPOCH + timedelta(microseconds=value)


def visible(scope: Scope) -> tuple[str, dict[str, Any]]:
    """The condition on `items AS i` for what this scope sees, with its values."""
    sql = "i.library_id = :library_id"
    values: dict[str, Any] = {"library_id": scope.library_id}
    if scope.kb_only:
        sql += " AND i.in_kb = 1"
    if scope.folders is not None:
        sql += (" AND EXISTS (SELECT 1 FROM folder_items AS f WHERE f.library_id = i.library_id"
                " AND f.item_id = i.id AND f.folder_id IN :scope_folders)")
        values["scope_folders"] = sorted(scope.folders)
    return sql, values


ITEM_COLUMNS = ("library_id", "id", "public_id", "content_id", "entity_type", "kind", "title", "url", "summary", "key_points",
                "tags", "category", "visibility", "in_kb", "archived", "transcription_status", "metadata", "revision",
                "word_count", "created_by", "created_at", "updated_at")
SELECT_ITEM = "SELECT " + ", ".join(f"i.{c}" for c in ITEM_COLUMNS) + " FROM items AS i"
INSERT_ITEM = (f"INSERT INTO items ({', '.join(ITEM_COLUMNS)}) VALUES ({', '.join(':' + c for c in ITEM_COLUMNS)})")


def item_values(item: Item) -> dict[str, Any]:
    return {column: column_value(column, getattr(item, column)) for column in ITEM_COLUMNS}


def column_value(column: str, value: Any) -> Any:
    if column in ("key_points", "tags", "metadata"):
        return json.dumps(value, ensure_ascii=False)
    if column in ("in_kb", "archived"):
        return int(value)
    return micros(value) if isinstance(value, datetime) else value


def item(row: Any, folders: tuple[str, ...] = ()) -> Item:
    values = {column: row[column] for column in ITEM_COLUMNS}
    values |= {
        "key_points": tuple(json.loads(row["key_points"])), "tags": tuple(json.loads(row["tags"])),
        "metadata": json.loads(row["metadata"]), "in_kb": bool(row["in_kb"]), "archived": bool(row["archived"]),
        "created_at": when(row["created_at"]), "updated_at": when(row["updated_at"]), "folders": folders,
    }
    return Item(**values)


def section(row: Any, vector: bytes | None = None) -> Section:
    return Section(position=row["position"], text=row["text"], heading=row["heading"], extra=row["extra"],
                   word_count=row["word_count"], key_points=tuple(json.loads(row["key_points"])),
                   locator=json.loads(row["locator"]), vector=vector)


def passage(row: Any) -> Passage:
    return Passage(section_id=row["id"], item_id=row["item_id"], public_id=row["public_id"],
                   entity_type=row["entity_type"], title=row["title"], url=row["url"], position=row["position"],
                   heading=row["heading"], text=row["text"], word_count=row["word_count"],
                   key_points=tuple(json.loads(row["key_points"])), locator=json.loads(row["locator"]))


def person(row: Any) -> Person:
    return Person(row["id"], row["name"], row["email"], when(row["created_at"]))


def folder(row: Any) -> Folder:
    return Folder(row["id"], row["library_id"], row["name"], when(row["created_at"]), row["item_count"])


def token(row: Any, folders: frozenset[str]) -> Token:
    return Token(id=row["id"], library_id=row["library_id"], person_id=row["person_id"], name=row["name"],
                 capabilities=frozenset(Capability(c) for c in row["capabilities"].split()),
                 folders=None if row["whole_library"] else folders, kb_only=bool(row["kb_only"]),
                 created_at=when(row["created_at"]), expires_at=moment(row["expires_at"]),
                 revoked_at=moment(row["revoked_at"]), last_used_at=moment(row["last_used_at"]))


def event(row: Any) -> Event:
    return Event(row["library_id"], row["token_id"], row["action"], row["target"], bool(row["ok"]), when(row["at"]))


def job(row: Any) -> Job:
    return Job(id=row["id"], library_id=row["library_id"], item_id=row["item_id"], kind=row["kind"],
               state=JobState(row["state"]), attempts=row["attempts"], error=row["error"], progress=row["progress"],
               payload=json.loads(row["payload"]), created_at=when(row["created_at"]),
               updated_at=when(row["updated_at"]), run_after=when(row["run_after"]))
