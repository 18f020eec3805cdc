"""A PDF as Markdown, with OCR for pages that are only images."""

import re
import time
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice
from math import sqrt

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from commonplace.adapters.extract import process_limits
from commonplace.adapters.extract.input_file import (
    LONGEST_TEXT,
    Caps,
    Source,
    clean_text,
    clean_title,
    join_pages,
    take_until_full,
)
from commonplace.adapters.extract.pdf.layout import Layout, letters
from commonplace.adapters.extract.pdf.page import Page, read_page
from commonplace.errors import IngestFailed, extra
from commonplace.model import Extracted

_DOTS_PER_INCH = 220
_OUTLINE = 5000  # entries
_TABLE_TIME = 0.4  # share of the processor time after which tables are read as text
_LONGEST_TITLE = 200
_USELESS_TITLES = {"untitled", "anonymous", "unknown", "none", "null", "title", "about:blank"}
_USELESS_TITLES |= {"document", "slide", "presentation", "powerpoint presentation", "layout"}
_PATH = re.compile(r"microsoft (?:word|powerpoint|excel)\b|\w:[\\/]|[/~]|file:", re.I)
_FILE = re.compile(r"\.(?:[a-z]{3,4}|md|ps)$", re.I)
_NO_AUTHORS = {"anonymous", "unknown", "author", "user", "owner", "admin", "administrator", "root"}
_CREATED = re.compile(
    r"(?:D:)?(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:([+-])(\d\d)'?(\d\d)?)?"
)


def read(source: Source, caps: Caps) -> Extracted:
    document = open_document(source)
    if len(document) > caps.pages:
        raise IngestFailed(f"The PDF has {len(document):,} pages; the limit is {caps.pages:,}.")
    pages = _read_pages(document, caps)
    scanned = [number for number, page in enumerate(pages) if page.is_scan]
    if len(scanned) > caps.scanned_pages:
        raise IngestFailed(
            f"The PDF has {len(scanned):,} scanned pages; the limit is {caps.scanned_pages}."
        )
    layout = Layout(pages, _outline(document))
    texts = [clean_text(layout.write(number)) for number in range(len(pages))]
    if scanned:
        process_limits.limit_cpu(caps.ocr_cpu_seconds)
    for number in scanned:
        texts[number] = _recognize(document, number, caps)
    found = take_until_full(
        enumerate(texts, 1),
        "The PDF contains no text" + (", and none was found in its images." if scanned else "."),
    )
    about = document.get_metadata_dict()
    author = clean_title(about.get("Author", ""))
    return replace(
        join_pages(_title(about.get("Title", ""), layout, source), found),
        author=None if _bare(author) in _NO_AUTHORS else author or None,
        published_at=_created(about.get("CreationDate", "")),
        truncated=len(pages) < len(document),
    )


def open_document(source: Source) -> pdfium.PdfDocument:
    try:
        return pdfium.PdfDocument(source.path)
    except pdfium.PdfiumError as error:
        if error.err_code in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY):
            raise IngestFailed("The PDF is encrypted. Remove its password and try again.") from None
        raise IngestFailed("The PDF is damaged and cannot be opened.") from None


def _read_pages(document: pdfium.PdfDocument, caps: Caps) -> list[Page]:
    """Read pages until they are as long as a text may be."""
    pages: list[Page] = []
    size, began = 0, time.process_time()
    for number in range(len(document)):
        in_time = time.process_time() - began < _TABLE_TIME * caps.cpu_seconds
        page = read_page(document, number, with_tables=in_time)
        size += sum(len(line.written) for line in page.lines)
        pages.append(page)
        if size > LONGEST_TEXT:
            break
    return pages


def _recognize(document: pdfium.PdfDocument, number: int, caps: Caps) -> str:
    with extra("ocr", "Text in scanned pages", IngestFailed):
        from commonplace.adapters.extract import image_ocr  # most PDFs need no OCR

    page = document[number]
    width, height = page.get_size()
    scale = min(_DOTS_PER_INCH / 72, sqrt(min(caps.pixels, 40_000_000) / max(width * height, 1)))
    return image_ocr.text_in(page.render(scale=scale, grayscale=True).to_pil())


def _outline(document: pdfium.PdfDocument) -> dict[int, dict[str, int]]:
    """Map page numbers to the letters and the level of each heading in the outline."""
    found: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for entry in islice(document.get_toc(max_depth=6), _OUTLINE):
        place = entry.get_dest()
        page = place.get_index() if place is not None else None
        if page is not None and (key := letters(entry.get_title())):
            found[page].setdefault(key, min(entry.level + 1, 6))
    return found


def _title(declared: str, layout: Layout, source: Source) -> str:
    declared = clean_title(declared)
    shown = clean_title(layout.title())
    if _is_title(declared):
        return declared
    if 3 < len(shown) <= _LONGEST_TITLE:
        return shown
    first = clean_title(layout.first_words())
    numbers = sum(map(str.isdecimal, first))
    if 3 < len(first) <= 100 and not first.endswith((".", ",", ";", ":")) and numbers < 5:
        return first
    return source.title if source.name or source.url else ""  # the path is our own


def _is_title(text: str) -> bool:
    """Whether a declared title was written for people: no file's name, no program's default."""
    if len(text) < 3 or _bare(text) in _USELESS_TITLES or _PATH.match(text) or _FILE.search(text):
        return False
    is_one_word = " " not in text
    return not (is_one_word and (any(map(str.isdecimal, text)) or "_" in text))


def _bare(text: str) -> str:
    return text.strip(" ()[]<>-_.*0123456789").casefold()


def _created(text: str) -> datetime | None:
    found = _CREATED.match(text.strip())
    if found is None:
        return None
    year, *rest = (int(part) if part else None for part in found.groups()[:6])
    month, day, hour, minute, second = (
        value if value is not None else default
        for value, default in zip(rest, (1, 1, 0, 0, 0), strict=True)
    )
    sign, hours, minutes = found.groups()[6:]
    away = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    zone = timezone(-away if sign == "-" else away) if sign and away < timedelta(days=1) else UTC
    try:
        created = datetime(year or 0, month, day, hour, minute, second, tzinfo=zone)
    except ValueError:
        return None
    is_sane = datetime(1985, 1, 1, tzinfo=UTC) <= created <= datetime.now(UTC) + timedelta(days=2)
    return created if is_sane else None
