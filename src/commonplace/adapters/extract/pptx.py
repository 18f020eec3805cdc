"""Presentations: each slide's title and text, and its notes."""

from collections.abc import Iterator

from lxml import etree

from commonplace.adapters.extract.input_file import (
    Caps,
    Source,
    clean_text,
    clean_title,
    join_pages,
    take_until_full,
)
from commonplace.adapters.extract.zip_xml import A, P, Package, R, markdown_table
from commonplace.model import Extracted

_MAIN = "ppt/presentation.xml"


def read(source: Source, caps: Caps) -> Extracted:
    with Package(source, caps) as package:
        parts = package.relationships(_MAIN)
        texts = take_until_full(
            (
                (
                    number,
                    clean_text(
                        "\n\n".join(_slide(package, parts.get(slide.get(R + "id", ""), "")))
                    ),
                )
                for number, slide in enumerate(package.read_xml(_MAIN).iter(P + "sldId"), 1)
            ),
            "The presentation contains no text.",
        )
        title = clean_title(package.core_property("title"))
    if title in ("", "PowerPoint Presentation"):
        title = clean_title(texts[0][1].partition("\n")[0].lstrip("# ")) or source.title
    return join_pages(title, texts)


def _slide(package: Package, name: str) -> Iterator[str]:
    for shape in package.read_xml(name).iter(P + "sp", P + "graphicFrame"):
        kind = _placeholder(shape)
        if kind in ("sldNum", "dt", "ftr", "sldImg", "hdr"):
            continue
        for rows in shape.iter(A + "tbl"):
            yield markdown_table(
                [[_text(cell) for cell in row.iter(A + "tc")] for row in rows.iter(A + "tr")]
            )
        if text := _text(shape.find(P + "txBody")):
            yield f"## {' '.join(text.split())}" if kind in ("title", "ctrTitle") else text
    for part in package.relationships(name).values():
        shapes = package.read_xml(part).iter(P + "sp") if "/notesSlides/" in part else ()
        notes = [_text(each.find(P + "txBody")) for each in shapes if _placeholder(each) == "body"]
        if any(notes):
            yield "Notes: " + "\n".join(filter(None, notes))


def _placeholder(shape: etree._Element) -> str:
    return next((found.get("type", "") for found in shape.iter(P + "ph")), "")


def _text(body: etree._Element | None) -> str:
    """Return the paragraphs, with list items indented by their level."""
    lines = []
    for paragraph in () if body is None else body.iter(A + "p"):
        text = "".join(
            "\n" if node.tag == A + "br" else node.text or ""
            for node in paragraph.iter(A + "t", A + "br")
        ).strip()
        level = next((shape.get("lvl", "0") for shape in paragraph.iterchildren(A + "pPr")), "0")
        depth = int(level) if level.isdecimal() else 0
        if text:
            lines.append("  " * (depth - 1) + "- " + text if depth else text)
    return "\n".join(lines)
