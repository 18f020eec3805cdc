"""Word documents, converted to HTML by mammoth, and that by the writer of all pages."""

import re
from collections.abc import Iterator

import mammoth
from lxml import etree
from lxml.html import HtmlElement
from mammoth import html as nodes

from commonplace.adapters.extract import omml
from commonplace.adapters.extract.embedded_images import EmbeddedImages, alt_text
from commonplace.adapters.extract.html import convert
from commonplace.adapters.extract.input_file import LONGEST_TEXT, Caps, Source, clean_title
from commonplace.adapters.extract.zip_xml import Package
from commonplace.errors import IngestFailed
from commonplace.model import Extracted

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_PARTS = ("footnotes", "endnotes", "styles", "numbering")
# What mammoth does not look at, but would hold as a tree of its own, some fifty times the size.
_UNUSED = tuple(
    W + name
    for name in (
        *("sectPr", "tblPr", "tblGrid", "trHeight", "proofErr", "lastRenderedPageBreak", "lang"),
        *(
            "rFonts",
            "sz",
            "szCs",
            "color",
            "kern",
            "spacing",
            "shd",
            "bCs",
            "iCs",
            "rtl",
            "cs",
            "w",
        ),
        *("position", "noProof", "webHidden", "bdr", "tabs", "ind", "jc", "pBdr", "keepNext"),
        *("keepLines", "widowControl", "contextualSpacing", "bookmarkEnd", "commentRangeStart"),
        *("commentRangeEnd", "w"),
    )
)
_FORMULA = "Commonplace-Formula"
_TEXT = "data-text"
_STYLES = rf"""
r.{_FORMULA} => math:fresh > annotation[encoding='tex']:fresh
p[style-name='Title'] => h1:fresh
p[style-name='heading 7'] => h6:fresh
p[style-name='heading 8'] => h6:fresh
p[style-name='heading 9'] => h6:fresh
p[style-name^='toc '] => !
p[style-name='TOC Heading'] => !
p[style-name='Quote'] => blockquote > p:fresh
p[style-name='Intense Quote'] => blockquote > p:fresh
p[style-name='Block Text'] => blockquote > p:fresh
p[style-name='Quotations'] => blockquote > p:fresh
p[style-name='Source Code'] => pre:separator('\n')
p[style-name='HTML Preformatted'] => pre:separator('\n')
p[style-name='Preformatted Text'] => pre:separator('\n')
p[style-name='macro'] => pre:separator('\n')
p[style-name='Code'] => pre:separator('\n')
r[style-name='Verbatim Char'] => code
r[style-name='HTML Code'] => code
r[style-name='Source Text'] => code
p[style-name='Definition Term'] => dl > dt:fresh
p[style-name='Definition'] => dl > dd:fresh
p[style-name='List Bullet'] => ul > li:fresh
p[style-name='List Bullet 2'] => ul|ol > li > ul > li:fresh
p[style-name='List Bullet 3'] => ul|ol > li > ul|ol > li > ul > li:fresh
p[style-name='List Number'] => ol > li:fresh
p[style-name='List Number 2'] => ul|ol > li > ol > li:fresh
p[style-name='List Number 3'] => ul|ol > li > ul|ol > li > ol > li:fresh
"""


def read(source: Source, caps: Caps) -> Extracted:
    images = EmbeddedImages(caps)
    with Package(source, caps) as package:
        title, author, created = package.properties()
        page = _html(package, images)
    root = convert.parse(page)
    text = "" if root is None else convert.convert(_prepare(root))
    images.require(text)
    if not text:
        raise IngestFailed("The document contains no text.")
    heading = re.match(r"# (.+)", text)
    return Extracted(
        title or clean_title(heading[1] if heading else "") or source.title,
        text,
        author=author,
        published_at=created,
    )


