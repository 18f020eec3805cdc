"""What the lines of all pages are: running heads, headings, paragraphs, lists, listings."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from commonplace.adapters.extract.html.inline import escape_line_starts
from commonplace.adapters.extract.paragraphs import is_item, join_lines, write_bullet
from commonplace.adapters.extract.pdf.page import Line, Page, link_end

_DIGITS = re.compile(r"\d+")
_PAGE_NUMBER = re.compile(r"\W{0,4}(?:\w{1,9} )?(?:#|[ivxlc]{1,7})(?: \w{1,5} #)?\W{0,4}", re.I)
_RUNNING = 0.5  # a line on more than this share of the pages is a header or footer
_LARGER = 1.12  # than the text: a heading
_RARE = 0.2  # share of the text that headings may take
_LABELS = 3  # short lines in a row are a drawing's, not the text under a heading
_SHORTEST_TEXT = 25  # characters of what a heading is followed by
_LONGEST_HEADING, _LONGEST_BOLD = 150, 100
_SENTENCE_END = re.compile(r"""[.!?:;…。！？]["'”’)\]]*$""")
_DOTTED = re.compile(r"(?:[A-Z]|\d{1,3})(?:\.\d{1,3}){1,5}\.? \S")
_NUMBERED = re.compile(r"(?:[A-Z]|\d{1,3})(?:\.\d{1,3}){0,5}\.? \S")

Style = tuple[int, bool]


@dataclass(slots=True)
class Part:
    lines: list[Line]
    level: int = 0  # of a heading

    @property
    def text(self) -> str:
        return join_lines([line.text for line in self.lines])

    @property
    def style(self) -> Style:
        """The size in half points, and whether all is bold."""
        return _half_points(self.lines[0].size), all(line.bold for line in self.lines)


def _half_points(size: float) -> int:
    return round(size * 2)


