"""Detect a file's media type: by its first bytes, by declaration, by its name's extension."""

import re
import zipfile
import zlib
from pathlib import Path

from commonplace.adapters.extract import charset

BINARY = "application/octet-stream"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
EPUB = "application/epub+zip"
XLSB = "application/vnd.ms-excel.sheet.binary.macroenabled.12"
ENEX = "application/enex+xml"
OPML = "text/x-opml"
NOTEBOOK = "application/x-ipynb+json"
MAIL, MAILBOX = "message/rfc822", "application/mbox"
CLIPPINGS = "text/x-kindle-clippings"
EXPORTS = (ENEX, OPML, NOTEBOOK, MAIL, MAILBOX, CLIPPINGS)
IWORK = "application/vnd.apple.iwork"
VISIO = "application/vnd.ms-visio.drawing"
OLD_OFFICE = "application/x-ole-storage"  # doc, xls, ppt; docx, xlsx, pptx with a password

# The type of the document itself, which may be a template, a slide show, or have macros.
_MAIN_PART = re.compile(
    rb"openxmlformats-officedocument\.(\w{1,20})ml\.\w{1,20}\.main\+xml"
    rb"|vnd\.ms-(word|excel|powerpoint)\.\w{1,20}\.macroEnabled\.main\+xml"
)
_OFFICE = {
    **dict.fromkeys((b"wordprocessing", b"word"), DOCX),
    **dict.fromkeys((b"presentation", b"powerpoint"), PPTX),
    **dict.fromkeys((b"spreadsheet", b"excel"), XLSX),
}
_LONGEST_LIST = 1_000_000  # bytes of a list of parts that are looked at

_MAGIC: tuple[tuple[re.Pattern[bytes], str], ...] = tuple(
    (re.compile(pattern, re.DOTALL), kind)
    for pattern, kind in (
        (rb"\x89PNG\r\n\x1a\n", "image/png"),
        (rb"\xff\xd8\xff", "image/jpeg"),
        (rb"GIF8[79]a", "image/gif"),
        (rb"RIFF.{4}WEBP", "image/webp"),
        (rb"II[\x2a\x2b]\x00|MM\x00[\x2a\x2b]", "image/tiff"),
        (rb"BM.{4}\x00{4}", "image/bmp"),
        (rb"ID3|\xff[\xe2\xe3\xf2\xf3\xfa\xfb]", "audio/mpeg"),
        (rb"\xff[\xf0\xf1\xf8\xf9]|ADIF", "audio/aac"),
        (rb"fLaC", "audio/flac"),
        (rb"OggS.{24}.(?:\x80theora|\x01video)", "video/ogg"),
        (rb"OggS", "audio/ogg"),
        (rb"RIFF.{4}WAVE", "audio/wav"),
        (rb"RIFF.{4}AVI ", "video/x-msvideo"),
        (rb"FORM.{4}AIF[FC]", "audio/aiff"),
        (rb".{4}ftyp(?:M4A |M4B )", "audio/mp4"),
        (rb".{4}ftypqt", "video/quicktime"),
        (rb".{4}ftyp(?:avif|heic|heix|mif1)", "image/heif"),
        (rb".{4}ftyp", "video/mp4"),
        (rb"\x1aE\xdf\xa3.{0,60}webm", "video/webm"),
        (rb"\x1aE\xdf\xa3", "video/x-matroska"),
        (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", OLD_OFFICE),
        (rb"\x1f\x8b", "application/gzip"),
        (rb"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
        (rb"\{\\rtf", "application/rtf"),
        (rb"AT&TFORM", "image/vnd.djvu"),
        (rb"%!PS", "application/postscript"),
        (rb".{60}BOOKMOBI", "application/x-mobipocket-ebook"),
    )
)

_TEXT_MAGIC: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.I), kind)
    for pattern, kind in (
        (r"WEBVTT\b", "text/vtt"),
        (r"[^\n]{1,400}\n- [^\n|]{1,400}\|[^\n]{1,400}\n[^=]{0,3000}\n={10}\r?\n", CLIPPINGS),
        (r"\d+[ \t]*\r?\n\d+:\d\d:\d\d[,.]\d{3} -->", "application/x-subrip"),
    )
)
_ROOTS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.I), kind)
    for pattern, kind in (
        (r"\s*(?:<!doctype\s+html|<html[\s>])", "text/html"),
        (r"\s*<en-export[\s>]", ENEX),
        (r"\s*<opml[\s>]", OPML),
        (r"\s*<(?:rss|rdf:RDF)[\s>]", "application/rss+xml"),
        (r"\s*<(?:\w+:)?feed[\s>]", "application/atom+xml"),
    )
)
_NOTEBOOK = re.compile(r'\{\s{0,99}"(?:cells"\s{0,9}:\s{0,9}\[\s{0,99}[{\]]|nbformat"\s{0,9}:)')
_MBOX = re.compile(rb"From [^\r\n]{1,300}\d{4}[^\r\n]{0,20}\r?\n")
_HEADER = re.compile(rb"[A-Za-z][A-Za-z0-9-]{0,60}:[ \t]")
_TELLING = re.compile(
    rb"^(?:from|date|message-id|received|mime-version|return-path|delivered-to):[ \t]", re.I | re.M
)
_SIGNS = 2  # headers of mail that a message must have
_PROLOG = re.compile(r"\s*(?:(<\?)|(<!--)|<!doctype(?!\s+html))", re.I)
_PROLOG_ENDS = {None: ">", 1: "?>", 2: "-->"}

