"""Redaction: derive the view that others see of an item. The view has no field for the text.

The summary is the owner's own, for others. Summaries and key points written by a model stay if they
do not quote. Extracted ones are quotes: of these the view keeps headings and single terms as key
points, never a sentence, and no summary.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from ipaddress import ip_address
from itertools import islice
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import Invalid
from commonplace.model import Item, OutlinedSection, RedactedDisk, Section, normalize
from commonplace.text import chunking
from commonplace.text.instructions import addresses_machine, sentences, without_orders
from commonplace.text.query_terms import UNSPACED
from commonplace.text.secret_masking import mask_secrets

LONGEST_QUOTATION = 12  # words in a row
# Words in runs of the source count as quoted: at most a tenth of it, and one paragraph.
QUOTED_RUN, MOST_QUOTED, QUOTED_SHARE = 4, 60, 10
_HEADING_WORDS, _SECTION_TERMS = 8, 5
# scripts without spaces: each character counts as a word
_WORD = re.compile(rf"[{UNSPACED}]|[^\W_{UNSPACED}]+")
_FACTOR, _UNKNOWN = np.uint64(0x9E3779B97F4A7C15), 2**63
_PLAIN = re.compile(r"[^\W\d_]+(?:[ '-][^\W\d_]+)*")
_LONG = re.compile(r"\S{6,}")
_TELLING = re.compile(
    r"token|key|secret|sig|auth|pass|pwd|pw\b|pin\b|otp|session|code|credential|mail|phone|user|"
    r"invite|hash|"
    r"sid\b|jwt",
    re.I,
)


def redacted(
    item: Item, text: str, sections: Sequence[Section], terms: Sequence[str], summary: str = ""
) -> RedactedDisk:
    """Derive the complete public view of this revision.

    `terms`: what recurs in the text. `summary`: the owner's own words for it.
    """
    source = Source(text, [section.text for section in sections], item.title)
    terms = [term for term in terms if source.is_term(term)]
    by_model = bool(item.metadata.get("ai_generated"))
    tags = [tag for tag in item.tags if tag not in item.auto_tags or source.is_term(tag)]
    address = public_address(item.url)
    disk = RedactedDisk(
        title=source.cut(mask_secrets(item.title)),
        category="",
        summary="",
        tags=tuple(dict.fromkeys(source.cut(mask_secrets(tag)) for tag in tags)),
        source_url=address if address and source.admits(spoken(address)) else None,
        ai_generated=by_model,
        word_count=item.word_count,
    )
    quotes = Allowance(source, after=" ".join([disk.title, *disk.tags]))
    disk = replace(
        disk,
        summary=quotes.take(mask_secrets(summary)) or (_written(item, quotes) if by_model else ""),
    )
    disk = replace(disk, category=quotes.take(source.cut(mask_secrets(item.category))))
    disk = replace(
        disk,
        sections=tuple(
            _row(
                section,
                by_model,
                _said_in(section.text, terms),
                source.heading(_last_heading(section)),
                quotes,
                disk.title,
            )
            for section in sections
        ),
    )
    # Each piece was checked after the one before it. Check them again in reading order.
    within = (
        source.admits(spoken(" ".join(words_shown(disk))))
        and source.quoted(spoken(" ".join(_bounded(disk)))) <= source.allowance
    )
    return (
        disk
        if within
        else replace(
            disk,
            summary="",
            category="",
            tags=(),
            sections=tuple(replace(s, key_points=(), snippet="") for s in disk.sections),
        )
    )


def words_shown(disk: RedactedDisk) -> Iterable[str]:
    yield from (disk.title, *disk.tags)
    yield from _bounded(disk)


def _bounded(disk: RedactedDisk) -> Iterable[str]:
    """Yield the pieces charged to the allowance, in order: all but title, tags and URL."""
    yield from (disk.summary, disk.category)
    for section in disk.sections:
        yield from (*section.key_points, section.snippet)


def _written(item: Item, quotes: "Allowance") -> str:
    """Return the model's summary, else its sentences that may be shown, else its key points."""
    summary = without_orders(mask_secrets(item.summary))
    points = (point for point in map(mask_secrets, item.key_points) if not addresses_machine(point))
    return (
        quotes.take(summary)
        or " ".join(filter(None, map(quotes.take, sentences(summary)))).strip()
        or " ".join(filter(None, map(quotes.take, points)))
    )


