"""What the server and its reading processes tell each other: JSON, because a process that a hostile file took over
must not be able to make the server run anything, as it could with pickles."""

import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from commonplace.adapters.extract.input_file import LONGEST_TEXT, Caps, Source, bounded
from commonplace.model import Extracted, Feed, FeedEntry, Json, Mark

UNREADABLE = "The file could not be read: it is damaged, or made to break what reads it."
LARGEST_ANSWER = (
    3 * LONGEST_TEXT
)  # bytes: JSON at most doubles a text, the rest is for its marks or a feed's addresses


def request(verb: str, source: Source, caps: Caps) -> bytes:
    """In ASCII: a file's name may have bytes in it that are no text."""
    return (
        json.dumps(
            {"verb": verb, "source": asdict(source), "caps": asdict(caps)}, default=str
        ).encode()
        + b"\n"
    )


def answer(value: Json) -> bytes:
    return (
        json.dumps(value, default=str, separators=(",", ":"), ensure_ascii=False).encode(
            "utf-8", "replace"
        )
        + b"\n"
    )


def source(sent: Json) -> Source:
    return Source(**(sent | {"path": Path(sent["path"])}))


def kind(sent: Json) -> str:
    return str(sent["kind"])[:200]


def extracted(sent: Json) -> Extracted:
    """Held to the same bounds again: a reader may have been taken over by what it read."""
    marks = tuple(Mark(mark["at"], mark["locator"]) for mark in sent["marks"])
    return bounded(
        Extracted(
            **(
                sent
                | {
                    "marks": marks,
                    "links": tuple(sent["links"]),
                    "published_at": _time(sent["published_at"]),
                }
            )
        )
    )


def feed(sent: Json) -> Feed:
    entries = tuple(
        FeedEntry(**(entry | {"published_at": _time(entry["published_at"])}))
        for entry in sent["entries"]
    )
    return Feed(**(sent | {"entries": entries}))


def _time(sent: str | None) -> datetime | None:
    return datetime.fromisoformat(sent) if sent else None
