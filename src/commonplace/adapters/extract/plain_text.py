"""Texts that are read as they are: Markdown, plain text, JSON, CSV, code."""

import re
from itertools import pairwise

from commonplace.adapters.extract import charset
from commonplace.adapters.extract.input_file import Caps, Source, title
from commonplace.errors import IngestFailed
from commonplace.model import Extracted

_FRONT, _FRONT_END = re.compile(r"---[ \t]*\n"), re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.MULTILINE)
_FRONT_TITLE = re.compile(r"^title:[ \t]*+(.+)", re.MULTILINE)
_UNWANTED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff\ud800-\udfff]")
_EARLY = 2000  # a heading further down does not name the text


def read(source: Source, caps: Caps) -> Extracted:
    data, truncated = source.beginning(caps)
    text = _UNWANTED.sub("", charset.decode(data, source.charset).replace("\r\n", "\n")).strip("\n")
    if not text.strip():
        raise IngestFailed("The file is empty: there is nothing to read in it.")
    is_prose = source.media_type == "text/markdown" or source.ending in (
        "",
        "txt",
    )  # elsewhere, # starts a comment
    found = _titled(text) if is_prose else None
    return Extracted(title(found or "") or source.title, text, truncated=truncated)


def _titled(text: str) -> str | None:
    front = _FRONT.match(text)
    end = _FRONT_END.search(text, front.end()) if front else None
    if front and end and (named := _FRONT_TITLE.search(text, front.end(), end.start())):
        said = named[1].strip()
        return said[1:-1] if len(said) > 1 and said[0] == said[-1] and said[0] in "\"'" else said
    for line, below in pairwise([*text[end.end() if end else 0 : _EARLY].split("\n"), ""]):
        if line.startswith(("# ", "#\t")) and (heading := line.strip("# \t")):
            return heading
        if line[:1].strip() and below.startswith("=") and not below.strip("= \t"):
            return line
    return None
