"""Answers about earlier versions of an item."""

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from commonplace import model
from commonplace.core.items.versions import Sign, VersionDiff
from commonplace.interfaces.actions.items import Moment, moment


class Version(TypedDict):
    revision: Annotated[int, Field(description="That the item had while it said this")]
    title: str
    word_count: int
    replaced_at: Moment


class VersionInFull(Version):
    text: str


class Versions(TypedDict):
    versions: list[Version]


class DiffLine(TypedDict):
    sign: Annotated[
        Sign, Field(description="Went, came, stayed, or: lines that stayed are left out")
    ]
    text: str


class Difference(TypedDict):
    revision: int
    followed_by: Annotated[
        int | None,
        Field(description="Revision that it is compared with; null: what the item says now"),
    ]
    lines: Annotated[
        list[DiffLine] | None, Field(description="null: the texts are too long to be compared")
    ]


def version(value: model.Version) -> Version:
    return {
        "revision": value.revision,
        "title": value.title,
        "word_count": value.word_count,
        "replaced_at": moment(value.replaced_at),
    }


def version_in_full(value: model.Version) -> VersionInFull:
    return {**version(value), "text": value.text}


def versions(values: Iterable[model.Version]) -> Versions:
    return {"versions": [version(value) for value in values]}


def difference(value: VersionDiff) -> Difference:
    lines: list[DiffLine] | None = (
        None
        if value.lines is None
        else [
            {"sign": line.sign, "text": "".join(text for text, _ in line.parts)}
            for line in value.lines
        ]
    )
    return {
        "revision": value.version.revision,
        "followed_by": value.followed_by.revision if value.followed_by else None,
        "lines": lines,
    }
