"""Zip files of XML, the format of Office documents and e-books, opened safely."""

import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from io import BytesIO
from typing import NamedTuple
from urllib.parse import unquote

from lxml import etree

from commonplace.adapters.extract.input_file import Caps, Source, clean_title, parse_date
from commonplace.errors import IngestFailed

DC = "{http://purl.org/dc/elements/1.1/}"
_CREATED = "{http://purl.org/dc/terms/}created"
# Office's "strict" format has other namespaces for the same elements.
_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")
_READ = re.compile(r"\.(?:xml|rels|png|jpe?g|gif|bmp|tiff?|webp)$", re.I)
# What libraries write where nobody has said who wrote a document.
_NOBODY = {"python-docx", "openpyxl", "apache poi", "docx4j", "pptxgenjs", "un-named", "unknown"}
_NO_DATES = {"2013-12-23T23:15:00Z", "2013-01-27T09:14:16Z"}  # of their templates

_PARTS = 20_000
DAMAGE = (zipfile.BadZipFile, NotImplementedError, OSError, EOFError, ValueError, zlib.error)
_DAMAGED = "The file is damaged and cannot be opened."


class Relation(NamedTuple):
    id: str
    kind: str  # the last part of its type, such as "hyperlink"
    target: str  # a part's name, or an address outside of the file


class Package(zipfile.ZipFile):
    """A zip file of parts. Declared sizes are checked first; `zipfile` enforces them."""

    def __init__(self, source: Source, caps: Caps) -> None:
        try:
            super().__init__(source.path)
        except (zipfile.BadZipFile, NotImplementedError, OSError):
            raise IngestFailed(_DAMAGED) from None
        self.names = set(self.namelist())
        if sum(info.file_size for info in self.infolist()) > caps.unpacked_megabytes * 1_000_000:
            raise IngestFailed(
                f"The file is larger than {caps.unpacked_megabytes} MB when unpacked."
            )
        if len(self.infolist()) > _PARTS:
            raise IngestFailed(f"The file contains more than {_PARTS:,} parts.")

    def read_part(self, name: str) -> bytes:
        """Return a part's bytes, with the namespaces of Office's transitional format."""
        try:
            data = self.read(name)
        except KeyError:
            raise IngestFailed(
                f"The file is incomplete: {posixpath.basename(name)} is missing."
            ) from None
        except RuntimeError:
            raise IngestFailed(
                "The file is encrypted. Remove its password and try again."
            ) from None
        except DAMAGE:
            raise IngestFailed(_DAMAGED) from None
        is_xml = name.endswith((".xml", ".rels"))
        return _STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/", data) if is_xml else data

    def read_xml(self, name: str) -> etree._Element:
        """Return a part's root. Entities are not expanded, external resources not loaded."""
        parser = etree.XMLParser(
            resolve_entities=False,
            no_network=True,
            load_dtd=False,
            huge_tree=False,
            remove_comments=True,
            remove_pis=True,
        )
        try:
            return etree.fromstring(self.read_part(name), parser)
        except etree.XMLSyntaxError:
            raise IngestFailed(_DAMAGED) from None

    def read_optional(self, name: str) -> etree._Element:
        """Return a part's root, or an empty element when there is no such part."""
        return self.read_xml(name) if name in self.names else etree.Element("missing")

    def relations(self, name: str = "") -> Iterator[Relation]:
        """Yield what a part refers to; without a name, what the whole file does."""
        folder, base = posixpath.split(name)
        for each in self.read_optional(posixpath.join(folder, "_rels", f"{base}.rels")):
            target = each.get("Target", "")
            yield Relation(
                each.get("Id", ""),
                each.get("Type", "").rpartition("/")[2],
                target if each.get("TargetMode") == "External" else resolve(name, target),
            )

    def main_part(self, usual: str) -> str:
        """Return the name of the document itself, which need not be the usual one."""
        named = (each.target for each in self.relations() if each.kind == "officeDocument")
        return next((name for name in named if name in self.names), usual)

    def properties(self) -> tuple[str, str | None, datetime | None]:
        """Return the title, the author and the date of creation that an Office document states."""
        named = (each.target for each in self.relations() if each.kind == "core-properties")
        found = self.read_optional(next(named, "docProps/core.xml"))
        author = clean_title(found.findtext(DC + "creator") or "")
        created = (found.findtext(_CREATED) or "").strip()
        made_up = author.lower() in _NOBODY or created in _NO_DATES
        return (
            clean_title(found.findtext(DC + "title") or ""),
            None if author.lower() in _NOBODY else author or None,
            None if made_up else parse_date(created),
        )

    def repack(self, changes: Mapping[str, bytes]) -> BytesIO:
        """Return a sound zip file for libraries to open: with its checks passed, in the
        transitional format, with the changed parts, and without fonts, sounds and programs."""
        return pack(
            {
                name: changes.get(name) or (self.read_part(name) if _READ.search(name) else b"")
                for name in sorted(self.names)
            }
        )


def pack(parts: Mapping[str, bytes]) -> BytesIO:
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return packed


def resolve(name: str, target: str) -> str:
    """Return the part that `target` refers to from within the part `name`."""
    return posixpath.normpath(
        posixpath.join("/", posixpath.dirname(name), unquote(target.partition("#")[0]))
    ).lstrip("/")


def markdown_table(rows: list[list[str]]) -> str:
    """Render a Markdown table with the first row as its heading, padded to the widest row.

    Markdown allows the other rows to be shorter: padding them all would turn one long row into
    megabytes of empty cells.
    """
    width = max((len(row) for row in rows), default=0)
    if not width:
        return ""
    cells = [[" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in rows]
    cells[0] += [""] * (width - len(cells[0]))
    written = ["| " + " | ".join(row) + " |" for row in cells]
    return "\n".join([written[0], "|" + "---|" * width, *written[1:]])
