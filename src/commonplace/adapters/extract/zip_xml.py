"""Zip files of XML, the format of Office documents and e-books, opened safely."""

import posixpath
import zipfile
import zlib
from urllib.parse import unquote

from lxml import etree

from commonplace.adapters.extract.input_file import Caps, Source
from commonplace.errors import IngestFailed

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
DC = "{http://purl.org/dc/elements/1.1/}"
# Office's "strict" format has other namespaces for the same elements.
_STRICT = (b"http://purl.oclc.org/ooxml/", b"http://schemas.openxmlformats.org/")

_PARTS = 20_000
_DAMAGED = "The file is damaged and cannot be opened."


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
        try:
            return self.read(name)
        except KeyError:
            raise IngestFailed(
                f"The file is incomplete: {posixpath.basename(name)} is missing."
            ) from None
        except RuntimeError:
            raise IngestFailed(
                "The file is encrypted. Remove its password and try again."
            ) from None
        except (zipfile.BadZipFile, NotImplementedError, OSError, EOFError, ValueError, zlib.error):
            raise IngestFailed(_DAMAGED) from None

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
            return etree.fromstring(self.read_part(name).replace(*_STRICT), parser)
        except etree.XMLSyntaxError:
            raise IngestFailed(_DAMAGED) from None

    def read_optional(self, name: str) -> etree._Element:
        """Return a part's root, or an empty element when there is no such part."""
        return self.read_xml(name) if name in self.names else etree.Element("missing")

    def relationships(self, name: str) -> dict[str, str]:
        """Map relationship ids to the names of the parts that a part refers to."""
        folder, base = posixpath.split(name)
        return {
            each.get("Id", ""): resolve(name, each.get("Target", ""))
            for each in self.read_optional(f"{folder}/_rels/{base}.rels")
            if each.get("TargetMode") != "External"
        }

    def core_property(self, name: str) -> str:
        """Return a document property, such as title or creator; "" if it has none."""
        return (self.read_optional("docProps/core.xml").findtext(DC + name) or "").strip()


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
