"""Statements: sentences that say one thing, what they are about, and how two of them differ.

A short text is one statement. Of longer ones only prose counts: headings, tables, code, questions
and lines such as `Status: accepted` say nothing that another text could contradict.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import NamedTuple

from commonplace.text import prose
from commonplace.text.query_terms import STOP_WORDS
from commonplace.text.stems import terms

SHORT = 60  # words of a text that is one statement
MOST = 80  # statements of a text
_SHORTEST, _LONGEST = 5, 45  # words of a sentence that is a statement
_MOST_CHARACTERS = 600
_SHORT_LINES = 6
_LONGEST_SWAP = 2  # words
_PARTS_IN_COMMON = 0.15  # of the words of two sentences that speak of the same
_PROSE = 0.75  # of a sentence's characters that are letters and spaces
_FENCES = ("```", "~~~")
_ABOUT_THE_TEXT = re.compile(
    r"[-*•\s]*(?:absent|agenda|attendees|authors?|created|date|deciders?|links?|location|minutes"
    r"|moderators?|present|recording|regrets|status|tags?|time|updated|version)\**\s?:",
    re.IGNORECASE,
)
_LABEL = re.compile(r"[^\W\d_]+[ #-]{0,2}\d+[a-z]?")  # a title such as "Note 12"

# Record ids: SR-2023-052, INC0012345, ABC-123, #4711, and hashes; but not UTF-8.
_ID = re.compile(
    r"\b(?!(?:UTF|SHA|AES|RSA|MD|TLS|SSL|HTTP|ISO|EC|GPT|ES|IPV)-?\d)[A-Z]{2,10}-?\d{1,4}-\d{2,}\b"
    r"|\b(?!(?:UTF|SHA|AES|RSA|MD|TLS|SSL|HTTP|ISO|EC|GPT|ES|IPV)-?\d)[A-Z]{2,10}-?\d{2,}\b"
    r"|(?<!\w)#\d+\b|\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b"
)
# Numbers with their currency, or words, which may have digits behind their first letter.
_TOKEN = re.compile(r"(?<![\w.])[$€£¥]?\d+(?:[.,:/-]\d+)*%?|[^\W\d_]\w*(?:['’][a-z]+)?")
_SAID = re.compile(
    r"[^\W_]+[#+]*|[$€£¥%<=>+]|(?<![\w-])-(?=\d)|[\u2190-\u2bff\U0001f000-\U0001faff]"
)
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_NAMES = """
    january february march april may june july august september october november december"""
_LONG_MONTHS = _NAMES.split()
_MONTH = {
    **{name: n for n, name in enumerate(_MONTHS, 1)},
    **{name: n for n, name in enumerate(_LONG_MONTHS, 1)},
    "sept": 9,
}
_BARE_MONTHS = frozenset(_LONG_MONTHS) - {"may", "march"}  # these two are verbs, too
_WEEK = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_DAYS = frozenset([*_WEEK, *(f"{day}s" for day in _WEEK)])
_QUARTER = re.compile(r"q[1-4]")
_YEARS = range(1950, 2040)
# Units of one kind, as multiples of its first, so that 30 minutes and 12 hours can be compared.
_UNITS = {
    name: (kind, float(size))
    for kind, units in (
        (
            "seconds",
            "ms:.001 millisecond:.001 s:1 sec:1 second:1 min:60 minute:60 h:3600 hour:3600 hr:3600"
            " day:86400 week:604800 month:2592000 year:31536000",
        ),
        ("bytes", "byte:1 kb:1e3 kib:1e3 mb:1e6 mib:1e6 gb:1e9 gib:1e9 tb:1e12 tib:1e12"),
        ("metres", "mm:.001 cm:.01 m:1 metre:1 meter:1 km:1000 kilometre:1000 kilometer:1000"),
    )
    for name, size in (unit.split(":") for unit in units.split())
}
_NUMERALS = "zero one two three four five six seven eight nine ten eleven twelve"
_COUNTED = _NUMERALS.split()
_SPELLED = {word: str(n) for n, word in enumerate(_COUNTED)} | {
    "once": "1",
    "twice": "2",
    "double": "2",
    "triple": "3",
    "dozen": "12",
    "hundred": "100",
    "thousand": "1000",
}
_DENIED = """
    not no never none nobody nothing neither nor without cannot unless don't doesn't didn't
    isn't aren't wasn't weren't won't can't shouldn't mustn't couldn't wouldn't haven't hasn't
    hadn't dont doesnt didnt isnt wont cant stop stops stopped refuse refuses refused forbid
    forbids forbidden avoid avoids avoided lack lacks lacked"""
_NEGATIONS = frozenset(_DENIED.split())
_STRONG = re.compile(r"\b(?:never|no longer|not any ?more|not yet|at no time)\b")
# Words that say that something changed, not what it is about.
_CHANGE = """
    now adjust adjusted adjusting increase increased increases increasing decrease decreased reduce
    reduced reducing extend extended extending move moved moving reschedule rescheduled raise raised
    change changed changes changing update updated updates updating revise revised grow grew grown
    growing improve improved improving recent recently instead switch switched switching replace
    replaced replacing migrate migrated migrating shorten shortened postpone postponed delay delayed
    lower lowered expand expanded rise rose risen drop dropped cut upgrade upgraded surpass
    surpassed exceed exceeded add added additional more optimize optimized correct corrected
    currently reach reached further"""
_CHANGED = frozenset(_CHANGE.split())
_REVISION = re.compile(
    r"\b(?:no longer|instead of|rather than|supersed(?:es|ed|ing)|replac(?:es|ed|ing)"
    r"|revert(?:s|ed|ing)|revers(?:es|ed|ing)|overrid(?:es|den|ing)|overrul(?:es|ed)|obsolete"
    r"|deprecated|contrary to|used to|not any ?more"
    r"|(?:was|were|been|is|are) (?:now|changed|moved|renamed|raised|lowered|increased|decreased"
    r"|reduced|extended|adjusted|postponed|rescheduled|dropped|removed)"
    r"|we (?:changed|moved|switched|dropped|abandoned)"
    r"|(?:switch|switched|switching|migrate|migrated|migrating) (?:from|to))\b"
)
_OPPOSITES = """
    enable disable | enabled disabled | enables disables | always never | allow deny
    allow forbid | allowed forbidden | allowed denied | increase decrease | increased decreased
    increases decreases | raise lower | raises lowers | rise fall | grow shrink | add remove
    added removed | on off | true false | before after | first last | min max | minimum maximum
    more less | more fewer | high low | higher lower | fast slow | faster slower | accept reject
    accepted rejected | accepts rejects | open closed | open close | success failure
    succeed fail | succeeds fails | synchronous asynchronous | sync async | public private
    required optional | mutable immutable | safe unsafe | valid invalid | secure insecure
    supported unsupported | stable unstable | start stop | started stopped | encrypted plaintext
    encrypted unencrypted | include exclude | includes excludes | above below | early late
    earlier later | best worst | better worse | approve reject | approved rejected
    working broken | works broken | keep drop | keep delete | keep remove | keep lose
    keeps loses | keeps drops | prefer avoid | use avoid | ascending descending | push pull
    hot cold | eager lazy | strict lenient | up down | possible impossible | internal external
    signed unsigned | stateful stateless | manual automatic | manually automatically
    blocking nonblocking | oldest newest | largest smallest | left right | inside outside
    win lose | wins loses"""
_OPPOSED: dict[str, set[str]] = {}
for _one, _other in (
    pair.split() for pair in _OPPOSITES.replace("\n", "|").split("|") if pair.strip()
):
    _OPPOSED.setdefault(_one, set()).add(_other)
    _OPPOSED.setdefault(_other, set()).add(_one)
_FIGURES = _SPELLED.keys() | _DAYS
_FAINT = """
    us via per within upon may might must shall will would could should can let get got make
    made use used using yet still already much many lot really actually new ever any longer
    i'm i've i'll we've we'll you've you're it's that's am pm"""
