"""Presentations: each slide's title and text, and its notes."""

from collections.abc import Iterator

from lxml import etree

from commonplace.adapters.extract.input_file import Caps, Source, enough, paged, tidy, title
from commonplace.adapters.extract.zip_xml import A, P, Package, R, table
from commonplace.errors import IngestFailed
from commonplace.model import Extracted

_MAIN = "ppt/presentation.xml"
_TITLES = ("title", "ctrTitle")
_LEFT_OUT = ("sldNum", "dt", "ftr", "sldImg", "hdr")


def read(source: Source, caps: Caps) -> Extracted:
    with Package(source, caps) as package:
        parts = package.relations(_MAIN)
        listed = [
            parts.get(slide.get(R + "id", ""), "") for slide in package.xml(_MAIN).iter(P + "sldId")
        ]
        texts = enough(
            (number, tidy("\n\n".join(_slide(package, name))))
            for number, name in enumerate(listed, 1)
        )
        named = title(package.said("title"))
    if not texts:
        raise IngestFailed("There is no text in the presentation.")
    first = texts[0][1].partition("\n")[0].lstrip("# ")
    return paged(
        named if named and named != "PowerPoint Presentation" else title(first) or source.title,
        texts,
    )


def _slide(package: Package, name: str) -> Iterator[str]:
    for shape in package.xml(name).iter(P + "sp", P + "graphicFrame"):
        kind = _placeholder(shape)
        if kind in _LEFT_OUT:
            continue
        for rows in shape.iter(A + "tbl"):
            yield table(
                [[_text(cell) for cell in row.iter(A + "tc")] for row in rows.iter(A + "tr")]
            )
        if text := _text(shape.find(P + "txBody")):
            yield f"## {' '.join(text.split())}" if kind in _TITLES else text
    for notes in (part for part in package.relations(name).values() if "/notesSlides/" in part):
        said = [
            _text(shape.find(P + "txBody"))
            for shape in package.xml(notes).iter(P + "sp")
            if _placeholder(shape) == "body"
        ]
        if any(said):
            yield "Notes: " + "\n".join(filter(None, said))


def _placeholder(shape: etree._Element) -> str:
    found = next(shape.iter(P + "ph"), None)
    return "" if found is None else found.get("type", "")


def _text(body: etree._Element | None) -> str:
    """Paragraphs; those of a list are indented as deep as they stand."""
    lines = []
    for paragraph in () if body is None else body.iter(A + "p"):
        text = "".join(
            "\n" if node.tag == A + "br" else node.text or ""
            for node in paragraph.iter(A + "t", A + "br")
        ).strip()
        shape = paragraph.find(A + "pPr")
        depth = shape.get("lvl", "0") if shape is not None else "0"
        if text:
            lines.append(
                "  " * (int(depth) - 1) + "- " + text
                if depth.isdecimal() and depth != "0"
                else text
            )
    return "\n".join(lines)
