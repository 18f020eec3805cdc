"""Edit one entry of a JSON text, which may have comments, and leave every other character alone."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

_SPACE = " \t\r\n"
_DECODER = json.JSONDecoder()


@dataclass(slots=True)
class _Node:
    value: Any
    start: int
    end: int
    key: str | None = None  # of a member of an object, which starts where its key does
    value_start: int = 0
    entries: list["_Node"] = field(default_factory=list)


def loads(text: str) -> Any:
    """Parse JSON that may have comments and trailing commas. Raises ValueError."""
    return _parse(text).value


def put(text: str, path: Sequence[str], value: Any) -> str:
    """Set the member at `path`, with the objects on the way to it."""
    text = text if text.strip() else "{}\n"
    found, rest = _walk(text, path)
    if rest:
        for key in reversed(rest[1:]):
            value = {key: value}
        if not isinstance(found.value, dict):
            raise ValueError(f"{'.'.join(path)}: what it belongs to is not an object")
        return _insert(text, found, f"{json.dumps(rest[0])}: ", value)
    return text if found.value == value else _replace(text, found, value)


def put_into_list(text: str, path: Sequence[str], value: Any, ours: Callable[[Any], bool]) -> str:
    """Set the element of the list at `path` that is ours, or append it."""
    text = text if text.strip() else "{}\n"
    found, rest = _walk(text, path)
    if rest:
        return put(text, path, [value])
    if not isinstance(found.value, list):
        raise ValueError(f"{'.'.join(path)} is not a list")
    for entry in found.entries:
        if ours(entry.value):
            return text if entry.value == value else _replace(text, entry, value)
    return _insert(text, found, "", value)


def remove(text: str, path: Sequence[str]) -> str:
    """Remove the member at `path`, if it is there."""
    found, rest = _walk(text, path[:-1]) if text.strip() else (None, path)
    if rest or found is None:
        return text
    return _remove(text, found, lambda entry: entry.key == path[-1])


def remove_from_list(text: str, path: Sequence[str], ours: Callable[[Any], bool]) -> str:
    """Remove the elements of the list at `path` that are ours."""
    found, rest = _walk(text, path) if text.strip() else (None, path)
    if rest or found is None or not isinstance(found.value, list):
        return text
    return _remove(text, found, lambda entry: ours(entry.value))


# -- reading


def _parse(text: str) -> _Node:
    try:
        node = _value(text, _skip(text, int(text.startswith("\ufeff"))))
    except (IndexError, RecursionError) as error:
        raise ValueError("is cut off or nested too deeply") from error
    if _skip(text, node.end) != len(text):
        raise ValueError(f"has more text after its end (character {node.end})")
    return node


def _skip(text: str, at: int) -> int:
    """Return where whitespace and comments end."""
    while True:
        while at < len(text) and text[at] in _SPACE:
            at += 1
        if text.startswith("//", at):
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
        elif text.startswith("/*", at):
            at = text.index("*/", at + 2) + 2
        else:
            return at


def _value(text: str, at: int) -> _Node:
    if text[at] not in "{[":
        value, end = _DECODER.raw_decode(text, at)
        return _Node(value, at, end, value_start=at)
    is_object = text[at] == "{"
    node = _Node({} if is_object else [], at, at, value_start=at)
    at = _skip(text, at + 1)
    while text[at] not in "}]":
        entry = _member(text, at) if is_object else _value(text, at)
        node.entries.append(entry)
        if is_object:
            node.value[entry.key] = entry.value
        else:
            node.value.append(entry.value)
        at = _skip(text, entry.end)
        if text[at] == ",":
            at = _skip(text, at + 1)
        elif text[at] not in "}]":
            raise ValueError(f"needs a comma at character {at}")
    if (text[at] == "}") != is_object:
        raise ValueError(f"has a wrong bracket at character {at}")
    node.end = at + 1
    return node


def _member(text: str, start: int) -> _Node:
    if text[start] != '"':
        raise ValueError(f"needs a key at character {start}")
    key, end = _DECODER.raw_decode(text, start)
    end = _skip(text, end)
    if text[end] != ":":
        raise ValueError(f"needs a colon at character {end}")
    node = _value(text, _skip(text, end + 1))
    node.key, node.start = key, start
    return node


def _walk(text: str, path: Sequence[str]) -> tuple[_Node, Sequence[str]]:
    """Return the deepest node of the path that is there, and the keys that are missing."""
    node = _parse(text)
    for depth, key in enumerate(path):
        found = [entry for entry in node.entries if entry.key == key]
        if not found:
            return node, path[depth:]
        node = found[-1]
    return node, []


# -- writing


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _margin(text: str, at: int) -> str:
    """Return the whitespace that the line of a position begins with."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    """Return what one level is indented by."""
    for line in text.splitlines():
        if margin := line[: len(line) - len(line.lstrip(" \t"))]:
            return "\t" if margin[0] == "\t" else margin
    return "  "


def _rendered(text: str, value: Any, margin: str) -> str:
    lines = json.dumps(value, indent=_unit(text), ensure_ascii=False).split("\n")
    return f"{_newline(text)}{margin}".join(lines)


def _replace(text: str, node: _Node, value: Any) -> str:
    new = _rendered(text, value, _margin(text, node.start))
    return text[: node.value_start] + new + text[node.end :]


def _insert(text: str, parent: _Node, key: str, value: Any) -> str:
    close = parent.end - 1
    at = len(text[:close].rstrip(_SPACE))  # after a comment too, which then stays with its entry
    outer = _margin(text, close)
    margin = outer + _unit(text)
    comma = 0
    if parent.entries:
        last = parent.entries[-1]
        own = _margin(text, last.start)
        margin = own if "\n" in text[parent.start : last.start] else margin
        comma = 0 if text[_skip(text, last.end)] == "," else last.end
    new = _newline(text) + margin + key + _rendered(text, value, margin)
    if "\n" not in text[at:close]:
        new += _newline(text) + outer
    if comma:
        return text[:comma] + "," + text[comma:at] + new + text[at:]
    return text[:at] + new + text[at:]


def _remove(text: str, parent: _Node, ours: Callable[[_Node], bool]) -> str:
    for index in reversed(range(len(parent.entries))):
        entry = parent.entries[index]
        if not ours(entry):
            continue
        start, end = entry.start, entry.end
        after = _skip(text, end)
        had_comma = text[after] == ","
        end = after + 1 if had_comma else end
        start = len(text[:start].rstrip(" \t"))
        rest_of_line = text[end:].split("\n", 1)[0]
        if text[start - 1] == "\n" and not rest_of_line.strip():
            start -= 2 if text[start - 2 : start] == "\r\n" else 1
        text = text[:start] + text[end:]
        if not had_comma and index:  # the one before it is the last now
            comma = _skip(text, parent.entries[index - 1].end)
            if text[comma : comma + 1] == ",":
                text = text[:comma] + text[comma + 1 :]
    return text
