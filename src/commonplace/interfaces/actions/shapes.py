"""Shapes of answers: the names of their fields, and how each is read off a value of the core.

A shape names attributes; their types come from the value's class, so that a field is declared
where the value is. Only fields that differ say how.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from importlib import import_module
from inspect import getattr_static
from operator import attrgetter, itemgetter
from typing import Any, get_type_hints

from commonplace.model import Json, moment
from commonplace.settings import Settings

NOTHING: list[Any] = []
# Fields that clients count on, so MCP answers have them also when they are empty.
ALWAYS = frozenset(
    "folder_id saved_at source_url conflicts similar tags key_points sections related_disks answer "
    "next_section degraded weak url items hits results disks entities candidates content "
    "published_at cycles folders transcription_status statements difference sentences "
    "citations closest thread_id".split()
)


@dataclass(frozen=True, slots=True)
class Call:
    """What an answer may depend on beside the value: the input and the settings."""

    args: Any
    settings: Settings


Get = Callable[[Any, Call], Any]


def to_the_second(at: datetime) -> str:
    return moment(at)[:19] + "Z"


def plain(value: Any) -> Any:
    """Return a value of the model as JSON."""
    convert = _PLAIN.get(type(value))
    return value if convert is None else convert(value)


# By exact type: an answer has hundreds of values, most of which are texts and numbers.
_PLAIN: dict[type, Callable[[Any], Any]] = {
    datetime: moment,
    frozenset: sorted,
    set: sorted,
    tuple: list,
}


def compact(answer: Any) -> Any:
    """Leave out nulls and empty lists, but for fields that clients count on."""
    if isinstance(answer, dict):
        return {
            name: compact(value)
            if isinstance(value, (dict, list)) and name != "metadata"  # that is the user's own
            else value
            for name, value in answer.items()
            if value or name in ALWAYS or (value is not None and value != NOTHING)
        }
    return [compact(each) for each in answer] if isinstance(answer, list) else answer


@dataclass(frozen=True, slots=True)
class Field:
    """A field that is not simply an attribute: its type, how to get it, and help."""

    kind: Any  # a type, a shape, or a list with one shape
    get: Get | str | int  # a function, the path of an attribute, or an index
    help: str = ""
    optional: bool = False  # left out where `get` returns None
    null: bool = False  # a shape that may be null


class Shape:
    """A JSON object made of a value. Called with a value and the call, it returns the object."""

    def __init__(
        self,
        name: str,
        of: type | str | None,
        names: str = "",
        /,
        *,
        base: "Shape | None" = None,
        at: str | int = "",
        **special: Field | str,
    ) -> None:
        """`of`: the class of the value, or its path, imported only to describe the shape.

        `names`: its attributes; `special`: other fields, or names of attributes with another name.
        `base`: a shape whose fields come first, of the value's attribute `at`.
        """
        self.name, self._of, self._base = name, of, base
        self._part = _reader(at)
        self._fields: dict[str, Field | str] = {**{n: n for n in names.split()}, **special}
        # A base of the same value is read with it.
        flat = base is not None and at == "" and base._nested is None
        self._nested: Shape | None = None if flat else base
        self._all: dict[str, Field | str] = {**(base._all if base and flat else {}), **self._fields}
        # Attributes are read all at once, which is most of the time that an answer takes.
        paths = {
            key: path
            for key, field in self._all.items()
            if (path := field if isinstance(field, str) else field.get) and isinstance(path, str)
        }
        self._attributes = list(paths)
        self._read = attrgetter(*paths.values()) if paths else None
        self._getters = [
            (key, _getter(field), isinstance(field, Field) and field.optional)
            for key, field in self._all.items()
            if key not in paths
        ]
        self._blank: Json = dict.fromkeys(self._all)

    def __call__(self, value: Any, call: Call) -> Json:
        answer = self._blank.copy()
        if self._nested is not None:
            answer = self._nested(self._part(value), call) | answer
        if self._read is not None:
            read = self._read(value)
            values = read if len(self._attributes) > 1 else (read,)
            answer.update(zip(self._attributes, map(plain, values), strict=True))
        for name, get, optional in self._getters:
            answer[name] = get(value, call)
            if optional and answer[name] is None:
                del answer[name]
        return answer

    @cached_property
    def properties(self) -> dict[str, Json]:
        """The JSON schemas of the fields, in which other shapes are references."""
        base = self._base.properties if self._base is not None else {}
        return base | {name: self._schema(field) for name, field in self._fields.items()}

    @cached_property
    def required(self) -> list[str]:
        base = self._base.required if self._base is not None else []
        left_out = {name for name, _, optional in self._getters if optional}
        return base + [name for name in self._fields if name not in left_out]

    @property
    def parts(self) -> "list[Shape]":
        """The shapes that this one refers to."""
        kinds = [field.kind for field in self._fields.values() if isinstance(field, Field)]
        named = [kind[0] if isinstance(kind, list) else kind for kind in kinds]
        base = self._base.parts if self._base is not None else []
        return base + [kind for kind in named if isinstance(kind, Shape)]

    @property
    def reference(self) -> Json:
        return {"$ref": f"#/components/schemas/{self.name}"}

    @property
    def schema(self) -> Json:
        return {"type": "object", "properties": self.properties, "required": self.required}

    def _schema(self, field: Field | str) -> Json:
        if isinstance(field, str):
            return type_schema(_type_of(self._of, field))
        kind = field.kind
        if isinstance(kind, Shape):
            schema = kind.reference
            schema = {"anyOf": [schema, {"type": "null"}]} if field.null else schema
        elif isinstance(kind, list):
            schema = {"type": "array", "items": kind[0].reference}
        else:
            schema = type_schema(kind)
        return schema | ({"description": field.help} if field.help else {})


def within(path: str, names: str) -> dict[str, Any]:
    """Attributes of an attribute, under their own names."""
    return {name: f"{path}.{name}" for name in names.split()}


def many(shape: Shape, path: str | int, help: str = "") -> Field:
    """A list of values, each in a shape."""
    get = _reader(path)
    return Field([shape], lambda value, call: [shape(one, call) for one in get(value)], help)


def one(shape: Shape, path: str | int, help: str = "") -> Field:
    """A value in a shape, or null."""
    get = _reader(path)

    def read(value: Any, call: Call) -> Json | None:
        found = get(value)
        return None if found is None else shape(found, call)

    return Field(shape, read, help, null=True)


def said(kind: Any, path: str | int, help: str = "") -> Field:
    """An attribute with another type or with help."""
    return Field(kind, path, help)


def _getter(field: Field | str) -> Get:
    get = field if isinstance(field, str) else field.get
    if callable(get):
        return get
    read = _reader(get)
    return lambda value, call: plain(read(value))


def _reader(path: str | int) -> Callable[[Any], Any]:
    """Return a reader of an attribute, or of an entry of a tuple; "" is the value itself."""
    if path == "":
        return lambda value: value
    return itemgetter(path) if isinstance(path, int) else attrgetter(path)


def type_schema(kind: Any) -> Json:
    """Return the JSON schema of a type, without the names that pydantic invents."""
    from pydantic import TypeAdapter

    schema = TypeAdapter(kind).json_schema(mode="serialization")
    schema.pop("title", None)
    return schema


def _type_of(of: type | str | None, path: str) -> Any:
    """Return the type of an attribute, also of one that a property computes."""
    kind: Any = of
    if isinstance(of, str):
        module, _, name = of.rpartition(".")
        kind = getattr(import_module(module), name)
    for name in path.split("."):
        hints = get_type_hints(kind)
        if name not in hints:
            attribute = getattr_static(kind, name)
            hints = {name: get_type_hints(attribute.fget)["return"]}
        kind = hints[name]
    return kind


# -- answers that many actions share

OK = Shape("Ok", None, ok=Field(bool, lambda value, call: True))
# REST adds it to lists that have pages.
NEXT = Field(str | None, lambda value, call: None, "Path of the next page", optional=True)


class Listing(Shape):
    """A list of values in a shape, with their total; `paged` ones say which page it is."""

    def __init__(self, key: str, shape: Shape, *, paged: bool = False, name: str = "") -> None:
        more: dict[str, Any] = {key: Field([shape], key), "total": said(int, "total")}
        if paged:
            pages = {"page": int, "per_page": int, "has_more": bool}
            more |= {name: said(kind, name) for name, kind in pages.items()} | {"next": NEXT}
        super().__init__(name or f"{shape.name}List", None, **more)
        self._key, self._shape, self.paged = key, shape, paged

    def __call__(self, value: Any, call: Call) -> Json:
        """Take a list, or a list and the total. REST adds `next`, the address of a page."""
        found, total = value if isinstance(value, tuple) else (value, len(value))
        answer: Json = {self._key: [self._shape(each, call) for each in found], "total": total}
        if self.paged:
            page, per_page = call.args.page, call.args.per_page
            answer |= {"page": page, "per_page": per_page, "has_more": page * per_page < total}
        return answer
