"""Differences between similar texts: record ids, dates, numbers, negations, opposites."""

import re
from dataclasses import dataclass
from functools import cached_property

import Stemmer

from commonplace.text import query_terms as words

_DIGIT = re.compile(r"\d")
_TOKEN = re.compile(r"[^\W_]+(?:['’][a-z]+)?", re.IGNORECASE)
# Record ids: SR-2023-052, INC0012345, ABC-123, #4711, and hashes; but not UTF-8.
_ID = re.compile(
    r"\b(?!(?:UTF|SHA|AES|RSA|MD|TLS|SSL|HTTP|ISO|EC|GPT|ES|IPV)-?\d)[A-Z]{2,10}-?\d{1,4}-\d{2,}\b"
    r"|\b(?!(?:UTF|SHA|AES|RSA|MD|TLS|SSL|HTTP|ISO|EC|GPT|ES|IPV)-?\d)[A-Z]{2,10}-?\d{2,}\b"
    r"|(?<!\w)#\d+\b|\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b"
)
_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_DATE = re.compile(
    rf"\b\d{{4}}-\d{{2}}(?:-\d{{2}})?\b|\b\d{{1,2}}\.? (?:{'|'.join(_MONTHS)})\b(?: \d{{4}})?"
    rf"|\b(?:{'|'.join(_MONTHS)}) \d{{1,4}}\b(?:,? \d{{4}})?|\bq[1-4] ?\d{{4}}\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w.])v?\d+(?:[.,:]\d+)*(?:\s?%)?", re.IGNORECASE)
_COUNTED = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
_SPELLED = {word: str(n) for n, word in enumerate(_COUNTED)} | {
    "once": "1",
    "twice": "2",
    "double": "2",
    "triple": "3",
    "dozen": "12",
    "hundred": "100",
    "thousand": "1000",
}
_DAYS = frozenset({"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"})
_DENIED = """
    not no never none nothing neither nor without cannot avoid unless don doesn didn isn aren
    wasn weren won shouldn mustn couldn wouldn hasn haven hadn don't doesn't didn't isn't aren't
    wasn't weren't won't can't shouldn't mustn't couldn't wouldn't hasn't haven't hadn't"""
_NEGATIONS = frozenset(_DENIED.split())
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
_TELLS_NOTHING = words.STOP_WORDS | _SPELLED.keys() | _NEGATIONS | _DAYS | set(_MONTHS)


@dataclass(frozen=True)
class Text:
    """A title and a body, analyzed once."""

    title: str
    body: str

    @cached_property
    def plain(self) -> str:
        body = self.body.removeprefix("# ").lstrip()
        return (
            body if body.casefold().startswith(self.title.casefold()) else f"{self.title}\n{body}"
        )

    @cached_property
    def ids(self) -> frozenset[str]:
        return frozenset(
            found.upper() for word in self._with_digits.values() for found in _ID.findall(word)
        )

    @cached_property
    def dates(self) -> frozenset[str]:
        return frozenset(
            " ".join(found.lower().replace(",", "").split())
            for found in _DATE.findall(self._without_ids)
        ) | (_DAYS & set(self.words))

    @cached_property
    def numbers(self) -> frozenset[str]:
        digits = (
            found.lower().lstrip("v").replace(" ", "")
            for found in _NUMBER.findall(_DATE.sub(" ", self._without_ids))
        )
        return frozenset(_evened(found) for found in digits) | {
            _SPELLED[word] for word in self.words if word in _SPELLED
        }

    @cached_property
    def words(self) -> list[str]:
        return _TOKEN.findall(self._without_ids.lower().replace("’", "'"))

    @cached_property
    def negations(self) -> int:
        return sum(word in _NEGATIONS for word in self.words)

    @cached_property
    def stems(self) -> frozenset[str]:
        """Words that say something, apart from names of records, numbers, dates and negations."""
        return frozenset(
            Stemmer.Stemmer("english", 0).stemWords(
                [word for word in set(self.words) - _TELLS_NOTHING if not word[0].isdigit()]
            )
        )

    @cached_property
    def normal(self) -> str:
        return " ".join(re.findall(r"[^\W_]+", self.plain.casefold()))

    @cached_property
    def _split(self) -> list[str]:
        return self.plain.split()

    @cached_property
    def _with_digits(self) -> dict[int, str]:
        """Return the words with digits by position: only these can be record ids."""
        return {place: word for place, word in enumerate(self._split) if _DIGIT.search(word)}

    @cached_property
    def _without_ids(self) -> str:
        left = self._split.copy()
        for place, word in self._with_digits.items():
            left[place] = _ID.sub(" ", word)
        return " ".join(left)


def difference(new: Text, old: Text) -> str | None:
    """What two texts that are alike contradict each other in, in words."""
    mine, theirs = set(new.words) - set(old.words), set(old.words) - set(new.words)
    opposed = [f"{a} against {b}" for a in mine & _OPPOSED.keys() for b in _OPPOSED[a] & theirs]
    if opposed:
        return min(opposed)
    if (new.negations > 0) != (old.negations > 0):
        return "one of them is negated"
    for name, here, there in (
        ("dates", new.dates, old.dates),
        ("numbers", new.numbers, old.numbers),
    ):
        if here - there and there - here:
            return f"{name}: {_few(here - there)} against {_few(there - here)}"
    return None


def _few(values: frozenset[str]) -> str:
    return ", ".join(sorted(values)[:3])


def _evened(number: str) -> str:
    """1,000 and 1000 are one number; 3.10 and 3.1 are two versions."""
    return number.replace(",", "") if re.fullmatch(r"\d{1,3}(,\d{3})+%?", number) else number