_SILENT = (
    STOP_WORDS
    | _NEGATIONS
    | _SPELLED.keys()
    | _DAYS
    | frozenset(_LONG_MONTHS)
    | frozenset(_FAINT.split())
)


class Value(NamedTuple):
    """A number with what it counts."""

    unit: str  # "": unknown
    number: str


class Difference(NamedTuple):
    kind: str  # opposite, negation, value, date, time
    text: str  # "$500 against $550": the older statement's first


@dataclass(eq=False)  # compared by what it says, in several ways
class Statement:
    """A statement, analyzed as far as it is asked."""

    text: str

    @cached_property
    def normal(self) -> str:
        """Its words, and signs that change what is said: another currency or emoji, "<", "C#"."""
        return " ".join(_SAID.findall(self.text.casefold())) or self.text.strip()

    @cached_property
    def parts(self) -> "list[Statement]":
        """Its sentences: short texts may have several."""
        found = [part for part in prose.END.split(self.text) if part]
        return [self] if len(found) < 2 else [Statement(part) for part in found]

    @cached_property
    def _plain(self) -> str:
        return _ID.sub(" ", self.text).replace("’", "'") if self.ids else self.text

    @cached_property
    def ids(self) -> frozenset[str]:
        if not any(letter.isdecimal() for letter in self.text):
            return frozenset()
        return frozenset(found.upper() for found in _ID.findall(self.text))

    @cached_property
    def _tokens(self) -> list[str]:
        return _TOKEN.findall(self._plain.replace("’", "'"))

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(word.lower() for word in self._tokens if word[0].isalpha())

    @cached_property
    def telling(self) -> frozenset[str]:
        """Words that it is about: no numbers, negations, or words of change."""
        return frozenset(word for word in self.words - _SILENT - _CHANGED if len(word) > 1)

    @cached_property
    def stems(self) -> frozenset[int]:
        """What it is about, as terms of the index."""
        return frozenset(terms(" ".join(self.telling)))

    @cached_property
    def sequence(self) -> list[int | str]:
        """What it is about, in order: terms, and numbers, days and quarters as they are written."""
        found: list[int | str] = []
        for token in self._tokens:
            word = token.lower()
            if not word[0].isalpha() or word in _FIGURES or _QUARTER.fullmatch(word):
                found.append(word)
            elif len(word) > 1 and word not in _SILENT | _CHANGED | _MONTH.keys():
                found += terms(word)
        return found

    @cached_property
    def _facts(self) -> tuple[dict[Value, str], dict[str, str], dict[str, str]]:
        """Return values, dates and times, each with its words."""
        return _facts(self._tokens)

    @property
    def values(self) -> dict[Value, str]:
        return self._facts[0]

    @property
    def dates(self) -> dict[str, str]:
        return self._facts[1]

    @property
    def times(self) -> dict[str, str]:
        return self._facts[2]

    @cached_property
    def negations(self) -> frozenset[str]:
        return self.words & _NEGATIONS

    @cached_property
    def is_strong(self) -> bool:
        """Whether it denies that something ever was, or still is."""
        return _STRONG.search(self.text.lower()) is not None

    @cached_property
    def is_revision(self) -> bool:
        """Whether it says that something else held before."""
        return _REVISION.search(self.text.lower()) is not None

    @cached_property
    def tells_change(self) -> bool:
        return not self.words.isdisjoint(_CHANGED)


