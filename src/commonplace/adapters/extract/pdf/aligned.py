"""Tables without a grid: rows of words that stand in the same columns."""

import re
from collections.abc import Iterator
from itertools import pairwise
from statistics import median

from commonplace.adapters.extract.pdf.edges import Edges
from commonplace.adapters.extract.pdf.ruled import Table, repeats, without_empty
from commonplace.adapters.extract.pdf.words import Word

_GAP = 0.8  # of the font's size, between the words of two cells
_GAP_OF_NUMBERS = 0.45
_SMALL = 0.85  # of the size of the rest: the numbers of a listing's lines
_SPACING = 2.6  # of the font's size, from one row to the next at most
_LEADER = re.compile(r"(?:[.\u2026\u00b7_]\s?){3,}")
_NUMBER = re.compile(
    r"[(\[<>=~≈±−–+$€£¥-]{0,3}\d[\d.,:/eE×%*()\[\]±−–+-]{0,30}\w{0,3}[*†‡%]{0,3}|[–—−-]|NA|n/a"
)
_MARKER = re.compile(r"[•◦▪‣●○–*\uf0a7\uf0b7-]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)]|\[\w{1,8}\]")
_EQUATION = re.compile(r"\((?:[A-Z]\.)?\d{1,3}(?:\.\d{1,3})?[a-z]?\)")
_PIECE = re.compile("[\u239b-\u23b3\ue000-\uf8ff]")  # of a bracket over several lines
_MOST_WORDS = 7  # in a cell, on average; more are columns of text

Cell = list[Word]
Row = list[Cell]


def aligned_tables(words: list[Word], edges: Edges) -> Iterator[Table]:
    rows = list(_rows(words))
    for run in _runs(rows):
        table = _table(run, edges)
        if table is not None:
            yield table


def _rows(words: list[Word]) -> Iterator[Row]:
    """Group words by their line, and the words of a line by the gaps between them."""
    line: list[Word] = []
    for word in sorted(words, key=lambda word: word.middle):
        if line and word.middle - line[0].middle > 0.45 * max(line[0].size, 1):
            yield _cells(line)
            line = []
        line.append(word)
    if line:
        yield _cells(line)


def _cells(line: list[Word]) -> Row:
    line.sort(key=lambda word: word.x0)
    cells: Row = [[line[0]]]
    for before, word in pairwise(line):
        numbers = _NUMBER.fullmatch(before.text) and _NUMBER.fullmatch(word.text)
        gap = _GAP_OF_NUMBERS if numbers else _GAP
        wide = word.x0 - before.x1 > gap * max(word.size, before.size)
        marker = len(cells) == len(cells[-1]) == 1 and _MARKER.fullmatch(before.text)
        if wide and not (marker and not _NUMBER.fullmatch(word.text)):
            cells.append([])
        cells[-1].append(word)
    return cells


def _runs(rows: list[Row]) -> Iterator[list[Row]]:
    """Yield rows that follow one another closely, most of them with several cells."""
    run: list[Row] = []
    for row in rows:
        size = max(_size(row), 1)
        far = run and row[0][0].middle - run[-1][0][0].middle > _SPACING * size
        if far or (run and not 0.85 < size / max(_size(run[-1]), 1) < 1.18):
            yield run
            run = []
        if len(row) > 1 or (run and (_continues(row, run) or _is_first_cell(row, run))):
            run.append(row)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _is_first_cell(row: Row, run: list[Row]) -> bool:
    """Whether a row holds no more than the first column of the rows above.

    Where there are only two columns, it has to stand between two lines of the other one.
    """
    between = row[0][0].middle - run[-1][0][0].middle < 0.9 * _size(row)
    several = [each for each in run if len(each) > (1 if between else 2)]
    return bool(several) and row[0][-1].x1 < min(each[1][0].x0 for each in several)


def _size(row: Row) -> float:
    return max((word for cell in row for word in cell), key=lambda word: len(word.text)).size


def _continues(row: Row, run: list[Row]) -> bool:
    """Whether a row with one cell goes on with a cell of the row above, not with the first."""
    full = next(each for each in reversed(run) if len(each) > 1)
    cell = row[0]
    return cell[0].x0 > full[0][-1].x1 and any(
        abs(cell[0].x0 - above[0].x0) < 3 or abs(cell[-1].x1 - above[-1].x1) < 3
        for above in full[1:]
    )


def _table(run: list[Row], edges: Edges) -> Table | None:
    while run and len(run[-1]) < 2:
        run.pop()
    if len(run) < 2:
        return None
    places = _columns(run)
    if len(places) < 2:
        return None
    grid = [[" ".join(word.text for word in cell) for cell in _placed(row, places)] for row in run]
    words = [word for row in run for cell in row for word in cell]
    box = (
        min(word.x0 for word in words),
        min(word.top for word in words),
        max(word.x1 for word in words),
        max(word.bottom for word in words),
    )
    firsts = [row[0][0].size for row in run]
    rest = [cell[0].size for row in run for cell in row[1:]]
    if median(firsts) < _SMALL * median(rest or firsts):
        return None
    places_of_rows = [row[0][0].middle for row in run]
    grid = _joined(_with_first_cells(grid, places_of_rows, _size(run[0])))
    if not _is_table(grid, _rules(edges, box)):
        return None
    return Table(box, without_empty(grid), {id(word) for word in words})


def _placed(row: Row, places: list[tuple[float, float]]) -> list[Cell]:
    """Put the cells of a row into columns; one cell of a head over several goes into all."""
    cells: list[Cell] = [[] for _ in places]
    for cell in row:
        below = sum(x0 < cell[-1].x1 and cell[0].x0 < x1 for x0, x1 in places)
        for part in [[word] for word in cell] if below == len(cell) > 1 else [cell]:
            cells[_nearest(part, places)] += part
    return cells


