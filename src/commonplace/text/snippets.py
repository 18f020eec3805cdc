"""Snippets of hits: the part of a passage that fits the query best, without mark-up."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from html import unescape
from itertools import pairwise
from typing import NamedTuple

LENGTH = 280
_WORD = re.compile(r"\w+")
_HEAD = re.compile(r"#{1,6}[ \t]")
_FENCE = re.compile(r"(?m)^[ \t]{0,3}(?:```|~~~)[^\n]*$")
_COMMENT = re.compile(r"<!--[^<>]{0,2000}-->")
_TAG = re.compile(
    r"</?(?:a|abbr|b|big|blockquote|body|br|center|cite|code|dd|del|details|div|dl|dt|em|"
    r"figcaption|figure|font|h[1-6]|hr|i|iframe|img|ins|kbd|li|mark|ol|p|picture|pre|q|s|samp|"
    r"script|section|small|source|span|strike|strong|style|sub|summary|sup|table|tbody|td|tfoot|"
    r"th|thead|tr|tt|u|ul|var|video|wbr)(?:[\s/][^<>]{0,1000})?>",
    re.I,
)
_LINK = re.compile(r"(?<!\\)!?\[([^\[\]]*)\](?:\([^)\[]*\)|\[[^\[\]]{0,200}\])")
_FOOTNOTE = re.compile(r"\[\^[^\s\[\]]{1,50}\]:?")
_WIKI = re.compile(r"\[\[(?:[^\[\]|]{0,200}\|)?([^\[\]|]{1,200})\]\]")
_SIGNS = re.compile(
    r"(?m)^[^\S\n]*(?:#{1,6}|>|[-*+](?:[ \t]+\[[ xX]\])?|\d{1,3}[.)])\s+|^[ \t\r\f\v\xa0|:=-]+$"
)
_MARKS = re.compile(r"(?<!\\)(?:\*{1,3}|`{1,3}|~~)")
_CELLS = re.compile(r"(?m)\s\|\s|^\||\|$")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|es|s|ly)\Z")
_COMMON = {
    "a", "an", "and", "are", "as", "at", "be", "by", "do", "for", "from", "how", "i", "in", "is",
    "it", "of", "on", "or", "that", "the", "to", "was", "what", "when", "where", "which", "who",
    "why", "with",
}  # fmt: skip


class Part(NamedTuple):
    text: str
    is_asked: bool  # a word of the query


def plain_text(text: str) -> str:
    """Return Markdown and the HTML in it as one line of plain text."""
    text = _TAG.sub("", _COMMENT.sub("", _FENCE.sub("", text)))
    text = _WIKI.sub(r"\1", _FOOTNOTE.sub("", text))
    text = _LINK.sub(r"\1", _LINK.sub(r"\1", text))  # twice: a picture may be what is linked
    text = _CELLS.sub(" ", _MARKS.sub("", _SIGNS.sub("", text)))
    return " ".join(unescape(_ESCAPED.sub(r"\1", text)).split())


def snippet(text: str, query: str = "", length: int = LENGTH) -> list[Part]:
    """Return the part of a passage that fits the query best, cut into words that are asked for and
    what is between them. Without a query, its beginning."""
    plain, stems = plain_text(_without_headings(text)), _stems(query)
    spots = [found.span() for found in _WORD.finditer(plain) if _is_asked(found[0], stems)]
    start = _best_start(spots, length, len(plain))
    if start > 0:
        start = plain.find(" ", start) + 1 or start
    end = min(len(plain), start + length)
    if end < len(plain):
        end = plain.rfind(" ", start, end) if plain.rfind(" ", start, end) > start else end
    edges = [
        start,
        *(edge for spot in spots if start <= spot[0] and spot[1] <= end for edge in spot),
    ]
    parts = [
        Part(plain[a:b], number % 2 == 1)
        for number, (a, b) in enumerate(pairwise([*edges, end]))
        if a < b
    ]
    before, after = start > 0, end < len(plain)
    return [*_ellipsis("… ", before), *parts, *_ellipsis(" …", after)]


def shortened(text: str, query: str = "", length: int = LENGTH) -> str:
    """Return a snippet as text."""
    return "".join(part.text for part in snippet(text, query, length))


def _without_headings(text: str) -> str:
    """Return a passage without the headings that it begins with: hits show them above it."""
    lines = text.split("\n")
    start = next((n for n, line in enumerate(lines) if line.strip() and not _HEAD.match(line)), 0)
    return "\n".join(lines[start:])


def _ellipsis(sign: str, is_cut: bool) -> Iterator[Part]:
    if is_cut:
        yield Part(sign, False)


def _stems(query: str) -> tuple[str, ...]:
    words = [word.lower() for word in _WORD.findall(query)]
    wanted = [word for word in words if word not in _COMMON] or words
    return tuple(dict.fromkeys(_ENDING.sub("", word) for word in wanted))


def _is_asked(word: str, stems: Sequence[str]) -> bool:
    lower = word.lower()
    return any(
        lower == stem or (len(stem) >= 3 and lower.startswith(stem) and len(lower) - len(stem) <= 4)
        for stem in stems
    )


def _best_start(spots: Sequence[tuple[int, int]], length: int, whole: int) -> int:
    if not spots or whole <= length:
        return 0
    starts = [start for start, _ in spots]
    within = [
        bisect_left(starts, start + length - 60) - place for place, start in enumerate(starts)
    ]
    return max(0, min(starts[within.index(max(within))] - 40, whole - length))