def whole(title: str, text: str) -> Statement:
    """Return a short text with its title as one statement."""
    body, title = text.strip(), title.strip()
    if body.startswith("#"):
        body = body.lstrip("# ")
    if body.casefold().startswith(title.casefold()[:40]) or _LABEL.fullmatch(title):
        return Statement(" ".join(body.split())[:_MOST_CHARACTERS])
    joined = f"{title} {body}" if title.endswith((".", ":", "!", "?")) else f"{title}. {body}"
    return Statement(" ".join(joined.split())[:_MOST_CHARACTERS])


def is_short(text: str) -> bool:
    """Return whether a text is one statement."""
    body = text.strip()
    return (
        len(body) <= _MOST_CHARACTERS
        and body.count("\n") <= _SHORT_LINES
        and len(body.split()) <= SHORT
        and not any(fence in body for fence in _FENCES)
    )


def sentences(text: str) -> list[Statement]:
    """Return the statements of a longer text, in order."""
    body = "\n".join(line for line in text.split("\n") if not _ABOUT_THE_TEXT.match(line))
    found = (Statement(each) for each in prose.sentences(body) if _is_statement(each))
    return [each for each, _ in zip(found, range(MOST), strict=False)]


def _is_statement(sentence: str) -> bool:
    if len(sentence) > _MOST_CHARACTERS or sentence.endswith("?"):
        return False
    letters = sum(letter.isalpha() or letter == " " for letter in sentence)
    return _SHORTEST <= len(sentence.split()) <= _LONGEST and letters > _PROSE * len(sentence)


