"""Texts that are read as they are: Markdown, plain text, JSON, CSV, code."""

import re

from commonplace.adapters.extract import charsets
from commonplace.adapters.extract.source import Caps, Source, title
from commonplace.errors import IngestFailed
from commonplace.model import Extracted

_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|$)", re.DOTALL)
_FRONT_TITLE = re.compile(r"""^title:[ \t]*(["']?)(.+?)\1[ \t]*$""", re.MULTILINE)
_HEADING = re.compile(r"^#[ \t]+(.+?)[ \t#]*$|^(\S.*)\n=+[ \t]*$", re.MULTILINE)
_UNWANTED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff\ud800-\udfff]")
_EARLY = 2000  # a heading further down does not name the text


def read(source: Source, caps: Caps) -> Extracted:
    text = _UNWANTED.sub("", charsets.decode(source.data(caps), source.charset).replace("\r\n", "\n")).strip("\n")
    if not text.strip():
        raise IngestFailed("The file is empty: there is nothing to read in it.")
    is_prose = source.media_type == "text/markdown" or source.ending in ("", "txt")  # elsewhere, # starts a comment
    found = _titled(text) if is_prose else None
    return Extracted(title(found or "") or source.title, text)


def _titled(text: str) -> str | None:
    front = _FRONT_MATTER.match(text)
    if front and (named := _FRONT_TITLE.search(front[1])):
        return named[2]
    heading = _HEADING.search(text, front.end() if front else 0, _EARLY)
    return (heading[1] or heading[2]) if heading else None
