"""Lines as they stand on a page, joined to paragraphs again."""

import re
from collections.abc import Sequence
from statistics import quantiles

_HYPHENATED = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]$")
_SENTENCE_END = re.compile(r"""[.!?:;…。！？]["'”’)\]]*$""")
_ITEM = re.compile(r"[•◦▪‣●○–*\uf0a7\uf0b7-]\s+|\(?\d{1,3}[.)]\s+|\(?[a-z][.)]\s+|\[\d{1,3}\]\s")
_BULLET = re.compile(r"[•◦▪‣●○\uf0a7\uf0b7]\s*")
_LEADERS = re.compile(r"(?:\s?\.){4,}")  # the dots of a table of contents
_SHORT = 0.8  # of a full line
_HEADING = 0.6
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def join(lines: Sequence[str]) -> str:
    """One paragraph. A word that a hyphen divides at the end of a line is one word again."""
    parts: list[str] = []
    for line in filter(None, (" ".join(line.split()) for line in lines)):
        last = parts[-1] if parts else ""
        if last.endswith("\u00ad") or (_HYPHENATED.search(last) and line[:1].islower()):
            parts[-1] = last[:-1]
        elif last and not (_CJK.match(last[-1]) and _CJK.match(line)):
            parts.append(" ")
        parts.append(line)
    return _LEADERS.sub(" ", "".join(parts).replace("\u00ad", ""))


def paragraphs(lines: Sequence[str]) -> list[str]:
    """Where one ends is guessed: at an empty line, before a list's item, after a line that stops short of the margin."""
    full = _full_line(lines)
    groups: list[list[str]] = [[]]
    for line in map(str.strip, lines):
        if groups[-1] and (not line or _ITEM.match(line) or _ends(groups[-1], line, full)):
            groups.append([])
        if line:
            groups[-1].append(line)
    return [
        _BULLET.sub("- ", join(group), count=1) if _BULLET.match(group[0]) else join(group)
        for group in groups
        if group
    ]


def _ends(group: list[str], following: str, full: float) -> bool:
    last = group[-1]
    if _HYPHENATED.search(last):
        return False
    if _SENTENCE_END.search(last):
        return len(last) < _SHORT * full
    return len(last) < _HEADING * full and not following[:1].islower()


def _full_line(lines: Sequence[str]) -> float:
    lengths = [len(line.strip()) for line in lines if line.strip()]
    return quantiles(lengths, n=4)[2] if len(lengths) > 1 else 0.0
