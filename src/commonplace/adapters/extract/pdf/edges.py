"""The ruling lines of a page: thin shapes and the sides of boxes."""

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from commonplace.adapters.extract.pdf.words import View

_OBJECTS = 20_000  # a page with more is a drawing
_SEGMENTS = 2_000  # a path with more is a curve
_DEPTH = 3  # of forms within forms
_THIN, _SHORT = 2.5, 6.0  # points
_DOT = 1.5, 7.0  # points

NEAR = 3.0  # points that lines may miss each other by

Line = tuple[float, float, float]
Matrix = tuple[float, float, float, float, float, float]


@dataclass(slots=True)
class Edges:
    """Lines across as (top, x0, x1) and lines down as (x, top, bottom)."""

    across: list[Line] = field(default_factory=list)
    down: list[Line] = field(default_factory=list)
    dots: list[tuple[float, float]] = field(default_factory=list)  # marks of list items, drawn

    def add(self, x0: float, top: float, x1: float, bottom: float) -> None:
        width, height = x1 - x0, bottom - top
        if _DOT[0] <= width <= _DOT[1] and abs(width - height) < 1:
            self.dots.append(((x0 + x1) / 2, (top + bottom) / 2))
        elif height <= _THIN:
            if width >= _SHORT:
                self.across.append(((top + bottom) / 2, x0, x1))
        elif width <= _THIN:
            if height >= _SHORT:
                self.down.append(((x0 + x1) / 2, top, bottom))
        else:
            self.across += [(top, x0, x1), (bottom, x0, x1)]
            self.down += [(x0, top, bottom), (x1, top, bottom)]


def read_edges(page: pdfium.PdfPage, view: View) -> Edges:
    edges = Edges()
    width, height = view.size
    for x0, y0, x1, y1 in _shapes(page):
        x0, top, x1, bottom = view.box(x0, y0, x1, y1)
        x0, top, x1, bottom = max(x0, 0), max(top, 0), min(x1, width), min(bottom, height)
        if x1 - x0 < 0.9 * width or bottom - top < 0.9 * height:
            edges.add(x0, top, x1, bottom)
    edges.across, edges.down = joined(edges.across), joined(edges.down)
    return edges


def joined(lines: list[Line]) -> list[Line]:
    """Join pieces of the same line."""
    found: list[Line] = []
    for at, group in clusters(lines):
        spans = sorted((start, end) for _, start, end in group)
        low, high = spans[0]
        for start, end in spans[1:]:
            if start <= high + NEAR:
                high = max(high, end)
            else:
                found.append((at, low, high))
                low, high = start, end
        found.append((at, low, high))
    return found


def clusters(lines: list[Line]) -> Iterator[tuple[float, list[Line]]]:
    group: list[Line] = []
    for line in sorted(lines):
        if group and line[0] - group[-1][0] > NEAR:
            yield fmean(each[0] for each in group), group
            group = []
        group.append(line)
    if group:
        yield fmean(each[0] for each in group), group


def _shapes(page: pdfium.PdfPage) -> Iterator[tuple[float, float, float, float]]:
    """Yield the boxes of straight lines and rectangles."""
    left = _OBJECTS
    waiting: list[tuple[object, Matrix, int]] = [(page.raw, (1, 0, 0, 1, 0, 0), 0)]
    matrix = raw.FS_MATRIX()
    while waiting:
        holder, outer, depth = waiting.pop()
        count, get = (
            (raw.FPDFFormObj_CountObjects, raw.FPDFFormObj_GetObject)
            if depth
            else (raw.FPDFPage_CountObjects, raw.FPDFPage_GetObject)
        )
        total = count(holder)
        if total > left:
            return
        left -= total
        for number in range(total):
            shape = get(holder, number)
            kind = raw.FPDFPageObj_GetType(shape)
            if kind not in (raw.FPDF_PAGEOBJ_PATH, raw.FPDF_PAGEOBJ_FORM):
                continue
            raw.FPDFPageObj_GetMatrix(shape, matrix)
            own = (matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f)
            if kind == raw.FPDF_PAGEOBJ_FORM:
                if depth < _DEPTH:
                    waiting.append((shape, _product(own, outer), depth + 1))
            elif 2 <= raw.FPDFPath_CountSegments(shape) <= _SEGMENTS:
                yield from _straight(shape, _product(own, outer))


def _straight(shape: object, matrix: Matrix) -> Iterator[tuple[float, float, float, float]]:
    """Yield the straight lines of a path; a closed one with four corners is a box."""
    x, y = ctypes.c_float(), ctypes.c_float()
    a, b, c, d, e, f = matrix
    runs: list[list[tuple[float, float]]] = []
    is_round = False
    for number in range(raw.FPDFPath_CountSegments(shape)):
        segment = raw.FPDFPath_GetPathSegment(shape, number)
        kind = raw.FPDFPathSegment_GetType(segment)
        is_round = is_round or kind == raw.FPDF_SEGMENT_BEZIERTO
        raw.FPDFPathSegment_GetPoint(segment, x, y)
        point = (a * x.value + c * y.value + e, b * x.value + d * y.value + f)
        if kind == raw.FPDF_SEGMENT_MOVETO or not runs:
            runs.append([])
        runs[-1].append(point)
        if raw.FPDFPathSegment_GetClose(segment) and runs[-1][0] != point:
            runs[-1].append(runs[-1][0])
    if is_round:
        xs, ys = ([point[n] for run in runs for point in run] for n in (0, 1))
        if max(xs) - min(xs) <= _DOT[1]:
            yield min(xs), min(ys), max(xs), max(ys)
        return
    for run in runs:
        across, along = sorted(p[0] for p in run), sorted(p[1] for p in run)
        if len(run) in (4, 5) and all(
            min(p[0] - across[0], across[-1] - p[0]) < 1
            and min(p[1] - along[0], along[-1] - p[1]) < 1
            for p in run
        ):
            yield across[0], along[0], across[-1], along[-1]
            continue
        for (x0, y0), (x1, y1) in pairwise(run):
            if min(abs(x1 - x0), abs(y1 - y0)) < 1:
                yield min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)


def _product(inner: Matrix, outer: Matrix) -> Matrix:
    a, b, c, d, e, f = inner
    g, h, i, j, k, m = outer
    return (
        a * g + b * i,
        a * h + b * j,
        c * g + d * i,
        c * h + d * j,
        e * g + f * i + k,
        e * h + f * j + m,
    )
