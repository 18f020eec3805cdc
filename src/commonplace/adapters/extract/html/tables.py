"""Tables of HTML: which hold data, and their cells in a grid."""

from collections.abc import Callable, Iterator

from lxml.html import HtmlElement

_LONGEST_CELL = 300  # characters; a table with a longer cell is only there for the layout
_LONGEST_NAMED = 3000  # the same for one whose columns have names
_WIDEST = 200  # fields


def table_rows(table: HtmlElement, write: Callable[[HtmlElement], str]) -> list[list[str]]:
    """Return the cells of a data table, its head first; nothing for one that is only layout."""
    rows = list(_rows(table))
    if not _is_data(table, rows):
        return []
    grid: list[list[str]] = []
    below: dict[int, int] = {}  # columns that cells above reach into, and for how many rows
    for row in rows:
        fields: list[str] = []
        for cell in row:
            while below.get(len(fields), 0):
                below[len(fields)] -= 1
                fields.append("")
            across, down = _span(cell, "colspan"), _span(cell, "rowspan")
            if len(fields) + across > _WIDEST:
                break
            for column in range(len(fields), len(fields) + across) if down > 1 else ():
                below[column] = down - 1
            fields += [write(cell), *[""] * (across - 1)]
        if any(fields):
            grid.append(fields)
    return grid


def is_data_table(table: HtmlElement) -> bool:
    return _is_data(table, list(_rows(table)))


def _rows(table: HtmlElement) -> Iterator[list[HtmlElement]]:
    for part in table.iterchildren("thead", "tbody", "tfoot", "tr"):
        for row in [part] if part.tag == "tr" else part.iterchildren("tr"):
            yield list(row.iterchildren("td", "th"))


def _is_data(table: HtmlElement, rows: list[list[HtmlElement]]) -> bool:
    if table.get("role") in ("presentation", "none") or max(map(len, rows), default=0) < 2:
        return False
    if next(table.iterdescendants("table", "pre"), None) is not None:
        return False
    named = any(True for _ in table.iterdescendants("caption", "thead", "th"))
    most = _LONGEST_NAMED if named else _LONGEST_CELL
    return all(len(" ".join(cell.text_content().split())) <= most for row in rows for cell in row)


def _span(cell: HtmlElement, name: str) -> int:
    text = (cell.get(name) or "1").strip()[:4]
    return min(max(int(text), 1), _WIDEST) if text.isdecimal() else 1
