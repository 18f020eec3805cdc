"""A Markdown file with front matter, as a value: reading one, writing one."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from commonplace.errors import Invalid
from commonplace.model import AUTHORED, FullItem, Json, Origin, Relation, parse_time

LONGEST_TITLE = 500
LONGEST_LINE = 120  # of a text that becomes its title
# Fields of an item in the order of a file, which leaves them out where they have this value.
FIELDS: Json = {
    "url": None,
    "kind": "text",
    "category": "",
    "summary": "",
    "key_points": (),
    "archived": False,
    "visibility": "private",
    "auto_tags": (),
}
# Fields of our exports. In other notes they mean something else.
ENTITY_FIELDS: Json = {
    "status": "",
    **{name: AUTHORED[name] for name in AUTHORED if name not in ("tags", *FIELDS)},
    "annotates": None,
    "origin": Origin.YOU,
}
_OPENING = re.compile(r"---[ \t]*\r?\n")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_NO_TEXT = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Note:
    title: str
    text: str
    front: Json = field(default_factory=dict)
    at: datetime | None = None  # of its file

    @property
    def tags(self) -> tuple[str, ...]:
        found = self.front.get("tags") or []
        listed = (
            re.split(r"[,\s]+", found)
            if isinstance(found, str)
            else found
            if isinstance(found, list)
            else [found]
        )
        return tuple(
            dict.fromkeys(
                tag for tag in (str(entry).strip().lstrip("#") for entry in listed) if tag
            )
        )

    @property
    def created_at(self) -> datetime | None:
        named = (self.front.get(key) for key in ("created_at", "created", "date"))
        times = (parse_time(value) for value in named if isinstance(value, str))
        # The outermost years have no other time zones.
        return next((at.astimezone(UTC) for at in times if at and 1 < at.year < 9999), None)

    @property
    def author(self) -> str:
        author = self.front.get("author")
        return author.strip() if isinstance(author, str) else ""

    @property
    def others(self) -> Json:
        """The rest of the front matter, which an export writes again."""
        return {key: value for key, value in self.front.items() if key not in ("title", "tags")}


def read(file: Path) -> Note:
    return parse(decode(file.read_bytes(), file.name), file.stem)


def decode(source: bytes, name: str) -> str:
    try:
        text = source.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Invalid(f"{name} is not UTF-8 text.") from None
    if "\0" in text:
        raise Invalid(f"{name} contains NUL characters, so it is not text.")
    return text


def parse(source: str, name: str) -> Note:
    """Parse a note. Its title comes from the front matter, the first heading, or `name`.

    Front matter that is not YAML is text.
    """
    front: Json = {}
    text = source
    head, rest = split_front_matter(source)
    if head is not None and isinstance(loaded := _yaml(head), dict):
        front, text = storable(loaded), rest
    title = str(front.get("title") or "") or heading(text.lstrip().partition("\n")[0])
    return Note(title[:LONGEST_TITLE] if title.strip() else name, text, front)


def split_front_matter(source: str) -> tuple[str | None, str]:
    """Return the YAML between the two lines of dashes (None: there is none) and what follows."""
    opening = _OPENING.match(source)
    closing = _CLOSING.search(source, opening.end()) if opening else None
    if not opening or not closing:
        return None, source
    return source[opening.end() : closing.start()], source[closing.end() :]


def first_line(text: str) -> str:
    """Return the title of a note that has no other."""
    return text.lstrip().partition("\n")[0].strip("# \t\r")[:LONGEST_LINE].strip()


def heading(line: str) -> str:
    """Return the words of a first-level heading, or an empty string."""
    return " ".join(line[1:].rstrip("# \t\r").split()) if line.startswith(("# ", "#\t")) else ""


def read_fields(front: Json, fields: Json) -> Json:
    """Return the values of these fields of an item, and their own where a file has no such one."""
    return {name: _fitting(front.get(name), default) for name, default in fields.items()}


def _fitting(value: Any, default: Any) -> Any:
    match value, default:
        case list(), tuple():
            return tuple(map(str, value))
        case (True, False) | (str(), str() | None) if value:
            return value
    return default


def render(reading: FullItem, relations: Sequence[Relation], original: Json | None = None) -> str:
    """Render an item as a file. `original`: the file that it was made of, if there is one."""
    item = reading.item
    required = {
        "id": item.id,
        "public_id": item.public_id,
        "title": item.title,
        "entity_type": item.entity_type,
        "tags": item.tags,
        "folders": [folder.name for folder in reading.folders],
        "in_kb": item.in_kb,
        "created_at": item.created_at,
    }
    optional = {
        name: None if value == default else value
        for name, default in (FIELDS | ENTITY_FIELDS).items()
        for value in [getattr(item, name)]
    } | {
        "relations": [
            {"kind": relation.kind, "to": relation.to_id}
            # by likeness, not said by anybody
            | ({} if relation.explicit else {"found": relation.weight})
            for relation in relations
        ],
        "metadata": {
            key: value
            for key, value in item.metadata.items()
            if key not in ("front_matter", "path")
        },
        "original": original,
    }
    front = required | {key: value for key, value in optional.items() if value}
    kept = item.metadata.get("front_matter")
    if isinstance(kept, dict):  # metadata is anybody's: it does not say what is a note
        front = {key: value for key, value in kept.items() if key != "annotates"} | front
    head = yaml.safe_dump(front, allow_unicode=True, sort_keys=False, width=10_000)
    return f"---\n{head}---\n{reading.text}"


def storable(value: Any) -> Any:
    """Convert YAML values for JSON and databases: dates, sets, other keys, NUL."""
    if isinstance(value, dict):
        return {storable(str(key)): storable(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set):
        return [storable(entry) for entry in value]
    if isinstance(value, str) and _NO_TEXT.search(value):
        raise Invalid(
            "The front matter contains NUL characters or lone surrogates, so it is not text."
        )
    return value if isinstance(value, str | int | float | bool | None) else str(value)


class _Loader(yaml.SafeLoader):
    """Without aliases: a few lines of them unfold to more than any memory holds."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias")
        return super().compose_node(parent, index)


# In C and several times as fast, for text without aliases and escapes. It has no limit of nesting
# but the stack's end.
_PlainLoader = getattr(yaml, "CSafeLoader", _Loader)
_SHALLOW = 10_000  # characters


def _yaml(source: str) -> Any:
    is_plain = len(source) <= _SHALLOW and "*" not in source and "\\" not in source
    try:
        return (_PlainLoader if is_plain else _Loader)(source).get_single_data()
    except (yaml.YAMLError, ValueError, RecursionError):  # ValueError: a date such as 2026-13-45
        return None
