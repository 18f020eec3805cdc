"""Spreadsheets: every sheet as a table."""

import re
from collections.abc import Iterator

from lxml import etree

from commonplace.adapters.extract.input_file import (
    LONGEST_TEXT,
    Caps,
    Source,
    clean_text,
    clean_title,
    join_pages,
    take_until_full,
)
from commonplace.adapters.extract.zip_xml import Package, R, S, markdown_table
from commonplace.errors import IngestFailed
from commonplace.model import Extracted

_MAIN = "xl/workbook.xml"
_LETTERS = re.compile(r"[A-Z]+")
_ROWS = 100_000
_SPARSE = 10  # more than this many fields per used cell are not a table
_SMALL = 10_000  # fields of a table that may be sparse


def read(source: Source, caps: Caps) -> Extracted:
    with Package(source, caps) as package:
        parts = package.relationships(_MAIN)
        shared = [
            _string(item) for item in package.read_optional("xl/sharedStrings.xml").iter(S + "si")
        ]
        texts = take_until_full(
            (
                (
                    number,
                    _sheet(
                        package,
                        sheet.get("name", ""),
                        parts.get(sheet.get(R + "id", ""), ""),
                        shared,
                    ),
                )
                for number, sheet in enumerate(package.read_xml(_MAIN).iter(S + "sheet"), 1)
            ),
            "The spreadsheet is empty.",
        )
        title = clean_title(package.core_property("title"))
    return join_pages(title or source.title, texts)


def _sheet(package: Package, name: str, part: str, shared: list[str]) -> str:
    """Render the used columns as a table; scattered cells as one line per row."""
    rows = list(_rows(package.read_xml(part), shared))
    used = sorted({column for row in rows for column in row})
    if len(rows) * len(used) > max(_SMALL, _SPARSE * sum(map(len, rows))):
        written = "\n".join(" | ".join(row[column] for column in sorted(row)) for row in rows)
    else:
        written = markdown_table(
            [
                [row.get(column, "") for column in used if column <= end]
                for row, end in zip(rows, map(max, rows), strict=True)
            ]
        )
    return clean_text(f"## {name}\n\n{written}") if rows else ""


def _rows(sheet: etree._Element, shared: list[str]) -> Iterator[dict[int, str]]:
    """Yield each used row as a mapping of column numbers to values."""
    size = 0
    for number, row in enumerate(sheet.iter(S + "row")):
        if number >= _ROWS:
            raise IngestFailed(f"A sheet has more than {_ROWS:,} rows.")
        cells: dict[int, str] = {}
        column = -1
        for cell in row.iter(S + "c"):
            column = _column(cell.get("r", ""), column + 1)
            if value := " ".join(_value(cell, shared).split()):
                cells[column] = value
        if cells:
            yield cells
        size += sum(map(len, cells.values()))
        if size > LONGEST_TEXT:  # one long shared string can be in every cell
            return


def _value(cell: etree._Element, shared: list[str]) -> str:
    value = cell.findtext(S + "v") or ""
    if cell.get("t") == "s":
        return shared[int(value)] if value.isdecimal() and int(value) < len(shared) else ""
    if cell.get("t") == "b":
        return "TRUE" if value == "1" else "FALSE"
    inline = cell.find(S + "is")
    return _string(inline) if inline is not None else value


def _string(item: etree._Element) -> str:
    """Return the text without the phonetic readings of Japanese sheets."""
    return "".join(
        node.text or "" for node in item.iter(S + "t") if node.getparent().tag != S + "rPh"
    )


def _column(reference: str, default: int) -> int:
    letters = _LETTERS.match(reference)
    if not letters:
        return default
    column = 0
    for letter in letters[0][:4]:
        column = column * 26 + ord(letter) - ord("A") + 1
    return column - 1
