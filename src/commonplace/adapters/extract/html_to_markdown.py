"""Convert all of an HTML text to Markdown: chapters, feed summaries, whole pages."""

import re

from lxml import etree
from lxml.html import HtmlElement, HTMLParser, document_fromstring

from commonplace.adapters.extract.input_file import CONTROLS, clean_text
from commonplace.adapters.extract.zip_xml import markdown_table

INVISIBLE = frozenset(
    ("script", "style", "template", "svg", "math", "head", "iframe", "object", "select")
)
PAGE_FURNITURE = INVISIBLE | {"noscript", "nav", "header", "footer", "aside", "button"}
_BLOCKS = (
    {"p", "div", "section", "article", "main", "ul", "ol", "dl", "dt", "dd", "blockquote"}
    | {"figure", "tr", "table", "header", "footer", "aside", "nav", "form", "hr", "address"}
    | {"details", "summary", "body"}
)
_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
_SPACES = re.compile(r"[ \t\r\n\f]+")
_LONGEST_CELL = 300  # characters; a table with a longer cell is only there for the layout


def parse(page: str) -> HtmlElement | None:
    """Parse a page; None if it is empty. The tree has at most 256 levels: recursion is safe."""
    parser = HTMLParser(
        collect_ids=False,
        default_doctype=False,
        encoding="utf-8",
        remove_comments=True,
        remove_pis=True,
    )
    try:
        return document_fromstring(CONTROLS.sub("", page).encode(), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError):
        return None


def convert(root: HtmlElement, without: frozenset[str] = INVISIBLE) -> str:
    """Convert a parsed page, leaving out the elements named in `without`."""
    writer = _Writer(without)
    writer.add(root, 0)
    return clean_text(writer.finish())


def convert_page(page: str) -> str:
    root = parse(page)
    return "" if root is None else convert(root)


def convert_fragment(fragment: str) -> str:
    """Convert a fragment, such as a feed's summary; text without markup stays as it is."""
    is_plain = "<" not in fragment and "&" not in fragment
    return clean_text(fragment) if is_plain else convert_page(f"<div>{fragment}</div>")


class _Writer:
    def __init__(self, without: frozenset[str]) -> None:
        self._without = without
        self._done: list[str] = []
        self._open: list[str] = []

    def finish(self) -> str:
        self._close_block()
        return "\n\n".join(self._done)

    def add(self, node: HtmlElement, depth: int) -> None:
        tag = node.tag if isinstance(node.tag, str) else ""
        if tag and tag not in self._without:
            self._add_body(node, tag, depth)
        self._add_text(node.tail)

    def _add_body(self, node: HtmlElement, tag: str, depth: int) -> None:
        if tag == "pre":
            self._close_block()
            self._done.append(f"```\n{node.text_content().strip(chr(10))}\n```")
        elif tag == "table" and (rows := _rows(node)):
            self._close_block()
            self._done.append(markdown_table(rows))
        elif tag in _HEADINGS:
            words = " ".join(node.text_content().split())
            self._open.append(f"\n\n{_HEADINGS[tag]} {words}\n\n" if words else "")
        else:
            is_list = tag in ("ul", "ol")
            margin = "\n\n" if tag in _BLOCKS and not (is_list and depth) else ""
            before = {"br": "\n", "li": "\n" + "  " * (depth - 1) + "- ", "td": " ", "th": " "}
            self._open.append(before.get(tag, margin))
            self._add_text(node.text)
            for child in node:
                self.add(child, depth + is_list)
            self._open.append(margin)

    def _add_text(self, words: str | None) -> None:
        if words:
            self._open.append(_SPACES.sub(" ", words))

    def _close_block(self) -> None:
        lines = (
            line.rstrip() if line.lstrip().startswith("- ") else " ".join(line.split())
            for line in "".join(self._open).split("\n")
        )
        self._done.append("\n".join(lines).strip("\n"))
        self._open = []


def _rows(node: HtmlElement) -> list[list[str]]:
    """Return the cells of a data table; nothing for one that is only there for the layout."""
    if next(node.iterdescendants("table"), None) is not None:
        return []
    rows = [
        [" ".join(cell.text_content().split()) for cell in row.iter("td", "th")]
        for row in node.iter("tr")
    ]
    is_data = any(len(row) > 1 for row in rows) and all(
        len(cell) <= _LONGEST_CELL for row in rows for cell in row
    )
    return [row for row in rows if any(row)] if is_data else []
