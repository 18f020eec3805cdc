"""Spreadsheets: every sheet as a table."""

import re
from collections.abc import Iterator

from lxml import etree

from commonplace.adapters.extract.package import Package, R, S, table
from commonplace.adapters.extract.source import Caps, Source, paged, tidy, title
from commonplace.errors import IngestFailed
from commonplace.model import Extracted

_MAIN = "xl/workbook.xml"
_LETTERS = re.compile(r"[A-Z]+")
_COLUMNS = 1000
_ROWS = 100_000


def read(source: Source, caps: Caps) -> Extracted:
    with Package(source, caps) as package:
        parts = package.relations(_MAIN)
        shared = _shared(package)
        texts = []
        for number, sheet in enumerate(package.xml(_MAIN).iter(S + "sheet"), 1):
            rows = list(_rows(package.xml(parts.get(sheet.get(R + "id", ""), "")), shared))
            if rows:
                texts.append((number, tidy(f"## {sheet.get('name', '')}\n\n{table(rows)}")))
        named = title(package.said("title"))
    if not texts:
        raise IngestFailed("There is nothing in the spreadsheet.")
    return paged(named or source.title, texts)


def _shared(package: Package) -> list[str]:
    root = package.optional("xl/sharedStrings.xml")
    return [] if root is None else [_written(string) for string in root.iter(S + "si")]


def _rows(sheet: etree._Element, shared: list[str]) -> Iterator[list[str]]:
    for number, row in enumerate(sheet.iter(S + "row")):
        if number >= _ROWS:
            raise IngestFailed(f"The spreadsheet has more than {_ROWS:,} rows in a sheet.")
        cells: list[str] = []
        for cell in row.iter(S + "c"):
            column = _column(cell.get("r", ""), len(cells))
            if column < _COLUMNS:
                cells += [""] * (column + 1 - len(cells))
                cells[column] = _value(cell, shared)
        if any(cells):
            yield cells


def _value(cell: etree._Element, shared: list[str]) -> str:
    value = cell.findtext(S + "v") or ""
    if cell.get("t") == "s":
        return shared[int(value)] if value.isdecimal() and int(value) < len(shared) else ""
    if cell.get("t") == "b":
        return "TRUE" if value == "1" else "FALSE"
    inline = cell.find(S + "is")
    return _written(inline) if inline is not None else value


def _written(string: etree._Element) -> str:
    """Without the readings that Japanese sheets carry beside a text."""
    return "".join(node.text or "" for node in string.iter(S + "t") if node.getparent().tag != S + "rPh")


def _column(reference: str, otherwise: int) -> int:
    letters = _LETTERS.match(reference)
    if not letters:
        return otherwise
    column = 0
    for letter in letters[0][:4]:
        column = column * 26 + ord(letter) - ord("A") + 1
    return column - 1