def _html(package: Package, images: EmbeddedImages) -> str:
    main = package.main_part("word/document.xml")
    parts = {each.kind: each.target for each in package.relations(main)}
    roots = {name: package.read_xml(name) for name in (main, *_existing(package, parts))}
    noted = {
        (etree.QName(note).localname, note.get(W + "id"))
        for root in roots.values()
        for note in root.iterchildren(W + "footnote", W + "endnote")
    }
    for root in roots.values():
        _simplify(root, noted)
    changed = {name: etree.tostring(root) for name, root in roots.items()}
    return str(
        mammoth.convert_to_html(
            package.repack(changed),
            style_map=_STYLES,
            include_embedded_style_map=False,
            convert_image=lambda image: _image(image, images),
        ).value
    )


def _existing(package: Package, parts: dict[str, str]) -> Iterator[str]:
    return (parts[kind] for kind in _PARTS if parts.get(kind) in package.names)


def _simplify(root: etree._Element, noted: set[tuple[str, str | None]]) -> None:
    """Cut a part's tree to what is converted: text up to the limit, with formulas as TeX."""
    size = 0
    for block in list(root[0] if len(root) and root[0].tag == W + "body" else ()):
        if size > LONGEST_TEXT:
            root[0].remove(block)
        size += sum(len(text.text or "") for text in block.iter(W + "t"))
    for formula in omml.formulas(root):
        run = etree.Element(W + "r")
        style = etree.SubElement(etree.SubElement(run, W + "rPr"), W + "rStyle")
        style.set(W + "val", _FORMULA)
        etree.SubElement(run, W + "t").text = omml.tex(formula)
        run.tail = formula.tail
        formula.getparent().replace(formula, run)
    etree.strip_tags(root, omml.M + "oMathPara", etree.Entity)
    etree.strip_elements(root, *_UNUSED, with_tail=False)
    for reference in list(root.iter(W + "footnoteReference", W + "endnoteReference")):
        kind = etree.QName(reference).localname.removesuffix("Reference")
        if (kind, reference.get(W + "id")) not in noted:
            reference.getparent().remove(reference)
    for element in root.iter("*"):
        for name in element.attrib:
            if "rsid" in name or name.endswith(("paraId", "textId")):
                del element.attrib[name]
    for paragraph in root.iter(W + "p"):
        _join_runs(paragraph)


def _join_runs(paragraph: etree._Element) -> None:
    """Join neighbouring runs of the same look: Word begins a new one with every correction."""
    last: tuple[bytes, etree._Element] | None = None
    for run in list(paragraph):
        parts = list(run)
        style = parts.pop(0) if parts and parts[0].tag == W + "rPr" else None
        if run.tag != W + "r" or len(parts) != 1 or parts[0].tag != W + "t":
            last = None
            continue
        look = b"" if style is None or not len(style) else etree.tostring(style, with_tail=False)
        if last is not None and last[0] == look and _FORMULA.encode() not in look:
            last[1].text = (last[1].text or "") + (parts[0].text or "")
            paragraph.remove(run)
        else:
            last = look, parts[0]


def _image(image: mammoth.documents.Image, images: EmbeddedImages) -> list[object]:
    """Return what an image says that it shows, and the text in it."""
    try:
        with image.open() as file:
            text = images.text(file.read())
    except (KeyError, OSError, ValueError):  # named in the document, and missing
        text = ""
    return [nodes.element("img", {"alt": alt_text(image.alt_text), _TEXT: text})]


def _prepare(root: HtmlElement) -> HtmlElement:
    """Give tables a head, and images' texts paragraphs of their own."""
    for table in root.iter("table"):
        first = next(table.iter("tr"), None)
        for cell in () if first is None else first.iterchildren("td"):
            cell.tag = "th"
    for image in list(root.iter("img")):
        block = next(image.iterancestors("p", "li", "td", "th", "h1", "h2", "h3"), image)
        for words in reversed((image.get(_TEXT) or "").split("\n\n")):
            paragraph = block.makeelement("p")
            paragraph.text = words
            if block.tag in ("li", "td", "th"):
                block.append(paragraph)
            else:
                block.addnext(paragraph)
    return root
