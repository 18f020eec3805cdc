"""PDF: the text of each page; pages that are only pictures are read by OCR."""

import re
from collections import Counter, defaultdict
from itertools import islice
from math import sqrt

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from commonplace.adapters.extract import paragraphs as lines, process_limits
from commonplace.adapters.extract.input_file import Caps, Source, enough, paged, tidy, title
from commonplace.errors import IngestFailed
from commonplace.model import Extracted

_FEWEST_LETTERS = (
    10  # a page with fewer has no text of its own: at most a number that a scanner printed
)
_DOTS_PER_INCH = 220
_DIVIDED = re.compile(
    r"[\x02\ufffe][\r\n]*"
)  # how the library writes a hyphen that divides a word at a line's end
_RUNNING = 0.5  # a first or last line on more than this share of the pages is no part of the text
_DIGITS = re.compile(r"\d+")
_USELESS_TITLE = re.compile(
    r"untitled|microsoft (?:word|powerpoint)|\.(?:docx?|pdf|tex|dvi|indd|qxd|pptx?|xlsx?|rtf)$",
    re.I,
)
_LONGEST_TITLE_LINE = 150
_OUTLINE = 5000  # entries


def read(source: Source, caps: Caps) -> Extracted:
    document = _opened(source)
    if len(document) > caps.pages:
        raise IngestFailed(
            f"The PDF has {len(document):,} pages; at most {caps.pages:,} can be read."
        )
    pages = [_lines(document, number) for number in range(len(document))]
    scanned = [number for number, page in enumerate(pages) if _is_scanned(document, number, page)]
    if len(scanned) > caps.scanned_pages:
        raise IngestFailed(
            f"The PDF has {len(scanned):,} scanned pages; at most {caps.scanned_pages} can be read."
        )
    _drop_running_lines(pages)
    headings = _headings(document)
    texts = [
        tidy("\n\n".join(_with_headings(lines.paragraphs(page), headings[number])))
        for number, page in enumerate(pages)
    ]
    if scanned:
        process_limits.limit_cpu(caps.ocr_cpu_seconds)
    for number in scanned:
        texts[number] = _by_ocr(document, number, caps)
    found = enough(enumerate(texts, 1))
    if not found:
        raise IngestFailed(
            "The PDF has no text in it"
            + (", and none can be read in its pictures." if scanned else ".")
        )
    return paged(_title(document, found[0][1]) or source.title, found)


def _opened(source: Source) -> pdfium.PdfDocument:
    try:
        return pdfium.PdfDocument(source.path)
    except pdfium.PdfiumError as error:
        if error.err_code in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY):
            raise IngestFailed("The PDF is encrypted: it opens only with a password.") from None
        raise IngestFailed("The PDF is damaged and cannot be opened.") from None


def _lines(document: pdfium.PdfDocument, number: int) -> list[str]:
    try:
        page = document[number]
    except pdfium.PdfiumError:  # a page that is listed and not there
        return []
    text = page.get_textpage().get_text_bounded()
    page.close()
    return _DIVIDED.sub("\u00ad\n", text).splitlines()


def _is_scanned(document: pdfium.PdfDocument, number: int, page_lines: list[str]) -> bool:
    if sum(map(str.isalnum, "".join(page_lines))) >= _FEWEST_LETTERS:
        return False
    try:
        page = document[number]
    except pdfium.PdfiumError:
        return False
    return next(page.get_objects([raw.FPDF_PAGEOBJ_IMAGE], max_depth=3), None) is not None


def _by_ocr(document: pdfium.PdfDocument, number: int, caps: Caps) -> str:
    from commonplace.adapters.extract import image_ocr  # most PDFs need none of it

    page = document[number]
    width, height = page.get_size()
    scale = min(_DOTS_PER_INCH / 72, sqrt(min(caps.pixels, 40_000_000) / max(width * height, 1)))
    return image_ocr.text_in(page.render(scale=scale, grayscale=True).to_pil())


def _headings(document: pdfium.PdfDocument) -> defaultdict[int, dict[str, int]]:
    """What the outline names on each page: the letters of a heading, and its level."""
    found: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for entry in islice(document.get_toc(max_depth=6), _OUTLINE):
        place = entry.get_dest()
        page = place.get_index() if place is not None else None
        if page is not None and (letters := _letters(entry.get_title())):
            found[page].setdefault(letters, min(entry.level + 1, 6))
    return found


def _with_headings(paragraphs: list[str], headings: dict[str, int]) -> list[str]:
    levels = [
        headings.get(_letters(text)) if len(text) <= _LONGEST_TITLE_LINE else None
        for text in paragraphs
    ]
    return [
        f"{'#' * level} {text}" if level else text
        for level, text in zip(levels, paragraphs, strict=True)
    ]


def _letters(text: str) -> str:
    """Outlines differ from the text in numbers, spaces and punctuation."""
    return "".join(filter(str.isalpha, text)).casefold()


def _drop_running_lines(pages: list[list[str]]) -> None:
    """Headers and footers: the same line, but for its numbers, at the same end of most pages."""
    for end in (0, -1, 0, -1):
        seen = Counter(_DIGITS.sub("#", page[end].strip()) for page in pages if page)
        running = {line for line, count in seen.items() if count > max(3, _RUNNING * len(pages))}
        for page in pages:
            if len(page) > 2 and _DIGITS.sub("#", page[end].strip()) in running:
                del page[end]


def _title(document: pdfium.PdfDocument, text: str) -> str:
    said = title(document.get_metadata_value("Title"))
    if said and not _USELESS_TITLE.search(said):
        return said
    first = title(text.partition("\n")[0].lstrip("# "))
    return (
        first
        if 3 < len(first) <= _LONGEST_TITLE_LINE and not first.endswith((".", ",", ";"))
        else ""
    )
