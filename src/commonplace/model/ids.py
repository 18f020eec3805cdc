"""Ids, the time, Unicode normalization and digests."""

import hashlib
import re
import secrets
import time
import unicodedata
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain, groupby, islice
from typing import Any, Literal, Protocol, TypeVar

from commonplace.errors import NotFound

Json = dict[str, Any]


_MOST_MARKS = 30  # on one letter, as in Unicode's Stream-Safe Text Format
# A long run of characters from the blocks that have combining marks: few texts have one. Written as
# one and thirty, which is searched for twice as fast as thirty-one.
_BLOCKS = (
    "[\u0300-\u1dff\u20d0-\u20ff\u2cef-\u2cf1\u2d7f\u2de0-\u2dff\u302a-\u302f\u3099\u309a"
    "\ua66f-\uabed\ufb1e\ufe20-\ufe2f\uff9e\uff9f\U000101fd-\U0001efff]"
)
_MARKS_PERHAPS = re.compile(f"{_BLOCKS}{_BLOCKS}{{30}}")


def now() -> datetime:
    return datetime.now(UTC)


def moment(at: datetime) -> str:
    """Return a time as answers show it."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def parse_time(value: object) -> datetime | None:
    """Return the time that an ISO 8601 text names, in UTC if it names no zone; None if it is not
    one, or is before the first or after the last year of UTC."""
    try:
        found = datetime.fromisoformat(str(value).strip())
        found = found if found.tzinfo else found.replace(tzinfo=UTC)
        found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return found


def utc_text(at: datetime) -> str:
    """Return a time in UTC as text, to the second: later ones sort higher."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def is_past(day_or_time: str | None, at: datetime) -> bool:
    """Whether a day, or a time written by `utc_text`, is over."""
    return day_or_time is not None and day_or_time < utc_text(at)[: len(day_or_time)]


def new_id() -> str:
    """Return a UUID of version 7: it starts with the time in steps of 244 ns, so that new rows are
    neighbours and ids made one after another sort in that order."""
    milliseconds, rest = divmod(time.time_ns(), 1_000_000)
    fraction = (rest << 12) // 1_000_000
    return str(
        uuid.UUID(
            int=milliseconds << 80 | 0x7 << 76 | fraction << 64 | 0x2 << 62 | secrets.randbits(62)
        )
    )


def new_shared_id() -> str:
    """Return a UUID of version 4, for values that libraries share: it tells no time."""
    return str(uuid.uuid4())


_PUBLIC_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ"


def new_public_id() -> str:
    """Return twelve characters without look-alikes, and without the `_` of entity ids."""
    number, letters = secrets.randbits(128), ""  # so many that each letter is as likely as any
    for _ in range(12):
        number, letter = divmod(number, len(_PUBLIC_ALPHABET))
        letters += _PUBLIC_ALPHABET[letter]
    return letters


def normalize(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Normalize Unicode in linear time: cuts long runs of marks, which Python sorts slowly."""
    beyond_latin = len(text) - len(text.encode("latin-1", "ignore"))
    if beyond_latin > _MOST_MARKS and _MARKS_PERHAPS.search(text):
        runs = groupby(text, _is_mark)
        cut = (islice(run, _MOST_MARKS if is_marks else None) for is_marks, run in runs)
        text = "".join(chain.from_iterable(cut))
    return unicodedata.normalize(form, text)


@lru_cache(maxsize=4096)
def _is_mark(character: str) -> bool:
    return unicodedata.combining(unicodedata.normalize("NFKD", character)[0]) != 0


@dataclass(frozen=True, slots=True)
class Stored:
    """A value that belongs to a library and has an id."""

    id: str
    library_id: str


class Identified(Protocol):
    @property
    def id(self) -> str: ...


S = TypeVar("S", bound=Identified)


def find_by_id(found: Iterable[S], wanted: str, what: str) -> S:
    """Return the one with this id. Raises NotFound if there is none."""
    for each in found:
        if each.id == wanted:
            return each
    raise NotFound(f"{what} not found")


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