def _row(
    section: Section,
    by_model: bool,
    terms: Sequence[str],
    heading: str,
    quotes: "Allowance",
    title: str,
) -> OutlinedSection:
    """Build a section's row: the model's key points, or its heading and terms, and one snippet
    line."""
    points = (
        [
            point
            for point in map(mask_secrets, section.key_points)
            if not addresses_machine(point) and quotes.take(point, times=2)
        ]
        if by_model
        else []
    )
    snippet = " ".join(points)
    if not points:
        heading = quotes.shorten(heading, times=2) if heading != title else ""
        points = list(dict.fromkeys(filter(None, [heading, *map(quotes.take, terms)])))
        snippet = " · ".join(points)
    return OutlinedSection(
        section.position + 1,
        section.word_count,
        tuple(points),
        quotes.take(snippet) or quotes.take(_first_words(title)),
    )


def _said_in(text: str, terms: Iterable[str]) -> list[str]:
    """Return the terms of a section, in an order that tells nothing of the text's."""
    plain = text.lower()
    return sorted(list(filter(plain.__contains__, terms))[:_SECTION_TERMS])


def _last_heading(section: Section) -> str:
    return section.heading.split(" > ")[-1]


def _first_words(text: str) -> str:
    """Return the first words, few enough never to count as quoted."""
    ends = [found.end() for found in islice(_WORD.finditer(text), QUOTED_RUN)]
    return text if len(ends) < QUOTED_RUN else text[: ends[-2]] + "…"


class Allowance:
    """The number of source words that a view may still quote, over all its fields."""

    def __init__(self, source: "Source", after: str = "") -> None:
        """`after`: the text that is read before the first piece."""
        self._source = source
        self._left = source.allowance
        # the end of the last piece: a quotation may continue in the next one
        self._last = spoken(after)[-LONGEST_QUOTATION:]

    def take(self, text: str, times: int = 1) -> str:
        """Return the text and charge its quoted words, or return "". `times`: how often the view
        shows it."""
        whole = [*self._last, *spoken(text)]
        cost = self._source.quoted(whole[max(len(self._last) - QUOTED_RUN + 1, 0) :])
        if not text or cost * times > self._left or not self._source.admits(whole):
            return ""
        self._left -= cost
        self._last = whole[-LONGEST_QUOTATION:]
        return text

    def shorten(self, text: str, times: int = 1) -> str:
        """Return the text, or its first few words, which are always free."""
        return self.take(text, times) or self.take(_first_words(text))


def refuse_quotations(text: str, summary: str) -> None:
    """Raise Invalid if a summary repeats more of the text than others may see."""
    source, summary = Source(text), mask_secrets(summary)
    if not Allowance(source).take(summary):
        raise Invalid(
            f"The summary repeats {source.quoted(spoken(summary))} words of the text; others may "
            f"see at most {source.allowance} of it, and {LONGEST_QUOTATION} in a row. Write it in "
            "your own words."
        )


