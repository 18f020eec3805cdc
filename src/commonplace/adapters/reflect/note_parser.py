"""Parse notes: headings, paragraphs, trees of list items, speakers, and where each sentence is."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from commonplace.model import Quote
from commonplace.text.prose import END

_FENCE = re.compile(r"^[ \t]*(```|~~~)")
_HEADING = re.compile(r"[ \t]*#{1,6}[ \t]++(?P<text>.+)")
# `Action items:`, `**Decisions**`
_TITLE_LINE = re.compile(r"^[ \t]*\**(?!TODO |FIXME )(?P<text>[A-Z][\w /'&-]{2,60}):?\**:?[ \t]*$")
_FEW = 6  # words of a title without a colon; a longer line is the first of a paragraph
_NOT_PROSE = re.compile(r"^\s*(?:\||<|@@|\$ |>>> |[-*_=~]{3,}\s*$)")
_LEAD = re.compile(
    r"[ \t]*(?P<bullet>(?:[-*+•>]|(?P<number>\d{1,3})[.)])[ \t]+)?(?:\[(?P<box>[ xX])\][ \t]+)?"
)
_STAMP = r"(?:\[?\(?\d{1,2}:\d{2}(?::\d{2})?(?:[ \t]?[APap][Mm])?\)?\]?[ \t]*+(?:[-–][ \t]*)?)?"
_LETTERS = r"(?:[^\W_]|[.'’-]|_(?!_))*+"  # of a name; two underscores are emphasis
# `Alice:`, `[10:32] Bob Smith:`, `**Carol** (PM):`. At most three words with capitals, so that a
# sentence is not taken for a name.
_SPEAKER = re.compile(
    _STAMP + rf"(?P<mark>\*\*|__)?(?P<name>[^\W\d_]{_LETTERS}(?:[ \t][^\W\d_a-z]{_LETTERS}){{0,2}})"
    r"(?:[ \t]\([^)\n]{1,30}\))?"
    r"(?(mark):?(?:\*\*|__)):?(?<=[:*_])[ \t]+(?=\S)"
)
_LABEL = re.compile(
    r"(?:\*\*|__)?(?P<label>[A-Za-z][A-Za-z /-]{1,30}?)(?:\*\*|__)?"
    r"(?:[ \t]*:|[ \t]+[–—-][ \t])(?:\*\*|__)?[ \t]*(?=\S)"
)
_LINK = re.compile(r"\]\(|https?://|(?<!\w)#\d")
_SHORT = 8  # words; a longer list item says something of its own
_TURN = re.compile(
    r"^[ \t]*(?:#{1,4} |\*\*|__)?(?P<role>user|human|assistant|ai|model|system|tool)"
    r"(?:\*\*|__)?:(?:\*\*|__)?[ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
_LONGEST_TOPIC = 20  # words
_WRAPPED = 60  # characters; a longer line may continue in the next


@dataclass(slots=True)
class Block:
    """A paragraph, a list item or one turn of a speaker."""

    heading: str
    number: int | None = None  # in a numbered list
    box: bool | None = None  # whether its check box is ticked, if it has one
    label: str = ""  # `Decision: ...`
    speaker: str = ""
    indent: int = -1  # of a list item
    parent: "Block | None" = None  # the list item that it is indented below
    is_parent: bool = False
    start: int = 0
    end: int = 0
    sentences: list[Quote] = field(default_factory=list)

    @property
    def is_topic(self) -> bool:
        """Whether it only says what the items below it are about: an agenda line."""
        return self.is_parent and (
            any(_LINK.search(sentence.text) for sentence in self.sentences)
            or self.text.endswith(":")
            or len(self.text.split()) < 3
        )

    @property
    def text(self) -> str:
        return self.sentences[0].text if self.sentences else ""

    @property
    def topic(self) -> Quote | None:
        """Return the first sentence of the agenda line above it, else of a short item."""
        above = list(self._ancestors())
        for one in above:
            if one.is_topic and len(one.text.split()) <= _LONGEST_TOPIC:
                return one.sentences[0]
        return above[0].sentences[0] if above and len(above[0].text.split()) <= _SHORT else None

    def _ancestors(self) -> "Iterator[Block]":
        one = self.parent
        while one and one.sentences:
            yield one
            one = one.parent


def user_turns(text: str) -> list[tuple[int, int]]:
    """Return where the user speaks, if the text is a conversation with an assistant."""
    turns = list(_TURN.finditer(text))
    starts = [*(turn.start() for turn in turns), len(text)]
    return [
        (turn.end(), end)
        for turn, end in zip(turns, starts[1:], strict=True)
        if turn["role"].lower() in ("user", "human")
    ]


def parse_blocks(
    text: str, labels: frozenset[str], turns: Sequence[tuple[int, int]] = ()
) -> list[Block]:
    """Split notes into blocks; of a conversation, only these turns. `labels` may precede a colon
    without being a speaker's name."""
    if turns:
        return [
            block
            for start, end in turns
            for block in _blocks(text, start, end, labels, frozenset())
        ]
    return _blocks(text, 0, len(text), labels, _speakers(text, labels))


