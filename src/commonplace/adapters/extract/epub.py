"""E-books: their chapters in reading order."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from lxml import etree
from lxml.html import HtmlElement

from commonplace.adapters.extract import charset
from commonplace.adapters.extract.html import convert
from commonplace.adapters.extract.html.blocks import BLOCKS, footnotes
from commonplace.adapters.extract.input_file import (
    LONGEST_TEXT,
    Caps,
    Source,
    clean_title,
    parse_date,
    take_until_full,
)
from commonplace.adapters.extract.zip_xml import DC, Package, resolve
from commonplace.errors import IngestFailed
from commonplace.model import Extracted

_OPF = "{http://www.idpf.org/2007/opf}"
_LONGEST_MARK = 8  # characters of what refers to a note, such as "[12]"


def read(source: Source, caps: Caps) -> Extracted:
    with Package(source, caps) as package:
        if "META-INF/encryption.xml" in package.names and "META-INF/rights.xml" in package.names:
            raise IngestFailed("The book is copy-protected and cannot be read.")
        container = package.read_xml("META-INF/container.xml")
        listing = next(filter(None, (each.get("full-path") for each in container.iter())), "")
        book = package.read_xml(listing)
        parts = {item.get("id"): item.get("href", "") for item in book.iter(_OPF + "item")}
        names = (
            resolve(listing, href)
            for reference in book.iter(_OPF + "itemref")
            if (href := parts.get(reference.get("idref")))
        )
        chapters = list(_chapters(package, names))
    notes = _join_notes(chapters)
    texts = (convert.convert(root, notes=notes) for _, root in chapters)
    found = take_until_full(enumerate(texts), "The book contains no text.")
    authors = (clean_title(each.text or "") for each in book.iter(DC + "creator"))
    return Extracted(
        clean_title(book.findtext(f".//{DC}title") or "") or source.title,
        "\n\n".join(text for _, text in found),
        author=", ".join(filter(None, authors)) or None,
        published_at=_published(book),
        language=(book.findtext(f".//{DC}language") or "")[:2].lower() or None,
    )


def _published(book: etree._Element) -> datetime | None:
    """Return the date of publication; the first of a year of which no more is said."""
    dates = [each for each in book.iter(DC + "date") if each.get(_OPF + "event") != "modification"]
    stated = ((each.text or "").strip() for each in dates)
    full = (text + "-01-01" if text.isdecimal() and len(text) == 4 else text for text in stated)
    return next(filter(None, map(parse_date, full)), None)


def _chapters(package: Package, names: Iterable[str]) -> Iterator[tuple[str, HtmlElement]]:
    """Yield the chapters' names and trees, until there are more than can be kept."""
    size = 0
    for name in names:
        page = charset.decode(package.read_part(name), markup=True)
        root = convert.parse(page)
        if root is not None and size <= 2 * LONGEST_TEXT:
            for element in root.iter():
                if isinstance(element.tag, str):  # formulas may be in a namespace
                    element.tag = element.tag.rpartition(":")[2]
            size += sum(map(len, root.itertext()))
            yield name, root


def _join_notes(chapters: list[tuple[str, HtmlElement]]) -> dict[str, str]:
    """Number the notes of all chapters, which may lie in a chapter of their own.

    Afterwards, a note's id and the links to it name its chapter, too.
    """
    elements = [(name, element) for name, root in chapters for element in root.iter()]
    order = {element: at for at, (_, element) in enumerate(elements)}
    places = {f"{name}#{each.get('id')}": each for name, each in elements if each.get("id")}
    links = dict(_links(chapters))
    stated = {f"{name}#{note}" for name, root in chapters for note in footnotes(root)}
    numbers: dict[str, str] = {}
    for link, target in links.items():
        note = _block(places.get(target))
        if note is None or len(link.text_content().strip()) > _LONGEST_MARK:
            continue
        back = [each for each in note.iter("a") if _leads_to(places.get(links.get(each, "")), link)]
        if target in stated or (back and order[note] > order[link]):
            numbers.setdefault(target, str(len(numbers) + 1))
            link.set("href", f"#{target}")
            note.set("id", target)
            for each in back:
                each.drop_tree()
    return numbers


def _links(chapters: list[tuple[str, HtmlElement]]) -> Iterator[tuple[HtmlElement, str]]:
    """Yield the links within the book, with the places that they lead to."""
    for name, root in chapters:
        for link in root.iter("a"):
            path, _, fragment = (link.get("href") or "").partition("#")
            if fragment and ":" not in path:
                yield link, f"{resolve(name, path) if path else name}#{fragment}"


def _block(place: HtmlElement | None) -> HtmlElement | None:
    """Return the innermost block that a place is in."""
    while place is not None and place.tag not in BLOCKS:
        place = place.getparent()
    return None if place is None or place.tag in ("body", "html", "section") else place


def _leads_to(place: HtmlElement | None, link: HtmlElement) -> bool:
    """Whether a place is at a link, or directly around it."""
    return place is not None and (place in (link, link.getparent()) or link in place[:1])
