"""E-books: their chapters in reading order."""

from commonplace.adapters.extract import charset
from commonplace.adapters.extract.html import convert
from commonplace.adapters.extract.input_file import Caps, Source, clean_title, take_until_full
from commonplace.adapters.extract.zip_xml import DC, Package, resolve
from commonplace.errors import IngestFailed
from commonplace.model import Extracted

_OPF = "{http://www.idpf.org/2007/opf}"


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
        texts = (
            convert.convert_page(charset.decode(package.read_part(name), markup=True))
            for name in names
        )
        chapters = take_until_full(enumerate(texts), "The book contains no text.")
    return Extracted(
        clean_title(book.findtext(f".//{DC}title") or "") or source.title,
        "\n\n".join(text for _, text in chapters),
        author=clean_title(book.findtext(f".//{DC}creator") or "") or None,
        language=(book.findtext(f".//{DC}language") or "")[:2].lower() or None,
    )