def _blocks(
    text: str, start: int, end: int, labels: frozenset[str], names: frozenset[str]
) -> list[Block]:
    found: list[Block] = []
    heading = ""
    before = ""  # the last line of the open block
    items: list[Block] = []  # the open list items, outermost first
    for at, line in _lines(text, start, end):
        stands_alone = not before or line.rstrip().endswith((":", "*"))
        title = _HEADING.match(line) or (_TITLE_LINE.match(line) if stands_alone else None)
        if title and title.re is _TITLE_LINE and ":" not in line and len(line.split()) > _FEW:
            title = None
        if not line.strip() or _NOT_PROSE.match(line) or title:
            before = ""
            if title:
                heading = title["text"].rstrip("# \t\r\n").strip("* :")
                items.clear()
            continue
        block, begin = _start_block(line, heading, labels, names)
        indent = len(line) - len(line.lstrip())
        is_wrapped = bool(before and items and items[-1] is found[-1] and indent > items[-1].indent)
        is_new = not before or (
            not is_wrapped and len(before) < _WRAPPED and line[indent].isupper()
        )
        if is_new or begin > indent:
            block.start = at + begin
            while items and items[-1].indent >= (indent if block.indent >= 0 else indent + 1):
                items.pop()
            if block.indent >= 0:
                if items:
                    block.parent = items[-1]
                    items[-1].is_parent = True
                items.append(block)
            found.append(block)
        before = line.rstrip()
        found[-1].end = at + len(before)
    for block in found:
        block.sentences = list(_sentences(text, block.start, block.end))
    return [block for block in found if block.sentences]


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    """Yield each line with its position; lines of a code block as empty."""
    at, fence = start, ""
    for line in text[start:end].splitlines(keepends=True):
        mark = _FENCE.match(line)
        inside = bool(fence or mark)
        if mark and (not fence or mark[1] == fence):
            fence = "" if fence else mark[1]
        yield at, "" if inside else line
        at += len(line)


def _speakers(text: str, labels: frozenset[str]) -> frozenset[str]:
    """Return the names before a colon that recur, or that half of all lines begin with.

    A single `Redis: ...` is not a speaker.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    starts = (_LEAD.match(line) for line in lines)
    matches = (_SPEAKER.match(start.string, start.end()) for start in starts if start)
    names = Counter(
        match["name"] for match in matches if match and match["name"].lower() not in labels
    )
    is_talk = 2 * names.total() >= len(lines)
    return frozenset(name for name, count in names.items() if is_talk or count > 1)


def _start_block(
    line: str, heading: str, labels: frozenset[str], names: frozenset[str]
) -> tuple[Block, int]:
    """Return a block that begins with this line, and where in the line its text begins."""
    lead = _LEAD.match(line)
    assert lead is not None  # all of it is optional
    number, box, begin = lead["number"], lead["box"], lead.end()
    block = Block(heading, int(number) if number else None, box != " " if box else None)
    if lead["bullet"]:
        block.indent = lead.start("bullet")
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


def _sentences(text: str, start: int, end: int) -> Iterator[Quote]:
    gaps = list(END.finditer(text, start, end))
    starts = [start, *(gap.end() for gap in gaps)]
    for first, last in zip(
        starts, [*(gap.start() + len(gap[0].rstrip()) for gap in gaps), end], strict=True
    ):
        whole = text[first:last]
        if stripped := whole.strip():
            begin = first + len(whole) - len(whole.lstrip())
            yield Quote(begin, begin + len(stripped), stripped)
