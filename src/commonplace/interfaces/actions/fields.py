"""Fields of inputs, each declared once: type, limits, help, and its name at the command line."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import EnumType
from typing import Annotated, Any, ClassVar, Literal, Optional, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    field_validator,
)
from pydantic.fields import FieldInfo

from commonplace.core.entities.validation import (
    LONGEST_CONTENT,
    LONGEST_LIST,
    LONGEST_TITLE,
    LONGEST_WORD,
    PRIORITIES,
)
from commonplace.errors import Invalid
from commonplace.interfaces.actions.validation_messages import error_sentence
from commonplace.model import (
    INTENTS,
    Audience,
    DiskScope,
    EntityType,
    ExploreMode,
    Json,
    Kind,
    Mode,
    Role,
)

UPLOADS = "binary files (PDF, images, audio, video) are uploaded through REST /api/v1/uploads/*"
_SURROGATE = re.compile("[\ud800-\udfff]")


class Input(BaseModel):
    """Base of all inputs: no coercion, no unknown fields."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, defer_build=True)
    aliases: ClassVar[Mapping[str, str]] = {}  # other names that agents use for a field

    @field_validator("*")
    @classmethod
    def _check_text(cls, value: Any) -> Any:
        return check_text(value)


Mark = TypeVar("Mark")
Parsed = TypeVar("Parsed", bound=Input)


def parse(
    shape: type[Parsed],
    values: Json,
    *,
    as_text: bool = False,
    prefix: str = "",
    name: Callable[[str], str] = "`{}`".format,
    hidden: Collection[str] = (),
) -> Parsed:
    """Return the values as an input, or raise Invalid with a sentence for each mistake.

    `as_text`: values come from a query or the command line, where "2" is a number. `name`: returns
    the name of a field as the interface writes it. `hidden`: fields that are not told as known.
    """
    for alias in shape.aliases.keys() & values.keys():
        if shape.aliases[alias] not in values:
            values = {shape.aliases[alias] if key == alias else key: values[key] for key in values}
    try:
        return shape.model_validate(values, strict=False if as_text else None)
    except ValidationError as error:
        known = [field for field in shape.model_fields if field not in hidden]
        details = error.errors(include_url=False, include_input=False)[:10]
        sentences = dict.fromkeys(  # entries of a list share theirs
            error_sentence(
                detail,
                name(str(detail["loc"][0])[:LONGEST_WORD]) if detail["loc"] else "",
                f"the fields are: {', '.join(known)}" if known else "there are none",
            )
            for detail in details
        )
        first = next((str(detail["loc"][0]) for detail in details if detail["loc"]), "")
        raise Invalid(prefix + " ".join(sentences), field=first) from None


class Patch(Input):
    """Base of changes: fields that are left out do not change, null clears a field."""

    kept: ClassVar[frozenset[str]] = frozenset()  # fields that say what to change, and when
    lists: ClassVar[frozenset[str]] = frozenset()  # fields that null makes empty

    @property
    def changes(self) -> Json:
        given = [name for name in type(self).model_fields if name in self.model_fields_set]
        changes = {name: frozen(getattr(self, name)) for name in given if name not in self.kept}
        emptied = {name for name in self.lists if name in changes and changes[name] is None}
        return changes | dict.fromkeys(emptied, ())


def frozen(value: Any) -> Any:
    """Return a list as a tuple, as values of the model have it."""
    return tuple(value) if isinstance(value, list) else value


def is_list(field: FieldInfo) -> bool:
    return "list[" in str(field.annotation)


def patch_of(name: str, base: type[Input], fields: str, **more: tuple[Any, Any]) -> type[Patch]:
    """Derive the input of a PATCH from the named fields of another: all optional, no defaults.

    `more` are fields that are not changes, such as the id, as pydantic's (type, default).
    """
    shown = {}
    for field in fields.split():
        info = base.model_fields[field]
        kind = info.rebuild_annotation()
        shown[field] = (Optional[kind] if is_list(info) else kind, _left_out(info))  # noqa: UP045
    fields_of: Any = {**shown, **more}
    model = create_model(name, __base__=Patch, **fields_of)
    model.kept = frozenset(more)
    model.lists = frozenset(field for field in shown if is_list(base.model_fields[field]))
    model.aliases = {alias: to for alias, to in base.aliases.items() if to in shown}
    return model


def _left_out(info: FieldInfo) -> Any:
    """Declare a field that changes nothing when it is left out: its schema has no default."""

    def forget_default(schema: Json) -> None:
        schema.pop("default", None)
        if isinstance(info.json_schema_extra, dict):
            schema.update(info.json_schema_extra)

    return Field(default=None, description=info.description, json_schema_extra=forget_default)


