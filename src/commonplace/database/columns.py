"""Python values as column values: times as microseconds, lists and objects as JSON."""

import json
from datetime import UTC, datetime, timedelta

import orjson

from commonplace.model import Json

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)


def from_micros(value: int) -> datetime:
    return _EPOCH + timedelta(microseconds=value)


as_json = json.JSONEncoder(ensure_ascii=False).encode  # `json.dumps` would make one each time


def texts(column: str) -> tuple[str, ...]:
    return () if column == "[]" else tuple(orjson.loads(column))


def json_value(column: str) -> Json:
    """By the reader that keeps a number as long as it is."""
    found: Json = {} if column == "{}" else json.loads(column)
    return found