def differences(new: Statement, old: Statement, *, whole: bool = False) -> list[Difference]:
    """Return how a statement differs from an older one in what could contradict it. `whole`: a
    negation anywhere counts, not only in the sentences that have most in common."""
    a, b = (new, old) if whole else _closest_parts(new, old)
    mine, theirs = a.words - b.words, b.words - a.words
    opposed = min(
        (f"{y} against {x}" for x in mine & _OPPOSED.keys() for y in _OPPOSED[x] & theirs),
        default="",
    )
    found = [Difference("opposite", opposed)] if opposed else []
    if bool(a.negations) != bool(b.negations):
        found.append(Difference("negation", f"{_quoted(b)} against {_quoted(a)}"))
    units = {value.unit for value in new.values} & {value.unit for value in old.values}
    for kind, here, there in (
        ("value", _of_units(new.values, units), _of_units(old.values, units)),
        ("date", new.dates, old.dates),
        ("time", new.times, old.times),
    ):
        if here.keys() - there.keys() and there.keys() - here.keys():
            found.append(Difference(kind, f"{_few(there, here)} against {_few(here, there)}"))
    return found


def _closest_parts(new: Statement, old: Statement) -> tuple[Statement, Statement]:
    """Return the sentences of two texts that have most in common: a negation elsewhere denies
    something else. Where nothing has, the first text stands for both."""
    if len(new.parts) == len(old.parts) == 1:
        return new, old

    def common(pair: tuple[Statement, Statement]) -> float:
        mine, theirs = pair[0].stems, pair[1].stems
        return len(mine & theirs) - abs(len(mine) - len(theirs)) / 4

    pairs = [(a, b) for a in new.parts for b in old.parts if a.normal != b.normal]
    if not pairs:
        return new, new
    a, b = max(pairs, key=common)
    share = len(a.stems & b.stems) / (len(a.stems) + len(b.stems) + 2)
    return (a, b) if share >= _PARTS_IN_COMMON else (new, new)


class Alignment(NamedTuple):
    """How two statements that are built alike differ."""

    swapped: float  # how alike they are built, where other things stand in the same places
    slots: float  # the same, where several numbers or dates differ


def alignment(new: Statement, old: Statement) -> Alignment:
    """Compare the order of words. "Staging has 3 nodes" and "production has 9 nodes" are about two
    things; with two numbers that differ, "3 people came on Monday" tells of another event."""
    mine, theirs = _closest_parts(new, old)
    a, b = theirs.sequence, mine.sequence
    changes = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    equal = sum(end - start for tag, start, end, _, _ in changes if tag == "equal")
    alike = 2 * equal / max(1, len(a) + len(b))
    swapped, slots = 0, set[tuple[int | str, int | str]]()
    for tag, start, end, start_b, end_b in changes:
        if tag == "replace":
            sides = a[start:end], b[start_b:end_b]
            words = [sum(isinstance(each, int) for each in side) for side in sides]
            swapped += all(0 < count <= _LONGEST_SWAP for count in words)
            figures = ([each for each in side if isinstance(each, str)] for side in sides)
            slots |= set(zip(*figures, strict=False))
    return Alignment(alike * (swapped > 0), alike * (len(slots) > 1))


def _quoted(statement: Statement) -> str:
    """Return the words that negate a statement."""
    if found := _STRONG.search(statement.text.lower()):
        return f'"{found[0]}"'
    return f'"{min(statement.negations)}"' if statement.negations else "affirmed"