@dataclass(frozen=True, slots=True)
class Cli:
    """How the command line takes a field: its name there, and its peculiarities."""

    name: str = ""  # `--due` in the place of `--due-date`, or the name of an argument
    argument: bool = False  # by position instead of by name
    stdin: bool = False  # `-` reads standard input
    hidden: bool = False  # not at the command line
    null: str | None = None  # the text that stands for null, beside '' where a field is changed


@dataclass(frozen=True, slots=True)
class Display:
    """How forms and tables show a field."""

    label: str = ""  # `Due` in the place of `Due date`
    type: str = ""  # of the input in a form


def mark(shape: type[Input], name: str, default: Mark) -> Mark:
    """Return how a field is marked with a class such as `Cli`; the default if it is not."""
    info = shape.model_fields[name]
    parts = get_args(info.annotation)  # of an optional field, the mark may be within
    inner = [each for part in parts for each in getattr(part, "__metadata__", ())]
    return [each for each in (default, *inner, *info.metadata) if isinstance(each, type(default))][
        -1
    ]


def label(shape: type[Input], name: str) -> str:
    """Return the name of a field for people."""
    return mark(shape, name, Display()).label or name.replace("_", " ").capitalize()


def check_text(value: Any) -> Any:
    """Refuse NUL and lone surrogates, which neither database can store."""
    for text in value if isinstance(value, list) else [value]:
        if not isinstance(text, str):
            continue
        if "\0" in text:
            raise ValueError("contains a NUL character; remove it")
        if not text.isascii() and _SURROGATE.search(text):
            raise ValueError("is not valid Unicode (a lone surrogate); send well-formed text")
    return value


def _not_blank(text: object) -> object:
    if isinstance(text, str) and not text.strip():
        raise ValueError("must not be blank")
    return text


def _whole_number(number: object) -> object:
    """Accept 8.0 as 8: JSON has only one kind of number."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _any_number(number: object) -> object:
    return float(number) if type(number) is int else number


def _web_address(url: str) -> str:
    if url.lower().startswith(("http://", "https://")):
        return url
    if url.lower().startswith(("data:", "file:", "blob:")):
        raise ValueError(f"must be an http:// or https:// address; {UPLOADS}")
    raise ValueError("must be an http:// or https:// address")


def _refuse_document(value: object) -> object:
    if value == "document":
        raise ValueError(
            "cannot be document: add_to_knowledge and uploads keep documents; here it is one of "
            f"{', '.join(KNOWLEDGE_TYPES)}"
        )
    return value


def _empty_if_null(value: object) -> object:
    """Turn null into an empty text, so that both are refused in the same words."""
    return "" if value is None else value


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of some texts, as a validator; members of an enumeration come as such. It comes first."""

    values: Iterable[str]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        known: Any = Literal[tuple(str(value) for value in self.values)]
        if isinstance(self.values, EnumType):
            known = Annotated[known, AfterValidator(self.values)]
        return handler(known)


def chars(least: int, most: int, help: str = "", **more: Any) -> Any:
    """Bound a text's length. Where something must be there, blanks are not enough."""
    if least == 1:
        more.setdefault("json_schema_extra", {"pattern": r"\S"})
    return Field(min_length=least, max_length=most, description=help or None, **more)


def number(least: float, most: float, help: str = "", **more: Any) -> Any:
    return Field(ge=least, le=most, description=help or None, **more)


def about(help: str, **more: Any) -> Any:
    return Field(description=help, **more)


NOT_BLANK = BeforeValidator(_not_blank)
WHOLE = BeforeValidator(_whole_number)
NUMBER = BeforeValidator(_any_number)
KNOWLEDGE_TYPES = tuple(kind.value for kind in EntityType if kind is not EntityType.DOCUMENT)

# -- words

