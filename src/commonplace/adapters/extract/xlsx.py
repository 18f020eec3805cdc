"""Spreadsheets: every sheet as a table."""

import re
from collections.abc import Iterator

from lxml import etree

from commonplace.adapters.extract.input_file import (
    LONGEST_TEXT,
    Caps,
    Source,
    enough,
    paged,
    tidy,
    title,
)
from commonplace.adapters.extract.zip_xml import Package, R, S, table
from commonplace.errors import IngestFailed
from commonplace.model import Extracted

_MAIN = "xl/workbook.xml"
_LETTERS = re.compile(r"[A-Z]+")
_ROWS = 100_000
_SPARSE = 10  # times as many fields as there are cells in them: no table any more
_SMALL = 10_000  # fields of a table that may be as sparse as it likes


def read(source: Source, caps: Caps) -> Extracted:
    with Package(source, caps) as package:
        parts = package.relations(_MAIN)
        shared = _shared(package)
        texts = enough(
            (
                number,
                _sheet(
                    package, sheet.get("name", ""), parts.get(sheet.get(R + "id", ""), ""), shared
                ),
            )
            for number, sheet in enumerate(package.xml(_MAIN).iter(S + "sheet"), 1)
        )
        named = title(package.said("title"))
    if not texts:
        raise IngestFailed("There is nothing in the spreadsheet.")
    return paged(named or source.title, texts)


def _sheet(package: Package, name: str, part: str, shared: list[str]) -> str:
    """As a table of the columns that have something in them; cells in a few far places as one line a row."""
    rows = list(_rows(package.xml(part), shared))
    used = sorted({column for row in rows for column in row})
    if len(rows) * len(used) > max(_SMALL, _SPARSE * sum(map(len, rows))):
        written = "\n".join(" | ".join(row[column] for column in sorted(row)) for row in rows)
    else:
        written = table([_trimmed([row.get(column, "") for column in used]) for row in rows])
    return tidy(f"## {name}\n\n{written}") if rows else ""


def _trimmed(cells: list[str]) -> list[str]:
    while not cells[-1]:
        cells.pop()
    return cells


def _shared(package: Package) -> list[str]:
    root = package.optional("xl/sharedStrings.xml")
    return [] if root is None else [_written(string) for string in root.iter(S + "si")]


def _rows(sheet: etree._Element, shared: list[str]) -> Iterator[dict[int, str]]:
    """Of each row that has any, its cells with something in them by the number of their column."""
    size = 0
    for number, row in enumerate(sheet.iter(S + "row")):
        if number >= _ROWS:
            raise IngestFailed(f"The spreadsheet has more than {_ROWS:,} rows in a sheet.")
        cells: dict[int, str] = {}
        column = -1
        for cell in row.iter(S + "c"):
            column = _column(cell.get("r", ""), column + 1)
            if value := " ".join(_value(cell, shared).split()):
                cells[column] = value
        if cells:
            yield cells
        size += sum(map(len, cells.values()))
        if size > LONGEST_TEXT:  # one long string can be in every cell
            return


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
    return "".join(
        node.text or "" for node in string.iter(S + "t") if node.getparent().tag != S + "rPh"
    )


def _column(reference: str, otherwise: int) -> int:
    letters = _LETTERS.match(reference)
    if not letters:
        return otherwise
    column = 0
    for letter in letters[0][:4]:
        column = column * 26 + ord(letter) - ord("A") + 1
    return column - 1