def _of_units(values: dict[Value, str], units: set[str]) -> dict[Value, str]:
    return {value: text for value, text in values.items() if value.unit in units}


def _few(values: dict, others: dict) -> str:  # type: ignore[type-arg]
    return ", ".join([text for value, text in values.items() if value not in others][:3])


def _facts(tokens: list[str]) -> tuple[dict[Value, str], dict[str, str], dict[str, str]]:
    values: dict[Value, str] = {}
    dates: dict[str, str] = {}
    times: dict[str, str] = {}
    taken: set[int] = set()
    for place, token, word in _with_words(tokens):
        around = [
            other
            for other in (place + 1, place - 1)
            if 0 <= other < len(tokens) and other not in taken
        ]
        if word in _DAYS:
            dates[word.removesuffix("s")] = token
        elif word in _MONTH:
            beside = next((other for other in around if _is_day(tokens, other)), None)
            if beside is not None:
                taken.add(beside)
                first, last = sorted((place, beside))
                shown = f"{tokens[first]} {tokens[last]}"
                dates[f"{_MONTH[word]}-{tokens[beside]}"] = shown
            elif word in _BARE_MONTHS and token[0].isupper():
                dates[f"{_MONTH[word]}"] = token
        elif _QUARTER.fullmatch(word):
            dates[word] = token
    for place, token, word in _with_words(tokens):
        after = tokens[place + 1] if place + 1 < len(tokens) else ""
        if place in taken:
            continue
        if word in _SPELLED:
            value, shown = _value(tokens, place, _SPELLED[word])
            values[value] = shown
        if not token[-1].isdecimal() and not token.endswith("%"):
            continue
        if token[0].isalpha():
            continue
        if token.count("-") == 2:
            year, month, day = (part.lstrip("0") for part in token.split("-"))
            dates[f"{month}-{day}"] = dates[f"y{year}"] = token
        elif ":" in token or after.lower() in ("am", "pm"):
            times[f"{token}{after.lower()}" if after.lower() in ("am", "pm") else token] = (
                f"{token} {after}" if after.lower() in ("am", "pm") else token
            )
        elif token.isdecimal() and int(token[:5]) in _YEARS and not _counts(after):
            dates[f"y{token}"] = token
        else:
            value, shown = _value(tokens, place, _even(token))
            values[value] = shown
    return values, dates, times


def _with_words(tokens: list[str]) -> Iterator[tuple[int, str, str]]:
    return ((place, token, token.lower()) for place, token in enumerate(tokens))


def _is_day(tokens: list[str], place: int) -> bool:
    token = tokens[place]
    return token.isdecimal() and 1 <= int(token[:4]) <= 31


def _value(tokens: list[str], place: int, number: str) -> tuple[Value, str]:
    """Return a number with what it counts: its currency, the word after it, or else the one before;
    and its words."""
    token = tokens[place]
    if token[0] in "$€£¥":
        return Value("money", token[0] + number), token
    if token.endswith("%"):
        return Value("%", number), token
    after = tokens[place + 1] if place + 1 < len(tokens) else ""
    if _counts(after):
        unit = after.lower()
        unit = unit[:-1] if unit.endswith("s") and len(unit) > 2 else unit
        if unit in _UNITS and number.replace(".", "", 1).isdecimal():
            kind, size = _UNITS[unit]
            return Value(kind, f"{float(number) * size:g}"), f"{token} {after}"
        return Value(unit, number), f"{token} {after}"
    for before in reversed(tokens[max(0, place - 3) : place]):
        word = before.lower()
        if word[0].isalpha() and word not in _SILENT and word not in _CHANGED:
            return Value(f"{word} of", number), token
    return Value("", number), token


def _counts(word: str) -> bool:
    return word[:1].isalpha() and word.lower() not in _SILENT


def _even(number: str) -> str:
    """1,000 and 1000 are one number; 3.10 and 3.1 are two versions."""
    return number.replace(",", "").rstrip("%").lstrip("$€£¥")
