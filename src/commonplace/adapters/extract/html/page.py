"""Web pages: the article as Markdown, without navigation and advertising."""

import re
from itertools import islice

from lxml import etree
from lxml.html import HtmlElement
from trafilatura import bare_extraction
from trafilatura.settings import Document

from commonplace.adapters.extract import charset
from commonplace.adapters.extract.html import convert, media_links
from commonplace.adapters.extract.html.article import Article
from commonplace.adapters.extract.html.declared import clean_author, read_declared
from commonplace.adapters.extract.input_file import (
    Caps,
    Source,
    clean_title,
    parse_date,
)
from commonplace.errors import IngestFailed
from commonplace.model import Extracted

_LEFT_OUT = convert.INVISIBLE | {"button", "nav", "form", "footer"}
_FEW = 250  # characters; so short a page may only say why it shows nothing
_MOST_ELEMENTS = 100_000  # that are searched for the article, at about 60 microseconds each
_MOST_PADDING = 10  # fields that merged table cells may span, on average over all elements
_NOTHING = "The page contains no text."
_ROBOT = re.compile(
    r"captcha|are you (?:a )?(?:human|robot)|verify(?:ing)? (?:that )?you are (?:a )?human|"
    r"unusual traffic|checking your browser|just a moment\.\.\.",
    re.I,
)
_SCRIPT = re.compile(
    r"\b(?:enable|requires?|needs?|turn on|activate)\b.{0,40}\bjava ?script\b|"
    r"\bjava ?script\b.{0,40}\b(?:disabled|required|enabled|aktivieren|activer)\b",
    re.I | re.S,
)
_SINGLE_FILE = re.compile(r"Page saved with SingleFile\s+url:\s+(https?://[^\s<>\"]{1,2000})")
_COMMENT_CHARS = 5_000  # in which SingleFile says where the page is from
_MOST_PICTURES = 5
_LOGIN = re.compile(
    r"\b(?:log ?in|sign ?in|sign up|subscribers? only|members only|anmelden|connexion)\b", re.I
)


def read(source: Source, caps: Caps) -> Extracted:
    page = charset.decode(source.read_all(caps), source.charset, markup=True)
    tree = _parse(page)
    saved = None if source.url else _SINGLE_FILE.search(page[:_COMMENT_CHARS])
    url = source.url or (saved[1] if saved else None)
    language, links = _language(tree), media_links.find_links(tree, url)
    declared = read_declared(tree, url)
    about, text, shown = _find_article(tree, page, url)
    if len(text) < _FEW:
        tree = _parse(page)  # the extractor has modified the first one
        text = convert.convert(tree, convert.PAGE_FURNITURE)
        # A podcast episode's page may have no text: its recording is enough.
        if len(text) < _FEW and not any(map(media_links.AUDIO_EXTENSION.search, links)):
            _refuse_walls(tree, text)
    return Extracted(
        clean_title(about.title or tree.findtext(".//title") or "") or source.title,
        text,
        author=declared.author or clean_author(about.author),
        published_at=declared.published_at or parse_date(about.date),
        language=language,
        links=links,
        pictures=tuple(dict.fromkeys(filter(None, (declared.picture, *shown)))),
        # A file may only say where it was saved from: it may name any page as canonical.
        address=declared.address if source.url else url,
    )


def _find_article(tree: HtmlElement, page: str, url: str | None) -> tuple[Document, str, list[str]]:
    """Return the page's metadata, its article and the images in it; all visible text if the page is
    too large."""
    elements = sum(1 for _ in tree.iter())
    if elements > _MOST_ELEMENTS:
        return Document(), convert.convert(tree, convert.PAGE_FURNITURE), []
    if sum(_spanned_fields(cell) for cell in tree.iter("td", "th")) > _MOST_PADDING * elements:
        etree.strip_attributes(tree, "colspan", "rowspan")
    found = bare_extraction(
        tree,
        url=url,
        with_metadata=True,
        include_comments=False,
        include_formatting=True,
        date_extraction_params={"extensive_search": False},
    )
    about = found if isinstance(found, Document) else Document()
    whole = _parse(page)
    root = Article(whole, about).root()
    if root is None:
        return about, "", []
    base = media_links.base_of(whole, url)
    shown = _pictures(root, base)
    return about, convert.convert(root, _LEFT_OUT, base), shown


def _spanned_fields(cell: HtmlElement) -> int:
    spans = [cell.get(name, "1")[:4] for name in ("colspan", "rowspan")]
    across, down = (int(span) if span.isdecimal() else 1 for span in spans)
    return across * down


def _parse(page: str) -> HtmlElement:
    tree = convert.parse(page)
    if tree is None:
        raise IngestFailed(_NOTHING)
    return tree


def _refuse_walls(tree: HtmlElement, text: str) -> None:
    """Raise IngestFailed if a page with little text is a captcha, a login or needs JavaScript."""
    shown = convert.convert(tree)
    seen = f"{tree.findtext('.//title') or ''} {shown}" if len(shown) < 4 * _FEW else text
    if _ROBOT.search(seen):
        raise IngestFailed(
            "The page asks for proof that the visitor is human. "
            "Save it as a file, or paste its text."
        )
    if _SCRIPT.search(seen) or (
        not shown and any(script.get("src") for script in tree.iter("script"))
    ):
        raise IngestFailed(
            "The page builds its text with JavaScript; the server's response contains none. "
            "Save the page as a file, or paste its text."
        )
    # Many pages link to a login; the link counts only where there is nothing else.
    asks = any((field.get("type") or "").lower() == "password" for field in tree.iter("input"))
    if asks or _LOGIN.search(text or seen):
        raise IngestFailed("The page requires a login. Save it as a file, or paste its text.")
    if not text:
        raise IngestFailed(_NOTHING)


def _pictures(root: HtmlElement, base: str) -> list[str]:
    """Return the addresses of the first images in an article."""
    named = (image.get("src") or image.get("data-src") or "" for image in root.iter("img"))
    found = (media_links.absolute_url(base, address) for address in named)
    return list(islice(filter(None, found), _MOST_PICTURES))


def _language(tree: HtmlElement) -> str | None:
    names = ("lang", "{http://www.w3.org/XML/1998/namespace}lang", "xml:lang")
    language = re.split(r"[-_]", next(filter(None, map(tree.get, names)), "").strip())[0].lower()
    return language if language.isalpha() and len(language) in (2, 3) else None
