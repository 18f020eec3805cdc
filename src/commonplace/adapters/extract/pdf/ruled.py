"""Tables with ruling lines: the cells are what the lines enclose."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean

from commonplace.adapters.extract.paragraphs import join_lines
from commonplace.adapters.extract.pdf.edges import NEAR, Edges, clusters
from commonplace.adapters.extract.pdf.words import Box, Word

_MOST_PAIRS = 400_000  # lines across times lines down
_FEWEST_FILLED = 0.35  # share of the cells: a chart's grid is empty
_SHORT_CELL = 2  # words
_STACKED = 6  # lines of a cell
_LONGEST_CELL = 600  # characters, on average: boxes of text are no table

Lines = list[tuple[float, float, float]]


@dataclass(slots=True)
class Table:
    box: Box
    rows: list[list[str]]
    words: set[int]  # by identity


def ruled_tables(edges: Edges, words: list[Word]) -> Iterator[Table]:
    across, down = edges.across, edges.down
    if len(across) < 2 or len(down) < 2 or len(across) * len(down) > _MOST_PAIRS:
        return
    taken: set[int] = set()
    for some_across, some_down in sorted(_connected(across, down), key=_width):  # inner ones first
        table = _table(some_across, some_down, [word for word in words if id(word) not in taken])
        if table is not None:
            taken |= table.words
            yield table


def _width(lines: tuple[Lines, Lines]) -> float:
    return max(x1 for _, _, x1 in lines[0]) - min(x0 for _, x0, _ in lines[0])


def _connected(across: Lines, down: Lines) -> Iterator[tuple[Lines, Lines]]:
    """Group the lines that cross or touch one another."""
    parents = list(range(len(across) + len(down)))

    def root(at: int) -> int:
        while parents[at] != at:
            parents[at] = parents[parents[at]]
            at = parents[at]
        return at

    for i, (top, x0, x1) in enumerate(across):
        for j, (x, y0, y1) in enumerate(down, len(across)):
            if x0 - NEAR <= x <= x1 + NEAR and y0 - NEAR <= top <= y1 + NEAR:
                parents[root(i)] = root(j)
    groups: defaultdict[int, tuple[Lines, Lines]] = defaultdict(lambda: ([], []))
    for i, line in enumerate(across):
        groups[root(i)][0].append(line)
    for j, line in enumerate(down, len(across)):
        groups[root(j)][1].append(line)
    yield from (group for group in groups.values() if len(group[0]) > 1 and group[1])


def _table(across: Lines, down: Lines, words: list[Word]) -> Table | None:
    xs, ys = [at for at, _ in clusters(down)], [at for at, _ in clusters(across)]
    left, right = min(x0 for _, x0, _ in across), max(x1 for _, _, x1 in across)
    high, low = min(top for _, top, _ in down), max(bottom for _, _, bottom in down)
    xs = _with_ends(xs, left, right)
    ys = _with_ends(ys, high, low)
    if len(xs) < 3 or len(ys) < 2:
        return None
    inside = [
        word
        for word in words
        if xs[0] < (word.x0 + word.x1) / 2 < xs[-1] and ys[0] < word.middle < ys[-1]
    ]
    cells: defaultdict[tuple[int, int], list[Word]] = defaultdict(list)
    for word in inside:
        column = bisect_right(xs, (word.x0 + word.x1) / 2) - 1
        row = bisect_right(ys, word.middle) - 1
        while column and not _divided(down, xs[column], word.middle):
            column -= 1
        middle = (xs[column] + xs[column + 1]) / 2
        while row and not _divided(across, ys[row], middle):
            row -= 1
        cells[row, column].append(word)
    rows = [
        [_lines(cells[row, column]) for column in range(len(xs) - 1)] for row in range(len(ys) - 1)
    ]
    split = [_split_row(each) for each in rows]
    if any(len(new) == 1 and _is_stacked(old) for old, new in zip(rows, split, strict=True)):
        return None
    written = [row for each in split for row in each]
    written = _without_halves(without_empty(written))
    if not _is_table(written):
        return None
    return Table((xs[0], ys[0], xs[-1], ys[-1]), written, {id(word) for word in inside})


def _with_ends(places: list[float], low: float, high: float) -> list[float]:
    """Add the ends of the lines in the other direction: the outer lines may be left out."""
    before = [low] if places[0] - low > 2 * NEAR else []
    return [*before, *places, *([high] if high - places[-1] > 2 * NEAR else [])]


def _divided(lines: Lines, at: float, middle: float) -> bool:
    return any(
        abs(place - at) <= NEAR and start - NEAR <= middle <= end + NEAR
        for place, start, end in lines
    )


def _lines(words: list[Word]) -> list[tuple[float, str]]:
    """Return the lines that the words of a cell make, from the top, and where they stand."""
    lines: list[list[Word]] = []
    for word in sorted(words, key=lambda word: word.middle):
        if lines and abs(lines[-1][0].middle - word.middle) < 0.5 * max(word.size, 1):
            lines[-1].append(word)
        else:
            lines.append([word])
    return [
        (line[0].middle, " ".join(w.text for w in sorted(line, key=lambda w: w.x0)))
        for line in lines
    ]


def _split_row(row: list[list[tuple[float, str]]]) -> list[list[str]]:
    """Split a row without lines between its own rows: the lines of its cells stand level."""
    counts = [len(cell) for cell in row if cell]
    most = max(counts, default=0)
    longest = next((cell for cell in row if len(cell) == most), [])
    full = counts.count(most) > 1 and counts.count(most) >= 0.75 * len(counts)
    short = len(counts) > 2 and all(
        len(text.split()) <= _SHORT_CELL for cell in row if cell is not longest for _, text in cell
    )
    rows = [["" for _ in row] for _ in longest]
    if most > 1 and (full or (short and sum(counts) > 2 * most)):
        for column, cell in enumerate(row):
            for at, text in cell:
                number = min(range(most), key=lambda n: abs(longest[n][0] - at))
                if abs(longest[number][0] - at) > 4 or rows[number][column]:
                    break
                rows[number][column] = text
            else:
                continue
            break
        else:
            return rows
    return [[join_lines([text for _, text in cell]) for cell in row]]


def _is_stacked(row: list[list[tuple[float, str]]]) -> bool:
    """Whether most cells of a row hold many numbers: they are rows that no line parts."""
    tall = [cell for cell in row if len(cell) >= _STACKED]
    signs = [sign for cell in tall[1:] for _, text in cell for sign in text if sign.isalnum()]
    return len(tall) > 2 and sum(map(str.isdecimal, signs)) > 0.7 * len(signs)


def without_empty(rows: list[list[str]]) -> list[list[str]]:
    """Leave out rows and columns without text."""
    rows = [row for row in rows if any(row)]
    kept = (
        [number for number in range(len(rows[0])) if any(row[number] for row in rows)]
        if rows
        else []
    )
    return [[row[number] for number in kept] for row in rows]


def _without_halves(rows: list[list[str]]) -> list[list[str]]:
    """Join neighbouring columns of which no row fills both: parts of a column with a wide head."""
    column = 1
    while rows and column < len(rows[0]):
        if any(row[column - 1] and row[column] for row in rows):
            column += 1
        else:
            rows = [
                [*row[: column - 1], row[column - 1] or row[column], *row[column + 1 :]]
                for row in rows
            ]
    return rows


def _is_table(rows: list[list[str]]) -> bool:
    if len(rows) < 2 or len(rows[0]) < 2:
        return False
    filled = [cell for row in rows for cell in row if cell]
    several = sum(sum(map(bool, row)) > 1 for row in rows)
    return (
        several >= 2
        and len(filled) >= _FEWEST_FILLED * len(rows) * len(rows[0])
        and fmean(map(len, filled)) <= _LONGEST_CELL
        and not repeats(rows)
    )


def repeats(rows: list[list[str]]) -> bool:
    """Whether many rows hold the same in all cells, as the axes of several plots do."""
    return sum(len(row) > 1 and len(set(row)) == 1 for row in rows) >= 0.3 * len(rows)
