"""Charts of Office documents, as tables of the data that they show."""

from collections.abc import Iterator
from datetime import datetime

from lxml import etree
from openpyxl.styles.numbers import is_date_format
from openpyxl.utils.datetime import from_excel

C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"


def title(chart: etree._Element) -> str:
    stated = chart.find(f"{C}chart/{C}title")
    return "" if stated is None else " ".join(node.text or "" for node in stated.iter(A + "t"))


def rows(chart: etree._Element) -> list[list[str]]:
    """Return a row for each category, with its value in every series; the names come first."""
    names: list[str] = []
    values: dict[str, dict[int, str]] = {}
    for number, series in enumerate(chart.iter(C + "ser")):
        names.append(" ".join(_points(series.find(C + "tx")).values()) or f"Series {number + 1}")
        labels = _points(_first(series, "cat", "xVal"))
        for at, value in _points(_first(series, "val", "yVal")).items():
            values.setdefault(labels.get(at, str(at + 1)), {})[number] = value
    body = [[label, *(row.get(n, "") for n in range(len(names)))] for label, row in values.items()]
    return [["", *names], *body] if body else []


def _first(series: etree._Element, *names: str) -> etree._Element | None:
    return next((part for name in names for part in series.iterchildren(C + name)), None)


def _points(part: etree._Element | None) -> dict[int, str]:
    """Return the values that a chart has stored, by their places."""
    return dict(_stored(part)) if part is not None else {}


def _stored(part: etree._Element) -> Iterator[tuple[int, str]]:
    cache = next(
        part.iter(C + "lvl", C + "strCache", C + "numCache", C + "numLit", C + "strLit"), part
    )
    code = cache.findtext(C + "formatCode") or ""
    for number, point in enumerate(cache.iter(C + "pt")):
        at = point.get("idx", "")
        yield int(at) if at.isdecimal() else number, _shown(point.findtext(C + "v") or "", code)
    if cache is part and (text := part.findtext(C + "v")):
        yield 0, text


def _shown(value: str, code: str) -> str:
    try:
        number = float(value)
    except ValueError:
        return value
    if "%" in code:
        return f"{number * 100:.10g}%"
    moment = from_excel(number) if is_date_format(code) else None
    return f"{moment:%Y-%m-%d}" if isinstance(moment, datetime) else f"{number:.15g}"
