"""Word documents: headings, lists, tables and running text as Markdown."""

import re
from collections.abc import Iterator

from lxml import etree

from commonplace.adapters.extract.input_file import Caps, Source, tidy, title
from commonplace.adapters.extract.zip_xml import Package, W, table
from commonplace.errors import IngestFailed
from commonplace.model import Extracted

_HEADING = re.compile(r"heading ([1-9])$|(title)$", re.IGNORECASE)
_WRITTEN = {W + "tab": "\t", W + "br": "\n", W + "cr": "\n", W + "noBreakHyphen": "-"}
_AROUND = (W + "sdt", W + "sdtContent", W + "ins", W + "customXml")
_CODE = re.compile(r"code|source|preformatted|verbatim", re.IGNORECASE)
_LIST = re.compile(r"list (bullet|number)(?: (\d))?$", re.IGNORECASE)


def read(source: Source, caps: Caps) -> Extracted:
    with Package(source, caps) as package:
        text = tidy(_Document(package).markdown())
        named, author = title(package.said("title")), package.said("creator")
    if not text:
        raise IngestFailed("There is no text in the document.")
    heading = re.match(r"# (.+)", text)
    return Extracted(
        named or (title(heading[1]) if heading else "") or source.title, text, author=author or None
    )


class _Document:
    def __init__(self, package: Package) -> None:
        main = "word/document.xml"
        self._body = package.xml(main).find(W + "body")
        styles = package.optional("word/styles.xml")
        self._styles = {} if styles is None else dict(_style_names(styles))
        numbering = package.optional("word/numbering.xml")
        self._numbered = set() if numbering is None else set(_numbered(numbering))
        notes = [package.optional(f"word/{kind}notes.xml") for kind in ("foot", "end")]
        self._notes = [
            note
            for root in notes
            if root is not None
            for note in root
            if note.get(W + "type") is None
        ]

    def markdown(self) -> str:
        blocks = [] if self._body is None else list(self._blocks(self._body))
        notes = [block for note in self._notes for block in self._blocks(note)]
        return "".join(text if text.startswith("\n") else f"\n\n{text}" for text in blocks + notes)

    def _blocks(self, parent: etree._Element) -> Iterator[str]:
        """Each with the line breaks before it: items of a list stand close together."""
        was_item = False
        for element in parent:
            if element.tag == W + "p":
                text, is_item = self._paragraph(element)
                if text:
                    yield ("\n" if is_item and was_item else "\n\n") + text
                    was_item = is_item
            elif element.tag == W + "tbl":
                was_item = False
                yield table([list(_cells(row)) for row in element.iterchildren(W + "tr")])
            elif element.tag in _AROUND:
                yield from self._blocks(element)

    def _paragraph(self, element: etree._Element) -> tuple[str, bool]:
        text = _text(element).strip()
        style, number, level = self._shape(element)
        if not text:
            return "", False
        if heading := _HEADING.match(style):
            return f"{'#' * min(int(heading[1] or 1), 6)} {' '.join(text.split())}", False
        if listed := _LIST.match(style):
            number, level = listed[1].lower(), int(listed[2] or 1) - 1
        if number:
            return (
                f"{'  ' * level}{'1.' if number == 'number' else '-'} {' '.join(text.split())}",
                True,
            )
        return (f"```\n{text}\n```" if _CODE.search(style) else text), False

    def _shape(self, element: etree._Element) -> tuple[str, str, int]:
        """The style's name, "bullet" or "number" for a list's item, and its depth."""
        properties = element.find(W + "pPr")
        if properties is None:
            return "", "", 0
        style = properties.find(W + "pStyle")
        numbered = properties.find(f"{W}numPr/{W}numId")
        depth = properties.find(f"{W}numPr/{W}ilvl")
        name = self._styles.get(style.get(W + "val", ""), "") if style is not None else ""
        level = depth.get(W + "val", "0") if depth is not None else "0"
        if numbered is None or numbered.get(W + "val") == "0":
            return name, "", 0
        kind = "number" if (numbered.get(W + "val"), level) in self._numbered else "bullet"
        return name, kind, min(int(level) if level.isdecimal() else 0, 8)


def _text(element: etree._Element) -> str:
    """What is shown: deleted text, fields' codes and the text boxes' copies for older programs are not."""
    parts: list[str] = []
    for node in element.iter(W + "t", *_WRITTEN):
        if not any(
            above.tag.endswith("}Fallback") or above.tag == W + "tabs"
            for above in node.iterancestors()
        ):
            parts.append((node.text or "") if node.tag == W + "t" else _WRITTEN[node.tag])
    return "".join(parts)


def _cells(row: etree._Element) -> Iterator[str]:
    """The row's own; those of a table within one of them are part of that one's text."""
    for element in row:
        if element.tag == W + "tc":
            yield _cell(element)
        elif element.tag in _AROUND:
            yield from _cells(element)


def _cell(cell: etree._Element) -> str:
    return " ".join(filter(None, (_text(paragraph).strip() for paragraph in cell.iter(W + "p"))))


def _style_names(styles: etree._Element) -> Iterator[tuple[str, str]]:
    for style in styles.iter(W + "style"):
        name = style.find(W + "name")
        yield style.get(W + "styleId", ""), name.get(W + "val", "") if name is not None else ""


def _numbered(numbering: etree._Element) -> Iterator[tuple[str, str]]:
    """(number id, level) of the lists that count, rather than show bullets."""
    counts = {
        (abstract.get(W + "abstractNumId"), level.get(W + "ilvl", "0"))
        for abstract in numbering.iter(W + "abstractNum")
        for level in abstract.iter(W + "lvl")
        if (shape := level.find(W + "numFmt")) is not None
        and shape.get(W + "val") not in ("bullet", "none")
    }
    for number in numbering.iter(W + "num"):
        abstract = number.find(W + "abstractNumId")
        kind = abstract.get(W + "val") if abstract is not None else None
        yield from (
            (number.get(W + "numId", ""), level) for known, level in counts if known == kind
        )
