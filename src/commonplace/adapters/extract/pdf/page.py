"""One page: its lines in the order of reading, with the tables among them."""

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from statistics import median

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from commonplace.adapters.extract.html.inline import escape
from commonplace.adapters.extract.pdf.aligned import aligned_tables
from commonplace.adapters.extract.pdf.edges import Edges, read_edges
from commonplace.adapters.extract.pdf.ruled import Table, ruled_tables
from commonplace.adapters.extract.pdf.words import Word, read_words
from commonplace.adapters.extract.zip_xml import markdown_table

_FEWEST_LETTERS = 10  # a page with fewer has at most a number that a scanner printed
_MOST_WORDS = 20_000  # a page with more is read as it comes
_MOST_LINES = 1_000  # a page with more is read as it comes
_FEWEST_IN_COLUMN = 5  # lines
_ROMAN = {"i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii", "xiii", "xiv"}
_MOSTLY = 0.7  # of a line's letters: it is bold
_FULL = 0.6  # of a column's width: the lines of running text


@dataclass(slots=True)
class Line:
    text: str  # plain
    written: str  # as Markdown
    x0: float = 0.0
    top: float = 0.0
    x1: float = 0.0
    bottom: float = 0.0
    size: float = 0.0
    bold: bool = False
    code: str = ""  # as it stands in a listing, if all of it is in a fixed pitch
    is_table: bool = False
    links: tuple[str, str] = ("", "")  # of the first and of the last word
    is_entry: bool = False  # of a table of contents: ends with a number at the margin

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2


@dataclass(slots=True)
class Page:
    lines: list[Line] = field(default_factory=list)
    height: float = 0.0
    is_scan: bool = False


def read_page(document: pdfium.PdfDocument, number: int, with_tables: bool) -> Page:
    try:
        page = document[number]
    except pdfium.PdfiumError:  # a page that is listed and missing
        return Page()
    view, lines, others = read_words(page)
    words = [word for line in lines for word in line]
    letters = sum(map(str.isalnum, "".join([*(word.text for word in words), *others])))
    if letters < _FEWEST_LETTERS:
        images = page.get_objects([raw.FPDF_PAGEOBJ_IMAGE], max_depth=3)
        is_scan = any(True for _ in images)
    else:
        is_scan = False
    width, height = view.size
    tables: list[Table] = []
    if len(words) <= _MOST_WORDS:
        edges = read_edges(page, view) if with_tables else Edges()
        _add_marks(lines, edges.dots)
        lines = _moved_up(_in_order(lines, width))
        if with_tables:
            tables = _tables(words, lines, edges, width)
    page.close()
    found = _with_tables(lines, tables)
    return Page(found + [Line(text, escape(text)) for text in others], height, is_scan)


def _tables(words: list[Word], lines: list[list[Word]], edges: Edges, width: float) -> list[Table]:
    found = list(ruled_tables(edges, words))
    taken = set().union(*(table.words for table in found)) if found else set()
    left = [[word for word in line if id(word) not in taken] for line in lines]
    bases = sorted(word.base for line in left for word in line if not word.mono)
    left = [line for line in left if line and not _is_listing(line, bases)]
    gutter = _gutter(left, width)
    if gutter is None:
        zones = [[word for line in left for word in line]]
    else:
        across, zones = [], [[], []]
        bands = _wide_bands(edges, gutter)
        for word in (word for line in left for word in line):
            if any(top <= word.middle <= bottom for top, bottom in bands):
                across.append(word)
            else:
                zones[word.x0 > gutter].append(word)
        zones.append(across)
    for zone in zones:
        found += aligned_tables(zone, edges)
    return found


def _is_listing(line: list[Word], bases: list[float]) -> bool:
    """Whether a line is in a fixed pitch, but perhaps for its number, and stands alone."""
    numbered = len(line) > 1 and line[0].text.isdecimal()
    if not (all(word.mono for word in line[1:]) and (line[0].mono or numbered)):
        return False
    at = bisect_left(bases, line[-1].base - 2)
    return numbered or at == len(bases) or bases[at] > line[-1].base + 2


def _add_marks(lines: list[list[Word]], dots: list[tuple[float, float]]) -> None:
    """Write the marks of list items that are drawn, as browsers do."""
    for x, y in dots[:_MOST_LINES]:
        for line in lines:
            first = line[0]
            near = 0 < first.x0 - x < 2.5 * first.size
            if near and abs(first.middle - y) < 0.5 * first.size and first.text != "•":
                mark = replace(first, text="•", x0=x, x1=x + 1, link="", mono=False)
                line.insert(0, mark)
                break


def _moved_up(lines: list[list[Word]]) -> list[list[Word]]:
    """Put lines that the file writes too late, as browsers do, before what stands below them."""
    if len(lines) > _MOST_LINES:
        return lines
    found: list[tuple[float, float, float, list[Word]]] = []
    for line in lines:
        x0, x1 = line[0].x0, max(word.x1 for word in line)
        middle = line[0].middle
        place = len(found)
        for at, (above, left, right, _) in enumerate(found):
            shared = min(x1, right) - max(x0, left)
            if above > middle + 0.5 * line[0].size and shared > 0.5 * min(x1 - x0, right - left):
                place = at
                break
        found.insert(place, (middle, x0, x1, line))
    return [line for _, _, _, line in found]


