"""Time expressions in questions: "last week", "in March 2026", "3 days ago", "before the release".

English, and ISO dates in any language. Words that are also something else ("may", "march",
"second", version numbers) need a preposition, a day or a year beside them. Of the future nothing is
said: what is asked about was written before.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

LONGEST = 64  # words; longer ones are texts with dates in them, not questions about a time
_DAY = timedelta(days=1)
_LATEST = datetime(2101, 1, 1, tzinfo=UTC)
_DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_MONTHS = [
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
]  # fmt: skip
_SHORT = {name[:3]: n for n, name in enumerate(_MONTHS, 1)} | {"sept": 9}
_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "couple": 2, "three": 3, "few": 3, "four": 4,
    "several": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "eleven": 11, "twelve": 12,
}  # fmt: skip
_UNITS = {"day": 1.0, "week": 7.0, "fortnight": 14.0, "month": 30.4, "quarter": 91.3, "year": 365.2}
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_LATELY = {"recently", "lately"}
_LAST_ONE = {"last", "past", "previous"}
_IN = {"in", "during", "on", "since", "until", "till", "before", "after", "from", "around"}
_EARLY = {"early", "mid", "late", "this", *_LAST_ONE}
# Questions about dates of their own, which say nothing of when something was written.
_OTHER_DATES = {"due", "overdue", "deadline", "deadlines", "expires", "expire"}
_OURS = {"i", "we", "our", "my", "us", "me"}
_PAST = {"did", "was", "were", "had"}
_ENDS = {"the", "our", "my", "that", "this", "and", "or", "is", "was", "were", "did", "has", "had"}
_EDGES = ".,;:!?()[]{}\"'“”‘’…"
_ISO = re.compile(r"(\d{4})[-/](\d{1,2})(?:[-/](\d{1,2}))?(?:t[\d:.+z-]*)?")
_DOTTED = re.compile(r"(\d{1,2})([./])(\d{1,2})[./](\d{4})")
_ORDINAL = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
_YEAR = re.compile(r"\d{4}")
_QUARTER = re.compile(r"q([1-4])")


class Window(NamedTuple):
    """A span of time, its end excluded; None is open."""

    start: datetime | None
    end: datetime | None


class Event(NamedTuple):
    """What happened at a time that the library may know."""

    words: tuple[str, ...]
    before: bool


class Times(NamedTuple):
    """What a question says of time, and the question without words such as "last week", which
    would be looked for in texts."""

    windows: tuple[Window, ...] = ()
    event: Event | None = None
    rest: str = ""


class _Point(NamedTuple):
    """A span that starts at a word, and the place of the word after it."""

    start: datetime
    end: datetime
    next: int


def find_times(question: str, now: datetime) -> Times:
    """Return the times that a question names, as seen from `now`."""
    written = question.split(maxsplit=LONGEST)
    if len(written) > LONGEST:
        return Times()
    words = _Words(written, now.astimezone(UTC))
    if _OTHER_DATES & {*words.lower}:
        return Times()
    found, rest, at = list[Window](), list[str](), 0
    while at < len(written):
        window, following = words.window(at)
        if window is not None and (window.start is None or window.start <= now):
            found.append(window)
            if words.are_dates(at, following):
                rest += written[at:following]
            elif rest and words.lower[at - 1] in _IN:
                rest.pop()
        else:
            following = at + 1
            rest.append(written[at])
        at = following
    if found:
        return Times(tuple(dict.fromkeys(found)), None, " ".join(rest) or question)
    event = words.event()
    return Times((), event, question) if event else Times()


def find_date(title: str) -> Window | None:
    """Return the day, or the month, that a title names in full."""
    if not _YEAR.search(title):
        return None
    written = title.split(maxsplit=LONGEST)[:LONGEST]
    words = _Words(written, _LATEST)
    for at in range(len(written)):
        if (point := words.full_date(at)) is not None:
            return Window(point.start, point.end)
    return None


class _Words:
    def __init__(self, written: Sequence[str], now: datetime) -> None:
        plain = [word.strip(_EDGES) for word in written]
        self.ends = [word[-1:] in ",;:!?." for word in written]
        self.written = [word.removesuffix("'s").removesuffix("’s") for word in plain]
        self.owns = [whole != cut for whole, cut in zip(plain, self.written, strict=True)]
        self.lower = [word.lower() for word in self.written]
        self.now = now
        self.today = now.replace(hour=0, minute=0, second=0, microsecond=0)

    def window(self, at: int) -> tuple[Window | None, int]:
        """Return the window that starts at a word, and the place after it."""
        word = self._word(at)
        if word in ("between", "from"):
            first = self._point(at + 1, dated=True)
            if first and self._word(first.next) in ("and", "to", "until", "till", "through", "-"):
                last = self._point(first.next + 1, dated=True)
                if last:
                    starts, ends = zip(first[:2], last[:2], strict=True)
                    return Window(min(starts), max(ends)), last.next
        as_of = (word, self._word(at + 1)) == ("as", "of")
        if as_of or word in ("before", "after", "since", "until", "till"):
            point = self._point(at + 1 + as_of, dated=True)
            if point is None:
                return None, at + 1
            if word == "before":
                return Window(None, point.start), point.next
            if as_of or word in ("until", "till"):
                return Window(None, point.end), point.next
            start = point.end if word == "after" else point.start
            return Window(start, None), point.next
        point = self._point(at, dated=at > 0 and self._word(at - 1) in _IN | _EARLY)
        return (None, at + 1) if point is None else (Window(point.start, point.end), point.next)

    def are_dates(self, start: int, end: int) -> bool:
        """Whether words name a date, a month or a year, as texts do too."""
        named = self.lower[start:end]
        return any(self._month(word) or word in _SEASONS or _YEAR.search(word) for word in named)

    def event(self) -> Event | None:
        """Return what stands after `before the` or `after the` at the end of a question about our
        own past."""
        if not ({*self.lower} & _OURS and {*self.lower} & _PAST):
            return None
        for at, word in enumerate(self.lower[:-2]):
            if word in ("before", "after", "since") and self.lower[at + 1] in ("the", "our", "my"):
                rest = self.lower[at + 2 :]
                if 0 < len(rest) <= 3 and not {*rest} & (_ENDS | _PAST):
                    return Event(tuple(rest), word == "before")
        return None

    # -- points

    def _word(self, at: int) -> str:
        return self.lower[at] if 0 <= at < len(self.lower) else ""

    def _point(self, at: int, *, dated: bool) -> _Point | None:
        """`dated`: the word before says that a time follows."""
        return self._relative(at) or self._counted(at) or self._absolute(at, dated=dated)

    def _days(self, start: datetime, days: float, following: int) -> _Point:
        return _Point(start, start + timedelta(days=days), following)

    def _relative(self, at: int) -> _Point | None:
        is_the = self._word(at) == "the"
        at += is_the
        word, following = self._word(at), self._word(at + 1)
        if word == "yesterday":
            return self._days(self.today - _DAY, 1, at + 1)
        if (word, following, self._word(at + 2)) == ("day", "before", "yesterday"):
            return self._days(self.today - 2 * _DAY, 1, at + 3)
        if (word, following) == ("last", "night"):
            return self._days(self.today - _DAY, 1, at + 2)
        if (word, following) == ("other", "day"):
            return self._days(self.today - 7 * _DAY, 7, at + 2)
        if word == "earlier" and following in ("today", "this"):
            return self._relative(at + 1)
        if word == "today" and (self._word(at - 1) == "earlier" or self._is_ours()):
            return self._days(self.today, 1, at + 1)
        if word == "this" and following in ("morning", "afternoon", "evening"):
            return self._days(self.today, 1, at + 2)
        if word in _LATELY:
            return _Point(self.now - 30 * _DAY, self.now + _DAY, at + 1)
        if word in (*_LAST_ONE, "this"):
            until_now = word == "past" or (word == "last" and is_the)
            if until_now and following in ("week", "month", "quarter", "year"):
                days = round(_UNITS[following])
                return _Point(self.today - days * _DAY, self.today + _DAY, at + 2)
            return self._last(word, following, at + 2)
        return None

    def _is_ours(self) -> bool:
        """Whether it asks about what somebody here did: else "today" means nowadays."""
        return bool({*self.lower} & _OURS)

    def _last(self, which: str, unit: str, following: int) -> _Point | None:
        today, this = self.today, which == "this"
        monday = today - today.weekday() * _DAY
        if unit == "week":
            return self._days(monday if this else monday - 7 * _DAY, 7, following)
        if unit == "weekend":
            saturday = monday + 5 * _DAY
            return self._days(saturday - (0 if saturday <= today else 7) * _DAY, 2, following)
        if unit in ("month", "quarter", "year"):
            size = {"month": 1, "quarter": 3, "year": 12}[unit]
            start = (today.month - 1) // size * size + 1
            return self._months(today.year, start - (0 if this else size), size, following)
        if unit in _DAYS:
            return self._weekday(unit, following)
        if unit in _SEASONS:
            return self._month_or_later(_SEASONS[unit], 3, following)
        if (month := self._month(unit)) and (this or unit != "may"):
            return self._month_or_later(month, 1, following)
        return None

    def _counted(self, at: int) -> _Point | None:
        """Match `3 days ago`, `a couple of weeks ago`, `in the last two months`."""
        at += self._word(at) == "the"
        last = self._word(at) in _LAST_ONE
        place = at + last
        place += self._word(place) == "a" and self._word(place + 1) in ("couple", "few")
        number = _NUMBERS.get(self._word(place)) or self._amount(place, 999)
        place += 1 + (self._word(place + 1) == "of")
        unit = self._word(place).removesuffix("s")
        if number is None or unit not in _UNITS:
            return None
        days = number * _UNITS[unit]
        if days > 40_000:
            return None
        if last:
            return self._days(self.now - timedelta(days=days), days + 1, place + 1)
        if self._word(place + 1) != "ago":
            return None
        half = max(_UNITS[unit], days / 4 if self._word(at) in ("a", "couple", "few") else 0) / 2
        middle = self.today + _DAY / 2 - timedelta(days=days)
        return self._days(middle - timedelta(days=half), 2 * half, place + 2)

    # -- dates

    def _absolute(self, at: int, *, dated: bool) -> _Point | None:
        """Match a date, a month or a year. `dated`: the word before says that it is one."""
        return self._numeric(at) or self._named(at, dated) or self._rest(at, dated)

    def full_date(self, at: int) -> _Point | None:
        """Match a day or a month with its year."""
        named = self._named(at, dated=False)
        if named and self._year(named.next - 1) is None:
            named = None
        return self._numeric(at) or named

    def _numeric(self, at: int) -> _Point | None:
        word = self._word(at)
        if (found := _ISO.fullmatch(word)) and (found[3] or word[4] == "-"):
            return self._date(int(found[1]), int(found[2]), int(found[3] or 0), at + 1)
        if found := _DOTTED.fullmatch(word):
            first, second, year = int(found[1]), int(found[3]), int(found[4])
            # Where both orders are dates, with dots the day comes first, with strokes the month.
            if (found[2] == "/" and first <= 12) or second > 12:
                first, second = second, first
            return self._date(year, second, first, at + 1)
        return None

    def _named(self, at: int, dated: bool) -> _Point | None:
        """Match a month by its name, with a day or a year."""
        if (day := self._amount(at, 31)) and not self.ends[at]:
            place = at + 1 + (self._word(at + 1) == "of")
            if (month := self._month(self._word(place))) and self._names_month(place, dated=True):
                return self._month_day(month, day, place + 1)
        month = self._month(self._word(at))
        if month is None:
            return None
        if (day := self._amount(at + 1, 31)) and self._names_month(at, dated=True):
            return self._month_day(month, day, at + 2)
        place = at + 1 + (self._word(at + 1) in ("of", "in"))
        if (year := self._year(place)) is not None:
            return self._months(year, month, 1, place + 1)
        if dated and self._names_month(at, dated=True):
            return self._month_or_later(month, 1, at + 1)
        return None

    def _rest(self, at: int, dated: bool) -> _Point | None:
        word = self._word(at)
        if found := _QUARTER.fullmatch(word):
            first, year = 3 * int(found[1]) - 2, self._year(at + 1)
            if year is not None:
                return self._months(year, first, 3, at + 2)
            return self._month_or_later(first, 3, at + 1) if dated else None
        if word in _SEASONS:
            place = at + 1 + (self._word(at + 1) == "of")
            year = self._year(place)
            return None if year is None else self._months(year, _SEASONS[word], 3, place + 1)
        if word in _DAYS and (dated or self.owns[at]):
            return self._weekday(word, at + 1)
        year = self._year(at) if dated else None
        return None if year is None else self._months(year, 1, 12, at + 1)

    def _month(self, word: str) -> int | None:
        if word in _MONTHS:
            return _MONTHS.index(word) + 1
        return _SHORT.get(word)

    def _names_month(self, at: int, *, dated: bool) -> bool:
        """Whether a word that names a month is one, and no verb."""
        if self._word(at) not in ("may", "march", "mar") or self._year(at + 1) is not None:
            return True
        return dated and (self.written[at][0].isupper() or self._word(at - 1) in _IN | _LAST_ONE)

    def _amount(self, at: int, most: int) -> int | None:
        word = self._word(at)
        if most == 999:
            number = int(word) if word.isascii() and word.isdecimal() and len(word) < 4 else 0
        else:
            found = _ORDINAL.fullmatch(word)
            number = int(found[1]) if found and word.isascii() else 0
        return number if 0 < number <= most else None

    def _year(self, at: int) -> int | None:
        word = self._word(at)
        is_year = len(word) == 4 and word.isascii() and word.isdecimal()
        return int(word) if is_year and 1900 <= int(word) <= 2100 else None

    def _date(self, year: int, month: int, day: int, following: int) -> _Point | None:
        if not 1900 <= year <= 2100 or not 1 <= month <= 12:
            return None
        if not day:
            return self._months(year, month, 1, following)
        try:
            return self._days(datetime(year, month, day, tzinfo=UTC), 1, following)
        except ValueError:
            return None

    def _month_day(self, month: int, day: int, following: int) -> _Point | None:
        if year := self._year(following):
            return self._date(year, month, day, following + 1)
        point = self._date(self.now.year, month, day, following)
        if point and point.start > self.now:
            point = self._date(self.now.year - 1, month, day, following)
        return point

    def _months(self, year: int, month: int, size: int, following: int) -> _Point:
        """`month` may lie in the year before or after."""
        first, last = (12 * year + month - 1 + more for more in (0, size))
        start, end = (datetime(n // 12, n % 12 + 1, 1, tzinfo=UTC) for n in (first, last))
        return _Point(start, end, following)

    def _month_or_later(self, month: int, size: int, following: int) -> _Point:
        """Return the latest such months that have begun."""
        year = self.now.year - (month > self.now.month)
        return self._months(year, month, size, following)

    def _weekday(self, name: str, following: int) -> _Point:
        """Return the latest such day before today."""
        back = (self.today.weekday() - _DAYS.index(name)) % 7 or 7
        return self._days(self.today - back * _DAY, 1, following)