class Layout:
    def __init__(self, pages: list[Page], outline: dict[int, dict[str, int]]) -> None:
        sizes: Counter[int] = Counter()
        fixed = bold = 0
        for line in (line for page in pages for line in page.lines if not line.is_table):
            sizes[_half_points(line.size)] += len(line.text)
            fixed += len(line.text) if line.code else 0
            bold += len(line.text) if line.bold else 0
        self._total = max(sizes.total(), 1)
        self._sizes = sizes
        self._body = max(sizes, key=lambda size: sizes[size], default=20) / 2 or 10.0
        self._is_typed = fixed > 0.5 * self._total
        self._bold_is_rare = bold <= _RARE * self._total
        _drop_running(pages, self._body)
        self.parts = [list(self._group(page.lines)) for page in pages]
        self._mark_headings(outline)

    def title(self) -> str:
        """Return the largest words at the start of the first page with text."""
        for page in self.parts[:3]:
            largest = max((part.lines[0].size for part in page if _is_words(part.text)), default=0)
            if not page:
                continue
            if largest < _LARGER * self._body:
                return ""
            for part in page:
                if part.lines[0].size >= 0.98 * largest and _is_words(part.text):
                    return part.text
        return ""

    def first_words(self) -> str:
        return next((part.text for page in self.parts for part in page if part.text), "")

    def write(self, number: int) -> str:
        return "\n\n".join(filter(None, map(self._write, self.parts[number])))

    def _write(self, part: Part) -> str:
        first = part.lines[0]
        if first.is_table:
            return first.written
        if first.code and not self._is_typed and len(part.lines) > 1:
            return _listing(part.lines)
        text = join_lines(_written(part.lines))
        if part.level:
            return f"{'#' * part.level} {text}"
        return write_bullet(text) if is_item(text) else escape_line_starts(text)

    def _group(self, lines: list[Line]) -> Iterator[Part]:
        """Group the lines of a page to paragraphs."""
        pitches = self._pitches(lines)
        right = _right_margins(lines)
        part: list[Line] = []
        for line in lines:
            if part and self._ends(part, line, pitches, right):
                yield Part(part)
                part = []
            part.append(line)
        if part:
            yield Part(part)

    def _pitches(self, lines: list[Line]) -> dict[int, float]:
        """Return the usual distance of lines, for each size."""
        found: defaultdict[int, list[float]] = defaultdict(list)
        for a, b in pairwise(lines):
            if 0 < b.middle - a.middle < 2.5 * a.size and abs(a.size - b.size) < 0.3:
                found[_half_points(a.size)].append(b.middle - a.middle)
        return {size: median(each) for size, each in found.items() if len(each) > 2}

    def _ends(
        self, part: list[Line], line: Line, pitches: dict[int, float], right: dict[int, float]
    ) -> bool:
        last, first = part[-1], part[0]
        if last.is_table or last.is_entry or line.is_table or not line.size or not last.size:
            return True
        is_mark = is_item(first.text) and len(first.text.split()) == 1
        if is_mark and abs(line.middle - first.middle) < 0.6 * line.size:
            return False
        if abs(line.middle - last.middle) < 0.3 * last.size and line.x0 > last.x1 - 1:
            return False  # more of the same line
        is_code = bool(line.code) and not self._is_typed
        if is_code != (bool(last.code) and not self._is_typed):
            return True
        if abs(line.size - last.size) > 0.07 * last.size or is_item(line.text):
            return True
        pitch = line.middle - last.middle
        usual = pitches.get(_half_points(last.size), 1.3 * last.size)
        if is_code:
            return not 0 < pitch < 2.6 * usual
        is_cut = last.text.endswith(("\u00ad", "-")) and line.text[:1].islower()
        is_text = line.size < _LARGER * self._body and not is_cut
        if is_text and line.bold != last.bold and all(each.bold for each in part) != line.bold:
            return True
        if pitch <= 0 or pitch > 4 * usual:  # the next column
            full = last.x1 > right.get(round(last.x0 / 10), last.x1) - 2 * last.size
            return not is_cut and (
                not full or bool(_SENTENCE_END.search(last.text)) or not line.text[:1].islower()
            )
        if pitch > 1.35 * usual:
            return True
        if is_cut:
            return False
        if line.x0 > last.x0 + 0.8 * last.size and len(part) > 1:
            return True
        if line.x0 > last.x0 + 0.8 * last.size and not is_item(first.text):
            return last.x1 < right.get(round(last.x0 / 10), last.x1) - 4 * last.size or bool(
                _SENTENCE_END.search(last.text)
            )
        margin = right.get(round(line.x0 / 10), last.x1)
        room = margin - last.x1
        wide = max(margin - line.x0, 1.0)
        if _SENTENCE_END.search(last.text):
            return room > 0.2 * wide
        return room > 0.4 * wide and not line.text[:1].islower()

    def _mark_headings(self, outline: dict[int, dict[str, int]]) -> None:
        marked: dict[int, int] = {}
        candidates: set[int] = set()
        for number, page in enumerate(self.parts):
            listed = outline.get(number, {})
            best: dict[str, Part] = {}
            for part in page:
                first = part.lines[0]
                if first.is_table or (first.code and not self._is_typed):
                    continue
                text = part.text
                if len(text) > _LONGEST_HEADING or any(line.is_entry for line in part.lines):
                    continue
                key = letters(text)
                if listed.get(key):
                    if key not in best or first.size >= best[key].lines[0].size:
                        best[key] = part
                elif self._looks_like_heading(part, text):
                    candidates.add(id(part))
            marked |= {id(part): listed[key] for key, part in best.items()}
        flat = [part for page in self.parts for part in page]
        self._drop_labels(flat, candidates, marked)
        named = self._title_block(flat, candidates)
        candidates -= named
        kept = [part for part in flat if id(part) in candidates]
        levels = self._levels(
            kept, [(part, marked[id(part)]) for part in flat if id(part) in marked]
        )
        for part in kept:
            part.level = levels.get(part.style, 0)
        for part in flat:
            part.level = marked.get(id(part), part.level)
        by_depth: defaultdict[int, Counter[int]] = defaultdict(Counter)
        for part in flat:
            if part.level and (depth := _depth(part)):
                by_depth[depth][part.level] += 1
        for part in kept:
            if part.level and (depth := _depth(part)):
                part.level = by_depth[depth].most_common(1)[0][0]

    def _drop_labels(self, flat: list[Part], candidates: set[int], marked: dict[int, int]) -> None:
        """Leave out what nothing follows that a heading could be of: labels in drawings."""
        largest = max((part.style[0] for part in self.parts[0]), default=0)
        since = _LABELS
        for part in reversed(flat):
            first = part.lines[0]
            if id(part) in candidates:
                is_title = part.style[0] == largest and part in self.parts[0]
                if since >= _LABELS and not is_title:
                    candidates.discard(id(part))
            elif id(part) not in marked:
                is_text = (
                    first.is_table
                    or bool(first.code)
                    or is_item(first.text)
                    or sum(len(line.text) for line in part.lines) >= _SHORTEST_TEXT
                )
                since = 0 if is_text else since + 1

    def _title_block(self, flat: list[Part], candidates: set[int]) -> set[int]:
        """Return the names and dates below a title, whose style no heading elsewhere has."""
        sizes = Counter(part.style for part in flat if id(part) in candidates)
        title = max(
            (part for page in self.parts[:1] for part in page if id(part) in candidates),
            key=lambda part: part.style[0],
            default=None,
        )
        block: list[Part] = []
        for part in flat if title is not None else ():
            if part is title:
                block = [part]
            elif block and id(part) in candidates:
                block.append(part)
            elif block:
                break
        inside = Counter(part.style for part in block[1:])
        return {
            id(part)
            for part in block[1:]
            if inside[part.style] == sizes[part.style] and not _NUMBERED.match(part.text)
        }

    def _looks_like_heading(self, part: Part, text: str) -> bool:
        size, bold = part.style
        if len(part.lines) > 4 or part.lines[0].size <= 0 or "\u2026" in text or ". . ." in text:
            return False
        signs = text.replace(" ", "")
        if len(signs) < 3 or sum(map(str.isalnum, signs)) < 0.6 * len(signs):
            return False
        if size / 2 >= _LARGER * self._body:
            return self._sizes[size] <= _RARE * self._total and not text.endswith((":", ",", ";"))
        if not bold or not self._bold_is_rare or size / 2 < 0.97 * self._body:
            return False
        numbered = bool(_DOTTED.match(text))
        return (
            sum(map(str.isalpha, signs)) >= 0.5 * len(signs) > 1
            and len(text) <= _LONGEST_BOLD
            and len(part.lines) <= 2
            and (numbered or not (is_item(text) or text.endswith((".", ",", ";", ":"))))
            and not text[:1].islower()
        )

    def _levels(self, candidates: list[Part], marked: list[tuple[Part, int]]) -> dict[Style, int]:
        """Rank the styles of headings by size. A style that occurs once is none, but a title's."""
        counts = Counter(part.style for part in candidates)
        known: defaultdict[Style, list[int]] = defaultdict(list)
        for part, level in marked:
            known[part.style].append(level)
        largest = max(counts, default=None)
        once = {
            part.style
            for part in candidates
            if counts[part.style] == 1 and not _NUMBERED.match(part.text)
        }
        few = len(self.parts) <= 2
        used = sorted(
            {s for s in counts if s in known or few or s not in once or s == largest} | set(known),
            reverse=True,
        )
        levels: dict[Style, int] = {}
        level = 0
        for style in used:
            level = round(median(known[style])) if style in known else min(level + 1, 6)
            levels[style] = level
        return levels


