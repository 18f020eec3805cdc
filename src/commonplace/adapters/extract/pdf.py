"""PDF: the text of each page, with OCR for pages that are only images."""

import re
from collections import Counter, defaultdict
from itertools import islice
from math import sqrt

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from commonplace.adapters.extract import process_limits
from commonplace.adapters.extract.input_file import (
    Caps,
    Source,
    clean_text,
    clean_title,
    join_pages,
    take_until_full,
)
from commonplace.adapters.extract.paragraphs import split_paragraphs
from commonplace.errors import IngestFailed, extra
from commonplace.model import Extracted

_FEWEST_LETTERS = 10  # a page with fewer has at most a number that a scanner printed
_DOTS_PER_INCH = 220
# How the library writes a hyphen at the end of a line.
_HYPHEN = re.compile(r"[\x02\ufffe][\r\n]*")
_RUNNING = 0.5  # a first or last line on more than this share of the pages is a header or footer
_DIGITS = re.compile(r"\d+")
_USELESS_TITLE = re.compile(
    r"untitled|microsoft (?:word|powerpoint)|\.(?:docx?|pdf|tex|dvi|indd|qxd|pptx?|xlsx?|rtf)$",
    re.I,
)
_LONGEST_TITLE_LINE = 150
_OUTLINE = 5000  # entries


def read(source: Source, caps: Caps) -> Extracted:
    document = _open(source)
    if len(document) > caps.pages:
        raise IngestFailed(f"The PDF has {len(document):,} pages; the limit is {caps.pages:,}.")
    read_pages = [_read_page(document, number) for number in range(len(document))]
    pages = [lines for lines, _ in read_pages]
    scanned = [number for number, (_, is_scan) in enumerate(read_pages) if is_scan]
    if len(scanned) > caps.scanned_pages:
        raise IngestFailed(
            f"The PDF has {len(scanned):,} scanned pages; the limit is {caps.scanned_pages}."
        )
    _drop_running_lines(pages)
    headings = _headings(document)
    texts = [
        clean_text("\n\n".join(_with_headings(split_paragraphs(page), headings[number])))
        for number, page in enumerate(pages)
    ]
    if scanned:
        process_limits.limit_cpu(caps.ocr_cpu_seconds)
    for number in scanned:
        texts[number] = _recognize(document, number, caps)
    found = take_until_full(
        enumerate(texts, 1),
        "The PDF contains no text" + (", and none was found in its images." if scanned else "."),
    )
    return join_pages(_title(document, found[0][1]) or source.title, found)


def _open(source: Source) -> pdfium.PdfDocument:
    try:
        return pdfium.PdfDocument(source.path)
    except pdfium.PdfiumError as error:
        if error.err_code in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY):
            raise IngestFailed("The PDF is encrypted. Remove its password and try again.") from None
        raise IngestFailed("The PDF is damaged and cannot be opened.") from None


def _read_page(document: pdfium.PdfDocument, number: int) -> tuple[list[str], bool]:
    """Return the lines of a page, and whether it is an image without text."""
    try:
        page = document[number]
    except pdfium.PdfiumError:  # a page that is listed and missing
        return [], False
    lines = _HYPHEN.sub("\u00ad\n", page.get_textpage().get_text_bounded()).splitlines()
    has_text = sum(map(str.isalnum, "".join(lines))) >= _FEWEST_LETTERS
    images = () if has_text else page.get_objects([raw.FPDF_PAGEOBJ_IMAGE], max_depth=3)
    is_scan = any(True for _ in images)
    page.close()
    return lines, is_scan


def _recognize(document: pdfium.PdfDocument, number: int, caps: Caps) -> str:
    with extra("ocr", "Text in scanned pages", IngestFailed):
        from commonplace.adapters.extract import image_ocr  # most PDFs need no OCR

    page = document[number]
    width, height = page.get_size()
    scale = min(_DOTS_PER_INCH / 72, sqrt(min(caps.pixels, 40_000_000) / max(width * height, 1)))
    return image_ocr.text_in(page.render(scale=scale, grayscale=True).to_pil())


def _headings(document: pdfium.PdfDocument) -> defaultdict[int, dict[str, int]]:
    """Map page numbers to the letters and the level of each heading in the outline."""
    found: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for entry in islice(document.get_toc(max_depth=6), _OUTLINE):
        place = entry.get_dest()
        page = place.get_index() if place is not None else None
        if page is not None and (letters := _letters(entry.get_title())):
            found[page].setdefault(letters, min(entry.level + 1, 6))
    return found


def _with_headings(paragraphs: list[str], headings: dict[str, int]) -> list[str]:
    return [
        f"{'#' * level} {text}"
        if len(text) <= _LONGEST_TITLE_LINE and (level := headings.get(_letters(text)))
        else text
        for text in paragraphs
    ]


def _letters(text: str) -> str:
    """Return the letters only: outlines differ from the text in numbers and punctuation."""
    return "".join(filter(str.isalpha, text)).casefold()


def _drop_running_lines(pages: list[list[str]]) -> None:
    """Drop headers and footers: lines that most pages share, but for their numbers."""
    for end in (0, -1, 0, -1):
        seen = Counter(_DIGITS.sub("#", page[end].strip()) for page in pages if page)
        running = {line for line, count in seen.items() if count > max(3, _RUNNING * len(pages))}
        for page in pages:
            if len(page) > 2 and _DIGITS.sub("#", page[end].strip()) in running:
                del page[end]


def _title(document: pdfium.PdfDocument, text: str) -> str:
    declared = clean_title(document.get_metadata_value("Title"))
    if declared and not _USELESS_TITLE.search(declared):
        return declared
    first = clean_title(text.partition("\n")[0].lstrip("# "))
    is_title = 3 < len(first) <= _LONGEST_TITLE_LINE and not first.endswith((".", ",", ";"))
    return first if is_title else ""
