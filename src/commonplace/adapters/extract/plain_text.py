"""Texts that are kept as they are: Markdown, plain text, JSON, CSV, code."""

import re
from itertools import pairwise

from commonplace.adapters.extract import charset
from commonplace.adapters.extract.input_file import Caps, Source, clean_title
from commonplace.errors import IngestFailed
from commonplace.model import Extracted

_FRONT, _FRONT_END = re.compile(r"---[ \t]*\n"), re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.MULTILINE)
_FRONT_TITLE = re.compile(r"^title:[ \t]*+(.+)", re.MULTILINE)
_UNWANTED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff\ud800-\udfff]")
_TITLE_WITHIN = 2000  # characters; a heading further down is not the title


def read(source: Source, caps: Caps) -> Extracted:
    data, truncated = source.read_start(caps)
    text = _UNWANTED.sub("", charset.decode(data, source.charset).replace("\r\n", "\n")).strip("\n")
    if not text.strip():
        raise IngestFailed("The file is empty.")
    # In other files, # starts a comment.
    is_prose = source.media_type == "text/markdown" or source.extension in ("", "txt")
    return Extracted(
        clean_title(_find_title(text) if is_prose else "") or source.title,
        text,
        truncated=truncated,
    )


def _find_title(text: str) -> str:
    front = _FRONT.match(text)
    end = _FRONT_END.search(text, front.end()) if front else None
    if front and end and (named := _FRONT_TITLE.search(text, front.end(), end.start())):
        title = named[1].strip()
        quoted = len(title) > 1 and title[0] == title[-1] and title[0] in "\"'"
        return title[1:-1] if quoted else title
    for line, below in pairwise([*text[end.end() if end else 0 : _TITLE_WITHIN].split("\n"), ""]):
        if line.startswith(("# ", "#\t")) and (heading := line.strip("# \t")):
            return heading
        if line[:1].strip() and below.startswith("=") and not below.strip("= \t"):
            return line
    return ""
