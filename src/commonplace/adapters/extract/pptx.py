"""Presentations: the slides' titles, texts, tables, charts and images, and the notes."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pptx
from lxml import etree
from lxml.html import Element, HtmlElement
from pptx.slide import Slide

from commonplace.adapters.extract import office_charts, omml
from commonplace.adapters.extract.embedded_images import EmbeddedImages, alt_text
from commonplace.adapters.extract.html import convert
from commonplace.adapters.extract.input_file import (
    Caps,
    Source,
    clean_title,
    join_pages,
    take_until_full,
)
from commonplace.adapters.extract.zip_xml import Package
from commonplace.model import Extracted

A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_CHOICES = "{http://schemas.openxmlformats.org/markup-compatibility/2006}AlternateContent"
_TYPES = "[Content_Types].xml"
# Slide shows and templates are presentations under another name.
_OTHER_TYPES = re.compile(
    rb"application/vnd\.(?:openxmlformats-officedocument\.presentationml\.(?:slideshow|template)"
    rb"|ms-powerpoint\.(?:slideshow|template)\.macroEnabled)\.main\+xml"
)
_TYPE = b"application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml"
_FURNITURE = {"sldNum", "dt", "ftr", "sldImg", "hdr"}
_BULLETS = {"buNone": "", "buChar": "ul", "buBlip": "ul", "buAutoNum": "ol"}


def read(source: Source, caps: Caps) -> Extracted:
    images = EmbeddedImages(caps)
    with Package(source, caps) as package:
        title, author, created = package.properties()
        slides = pptx.Presentation(package.repack(dict(_changes(package)))).slides
    texts = ((number, _text(slide, images)) for number, slide in enumerate(slides, 1))
    found = take_until_full(texts, "The presentation contains no text.")
    if title in ("", "PowerPoint Presentation"):
        title = clean_title(found[0][1].partition("\n")[0].lstrip("# ")) or source.title
    return replace(join_pages(title, found), author=author, published_at=created)


def _changes(package: Package) -> Iterator[tuple[str, bytes]]:
    """Yield parts as python-pptx can read them: it looks past what has alternatives."""
    yield _TYPES, _OTHER_TYPES.sub(_TYPE, package.read_part(_TYPES))
    for name in package.names:
        if "/slides/" in name and name.endswith(".xml"):
            slide = package.read_xml(name)
            for choices in list(slide.iter(_CHOICES)):
                best = next(iter(choices), ())
                choices.getparent()[choices.getparent().index(choices) : 0] = list(best)
                choices.getparent().remove(choices)
            yield name, etree.tostring(slide)


def _text(slide: Slide, images: EmbeddedImages) -> str:
    body = Element("body")
    if slide.element.get("show") == "0":
        body.append(_element("p", "(Hidden slide)"))
    for shape in slide.shapes:
        body.extend(_shape(slide, shape, images))
    notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    if notes is not None and notes.text.strip():
        blocks = list(_blocks(slide, notes._txBody, None))
        blocks[0].text = f"Notes: {blocks[0].text or ''}"
        body.extend(blocks)
    return convert.convert(body)


def _shape(slide: Slide, shape: Any, images: EmbeddedImages) -> Iterator[HtmlElement]:
    kind = next((ph.get("type", "obj") for ph in _placeholders(shape)), "")
    if kind in _FURNITURE:
        return
    for child in getattr(shape, "shapes", ()):
        yield from _shape(slide, child, images)
    if shape.element.tag == P + "pic":
        yield from _picture(slide, shape.element, images)
    elif getattr(shape, "has_chart", False):
        yield from _chart(shape)
    elif getattr(shape, "has_table", False):
        yield _table(slide, shape.element)
    elif (diagram := next(shape.element.iter(_DIAGRAM + "relIds"), None)) is not None:
        yield _diagram(slide, diagram)
    elif (shape.has_text_frame and shape.text_frame.text.strip()) or omml.formulas(shape.element):
        blocks = _blocks(slide, shape.text_frame._txBody, shape)
        if kind in ("title", "ctrTitle"):
            heading = Element("h2")
            heading.extend(blocks)
            yield heading
        else:
            yield from blocks


def _picture(
    slide: Slide, picture: etree._Element, images: EmbeddedImages
) -> Iterator[HtmlElement]:
    described = next(picture.iter(P + "cNvPr"))
    if shown := alt_text(described.get("descr")):
        yield _element("p", shown)
    link = str(next((blip.get(R + "embed") for blip in picture.iter(A + "blip")), ""))
    if link in slide.part.rels and not slide.part.rels[link].is_external:
        text = images.text(slide.part.related_part(link).blob)
        yield from (_element("p", words) for words in text.split("\n\n"))


def _chart(shape: Any) -> Iterator[HtmlElement]:
    space = shape.chart.part._element
    yield _element("p", office_charts.title(space))
    table = Element("table")
    for number, row in enumerate(office_charts.rows(space)):
        line = etree.SubElement(table, "tr")
        line.extend(_element("td" if number else "th", text) for text in row)
    yield table


def _table(slide: Slide, frame: etree._Element) -> HtmlElement:
    table = Element("table")
    for number, row in enumerate(frame.iter(A + "tr")):
        line = etree.SubElement(table, "tr")
        for cell in row.iterchildren(A + "tc"):
            if cell.get("hMerge") in ("1", "true") or cell.get("vMerge") in ("1", "true"):
                continue
            field = etree.SubElement(line, "td" if number else "th")
            field.set("colspan", cell.get("gridSpan", "1"))
            field.set("rowspan", cell.get("rowSpan", "1"))
            field.extend(_blocks(slide, next(cell.iterchildren(A + "txBody"), ()), None))
    return table


def _diagram(slide: Slide, diagram: etree._Element) -> HtmlElement:
    """Return the texts of a diagram (SmartArt), which lie in a part of their own."""
    found = Element("ul")
    link = diagram.get(R + "dm", "")
    if link in slide.part.rels:
        parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
        for body in etree.fromstring(slide.part.related_part(link).blob, parser).iter(
            _DIAGRAM + "t"
        ):
            item = etree.SubElement(found, "li")
            for paragraph in body.iter(A + "p"):
                item.extend(_inline(slide, paragraph))
    return found


def _blocks(slide: Slide, body: Iterable[etree._Element], shape: Any) -> Iterator[HtmlElement]:
    """Yield the paragraphs of a text frame, and lists of those that have bullets or numbers."""
    lists: list[HtmlElement] = []
    for paragraph in body:
        if paragraph.tag != A + "p":
            continue
        content = list(_inline(slide, paragraph))
        if not any(each.tag == "math" or "".join(each.itertext()).strip() for each in content):
            continue
        level = _level(paragraph)
        kind = _bullet(slide, paragraph, level, shape)
        if not kind:
            lists.clear()
            block = Element("p")
            block.extend(content)
            yield block
            continue
        del lists[level + 1 :]
        if len(lists) == level + 1 and lists[-1].tag != kind:
            del lists[-1]
        if len(lists) <= level:
            lists.append(Element(kind))
            if len(lists) > 1:
                lists[-2][-1].append(lists[-1])
            else:
                yield lists[0]
        etree.SubElement(lists[-1], "li").extend(content)


def _level(paragraph: etree._Element) -> int:
    stated = next((style.get("lvl", "") for style in paragraph.iterchildren(A + "pPr")), "")
    return min(int(stated), 8) if stated.isdecimal() else 0


def _bullet(slide: Slide, paragraph: etree._Element, level: int, shape: Any) -> str:
    """Return the list that a paragraph is an item of, by its own style or an inherited one."""
    for style in _styles(slide, paragraph, level, shape):
        for part in style:
            if (kind := _BULLETS.get(etree.QName(part).localname)) is not None:
                # Layouts may hide the bullets of lists, but indented text is one all the same.
                return kind or ("ul" if level and style.tag != A + "pPr" else "")
    return "ul" if level else ""


def _styles(
    slide: Slide, paragraph: etree._Element, level: int, shape: Any
) -> Iterator[etree._Element]:
    yield from paragraph.iterchildren(A + "pPr")
    name = f"{A}lvl{level + 1}pPr"
    kind = next((ph.get("type", "obj") for ph in _placeholders(shape)), "")
    try:
        while shape is not None:  # then the layout's, then the master's placeholder
            for styles in shape.element.iter(A + "lstStyle"):
                yield from styles.iterchildren(name)
            shape = getattr(shape, "_base_placeholder", None)
        if kind in ("obj", "body", "subTitle"):
            for styles in slide.slide_layout.slide_master.element.iter(P + "bodyStyle"):
                yield from styles.iterchildren(name)
    except KeyError:  # a slide without a layout
        return


def _placeholders(shape: Any) -> Iterator[etree._Element]:
    return iter(()) if shape is None else shape.element.iter(P + "ph")


def _inline(slide: Slide, paragraph: etree._Element) -> Iterator[HtmlElement]:
    for part in paragraph:
        name = etree.QName(part).localname
        if name == "br":
            yield Element("br")
        elif name in ("r", "fld"):
            yield _run(slide, part)
        else:
            for formula in omml.formulas(part):
                math = Element("math")
                math.set("alttext", omml.tex(formula))
                yield math


def _run(slide: Slide, run: etree._Element) -> HtmlElement:
    shown = _element("span", run.findtext(A + "t") or "")
    style = run.find(A + "rPr")
    for tag, attribute in (("strong", "b"), ("em", "i")) if style is not None else ():
        if style.get(attribute) in ("1", "true"):
            shown = _wrap(tag, shown)
    link = None if style is None else style.find(A + "hlinkClick")
    relation = None if link is None else slide.part.rels.get(link.get(R + "id", ""))
    if relation is not None and relation.is_external:
        shown = _wrap("a", shown)
        shown.set("href", relation.target_ref)
    return shown


def _wrap(tag: str, inner: HtmlElement) -> HtmlElement:
    outer = Element(tag)
    outer.append(inner)
    return outer


def _element(tag: str, text: str) -> HtmlElement:
    element = Element(tag)
    element.text = text
    return element
