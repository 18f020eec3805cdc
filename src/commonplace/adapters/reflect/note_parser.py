"""Notes as a reader takes them in: under headings, in paragraphs and lists, said by somebody; sentence by sentence, and where
each of them stands in the text."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from commonplace.text.sentences import END

_FENCE = re.compile(r"^[ \t]*(```|~~~)")
_HEADING = re.compile(r"[ \t]*#{1,6}[ \t]++(?P<text>.+)")
# `Action items:`, `**Decisions**`
_TITLE_LINE = re.compile(r"^[ \t]*\**(?!TODO |FIXME )(?P<text>[A-Z][\w /'&-]{2,60}):?\**:?[ \t]*$")
_NOT_PROSE = re.compile(r"^\s*(?:\||<|@@|\$ |>>> |[-*_=~]{3,}\s*$)")
_LEAD = re.compile(
    r"[ \t]*(?:(?:[-*+•>]|(?P<number>\d{1,3})[.)])[ \t]+)?(?:\[(?P<box>[ xX])\][ \t]+)?"
)
_STAMP = r"(?:\[?\(?\d{1,2}:\d{2}(?::\d{2})?(?:[ \t]?[APap][Mm])?\)?\]?[ \t]*+(?:[-–][ \t]*)?)?"
_LETTERS = r"(?:[^\W_]|[.'’-]|_(?!_))*+"  # of a name; two underscores are emphasis
# `Alice:`, `[10:32] Bob Smith:`, `**Carol** (PM):`. At most three words with capitals, so that no sentence is taken for a name.
_SPEAKER = re.compile(
    _STAMP
    + rf"(?P<mark>\*\*|__)?(?P<name>[^\W\d_]{_LETTERS}(?:[ \t][^\W\d_a-z]{_LETTERS}){{0,2}})(?:[ \t]\([^)\n]{{1,30}}\))?"
    r"(?(mark):?(?:\*\*|__)):?(?<=[:*_])[ \t]+(?=\S)"
)
_LABEL = re.compile(
    r"(?:\*\*|__)?(?P<label>[A-Za-z][A-Za-z /-]{1,30}?)(?:\*\*|__)?(?:[ \t]*:|[ \t]+[–—-][ \t])(?:\*\*|__)?[ \t]*"
    r"(?=\S)"
)
_WRAPPED = (
    60  # characters from which on a line may have been broken by its width, and go on in the next
)


@dataclass(frozen=True, slots=True)
class Sentence:
    start: int
    end: int
    text: str


@dataclass(slots=True)
class Block:
    """A paragraph, a list item or what somebody said at a stretch."""

    heading: str
    number: int | None = None  # in a numbered list
    box: bool | None = None  # a check box, and whether it is ticked
    label: str = ""  # `Decision: ...`
    speaker: str = ""
    sentences: list[Sentence] = field(default_factory=list)


def blocks(text: str, labels: frozenset[str]) -> list[Block]:
    """`labels`: what may stand before a colon and is no name."""
    found: list[Block] = []
    heading = ""
    start = end = 0
    names = _speakers(text, labels)
    before = ""
    open_block: Block | None = None

    def close() -> None:
        nonlocal open_block
        if open_block is not None:
            open_block.sentences = list(_sentences(text, start, end))
            if open_block.sentences:
                found.append(open_block)
        open_block = None

    for at, line in _lines(text):
        stands_alone = open_block is None or line.rstrip().endswith((":", "*"))
        title = _HEADING.match(line) or (_TITLE_LINE.match(line) if stands_alone else None)
        if not line.strip() or _NOT_PROSE.match(line) or title:
            close()
            heading = title["text"].rstrip("# \t\r\n").strip("* :") if title else heading
            continue
        block, begin = _opened(line, heading, labels, names)
        indent = len(line) - len(line.lstrip())
        if (
            open_block is None
            or begin > indent
            or (len(before) < _WRAPPED and line[indent].isupper())
        ):
            close()
            open_block, start = block, at + begin
        end, before = at + len(line.rstrip()), line.rstrip()
    close()
    return found


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Where each line begins; what is inside a code fence is no prose, and reads as empty."""
    at, fence = 0, ""
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        inside = bool(fence or mark)
        if mark and (not fence or mark[1] == fence):
            fence = "" if fence else mark[1]
        yield at, "" if inside else line
        at += len(line)


def _speakers(text: str, labels: frozenset[str]) -> frozenset[str]:
    """Who is quoted: names before a colon that come back, or that half of all lines begin with. `Redis: ...` is no speaker."""
    lines = [line for line in text.splitlines() if line.strip()]
    starts = (_LEAD.match(line) for line in lines)
    spoken = (_SPEAKER.match(start.string, start.end()) for start in starts if start)
    found = [match["name"] for match in spoken if match]
    names = Counter(name for name in found if name.lower() not in labels)
    is_talk = 2 * names.total() >= len(lines)
    return frozenset(name for name, count in names.items() if is_talk or count > 1)


def _opened(
    line: str, heading: str, labels: frozenset[str], names: frozenset[str]
) -> tuple[Block, int]:
    """A block that begins with this line, and where in the line its words begin."""
    block = Block(heading)
    lead = _LEAD.match(line)
    begin = lead.end() if lead else 0
    if lead and lead["number"]:
        block.number = int(lead["number"])
    if lead and lead["box"]:
        block.box = lead["box"] != " "
    for _ in range(2):  # `Alice: TODO: ...`
        label = _LABEL.match(line, begin)
        if label and label["label"].strip().lower() in labels:
            block.label, begin = label["label"].strip().lower(), label.end()
            break
        speaker = _SPEAKER.match(line, begin)
        if not speaker or block.speaker or speaker["name"] not in names:
            break
        block.speaker, begin = speaker["name"], speaker.end()
    return block, begin


def _sentences(text: str, start: int, end: int) -> Iterator[Sentence]:
    at = start
    for gap in END.finditer(text, start, end):
        yield from _sentence(text, at, gap.start() + len(gap[0].rstrip()))
        at = gap.end()
    yield from _sentence(text, at, end)


def _sentence(text: str, start: int, end: int) -> Iterator[Sentence]:
    whole = text[start:end]
    if stripped := whole.strip():
        start += len(whole) - len(whole.lstrip())
        yield Sentence(start, start + len(stripped), stripped)
