"""Choose the reader for a media type. Readers are imported with their first file."""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module

from commonplace.adapters.extract import media_type
from commonplace.adapters.extract.input_file import Caps, Source
from commonplace.errors import IngestFailed, extra
from commonplace.model import Extracted

_READERS = {
    "text/html": "html.page",
    "application/pdf": "pdf.document",
    **dict.fromkeys(
        ("image/png", "image/jpeg", "image/webp", "image/tiff", "image/gif", "image/bmp"),
        "image_ocr",
    ),
    media_type.DOCX: "docx",
    media_type.PPTX: "pptx",
    media_type.XLSX: "xlsx",
    media_type.EPUB: "epub",
    **dict.fromkeys(media_type.EXPORTS, "saved"),
    "text/vtt": "subtitles",
    "application/x-subrip": "subtitles",
    "application/rss+xml": "feed",
    "application/atom+xml": "feed",
    "application/feed+json": "feed",
}
_EXTRAS = {
    "image_ocr": ("ocr", "Text in images"),
    "pptx": ("documents", "Reading presentations"),
}
_REFUSED = {
    **dict.fromkeys(
        ("audio", "video"), "The file is a recording: it has to be transcribed, not read."
    ),
    media_type.OLD_OFFICE: (
        "The file is an old Office document (doc, xls, ppt) or has a password. "
        "Save it as docx, xlsx, pptx or PDF."
    ),
    media_type.XLSB: "Binary Excel files (xlsb) are not supported. Save the file as xlsx.",
    media_type.IWORK: (
        "Pages, Numbers and Keynote files are not supported. Export the file as docx, xlsx, pptx "
        "or PDF."
    ),
    media_type.VISIO: "Visio drawings are not supported. Export the file as PDF.",
    "application/x-mobipocket-ebook": (
        "Kindle books (mobi, azw) are not supported. Convert the book to EPUB."
    ),
    "image/vnd.djvu": "DjVu files are not supported. Convert the file to PDF.",
    "application/postscript": "PostScript files are not supported. Convert the file to PDF.",
    "application/zip": "The file is a zip archive. Unpack it and add its files, or import it.",
    "application/rtf": "RTF files are not supported. Save the file as docx or PDF.",
}


def read(source: Source, caps: Caps) -> Extracted:
    kind = media_type.sniff(source.path, source.media_type, source.file_name)
    module = _READERS.get(kind) or ("plain_text" if media_type.is_text(kind) else None)
    if module is None:
        reason = _REFUSED.get(kind) or _REFUSED.get(kind.partition("/")[0])
        if kind.startswith("application/vnd.oasis.opendocument."):
            reason = (
                "OpenDocument files (odt, ods, odp) are not supported. "
                "Save the file as docx, xlsx, pptx or PDF."
            )
        raise IngestFailed(reason or f"Files of this type ({kind}) are not supported.")
    with extra(*_EXTRAS.get(module, _EXTRAS["image_ocr"]), IngestFailed):
        reader: Callable[[Source, Caps], Extracted] = import_module(
            f"commonplace.adapters.extract.{module}"
        ).read
    return reader(replace(source, media_type=kind), caps)
