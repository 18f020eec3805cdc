"""What others see of an item: one function, from an item and its text to a view that has no place for the text.

Summaries and key points that a model wrote stay, where they do not quote. Those that were picked out of the text are the
text: of these the view keeps headings and single terms, never a sentence.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from commonplace.core.masking import masked
from commonplace.core.words import UNSPACED
from commonplace.model import Item, OutlinedSection, RedactedDisk, Section

LONGEST_QUOTATION = 12             # words in a row
_HEADING_WORDS, _SUMMARY_TERMS, _SECTION_TERMS = 8, 8, 5
_OUTLINED = 12                     # headings that a summary names
_WORD = re.compile(rf"[{UNSPACED}]|[^\W_{UNSPACED}]+")   # where words are not parted, each character is one
_PLAIN = re.compile(r"[^\W\d_]+(?:[ '-][^\W\d_]+)*")
_CODED = re.compile(r"(?=\S*\d)(?=\S*[^\W\d_])\S{6,}")
_TELLING = re.compile(r"token|key|secret|sig|auth|pass|pwd|pw\b|pin\b|otp|session|code|credential|mail|phone|user|invite|hash|"
                      r"sid\b|jwt", re.I)


@dataclass(frozen=True, slots=True)
class Outline:
    """Terms that the item and each of its sections keep coming back to."""

    terms: tuple[str, ...]
    sections: tuple[tuple[str, ...], ...]


def redacted(item: Item, text: str, sections: Sequence[Section], outline: Outline) -> RedactedDisk:
    source = Source(text, [section.text for section in sections])
    by_model = bool(item.metadata.get("ai_generated"))
    tags = [tag for tag in item.tags if not item.metadata.get("tags_derived") or source.is_term(tag, item.title)]
    address = public_address(item.url)
    disk = RedactedDisk(
        title=source.cut(masked(item.title)), category=source.cut(masked(item.category)), summary="",
        tags=tuple(dict.fromkeys(source.cut(masked(tag)) for tag in tags)),
        source_url=address if address and source.admits(address) else None, ai_generated=by_model, word_count=item.word_count)
    disk = _written(item, sections, source, disk) if by_model else disk
    disk = disk if disk.summary else _outlined(item, sections, outline, source, disk)
    # Piece by piece nothing is quoted; if the pieces, read one after the other, still are the source, they go.
    return disk if source.admits(" ".join(words_shown(disk))) else replace(
        disk, summary="", category="", tags=(), sections=tuple(replace(s, key_points=(), snippet="") for s in disk.sections))


def words_shown(disk: RedactedDisk) -> Iterable[str]:
    yield from (disk.title, disk.summary, disk.category, *disk.tags)
    for section in disk.sections:
        yield from (*section.key_points, section.snippet)


def _written(item: Item, sections: Sequence[Section], source: "Source", disk: RedactedDisk) -> RedactedDisk:
    """By a model, in its own words. What quotes all the same is left out."""
    def own(text: str) -> str:
        text = masked(text)
        return text if source.admits(text) else ""

    rows = []
    for section in sections:
        points = tuple(point for point in map(own, section.key_points) if point)
        rows.append(OutlinedSection(section.position + 1, section.word_count, points, " ".join(points)))
    return replace(disk, summary=own(item.summary) or own(" ".join(item.key_points)), sections=tuple(rows))


def _outlined(item: Item, sections: Sequence[Section], outline: Outline, source: "Source", disk: RedactedDisk) -> RedactedDisk:
    rows = []
    for section, terms in zip(sections, outline.sections, strict=True):
        heading = source.heading(section.heading.split(" > ")[-1])
        known = [term for term in sorted(terms) if source.is_term(term, item.title)][:_SECTION_TERMS]
        points = tuple(dict.fromkeys([heading, *known] if heading and heading != disk.title else known))
        rows.append(OutlinedSection(section.position + 1, section.word_count, points, " · ".join(points) or disk.title))
    subjects = [term for term in outline.terms if source.is_term(term, item.title)][:_SUMMARY_TERMS]
    headings = list(dict.fromkeys(
        heading for section in sections if (heading := source.heading(section.heading.split(" > ")[-1]))
        and heading != disk.title))
    about = f"About {', '.join(subjects)}." if subjects else ""
    parts = f"Sections: {'; '.join(headings[:_OUTLINED])}{'; …' if len(headings) > _OUTLINED else ''}." if headings else ""
    summary = " ".join(part for part in (about, parts) if part)
    return replace(disk, summary=summary if source.admits(summary) else about if source.admits(about) else "",
                   sections=tuple(row if source.admits(row.snippet) else replace(row, key_points=(), snippet="") for row in rows))


class Source:
    """The text that must not be given away, as words in a row."""

    def __init__(self, text: str, passages: Iterable[str] = ()) -> None:
        """`passages`: the same text as it was cut, which may have been put together anew."""
        self._said = f" {' '.join(spoken(masked(text)))} "   # without parts of addresses and passwords: these are no terms
        self._row = f" {' '.join(spoken(text))} " + "".join(f"\n {' '.join(spoken(passage))} " for passage in passages)

    def admits(self, text: str) -> bool:
        """Whether it repeats no more of the source than a short quotation."""
        words = spoken(text)
        run = LONGEST_QUOTATION + 1
        return not any(f" {' '.join(words[at:at + run])} " in self._row for at in range(len(words) - run + 1))

    def cut(self, text: str) -> str:
        """As it is, unless it quotes: then it is the source's, not the owner's, and is treated as such."""
        if self.admits(text):
            return text
        text, kept = _CODED.sub("…", text), ""
        for found in _WORD.finditer(text):
            if len(spoken(text[:found.end()])) > LONGEST_QUOTATION - 1:
                break
            kept = text[:found.end()]
        return kept + "…"

    def heading(self, text: str) -> str:
        """As it is, if it is as short as a heading; words with digits in them go, as they may be anything."""
        plain = _CODED.sub("…", masked(" ".join(text.split())))
        return plain if 0 < len(spoken(plain)) <= _HEADING_WORDS and self.admits(plain) else ""

    def is_term(self, term: str, title: str) -> bool:
        """Plain words that the source says more than once (or that its title says): what is there once may be a secret."""
        if not _PLAIN.fullmatch(term) or masked(term) != term or len(spoken(term)) > 4:
            return False
        row = f" {' '.join(spoken(term))} "
        return row in f" {' '.join(spoken(masked(title)))} " or self._said.count(row) > 1


def spoken(text: str) -> list[str]:
    """The words alone: neither case nor marks make a quotation another text."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def public_address(url: str | None) -> str | None:
    """Where the source is, if everybody may know: no name and password, no private network, no keys in the query."""
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
    if any(_TELLING.search(name) for name, _ in query) or any(masked(unquote(part)) != unquote(part) for part in told):
        return None
    return urlunsplit((parts.scheme, parts.netloc, parts.path, parts.query, ""))


def _is_public(host: str) -> bool:
    try:
        return ip_address(host).is_global
    except ValueError:
        return "." in host and not host.endswith((".local", ".localhost", ".internal", ".lan", ".home", ".corp", ".test"))