_BY_EXTENSION = {
    "txt": "text/plain",
    "text": "text/plain",
    "log": "text/plain",
    "md": "text/markdown",
    "markdown": "text/markdown",
    "mdx": "text/markdown",
    "html": "text/html",
    "htm": "text/html",
    "xhtml": "text/html",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "json": "application/json",
    "jsonl": "application/x-ndjson",
    "xml": "application/xml",
    "rtf": "application/rtf",
    "vtt": "text/vtt",
    "srt": "application/x-subrip",
    "rss": "application/rss+xml",
    "atom": "application/atom+xml",
    "mp3": "audio/mpeg",
    "m4a": "audio/mp4",
    "wav": "audio/wav",
    "ogg": "audio/ogg",
    "oga": "audio/ogg",
    "opus": "audio/ogg",
    "flac": "audio/flac",
    "aac": "audio/aac",
    "mp4": "video/mp4",
    "m4v": "video/mp4",
    "mov": "video/quicktime",
    "webm": "video/webm",
    "mkv": "video/x-matroska",
    "avi": "video/x-msvideo",
}
_ALIASES = {
    "application/xhtml+xml": "text/html",
    "text/x-markdown": "text/markdown",
    "text/srt": "application/x-subrip",
    "audio/mp3": "audio/mpeg",
    "audio/x-m4a": "audio/mp4",
    "audio/m4a": "audio/mp4",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/vnd.wave": "audio/wav",
    "audio/x-flac": "audio/flac",
    "audio/x-aac": "audio/aac",
    "audio/aacp": "audio/aac",
    "application/ogg": "audio/ogg",
    "audio/opus": "audio/ogg",
    "image/jpg": "image/jpeg",
    "image/x-ms-bmp": "image/bmp",
    "image/x-bmp": "image/bmp",
    "text/json": "application/json",
}
_VAGUE = {
    "",
    "text/plain",
    "application/xml",
    "text/xml",
    BINARY,
    "binary/octet-stream",
    "application/x-download",
    "application/download",
    "application/force-download",
}


def sniff(path: Path, declared: str = "", name: str = "") -> str:
    """Return the file's actual media type; `application/octet-stream` if it is unknown."""
    declared = normalize(declared)
    by_name = _BY_EXTENSION.get((name or path.name).rpartition(".")[2].lower(), "")
    with path.open("rb") as file:
        head = file.read(4096)
    if head.startswith(b"PK\x03\x04"):
        return _zip_type(path)
    kind = next((kind for pattern, kind in _MAGIC if pattern.match(head)), None)
    if kind is None and b"%PDF-" in head[:1024]:
        kind = "application/pdf"
    if kind is not None:
        return _refine(kind, declared or by_name)
    if charset.looks_like_text(head):
        if kind := mail_type(head):
            return kind
        return _text_type(charset.decode(head), declared, by_name)
    # Recordings may start anywhere in a stream; all other types that we read have a magic number.
    return next(
        (kind for kind in (declared, by_name) if kind.startswith(("audio/", "video/"))), BINARY
    )