class _Runs:
    """An index of word runs, by hash. Preparing it is linear in the length of the texts."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._numbers: dict[str, int] = {}
        rows: list[int] = []
        for text in texts:
            rows += [
                0,
                *(self._numbers.setdefault(word, len(self._numbers) + 1) for word in spoken(text)),
            ]
        self._row = np.array(rows, dtype=np.uint64)
        self._sorted: dict[int, NDArray[np.uint64]] = {}

    def count(self, words: Sequence[str], size: int) -> NDArray[np.int64]:
        """Count the occurrences of each run of `size` words, by the position where it starts."""
        if size not in self._sorted:
            self._sorted[size] = np.sort(_hashes(self._row, size))
        asked = _hashes(
            np.array([self._numbers.get(word, _UNKNOWN) for word in words], dtype=np.uint64), size
        )
        known = self._sorted[size]
        return np.searchsorted(known, asked, "right") - np.searchsorted(known, asked, "left")


def _hashes(row: NDArray[np.uint64], size: int) -> NDArray[np.uint64]:
    count = max(len(row) - size + 1, 0)
    found = np.zeros(count, dtype=np.uint64)
    for at in range(size):
        found = found * _FACTOR + row[at : at + count]
    return found


class Source:
    """The private text, as a sequence of words."""

    def __init__(self, text: str, passages: Iterable[str] = (), title: str = "") -> None:
        """`passages`: the same text as it was cut into sections, which may be joined
        differently."""
        self._title = _Runs([mask_secrets(title)])
        # without secrets and addresses, which are not terms
        self._said = _Runs([mask_secrets(text)])
        self._row = _Runs([text, *passages])
        self.allowance = min(
            MOST_QUOTED, min(chunking.count(text), len(spoken(text))) // QUOTED_SHARE
        )

    def quoted(self, words: Sequence[str]) -> int:
        """Count the words that stand in runs of the source."""
        begins = self._row.count(words, QUOTED_RUN) > 0
        marked = np.zeros(len(words), dtype=bool)
        for at in range(QUOTED_RUN if begins.any() else 0):
            marked[at : at + len(begins)] |= begins
        return int(marked.sum())

    def admits(self, words: Sequence[str]) -> bool:
        """Whether these words repeat no more of the source than a short quotation."""
        return not self._row.count(words, LONGEST_QUOTATION + 1).any()

    def cut(self, text: str) -> str:
        """Return the text unchanged if it does not quote, else its first words."""
        if self.admits(spoken(text)):
            return text
        text, kept = _without_codes(text), ""
        for found in _WORD.finditer(text):
            if len(spoken(text[: found.end()])) > LONGEST_QUOTATION - 1:
                break
            kept = text[: found.end()]
        return kept + "…"

    def heading(self, text: str) -> str:
        """Return the text if it is short enough for a heading, without words that contain
        digits."""
        plain = _without_codes(mask_secrets(" ".join(text.split())))
        return (
            plain
            if 0 < len(spoken(plain)) <= _HEADING_WORDS
            and self.admits(spoken(plain))
            and not addresses_machine(plain)
            else ""
        )

    def is_term(self, term: str) -> bool:
        """Whether these are plain words that the source repeats or its title contains. A word that
        appears once may be a secret."""
        if not _PLAIN.fullmatch(term) or mask_secrets(term) != term or len(spoken(term)) > 4:
            return False
        words = spoken(term)
        return bool(
            self._title.count(words, len(words)).any()
            or (self._said.count(words, len(words)) > 1).any()
        )


def _without_codes(text: str) -> str:
    """Remove long words with both letters and digits: they may be keys."""

    def cut(found: re.Match[str]) -> str:
        word = found[0]
        return "…" if any(map(str.isdecimal, word)) and any(map(str.isalpha, word)) else word

    return _LONG.sub(cut, text)


def spoken(text: str) -> list[str]:
    """Split into words, ignoring case and punctuation."""
    return _WORD.findall(normalize("NFKC", text).casefold())


def public_address(url: str | None) -> str | None:
    """Return a source's URL if it is safe to publish: no credentials, private network or query
    keys."""
    if not url:
        return None
    try:
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True)
        host = parts.hostname or ""
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or "@" in parts.netloc or not _is_public(host):
        return None
    told = [*host.split("."), *parts.path.split("/"), *(value for _, value in query)]
    if any(_TELLING.search(name) for name, _ in query) or any(
        mask_secrets(unquote(part)) != unquote(part) for part in told
    ):
        return None
    return urlunsplit((parts.scheme, parts.netloc, parts.path, parts.query, ""))


def _is_public(host: str) -> bool:
    try:
        return ip_address(host).is_global
    except ValueError:
        return "." in host and not host.endswith(
            (".local", ".localhost", ".internal", ".lan", ".home", ".corp", ".test")
        )