def _nearest(cell: Cell, places: list[tuple[float, float]]) -> int:
    middle = (cell[0].x0 + cell[-1].x1) / 2
    return min(
        range(len(places)),
        key=lambda n: (
            max(places[n][0] - cell[-1].x1, cell[0].x0 - places[n][1], 0),
            abs(middle - sum(places[n]) / 2),
        ),
    )


def _columns(run: list[Row]) -> list[tuple[float, float]]:
    """Return where most rows have words; a heading across several columns joins none."""
    edges = sorted(
        [(cell[0].x0, 1) for row in run for cell in row]
        + [(cell[-1].x1, -1) for row in run for cell in row],
        key=lambda edge: (edge[0], edge[1]),
    )
    few = max(0, len(run) // 8)
    found: list[tuple[float, float]] = []
    depth, start = 0, 0.0
    for at, change in edges:
        before, depth = depth, depth + change
        if before <= few < depth:
            start = at
        elif depth <= few < before:
            if found and start - found[-1][1] < 2:
                found[-1] = (found[-1][0], at)
            else:
                found.append((start, at))
    return found


def _rules(edges: Edges, box: tuple[float, float, float, float]) -> int:
    """Count the lines across that are as wide as the table, above, in and below it."""
    x0, top, x1, bottom = box
    places = sorted(
        at
        for at, start, end in edges.across
        if top - 15 <= at <= bottom + 15
        and min(end, x1) - max(start, x0) > 0.8 * (x1 - x0)
        and end - start < 1.5 * (x1 - x0) + 20
    )
    return sum(1 for before, at in pairwise([-100.0, *places]) if at - before > 4)


def _is_table(grid: list[list[str]], rules: int) -> bool:
    filled = [cell for row in grid for cell in row if cell]
    several = sum(sum(map(bool, row)) > 1 for row in grid)
    several += sum(bool(row[0]) and not any(row[1:]) for row in grid) // 2
    words = sum(len(cell.split()) for cell in filled)
    if several < (0.5 if rules > 1 else 0.7) * len(grid) or words > _MOST_WORDS * len(filled) * (
        2 if rules > 1 else 1
    ):
        return False
    if sum(bool(_LEADER.search(" ".join(row))) for row in grid) > 0.3 * len(grid):
        return False
    if _is_contents(grid) or _is_drawing(grid):
        return False
    width = len(grid[0])
    if rules > 1 and (len(grid) > 2 or (rules > 2 and len(filled) == width * len(grid))):
        return True
    if sum(any(map(str.isalnum, cell)) for cell in filled) < 0.6 * len(filled):
        return False
    body = [cell for row in grid[1:] for cell in row[1:] if cell]
    numbers = sum(bool(_NUMBER.fullmatch(cell.replace(" ", ""))) for cell in body)
    dense = len(filled) >= 0.7 * width * len(grid)
    if len(grid) >= 3 and dense and numbers >= 0.6 * max(len(body), 1):
        return True
    return len(grid) >= 4 and width >= 3 and dense and words <= 4 * len(filled)


def _is_contents(grid: list[list[str]]) -> bool:
    """Whether the last column counts up as the pages in a table of contents do."""
    pages = [int(row[-1]) for row in grid if row[-1].isdecimal() and len(row[-1]) < 5]
    return (
        len(pages) >= 0.7 * len(grid)
        and len(grid[0]) <= 6
        and all(a <= b for a, b in pairwise(pages))
        and sum(any(map(str.isalpha, row[-2])) for row in grid) >= 0.7 * len(grid)
    )


def _is_drawing(grid: list[list[str]]) -> bool:
    """Whether the rows are equations with their numbers, a matrix, or the axes of plots."""
    last = [row[-1] for row in grid if row[-1]]
    return (
        (len(grid[0]) == 2 and all(map(_EQUATION.fullmatch, last)))
        or repeats(grid)
        or any(_PIECE.search(cell) for row in grid for cell in row)
    )


def _with_first_cells(grid: list[list[str]], places: list[float], size: float) -> list[list[str]]:
    """Join lines of a first cell, which stand between the rows, to the row that they belong to."""
    owners = [number for number, row in enumerate(grid) if any(row[1:])]
    first: dict[int, list[str]] = {number: [] for number in owners}
    for number, row in enumerate(grid):
        near = min(owners, key=lambda owner: abs(places[owner] - places[number]))
        is_far = abs(places[near] - places[number]) > (1.6 if grid[near][0] else 1.1) * size
        if number not in first and (is_far or not row[0]):
            first[number] = [row[0]]
        elif row[0]:
            first[near].append(row[0])
    return [[" ".join(first[number]), *grid[number][1:]] for number in sorted(first)]


def _joined(grid: list[list[str]]) -> list[list[str]]:
    """Join a row without a first cell to the one above, whose cells it goes on with."""
    found: list[list[str]] = []
    for row in grid:
        goes_on = (
            len(found) > 1
            and not row[0]
            and (len(row) == 2 or sum(map(bool, row)) < len(row) - 1)
            and all(
                found[-1][n]
                and not _NUMBER.fullmatch(cell)
                and (sum(map(bool, row)) == 1 or not any(map(str.isdecimal, cell)))
                for n, cell in enumerate(row)
                if cell
            )
        )
        if goes_on:
            found[-1] = [f"{a} {b}".strip() for a, b in zip(found[-1], row, strict=True)]
        else:
            found.append(row)
    return found
