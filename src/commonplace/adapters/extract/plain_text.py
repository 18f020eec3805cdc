"""Texts that are kept as they are: Markdown, plain text, JSON, CSV, code."""

import re
from dataclasses import replace
from itertools import pairwise

from commonplace.adapters.extract import charset
from commonplace.adapters.extract.input_file import Caps, Source, clean_title
from commonplace.errors import IngestFailed, Invalid
from commonplace.model import Extracted

_UNWANTED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff\ud800-\udfff]")
_TITLE_WITHIN = 2000  # characters; a heading further down is not the title


def read(source: Source, caps: Caps) -> Extracted:
    data, truncated = source.read_start(caps)
    text = _UNWANTED.sub("", charset.decode(data, source.charset).replace("\r\n", "\n")).strip("\n")
    if not text.strip():
        raise IngestFailed("The file is empty.")
    # In other files, # starts a comment.
    is_prose = source.media_type == "text/markdown" or source.extension in ("", "txt")
    if is_prose and text.startswith("---"):
        return _with_front_matter(source, text, truncated)
    return Extracted(
        clean_title(_find_title(text) if is_prose else "") or source.title,
        text,
        truncated=truncated,
    )


def _with_front_matter(source: Source, text: str, truncated: bool) -> Extracted:
    """Read title, tags, date and author from it. What a web page says there stays in its text."""
    from commonplace.text import front_matter  # with YAML, which few readers need

    try:
        note = front_matter.parse(text, "")
    except Invalid as error:
        raise IngestFailed(error.message) from None
    body = note.text.strip("\n")
    found = Extracted(
        clean_title(note.title or _find_title(body)) or source.title,
        body if source.url is None and body.strip() else text,
        truncated=truncated,
    )
    if source.url is not None or not note.front:
        return found
    return replace(
        found,
        author=note.author or None,
        published_at=note.created_at,
        tags=note.tags,
        front_matter=note.others,
    )


def _find_title(text: str) -> str:
    for line, below in pairwise([*text[:_TITLE_WITHIN].split("\n"), ""]):
        if line.startswith(("# ", "#\t")) and (heading := line.strip("# \t")):
            return heading
        if line[:1].strip() and below.startswith("=") and not below.strip("= \t"):
            return line
    return ""
