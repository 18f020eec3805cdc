"""Cut a text into sections of 160 to 190 words, at headings, paragraphs and sentences."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, takewhile
from math import ceil
from operator import itemgetter

from commonplace.model import Mark, Section
from commonplace.text import query_terms
from commonplace.text.language import detect
from commonplace.text.link_texts import link_texts

TARGET = 160  # words of a section
LARGEST = 190  # of a block that stays whole; about the 256 tokens that small embedders read
SMALLEST = 30  # of a section; less is joined to a neighbour
HEADED = 130  # from which on the next heading begins a section: short ones say too little alone
_PART = 100 * TARGET  # words divided at once: a long text is never held as pieces as a whole
_BLOCK = 100_000  # characters that are counted at once
_LETTERS_PER_WORD = 6  # where words are longer (code, addresses, base64), letters decide
_LONGEST_HEADING = 120

_Path = tuple[str, ...]

FENCE = re.compile(r" {0,3}(`{3,}+(?=[^`]*$)|~{3,})")
_HEADING = re.compile(r"(#{1,6})[ \t]++(.*)")
_UNSPACED = re.compile(f"[{query_terms.UNSPACED}]")
# Not after a short number by itself, which is a list's more often than a sentence's last word.
_SENTENCES = re.compile(
    r"""(?<!\s\d)(?<!\s\d\d)[.!?…]["')\]”’]*\s+"""
    r"""|[。！？]["」』”’]*"""
)
_ENDS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
# Lines as in str.splitlines, one at a time.
_LINE = re.compile(rf"[^{_ENDS}]*+(?:\r\n|[{_ENDS}])?+")
_LINES = re.compile(r"\n+")
_GAPS = re.compile(r"\s+")
_LETTERS = re.compile(r".{1,300}", re.DOTALL)
_PROSE = (_SENTENCES, _LINES, _GAPS, _LETTERS)
_CODE = (_LINES, _GAPS, _LETTERS)


@dataclass(slots=True)
class _Piece:
    """text[start:end], which stays together, and the headings above it."""

    start: int
    end: int
    size: int
    path: _Path
    is_heading: bool = False


def cut(text: str, title: str = "", marks: Sequence[Mark] = ()) -> list[Section]:
    """Return the text's sections in order. The title only adds search terms."""
    language = detect(text)
    of_title = query_terms.extra_terms(title, language)
    sections: list[Section] = []
    starts = [mark.at for mark in marks]
    for part in _parts(text):
        for pieces in _share_out(part):
            whole = text[pieces[0].start : pieces[-1].end]
            body = whole.strip()
            passed = bisect_right(starts, pieces[0].start + len(whole) - len(whole.lstrip()))
            # What comes before the first mark, such as a description, shares a section with it.
            passed = passed or bisect_left(starts, pieces[-1].end, hi=len(starts[:1]))
            sections.append(
                Section(
                    len(sections),
                    body,
                    _heading(pieces),
                    f"{of_title} {query_terms.extra_terms(body, language)}".strip(),
                    count(body),
                    locator=marks[passed - 1].locator if passed else {},
                )
            )
    return sections


def embedding_text(title: str, section: Section) -> str:
    """Return the text to embed for a section: title, headings, and its own text."""
    above = [] if section.text.lstrip("# ").startswith(title) else [title]
    return query_terms.for_embedding(
        "\n".join(filter(None, [*above, section.heading, section.text]))
    )


def count(text: str) -> int:
    """Words; two characters of a script without spaces count as one."""
    # In blocks: a list of all words takes ten times the memory of the text.
    edges = range(_BLOCK, len(text), _BLOCK)
    divided = sum(not text[at].isspace() and not text[at - 1].isspace() for at in edges)
    spaced = sum(len(text[at : at + _BLOCK].split()) for at in (0, *edges)) - divided
    return spaced if text.isascii() else spaced + sum(1 for _ in _UNSPACED.finditer(text)) // 2


