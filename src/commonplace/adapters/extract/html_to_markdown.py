"""All of a piece of HTML as Markdown, where nothing needs to be told apart from an article: chapters, summaries, notes."""

import re

from lxml import etree
from lxml.html import HtmlElement, HTMLParser, document_fromstring

from commonplace.adapters.extract.input_file import CONTROLS, tidy
from commonplace.adapters.extract.zip_xml import table

UNSEEN = frozenset(
    ("script", "style", "template", "svg", "math", "head", "iframe", "object", "select")
)
AROUND = UNSEEN | {"noscript", "nav", "header", "footer", "aside", "button"}
_BLOCKS = frozenset(
    (
        "p",
        "div",
        "section",
        "article",
        "main",
        "ul",
        "ol",
        "dl",
        "dt",
        "dd",
        "blockquote",
        "figure",
        "tr",
        "table",
        "header",
        "footer",
        "aside",
        "nav",
        "form",
        "hr",
        "address",
        "details",
        "summary",
        "body",
    )
)
_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
_SPACES = re.compile(r"[ \t\r\n\f]+")
_LONGEST_CELL = 300  # a table with longer ones is there for the layout


def tree(page: str) -> HtmlElement | None:
    """None: there is nothing in it. The parser gives up below 256 levels, so that walking down is safe."""
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


def markdown(root: HtmlElement, without: frozenset[str] = UNSEEN) -> str:
    writer = _Writer(without)
    writer.element(root, 0)
    return tidy(writer.finished())


def text(fragment: str) -> str:
    """A fragment, such as a feed's summary, as Markdown; what has no markup stays as it is."""
    if "<" not in fragment and "&" not in fragment:
        return tidy(fragment)
    root = tree(f"<div>{fragment}</div>")
    return "" if root is None else markdown(root)


class _Writer:
    def __init__(self, without: frozenset[str]) -> None:
        self._without = without
        self._done: list[str] = []
        self._open: list[str] = []

    def finished(self) -> str:
        self._close()
        return "\n\n".join(self._done)

    def element(self, node: HtmlElement, depth: int) -> None:
        tag = node.tag if isinstance(node.tag, str) else ""
        if tag and tag not in self._without:
            self._body(node, tag, depth)
        self._inline(node.tail)

    def _body(self, node: HtmlElement, tag: str, depth: int) -> None:
        if tag == "pre":
            self._close()
            self._done.append(f"```\n{node.text_content().strip(chr(10))}\n```")
        elif tag == "table" and (rows := _rows(node)):
            self._close()
            self._done.append(table(rows))
        elif tag in _HEADINGS:
            words = " ".join(node.text_content().split())
            self._open.append(f"\n\n{_HEADINGS[tag]} {words}\n\n" if words else "")
        else:
            self._open.append(_before(node, tag, depth))
            self._inline(node.text)
            for child in node:
                self.element(child, depth + (tag in ("ul", "ol")))
            self._open.append(
                "\n\n" if tag in _BLOCKS and not (tag in ("ul", "ol") and depth) else ""
            )

    def _inline(self, words: str | None) -> None:
        if words:
            self._open.append(_SPACES.sub(" ", words))

    def _close(self) -> None:
        lines = [
            line if line.lstrip().startswith("- ") else " ".join(line.split())
            for line in "".join(self._open).split("\n")
        ]
        self._done.append("\n".join(line.rstrip() for line in lines).strip("\n"))
        self._open = []


def _before(node: HtmlElement, tag: str, depth: int) -> str:
    if tag == "br":
        return "\n"
    if tag == "li":
        return "\n" + "  " * (depth - 1) + "- "
    if tag in ("td", "th"):
        return " "
    return "\n\n" if tag in _BLOCKS and not (tag in ("ul", "ol") and depth) else ""


def _rows(node: HtmlElement) -> list[list[str]]:
    """The cells of a table of data; nothing for one that is there for the layout."""
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
