"""Spreadsheets: every sheet as a table, with the values that its cells show."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, time, timedelta
from io import BytesIO
from types import SimpleNamespace
from typing import Any

import openpyxl
from lxml import etree
from openpyxl.cell.read_only import ReadOnlyCell
from openpyxl.utils import get_column_letter
from openpyxl.worksheet._reader import WorkSheetParser

from commonplace.adapters.extract.embedded_images import EmbeddedImages
from commonplace.adapters.extract.input_file import (
    LONGEST_TEXT,
    Caps,
    Source,
    clean_text,
    join_pages,
    take_until_full,
)
from commonplace.adapters.extract.zip_xml import Package, markdown_table, pack
from commonplace.errors import IngestFailed
from commonplace.model import Extracted

_SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
S, R = f"{{{_SHEET}}}", f"{{{_RELATIONS}}}"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_TYPES = f"""<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/></Types>"""
_NO_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_REFERENCE = re.compile(r"[A-Z]{1,3}[0-9]{1,7}")
_LINK = re.compile(r'HYPERLINK\("([^"]*)"')
_LITERAL = re.compile(r'"[^"]*"|\\.')
_THREAD = "\nComment:\n"  # behind it is what somebody wrote in a newer Excel
_ROWS = 100_000
_SPARSE = 10  # more than this many fields per used cell are not a table
_SMALL = 10_000  # fields of a table that may be sparse


def read(source: Source, caps: Caps) -> Extracted:
    images = EmbeddedImages(caps)
    with Package(source, caps) as package:
        title, author, created = package.properties()
        found = take_until_full(_sheets(package, images), "The spreadsheet is empty.")
    joined = join_pages(title or source.title, found)
    return replace(joined, author=author, published_at=created)


def _sheets(package: Package, images: EmbeddedImages) -> Iterator[tuple[int, str]]:
    main = package.main_part("xl/workbook.xml")
    workbook = package.read_xml(main)
    parts = {each.id: each for each in package.relations(main)}
    named = {each.kind: each.target for each in parts.values()}
    book = _open(workbook, package.read_optional(named.get("styles", "")))
    strings = _Strings(
        enumerate(
            map(_string, package.read_optional(named.get("sharedStrings", "")).iter(S + "si"))
        )
    )
    for number, sheet in enumerate(workbook.iter(S + "sheet"), 1):
        part = parts.get(sheet.get(R + "id", ""))
        if part is not None and part.kind not in ("chartsheet", "dialogsheet"):
            hidden = " (hidden)" if sheet.get("state", "visible") != "visible" else ""
            text = "\n\n".join(
                filter(None, _Sheet(package, part.target, book, strings).blocks(images))
            )
            name = f"## {sheet.get('name', '')}{hidden}"
            yield number, clean_text(f"{name}\n\n{text}") if text else ""


class _Strings(dict[int, str]):
    """The strings that cells share, by their number."""

    def __missing__(self, number: int) -> str:
        return ""


def _string(item: etree._Element) -> str:
    """Return the text without the phonetic readings of Japanese sheets."""
    return "".join(
        node.text or "" for node in item.iter(S + "t") if node.getparent().tag != S + "rPh"
    )


def _open(workbook: etree._Element, styles: etree._Element) -> openpyxl.Workbook:
    """Open a workbook's settings and formats, without all that openpyxl might stumble over."""
    lean = etree.Element(S + "workbook", nsmap={None: _SHEET})
    lean.extend(list(workbook.iterchildren(S + "workbookPr")))
    etree.SubElement(lean, S + "sheets")
    for part in list(styles):
        if part.tag not in (S + "numFmts", S + "cellXfs"):
            styles.remove(part)
    contents = {
        "[Content_Types].xml": _TYPES.encode(),
        "xl/workbook.xml": etree.tostring(lean),
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_NO_RELATIONS}"/>'.encode(),
    }
    if len(styles):
        contents["xl/styles.xml"] = etree.tostring(styles)
    return openpyxl.load_workbook(pack(contents), read_only=True, data_only=True)