def _wide_bands(edges: Edges, gutter: float) -> list[tuple[float, float]]:
    """Return from where to where lines of the same width cross the space between the columns."""
    wide = sorted(
        (x0, x1, top) for top, x0, x1 in edges.across if x0 < gutter - 20 < gutter + 20 < x1
    )
    bands = []
    for _, group in groupby(wide, key=lambda line: (round(line[0] / 4), round(line[1] / 4))):
        tops = [top for _, _, top in group]
        if max(tops) - min(tops) > 10:
            bands.append((min(tops), max(tops)))
    return bands


def _segments(line: list[Word]) -> list[list[Word]]:
    found = [[line[0]]]
    for before, word in pairwise(line):
        if not -1.5 * word.size < word.x0 - before.x1 < word.size:
            found.append([])
        found[-1].append(word)
    return found


def _gutter(lines: list[list[Word]], width: float) -> float | None:
    """Return where the space between two columns of running text is, if there are two."""
    parts = [(part[0].x0, part[-1].x1, len(part)) for line in lines for part in _segments(line)]
    best: tuple[int, int] | None = None
    for at in range(int(0.3 * width), int(0.7 * width), max(3, int(width) // 200)):
        crossing = sum(x0 < at < x1 for x0, x1, _ in parts)
        if best is None or (crossing, abs(at - width / 2)) < (best[0], abs(best[1] - width / 2)):
            best = (crossing, at)
    if best is None or best[0] > 0.25 * len(parts):
        return None
    at = best[1]
    sides = [p for p in parts if p[1] <= at], [p for p in parts if p[0] >= at]
    for side in sides:
        if len(side) < _FEWEST_IN_COLUMN:
            return None
        column = max(p[1] for p in side) - min(p[0] for p in side)
        if column < 0.25 * width:
            return None
        if median(p[1] - p[0] for p in side) < _FULL * column or median(p[2] for p in side) < 3:
            return None
    return at


def _in_order(lines: list[list[Word]], width: float) -> list[list[Word]]:
    """Read one column after the other where the file mixes them; else keep the file's order."""
    gutter = _gutter(lines, width)
    if gutter is None:
        return lines
    pieces: list[tuple[str, list[Word]]] = []
    for line in lines:
        crosses = any(part[0].x0 < gutter < part[-1].x1 for part in _segments(line))
        if crosses:
            pieces.append(("", line))
            continue
        for side, part in (
            ("l", [word for word in line if word.x1 <= gutter]),
            ("r", [word for word in line if word.x1 > gutter]),
        ):
            if part:
                pieces.append((side, part))
    sided = [side for side, _ in pieces if side]
    switches = sum(a != b for a, b in pairwise(sided))
    if switches <= max(6, 0.25 * len(sided)):
        return lines
    pieces.sort(key=lambda piece: piece[1][0].middle)
    ordered: list[list[Word]] = []
    for is_wide, group in groupby(pieces, key=lambda piece: not piece[0]):
        band = list(group)
        if is_wide:
            ordered += [line for _, line in band]
        else:
            ordered += [line for side, line in band if side == "l"]
            ordered += [line for side, line in band if side == "r"]
    return ordered


def _with_tables(lines: list[list[Word]], tables: list[Table]) -> list[Line]:
    """Write each table where the first of its words stands."""
    owners = {word: table for table in tables for word in table.words}
    found: list[Line] = []
    written: set[int] = set()
    for line in lines:
        rest: list[Word] = []
        for word in line:
            table = owners.get(id(word))
            if table is None:
                rest.append(word)
            elif id(table) not in written:
                if rest:
                    found.append(_line(rest))
                    rest = []
                written.add(id(table))
                rows = [[escape(cell) for cell in row] for row in table.rows]
                text = markdown_table(rows)
                found.append(Line("", text, *table.box, is_table=True))
        if rest:
            found.append(_line(rest))
    return found


def _line(words: list[Word]) -> Line:
    sizes: Counter[float] = Counter()
    for word in words:
        sizes[word.size] += len(word.text)
    letters = sum(len(word.text) for word in words)
    return Line(
        " ".join(word.text for word in words),
        _written(words),
        min(word.x0 for word in words),
        min(word.top for word in words),
        max(word.x1 for word in words),
        max(word.bottom for word in words),
        sizes.most_common(1)[0][0],
        sum(len(word.text) for word in words if word.bold) >= _MOSTLY * letters,
        _code(words) if all(word.mono for word in words) else "",
        links=(words[0].link, words[-1].link),
        is_entry=_is_entry(words),
    )


def _is_entry(words: list[Word]) -> bool:
    if len(words) < 2 or not words[-1].text.strip(".").isalnum():
        return False
    before, last = words[-2:]
    is_number = last.text.strip(".").isdecimal() or last.text in _ROMAN
    far = last.x0 - before.x1 > 1.5 * last.size or set(before.text) <= {".", "…", "·", "_"}
    return is_number and (far or "....." in last.text)


def _written(words: list[Word]) -> str:
    parts = []
    for link, group in groupby(words, key=lambda word: word.link):
        text = escape(" ".join(word.text for word in group))
        parts.append(f"[{text}{link_end(link)}" if link else text)
    return " ".join(parts)


def link_end(link: str) -> str:
    address = link.replace(" ", "%20").replace("<", "%3C").replace(">", "%3E")
    return f"](<{address}>)" if "(" in address or ")" in address else f"]({address})"


def _code(words: list[Word]) -> str:
    """Return a line with its words in the columns of a fixed pitch."""
    pitch = median(max((word.x1 - word.x0) / len(word.text), 0.1) for word in words)
    text = ""
    for word in sorted(words, key=lambda word: word.x0):
        column = min(round(word.x0 / pitch), 400)
        text += " " * max(column - len(text), 1 if text.strip() else 0) + word.text
    return text
