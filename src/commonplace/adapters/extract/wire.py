"""What the server and its reading processes tell each other: JSON, because a process that a hostile file took over
must not be able to make the server run anything, as it could with pickles."""

import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from commonplace.adapters.extract.source import Caps, Source
from commonplace.model import Extracted, Feed, FeedEntry, Json, Mark


def line(value: Json) -> bytes:
    return json.dumps(value, default=str, separators=(",", ":")).encode() + b"\n"


def request(verb: str, source: Source, caps: Caps) -> bytes:
    return line({"verb": verb, "source": asdict(source), "caps": asdict(caps)})


def source(sent: Json) -> Source:
    return Source(**(sent | {"path": Path(sent["path"])}))


def extracted(sent: Json) -> Extracted:
    marks = tuple(Mark(mark["at"], mark["locator"]) for mark in sent["marks"])
    return Extracted(**(sent | {"marks": marks, "links": tuple(sent["links"]), "published_at": _time(sent["published_at"])}))


def feed(sent: Json) -> Feed:
    entries = tuple(FeedEntry(**(entry | {"published_at": _time(entry["published_at"])})) for entry in sent["entries"])
    return Feed(**(sent | {"entries": entries}))


def _time(sent: str | None) -> datetime | None:
    return datetime.fromisoformat(sent) if sent else None