def mail_type(head: bytes) -> str | None:
    """Return the type of a mailbox or a message: only mail begins with several of its headers."""
    box = bool(_MBOX.match(head))
    top = (head.partition(b"\n")[2] if box else head).replace(b"\r\n", b"\n")
    found = {name.lower() for name in _TELLING.findall(top.partition(b"\n\n")[0])}
    if len(found) < _SIGNS or not _HEADER.match(top):
        return None
    return MAILBOX if box else MAIL


def normalize(media_type: str) -> str:
    """Return the usual name in lower case, without parameters."""
    plain = media_type.partition(";")[0].strip().lower()
    return _ALIASES.get(plain, plain)


def is_text(media_type: str) -> bool:
    return media_type.startswith("text/") or media_type.endswith(
        ("json", "xml", "+json", "+xml", "x-subrip", "yaml")
    )


def _text_type(head: str, declared: str, by_name: str) -> str:
    head = head.lstrip("\ufeff \t\r\n")
    kind = next(
        (kind for pattern, kind in _TEXT_MAGIC if pattern.match(head)), None
    ) or _markup_type(head)
    is_markdown = "text/markdown" in (declared, by_name)
    if kind is not None and not (kind == "text/html" and is_markdown):
        return kind
    if declared not in _VAGUE and is_text(declared):
        return declared
    return next(filter(is_text, (by_name, declared)), "text/plain")


def _markup_type(head: str) -> str | None:
    """Return the type that the first element, or the first key of a JSON feed, stands for."""
    if _NOTEBOOK.match(head):
        return NOTEBOOK
    if head.startswith("{"):
        return (
            "application/feed+json"
            if "://jsonfeed.org/version" in head[1:].partition("{")[0].replace("\\/", "/")
            else None
        )
    at = _after_prolog(head)
    return next((kind for pattern, kind in _ROOTS if pattern.match(head, at)), None)


def _after_prolog(head: str) -> int:
    """Return where a page's first element or HTML doctype begins.

    Declarations and comments are skipped one at a time: a pattern for any number of them takes
    exponential time when nothing follows.
    """
    at = 0
    while part := _PROLOG.match(head, at):
        closing = _PROLOG_ENDS[part.lastindex]
        end = head.find(closing, part.end())
        if end < 0:
            return len(head)
        at = end + len(closing)
    return at


def _refine(kind: str, hint: str) -> str:
    """Prefer a hint from the same family for containers, which hold sound as well as video."""
    is_ogg = kind in ("audio/ogg", "video/ogg", "video/webm") and hint in (
        "audio/ogg",
        "video/ogg",
        "audio/webm",
    )
    return hint if is_ogg or (kind, hint) == ("video/mp4", "audio/mp4") else kind


def _zip_type(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            if "mimetype" in names:
                with archive.open("mimetype") as file:
                    return file.read(100).decode("ascii", "replace").strip()
            stated = b""
            if "[Content_Types].xml" in names:
                with archive.open("[Content_Types].xml") as file:
                    stated = file.read(_LONGEST_LIST)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError, zlib.error):
        return "application/zip"  # broken, unknown compression, or a password
    if found := _MAIN_PART.search(stated):
        return _OFFICE[found[1] or found[2]]
    parts = {"word/document.xml": DOCX, "ppt/presentation.xml": PPTX, "xl/workbook.xml": XLSX}
    parts |= {"xl/workbook.bin": XLSB, "Index/Document.iwa": IWORK, "Index.zip": IWORK}
    parts |= {"visio/document.xml": VISIO}
    return next((kind for part, kind in parts.items() if part in names), "application/zip")
