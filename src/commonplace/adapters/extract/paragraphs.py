"""Join the lines of a page to paragraphs."""

import re
from collections.abc import Sequence
from statistics import quantiles

_HYPHENATED = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]$")
_SENTENCE_END = re.compile(r"""[.!?:;…。！？]["'”’)\]]*$""")
_ITEM = re.compile(
    r"[•◦▪‣●○–*\uf0a7\uf0b7-]\s+"  # bullets
    r"|\(?\d{1,3}[.)]\s+|\(?[a-z][.)]\s+|\[\d{1,3}\]\s"  # numbers and letters
)
_BULLET = re.compile(r"[•◦▪‣●○\uf0a7\uf0b7]\s*")
_LEADERS = re.compile(r"(?:\s?\.){4,}")  # the dots of a table of contents
_SHORT = 0.8  # of a full line
_HEADING = 0.6
_CJK = re.compile(r"[\u3001-\u303f\uff01-\uff60\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def join_lines(lines: Sequence[str]) -> str:
    """Join lines to one paragraph, and words that were hyphenated at the end of a line."""
    parts: list[str] = []
    for line in filter(None, (" ".join(line.split()) for line in lines)):
        last = parts[-1] if parts else ""
        if last.endswith("\u00ad") or (_HYPHENATED.search(last) and line[:1].islower()):
            parts[-1] = last[:-1]
        elif last and not (_CJK.match(last[-1]) and _CJK.match(line)):
            parts.append(" ")
        parts.append(line)
    return _LEADERS.sub(" ", "".join(parts).replace("\u00ad", ""))


def split_paragraphs(lines: Sequence[str]) -> list[str]:
    """Guess paragraphs: they end at empty lines, list items and lines short of the margin."""
    lengths = [len(line.strip()) for line in lines if line.strip()]
    full = quantiles(lengths, n=4)[2] if len(lengths) > 1 else 0.0
    groups: list[list[str]] = [[]]
    for line in map(str.strip, lines):
        if groups[-1] and (not line or _ITEM.match(line) or _ends(groups[-1][-1], line, full)):
            groups.append([])
        if line:
            groups[-1].append(line)
    joined = (join_lines(group) for group in groups if group)
    return [write_bullet(text) for text in joined]


def is_item(text: str) -> bool:
    """Whether a line begins with the mark or the number of a list's item."""
    return bool(_ITEM.match(text + " "))


def write_bullet(text: str) -> str:
    return _BULLET.sub("- ", text, count=1) if _BULLET.match(text) else text


def _ends(last: str, following: str, full: float) -> bool:
    if _HYPHENATED.search(last):
        return False
    if _SENTENCE_END.search(last):
        return len(last) < _SHORT * full
    return len(last) < _HEADING * full and not following[:1].islower()