Title = Annotated[str, chars(1, 500), NOT_BLANK]
Name = Annotated[str, chars(1, 200), NOT_BLANK]
Email = Annotated[str, chars(3, 320, pattern=r"^[^@\s]+@[^@\s]+$"), Display(type="email")]
Query = Annotated[
    str,
    chars(1, 10_000, "What to search for, in natural language or exact words"),
    NOT_BLANK,
    Cli(argument=True),
]
Word = Annotated[str, chars(1, LONGEST_WORD), NOT_BLANK]
Words = Annotated[
    list[Word],
    Field(max_length=LONGEST_LIST),
    AfterValidator(lambda words: list(dict.fromkeys(words))),
]
Reason = Annotated[str, chars(1, 2_000), NOT_BLANK]
LongText = Annotated[str, chars(1, LONGEST_CONTENT), NOT_BLANK]
WebAddress = Annotated[
    str,
    Field(max_length=8192, json_schema_extra={"pattern": "^[Hh][Tt][Tt][Pp][Ss]?://"}),
    AfterValidator(_web_address),
]
# Missing and empty ones are refused in the words of the contract, so the core checks them.
EntityTitle = Annotated[
    str,
    BeforeValidator(_empty_if_null),
    about("Short title, up to 200 characters", json_schema_extra={"maxLength": LONGEST_TITLE}),
    Cli(argument=True),
]
EntityContent = Annotated[
    str,
    BeforeValidator(_empty_if_null),
    about(
        "The whole text, up to 50,000 characters",
        json_schema_extra={"maxLength": LONGEST_CONTENT},
    ),
    Cli(argument=True, stdin=True),
]
Category = Annotated[
    str, Field(max_length=LONGEST_WORD, description="Domain category, such as debugging")
]
Tags = Annotated[Words, about("Tags"), Cli("--tag")]
Languages = Annotated[Words, about("Programming languages"), Cli("--language")]
Technologies = Annotated[Words, about("Technologies involved"), Cli("--technology")]
Assignees = Annotated[
    Words, about("Names of the assignees"), Cli("--assignee"), Display("Assignees")
]
Metadata = Annotated[Json, about("Additional structured data"), Cli(hidden=True)]
Statuses = Annotated[str, chars(0, 200, "One or several: `todo,doing`")]

# -- what a call is about

Id = Annotated[str, chars(1, 200), Cli(argument=True)]
ItemId = Annotated[Id, about("An item's id: UUID, public_id or `<entity_type>_<public_id>`")]
Reference = Annotated[str, chars(1, 200), NOT_BLANK]
References = Annotated[list[Reference], Field(max_length=LONGEST_LIST)]
Project = Annotated[str, chars(1, 200, "Project: id, title or repository URL")]
# Tasks without a project are refused in the words of the contract.
ProjectOfNew = Annotated[
    str,
    about(
        "Project (id, title or repository URL); required for tasks and epics",
        max_length=200,
        json_schema_extra={"minLength": 1},
    ),
]
RelatedTo = Annotated[
    References,
    about("Ids to link to; supersedes:<id>, contradicts:, requires: and supports: say how"),
]
DependsOn = Annotated[References, about("Ids of tasks that must be done first")]
ExpectedRevision = Annotated[
    Annotated[int, number(1, 2**31 - 1), WHOLE] | None,
    about("Change it only if it is still at this revision"),
    Cli(hidden=True),
]

# -- choices

EntityTypeName = Annotated[
    str, OneOf(KNOWLEDGE_TYPES), BeforeValidator(_refuse_document), Cli("--type")
]
AnyTypeNames = Annotated[
    list[Annotated[str, OneOf(EntityType)]],
    Field(max_length=20, description="Entity types; document: saved pages, texts and files"),
    Cli("--type"),
]
Priority = Annotated[str, OneOf(PRIORITIES)]
Intent = Annotated[str, OneOf(INTENTS)]
ModeName = Annotated[str, OneOf(Mode)]
KindName = Annotated[str, OneOf(Kind)]
ExploreModeName = Annotated[str, OneOf(ExploreMode)]
DiskScopeName = Annotated[str, OneOf(DiskScope)]
AudienceName = Annotated[str, OneOf(Audience)]
RoleName = Annotated[str, OneOf(Role)]
InKb = Annotated[bool, about("Whether it is searchable"), Cli("--kb/--no-kb")]

# -- dates and amounts

DueDate = Annotated[
    str, chars(0, 40, "ISO date: YYYY-MM-DD"), Cli("--due"), Display("Due", type="date")
]
Since = Annotated[str, chars(0, 40, "Only newer ones: ISO date or time, or an age: 12h, 7d, 2w")]
Day = Annotated[str, chars(0, 40, "ISO date or time")]
Hours = Annotated[float, Field(gt=0, le=100_000), NUMBER]
Page = Annotated[int, number(1, 1_000_000, "Page number"), WHOLE]
PerPage = Annotated[int, number(1, 100, "Entries per page"), WHOLE, Cli("--limit")]
Offset = Annotated[int, number(0, 1_000_000, "Number to skip"), WHOLE]
FromSection = Annotated[int, number(0, 1_000_000, "Section to begin with"), WHOLE, Cli(hidden=True)]
MaxChars = Annotated[
    int,
    number(200, 500_000, "Return whole sections up to this many characters"),
    WHOLE,
    Cli(hidden=True),
]

# Fields whose names and limits say enough to agents; their help is for people.
CLEAR = frozenset(
    "query limit offset title content category languages language tags technologies metadata "
    "assignees assignee goal token_budget in_kb item_id id disk_id content_max_chars "
    "include_content depth source_title check_conflicts skip_conflicts conflict_threshold tag "
    "from_section project priority repository_url kind url text scope intent max_chars author "
    "published_after published_before text_language valid_until review_by".split()
)
