"""Messages between the server and its reader processes.

They are JSON: pickles from a process that a hostile file took over could run code in the server.
"""

import json
from dataclasses import asdict

from commonplace.adapters.extract.input_file import (
    LONGEST_TEXT,
    Caps,
    Source,
    limit_size,
    parse_date,
)
from commonplace.model import Extracted, Feed, FeedEntry, Json, Mark

UNREADABLE = "The file could not be read: it is damaged, or made to break its reader."
# Bytes. JSON at most doubles a text; the rest is for its marks or a feed's addresses.
LARGEST_ANSWER = 3 * LONGEST_TEXT


def encode_request(verb: str, source: Source, caps: Caps) -> bytes:
    """Encode a request as ASCII: a file's name may contain bytes that are not valid text."""
    request = {"verb": verb, "source": asdict(source), "caps": asdict(caps)}
    return json.dumps(request, default=str).encode() + b"\n"


def encode_answer(answer: Json) -> bytes:
    text = json.dumps(answer, default=str, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "replace") + b"\n"


def decode_extracted(answer: Json) -> Extracted:
    """Apply the size limits again: a hostile file may have taken over its reader."""
    fields = {
        "marks": tuple(Mark(mark["at"], mark["locator"]) for mark in answer["marks"]),
        "links": tuple(answer["links"]),
        "published_at": parse_date(answer["published_at"]),
    }
    return limit_size(Extracted(**(answer | fields)))


def decode_feed(answer: Json) -> Feed:
    entries = tuple(
        FeedEntry(**(entry | {"published_at": parse_date(entry["published_at"])}))
        for entry in answer["entries"]
    )
    return Feed(**(answer | {"entries": entries}))
