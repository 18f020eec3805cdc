"""Clippings of a Kindle: a note a book. Words around places and dates are in the device's language,
so only numbers and the form of the lines are read."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from commonplace.adapters.exports.parts import Found, clean, line
from commonplace.model import Saved

_LINE = "=========="
_NUMBERS = re.compile(r"\d{1,9}(?:-\d{1,9})?")
_AUTHOR = re.compile(r"\(([^()]{1,200})\)$")
_WORDS_BEFORE = 6  # before the date, such as "Added on"


@dataclass(frozen=True, slots=True)
class _Clip:
    start: int
    end: int
    is_range: bool
    text: str
    place: str


def knows(head: str) -> bool:
    lines = head.lstrip("\ufeff").splitlines()
    return len(lines) > 1 and lines[1].startswith("- ") and (_LINE in lines or len(head) > 8_000)


def read(text: str) -> Found:
    books: dict[str, list[_Clip]] = {}
    dates: dict[str, str] = {}
    for block in text.replace("\r\n", "\n").split(f"\n{_LINE}"):
        name, _, rest = block.strip("\ufeff\n ").partition("\n")
        said, _, words = rest.partition("\n")
        if not said.startswith("- ") or not name.strip():
            continue
        where, _, date = said[2:].rpartition("|")
        clips = books.setdefault(line(name), [])
        dates.setdefault(line(name), date)
        if words.strip():
            clips.append(_clip(where or said, clean(words).strip()))
    for name, clips in books.items():
        author = _AUTHOR.search(name)
        title = name[: author.start()].strip() if author else name
        if not clips:
            yield Saved(title or name, lost="The book has only bookmarks.")
            continue
        yield Saved(
            title or name,
            text="\n\n".join(_passages(clips)),
            at=_date(dates[name]),
            author=author[1] if author else "",
            key=f"kindle:{name}",
            tags=(),
        )


def _clip(where: str, text: str) -> _Clip:
    numbers = _NUMBERS.findall(where)
    place = numbers[-1] if numbers else "0"
    start, _, end = place.partition("-")
    if end and len(end) < len(start):  # 1024-27
        end = start[: len(start) - len(end)] + end
    return _Clip(int(start), int(end or start), bool(end), text, place)


def _passages(clips: Sequence[_Clip]) -> list[str]:
    """Return highlights as quotes in the book's order, each with its notes below."""
    marked = [clip for clip in clips if clip.is_range] or list(clips)
    ends = {clip.end for clip in marked} | {clip.start for clip in marked}
    notes = [clip for clip in clips if not clip.is_range and clip not in marked]
    joined = [note for note in notes if note.start in ends]
    marked += [clip for clip in notes if clip not in joined]
    passages: list[str] = []
    last: _Clip | None = None
    for clip in sorted(dict.fromkeys(marked), key=lambda clip: (clip.start, -len(clip.text))):
        if last and clip.start == last.start and clip.text in last.text:
            continue  # an earlier form of a highlight that has grown
        last = clip
        quote = "> " + clip.text.replace("\n", "\n> ")
        passages.append(f"{quote}\n>\n> ({clip.place})" if clip.place != "0" else quote)
        for note in [each for each in joined if each.start in (clip.start, clip.end)]:
            joined.remove(note)
            passages.append(note.text)
    return passages


def _date(text: str) -> datetime | None:
    from dateparser import parse  # slow to import

    words = text.split()
    for skipped in range(min(_WORDS_BEFORE, len(words))):
        rest = " ".join(words[skipped:])[:100]
        if not any(map(str.isdigit, rest)):
            return None
        found: datetime | None = parse(rest, settings={"RETURN_AS_TIMEZONE_AWARE": False})
        if found:
            return found.replace(tzinfo=UTC)
    return None
