"""Word documents: headings, lists, tables and paragraphs as Markdown."""

import re
from collections.abc import Iterator

from lxml import etree

from commonplace.adapters.extract.input_file import Caps, Source, clean_text, clean_title
from commonplace.adapters.extract.zip_xml import Package, W, markdown_table
from commonplace.errors import IngestFailed
from commonplace.model import Extracted

_HEADING = re.compile(r"heading ([1-9])$|(title)$", re.IGNORECASE)
_BREAKS = {W + "tab": "\t", W + "br": "\n", W + "cr": "\n", W + "noBreakHyphen": "-"}
_WRAPPERS = (W + "sdt", W + "sdtContent", W + "ins", W + "customXml")
_CODE = re.compile(r"code|source|preformatted|verbatim", re.IGNORECASE)
_LIST = re.compile(r"list (bullet|number)(?: (\d))?$", re.IGNORECASE)


def read(source: Source, caps: Caps) -> Extracted:
    with Package(source, caps) as package:
        text = clean_text(_Document(package).markdown())
        name, author = package.core_property("title"), package.core_property("creator")
    if not text:
        raise IngestFailed("The document contains no text.")
    heading = re.match(r"# (.+)", text)
    return Extracted(
        clean_title(name) or clean_title(heading[1] if heading else "") or source.title,
        text,
        author=author or None,
    )


class _Document:
    def __init__(self, package: Package) -> None:
        self._body = package.read_xml("word/document.xml").find(W + "body")
        self._styles = {
            style.get(W + "styleId", ""): _value(style, W + "name")
            for style in package.read_optional("word/styles.xml").iter(W + "style")
        }
        self._numbered = set(_numbered_levels(package.read_optional("word/numbering.xml")))
        self._notes = [
            note
            for kind in ("foot", "end")
            for note in package.read_optional(f"word/{kind}notes.xml")
            if note.get(W + "type") is None
        ]

    def markdown(self) -> str:
        parts = self._notes if self._body is None else [self._body, *self._notes]
        blocks = (block for part in parts for block in self._blocks(part))
        return "".join(text if text.startswith("\n") else f"\n\n{text}" for text in blocks)

    def _blocks(self, parent: etree._Element) -> Iterator[str]:
        """Yield blocks with the line breaks before them: one within a list, two elsewhere."""
        was_item = False
        for element in parent:
            if element.tag == W + "p":
                text, is_item = self._paragraph(element)
                if text:
                    yield ("\n" if is_item and was_item else "\n\n") + text
                    was_item = is_item
            elif element.tag == W + "tbl":
                was_item = False
                yield markdown_table([list(_cells(row)) for row in element.iterchildren(W + "tr")])
            elif element.tag in _WRAPPERS:
                yield from self._blocks(element)

    def _paragraph(self, element: etree._Element) -> tuple[str, bool]:
        """Return the paragraph as Markdown, and whether it is a list item."""
        text = _visible_text(element).strip()
        style, number, level = self._layout(element)
        if not text:
            return "", False
        if heading := _HEADING.match(style):
            return f"{'#' * min(int(heading[1] or 1), 6)} {' '.join(text.split())}", False
        if listed := _LIST.match(style):
            number, level = listed[1].lower(), int(listed[2] or 1) - 1
        if number:
            lead = "  " * level + ("1. " if number == "number" else "- ")
            return lead + " ".join(text.split()), True
        return (f"```\n{text}\n```" if _CODE.search(style) else text), False

    def _layout(self, element: etree._Element) -> tuple[str, str, int]:
        """Return the style's name, "bullet" or "number" for a list item, and its depth."""
        name = self._styles.get(_value(element, f"{W}pPr/{W}pStyle"), "")
        number = _value(element, f"{W}pPr/{W}numPr/{W}numId")
        level = _value(element, f"{W}pPr/{W}numPr/{W}ilvl") or "0"
        if number in ("", "0"):
            return name, "", 0
        return (
            name,
            "number" if (number, level) in self._numbered else "bullet",
            min(int(level) if level.isdecimal() else 0, 8),
        )


def _value(element: etree._Element, path: str) -> str:
    return next((found.get(W + "val", "") for found in element.iterfind(path)), "")


def _visible_text(element: etree._Element) -> str:
    """Return the displayed text, without deleted text, field codes and copies of text boxes."""
    parts: list[str] = []
    for node in element.iter(W + "t", *_BREAKS):
        if not any(
            above.tag.endswith("}Fallback") or above.tag == W + "tabs"
            for above in node.iterancestors()
        ):
            parts.append((node.text or "") if node.tag == W + "t" else _BREAKS[node.tag])
    return "".join(parts)


def _cells(row: etree._Element) -> Iterator[str]:
    """Yield the texts of the row's own cells; a nested table is part of its cell's text."""
    for element in row:
        if element.tag == W + "tc":
            yield " ".join(map(_visible_text, element.iter(W + "p")))
        elif element.tag in _WRAPPERS:
            yield from _cells(element)


def _numbered_levels(numbering: etree._Element) -> Iterator[tuple[str, str]]:
    """Yield (number id, level) of the lists that are numbered rather than bulleted."""
    counts = {
        (abstract.get(W + "abstractNumId"), level.get(W + "ilvl", "0"))
        for abstract in numbering.iter(W + "abstractNum")
        for level in abstract.iter(W + "lvl")
        if (shape := level.find(W + "numFmt")) is not None
        and shape.get(W + "val") not in ("bullet", "none")
    }
    for number in numbering.iter(W + "num"):
        kind = _value(number, W + "abstractNumId")
        yield from (
            (number.get(W + "numId", ""), level) for known, level in counts if known == kind
        )
