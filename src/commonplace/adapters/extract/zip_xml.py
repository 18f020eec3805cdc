"""Zip files of XML, as Office and e-books use them, opened with care."""

import posixpath
import zipfile
import zlib
from types import TracebackType
from typing import Self
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
# The newer Office can save under other names for the same elements.
_STRICT = (b"http://purl.oclc.org/ooxml/", b"http://schemas.openxmlformats.org/")

_PARTS = 20_000
_DAMAGED = "The file is damaged and cannot be opened."


class Package:
    """The sizes that the directory declares are checked before anything is unpacked; the zip module holds parts to them."""

    def __init__(self, source: Source, caps: Caps) -> None:
        try:
            self._zip = zipfile.ZipFile(source.path)
        except (zipfile.BadZipFile, NotImplementedError, OSError):
            raise IngestFailed(_DAMAGED) from None
        self.names = {info.filename: info for info in self._zip.infolist()}
        unpacked = sum(info.file_size for info in self._zip.infolist())
        if unpacked > caps.unpacked_megabytes * 1_000_000:
            self._zip.close()
            raise IngestFailed(
                f"The file is larger than {caps.unpacked_megabytes} MB when it is unpacked."
            )
        if len(self._zip.infolist()) > _PARTS:
            self._zip.close()
            raise IngestFailed(f"The file has more than {_PARTS:,} parts in it.")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._zip.close()

    def data(self, name: str) -> bytes:
        try:
            return self._zip.read(self.names[name])
        except KeyError:
            raise IngestFailed(
                f"The file is incomplete: {posixpath.basename(name)} is missing in it."
            ) from None
        except RuntimeError:
            raise IngestFailed("The file is encrypted: it opens only with a password.") from None
        except (zipfile.BadZipFile, NotImplementedError, OSError, EOFError, ValueError, zlib.error):
            raise IngestFailed(_DAMAGED) from None

    def xml(self, name: str) -> etree._Element:
        """A part's root. Entities are not expanded and nothing outside is looked up."""
        parser = etree.XMLParser(
            resolve_entities=False,
            no_network=True,
            load_dtd=False,
            huge_tree=False,
            remove_comments=True,
            remove_pis=True,
        )
        try:
            return etree.fromstring(self.data(name).replace(*_STRICT), parser)
        except etree.XMLSyntaxError:
            raise IngestFailed(_DAMAGED) from None

    def optional(self, name: str) -> etree._Element | None:
        return self.xml(name) if name in self.names else None

    def relations(self, name: str) -> dict[str, str]:
        """Relation id to part, for a part's references to others."""
        folder, base = posixpath.split(name)
        root = self.optional(f"{folder}/_rels/{base}.rels")
        return (
            {}
            if root is None
            else {
                each.get("Id", ""): beside(name, each.get("Target", ""))
                for each in root
                if each.get("TargetMode") != "External"
            }
        )

    def said(self, field: str) -> str:
        """A field of the document's properties: title, creator ..."""
        root = self.optional("docProps/core.xml")
        return "" if root is None else (root.findtext(DC + field) or "").strip()


def beside(name: str, target: str) -> str:
    """The part that `target` means within the part `name`."""
    path = unquote(target.partition("#")[0])
    return (
        path.lstrip("/")
        if path.startswith("/")
        else posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
    )


def table(rows: list[list[str]]) -> str:
    """A Markdown table; its first row is the heading, and as wide as the widest. Shorter rows stay as they are, as
    Markdown allows: padding them all would make megabytes of nothing out of one long row."""
    width = max((len(row) for row in rows), default=0)
    if not width:
        return ""
    cells = [[" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in rows]
    cells[0] += [""] * (width - len(cells[0]))
    written = ["| " + " | ".join(row) + " |" for row in cells]
    return "\n".join([written[0], "|" + "---|" * width, *written[1:]])
