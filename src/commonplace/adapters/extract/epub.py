"""E-books: their chapters in reading order."""

from collections.abc import Iterator

from lxml import etree

from commonplace.adapters.extract import charset, html_to_markdown
from commonplace.adapters.extract.input_file import Caps, Source, enough, title
from commonplace.adapters.extract.zip_xml import DC, Package, beside
from commonplace.errors import IngestFailed
from commonplace.model import Extracted

_CONTAINER = "META-INF/container.xml"
_OPF = "{http://www.idpf.org/2007/opf}"


def read(source: Source, caps: Caps) -> Extracted:
    with Package(source, caps) as package:
        if "META-INF/encryption.xml" in package.names and "META-INF/rights.xml" in package.names:
            raise IngestFailed("The book is protected against copying and cannot be read.")
        listing = next(
            (
                each.get("full-path", "")
                for each in package.xml(_CONTAINER).iter()
                if each.get("full-path")
            ),
            "",
        )
        book = package.xml(listing)
        chapters = [
            text
            for _, text in enough(
                enumerate(_chapter(package, name) for name in _spine(book, listing))
            )
        ]
    if not chapters:
        raise IngestFailed("There is no text in the book.")
    return Extracted(
        title(book.findtext(f".//{DC}title") or "") or source.title,
        "\n\n".join(chapters),
        author=title(book.findtext(f".//{DC}creator") or "") or None,
        language=(book.findtext(f".//{DC}language") or "")[:2].lower() or None,
    )


def _spine(book: etree._Element, listing: str) -> Iterator[str]:
    parts = {item.get("id"): item.get("href", "") for item in book.iter(_OPF + "item")}
    for reference in book.iter(_OPF + "itemref"):
        if href := parts.get(reference.get("idref")):
            yield beside(listing, href)


def _chapter(package: Package, name: str) -> str:
    root = html_to_markdown.tree(charset.decode(package.data(name), markup=True))
    return "" if root is None else html_to_markdown.markdown(root)