class _Sheet:
    def __init__(
        self, package: Package, name: str, book: openpyxl.Workbook, strings: _Strings
    ) -> None:
        self._package, self._book, self._strings = package, book, strings
        self._root = package.read_xml(name)
        self._relations = list(package.relations(name))
        self._links = dict(self._linked())

    def blocks(self, images: EmbeddedImages) -> Iterator[str]:
        """Yield the table, the comments, and the text in images."""
        yield _table(list(self._rows()))
        for each in self._relations:
            if each.kind == "comments":
                yield from _comments(self._package.read_optional(each.target))
            elif each.kind == "drawing":
                for picture in self._package.relations(each.target):
                    if picture.kind == "image" and picture.target in self._package.names:
                        yield images.text(self._package.read_part(picture.target))

    def _linked(self) -> Iterator[tuple[str, str]]:
        """Yield the cells that lead to other places, with the address."""
        targets = {each.id: each.target for each in self._relations if each.kind == "hyperlink"}
        for link in self._root.iter(S + "hyperlink"):
            yield link.get("ref", ""), targets.get(link.get(R + "id", ""), "")
        for formula in self._root.iter(S + "f"):
            if found := _LINK.search(formula.text or ""):
                yield formula.getparent().get("r", ""), found[1]

    def _rows(self) -> Iterator[dict[int, str]]:
        """Yield each used row as a mapping of column numbers to what its cells show."""
        rows = list(self._root.iter(S + "row"))[: _ROWS + 1]
        if len(rows) > _ROWS:
            raise IngestFailed(f"A sheet has more than {_ROWS:,} rows.")
        cells = etree.Element(S + "sheetData", nsmap={None: _SHEET})
        for row in rows:
            row.attrib.clear()
            cells.append(row)
        for cell in cells.iter(S + "c"):
            if not _REFERENCE.fullmatch(cell.get("r", "A1")):
                del cell.attrib["r"]
        book = self._book
        parser = WorkSheetParser(
            BytesIO(etree.tostring(cells)),
            self._strings,
            data_only=True,
            epoch=book.epoch,
            date_formats=book._date_formats,
            timedelta_formats=book._timedelta_formats,
        )
        size = 0
        for _, found in parser.parse():
            shown = {cell["column"]: self._show(cell) for cell in found}
            if any(shown.values()):
                yield {column: text for column, text in shown.items() if text}
            size += sum(map(len, shown.values()))
            if size > LONGEST_TEXT:  # one long shared string can be in every cell
                return

    def _show(self, cell: dict[str, Any]) -> str:
        """Return what a cell shows, with the address that it leads to."""
        text = " ".join(self._value(cell).split())
        address = self._links.get(f"{get_column_letter(cell['column'])}{cell['row']}", "")
        if address.startswith(("http://", "https://", "mailto:")):
            return f"[{text or address}]({address.replace(' ', '%20')})"
        return text

    def _value(self, cell: dict[str, Any]) -> str:
        value = cell["value"]
        if value is None:
            return ""
        if isinstance(value, bool):
            return str(value).upper()
        if isinstance(value, datetime):
            clock = "" if value.time() == time.min else f" {_clock(value)}"
            return f"{value:%Y-%m-%d}{clock}"
        if isinstance(value, time):
            return _clock(value)
        if isinstance(value, timedelta):
            minutes, seconds = divmod(round(value.total_seconds()), 60)
            return f"{minutes // 60}:{minutes % 60:02}" + (f":{seconds:02}" if seconds else "")
        if isinstance(value, int | float) and "%" in _LITERAL.sub("", self._format(cell)):
            return f"{value * 100:.10g}%"
        return f"{value:.15g}" if isinstance(value, float) else str(value)

    def _format(self, cell: dict[str, Any]) -> str:
        if cell["style_id"] >= len(self._book._cell_styles):
            return ""
        return str(ReadOnlyCell(SimpleNamespace(parent=self._book), **cell).number_format)


def _clock(moment: datetime | time) -> str:
    return moment.strftime("%H:%M:%S" if moment.second else "%H:%M")


def _table(rows: list[dict[int, str]]) -> str:
    """Render the used columns as a table; scattered cells as one line per row."""
    used = sorted({column for row in rows for column in row})
    if len(rows) * len(used) > max(_SMALL, _SPARSE * sum(map(len, rows))):
        return "\n".join(" | ".join(row[column] for column in sorted(row)) for row in rows)
    return markdown_table(
        [
            [row.get(column, "") for column in used if column <= end]
            for row, end in zip(rows, map(max, rows), strict=True)
        ]
    )


def _comments(part: etree._Element) -> Iterator[str]:
    authors = [author.text or "" for author in part.iter(S + "author")]
    for comment in part.iter(S + "comment"):
        text = _string(comment)
        number = comment.get("authorId", "")
        author = authors[int(number)] if number.isdecimal() and int(number) < len(authors) else ""
        text = text.partition(_THREAD)[2] or text.removeprefix(f"{author}:")
        by = "" if not author or author.startswith("tc=") else f" ({author})"
        yield f"Comment on {comment.get('ref', '')}{by}: {' '.join(text.split())}"
