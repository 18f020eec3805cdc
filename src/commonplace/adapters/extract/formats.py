"""Which reader reads what. Each is imported when its first file comes."""

from collections.abc import Callable
from importlib import import_module

from commonplace.adapters.extract import media_type
from commonplace.adapters.extract.input_file import Caps, Source
from commonplace.errors import IngestFailed
from commonplace.model import Extracted

_READERS = {
    "text/html": "web_page",
    "application/pdf": "pdf",
    **dict.fromkeys(
        ("image/png", "image/jpeg", "image/webp", "image/tiff", "image/gif", "image/bmp"),
        "image_ocr",
    ),
    media_type.DOCX: "docx",
    media_type.PPTX: "pptx",
    media_type.XLSX: "xlsx",
    media_type.EPUB: "epub",
    "text/vtt": "subtitles",
    "application/x-subrip": "subtitles",
    "application/rss+xml": "feed",
    "application/atom+xml": "feed",
    "application/feed+json": "feed",
}
_REFUSED = {
    media_type.OLD_OFFICE: "The file is an Office document of the old kind, or has a password; save it as docx or PDF.",
    "application/zip": "The file is a zip archive; add the files in it one by one.",
    "application/rtf": "The file is RTF, which cannot be read; save it as docx or PDF.",
}


def read(source: Source, caps: Caps) -> Extracted:
    kind = media_type.sniff(source.path, source.media_type, source.file_name)
    module = _READERS.get(kind) or ("plain_text" if media_type.is_text(kind) else None)
    if module is None:
        raise IngestFailed(_refusal(kind))
    reader: Callable[[Source, Caps], Extracted] = import_module(
        f"commonplace.adapters.extract.{module}"
    ).read
    return reader(Source(source.path, kind, source.charset, source.url, source.name), caps)


def _refusal(kind: str) -> str:
    if kind.startswith(("audio/", "video/")):
        return "The file is a recording: it has to be transcribed, not read."
    return _REFUSED.get(kind) or f"Files of this kind ({kind}) cannot be read."