def _size(text: str) -> int:
    text = link_texts(text)
    return max(count(text), (len(text) - text.count(" ")) // _LETTERS_PER_WORD)


def _parts(text: str) -> Iterator[list[_Piece]]:
    """Yield the pieces between headings, at most _PART words; short parts join a neighbour."""
    before: list[_Piece] = []
    part: list[_Piece] = []
    size = 0
    for piece in _pieces(text):
        if (piece.is_heading and size >= HEADED) or size >= _PART:
            if before:
                yield before
            before, part, size = part, [], 0
        part.append(piece)
        size += piece.size
    if before and size >= SMALLEST:
        yield before
        before = []
    if before or part:
        yield before + part


def _share_out(part: list[_Piece]) -> Iterator[list[_Piece]]:
    """One part as sections of about equal size, rather than full ones and a rest."""
    left = sum(piece.size for piece in part)
    sections = _how_many(left)
    pieces: list[_Piece] = []
    size = 0
    for piece in part:
        if (
            size >= SMALLEST
            and left >= SMALLEST
            and size + piece.size / 2 > (size + left) / sections
        ):
            yield pieces
            pieces, size, sections = [], 0, _how_many(left)
        pieces.append(piece)
        size += piece.size
        left -= piece.size
    yield pieces


def _how_many(size: int) -> int:
    return max(1, ceil((size - LARGEST + TARGET) / TARGET))


def _heading(pieces: Sequence[_Piece]) -> str:
    """The headings that all of it stands under."""
    paths = [piece.path for piece in pieces if not piece.is_heading] or [pieces[-1].path]
    return " > ".join(
        names[0]
        for names in takewhile(lambda names: len(set(names)) == 1, zip(*paths, strict=False))
    )


def _pieces(text: str) -> Iterator[_Piece]:
    for (start, path, is_heading, breaks), (end, *_) in pairwise(
        chain(_blocks(text), [(len(text), (), False, _PROSE)])
    ):
        size = _size(text[start:end])
        if size <= LARGEST:
            yield _Piece(start, end, size, path, is_heading)
        else:
            yield from (
                _Piece(*part, path, is_heading) for part in _divide(text, start, end, breaks)
            )


def _divide(
    text: str, start: int, end: int, breaks: Sequence[re.Pattern[str]]
) -> Iterator[tuple[int, int, int]]:
    """Break at the first kind of break; what is still too large, at the next kind."""
    for a, b in pairwise(
        chain((start,), (found.end() for found in breaks[0].finditer(text, start, end)), (end,))
    ):
        size = _size(text[a:b])
        if size > LARGEST and len(breaks) > 1:
            yield from _divide(text, a, b, breaks[1:])
        elif a < b:
            yield a, b, size


def _blocks(text: str) -> Iterator[tuple[int, _Path, bool, Sequence[re.Pattern[str]]]]:
    """Yield where each heading, paragraph, table and fenced block starts."""
    above: list[tuple[int, str]] = []
    path: _Path = ()
    fence = ""
    between = True  # blocks: no paragraph is open
    at = 0
    for line in map(itemgetter(0), _LINE.finditer(text)):
        bare = line.strip()
        if fence:
            if bare.startswith(fence) and not bare.strip(fence[0]):
                fence, between = "", True
        elif not bare:
            between = True
        elif found := FENCE.match(line):
            fence = found[1]
            yield at, path, False, _CODE
        # A lone # within a paragraph is more often a comment of code than a heading.
        elif (found := _HEADING.match(line)) and (between or len(found[1]) > 1):
            level = len(found[1])
            above = [(depth, name) for depth, name in above if depth < level]
            above.append((level, found[2].strip(" #\t\r\n")[:_LONGEST_HEADING]))
            path, between = tuple(name for _, name in above if name), True
            yield at, path, True, _PROSE
        elif between:
            between = False
            yield at, path, False, _CODE if bare[0] == "|" else _PROSE
        at += len(line)