def _depth(part: Part) -> int:
    """Return how many numbers a numbered heading begins with."""
    text = part.lines[0].text
    return text.partition(" ")[0].strip(".").count(".") + 1 if _NUMBERED.match(text) else 0


def letters(text: str) -> str:
    """Return the letters only: outlines differ from the text in numbers and punctuation."""
    return "".join(filter(str.isalpha, text)).casefold()


def _is_words(text: str) -> bool:
    return sum(map(str.isalpha, text)) > 2


def _right_margins(lines: list[Line]) -> dict[int, float]:
    """Return how far to the right lines with the same left margin go."""
    found: dict[int, float] = {}
    for line in lines:
        for key in (round(line.x0 / 10) + near for near in (-2, -1, 0, 1, 2)):
            found[key] = max(found.get(key, 0.0), line.x1)
    return found


def _written(lines: list[Line]) -> list[str]:
    """Return lines as Markdown, with a link over several of them as one."""
    found = [line.written for line in lines]
    for number, (a, b) in enumerate(pairwise(lines)):
        end = link_end(a.links[1])
        if a.links[1] and a.links[1] == b.links[0] and found[number].endswith(end):
            found[number] = found[number][: -len(end)]
            found[number + 1] = found[number + 1][1:]
    return found


def _listing(lines: list[Line]) -> str:
    indent = min(len(line.code) - len(line.code.lstrip()) for line in lines)
    text = "\n".join(line.code[indent:] for line in lines)
    fence = "````" if "```" in text else "```"
    return f"{fence}\n{text}\n{fence}"


def _drop_running(pages: list[Page], body: float) -> None:
    """Drop headers, footers and page numbers: what the edges of most pages share."""
    for at_end in (False, True, False, True):
        bands = [_outer(page, at_end) for page in pages]
        seen = Counter(key for band in bands for key in set(map(_masked, band)))
        counts = [_offsets(number, band) for number, band in enumerate(bands)]
        offsets = Counter(offset for each in counts for offset in each)
        offset, times = offsets.most_common(1)[0] if offsets else (0, 0)
        counted = times > max(3, _RUNNING * len(pages))
        for page, band, each in zip(pages, bands, counts, strict=True):
            whole = counted and offset in each and all(x.size <= 1.12 * body for x in band)
            dropped = {
                id(line)
                for line in band
                if whole
                or seen[_masked(line)] > max(3, _RUNNING * len(pages))
                or (seen[_masked(line)] > 3 and line.size <= 1.12 * body)
                or _PAGE_NUMBER.fullmatch(_masked(line))
            }
            if dropped and len(page.lines) > len(dropped):
                page.lines = [line for line in page.lines if id(line) not in dropped]


def _offsets(page: int, band: list[Line]) -> set[int]:
    """Return how much larger the numbers of an edge are than the page's own."""
    found = (number for line in band for number in _DIGITS.findall(line.text)[:9])
    return {int(number) - page for number in found if len(number) < 6}


def _outer(page: Page, at_end: bool) -> list[Line]:
    """Return the lines at the upper or lower edge of a page, which stand side by side."""
    lines = [line for line in page.lines if line.size and not line.is_table]
    if not lines:
        return []
    edge = (max if at_end else min)(line.middle for line in lines)
    return [line for line in lines if abs(line.middle - edge) < 4]


def _masked(line: Line) -> str:
    return _DIGITS.sub("#", " ".join(line.text.split()))
