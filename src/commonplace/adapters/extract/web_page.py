"""Web pages: the article, without what stands around it, as Markdown."""

import re
from datetime import UTC, datetime

from lxml import etree
from lxml.html import HtmlElement
from trafilatura import bare_extraction
from trafilatura.settings import Document
from trafilatura.xml import xmltotxt

from commonplace.adapters.extract import charset, html_to_markdown, media_links
from commonplace.adapters.extract.input_file import Caps, Source, tidy, title
from commonplace.errors import IngestFailed
from commonplace.model import Extracted

_FEW = 250  # characters; a page as short as this may only say why it shows nothing
_MOST_ELEMENTS = (
    100_000  # of a page in which the article is looked for, which takes about 60 microseconds each
)
_MOST_PADDING = 10  # fields that merged cells of tables may stand for, on average over all elements
_NOTHING = "There is nothing to read in the page."
_BY_SCRIPT = (
    "The page builds its text with JavaScript; there is nothing to read in what the server sends."
)
_BEHIND_LOGIN = "The page shows its text only after a login."
_NOT_FOR_ROBOTS = "The page wants to know first whether a person reads it."
_ROBOT = re.compile(
    r"captcha|are you (?:a )?(?:human|robot)|verify(?:ing)? (?:that )?you are (?:a )?human|unusual traffic|"
    r"checking your browser|just a moment\.\.\.",
    re.I,
)
_SCRIPT = re.compile(
    r"\b(?:enable|requires?|needs?|turn on|activate)\b.{0,40}\bjava ?script\b|"
    r"\bjava ?script\b.{0,40}\b(?:disabled|required|enabled|aktivieren|activer)\b",
    re.I | re.S,
)
_LOGIN = re.compile(
    r"\b(?:log ?in|sign ?in|sign up|subscribers? only|members only|anmelden|connexion)\b", re.I
)
_UNSPACED_FENCE = re.compile(r"^```\n(?=\|)", re.MULTILINE)


def read(source: Source, caps: Caps) -> Extracted:
    page = charset.decode(source.data(caps), source.charset, markup=True)
    return article(page, source)


def article(page: str, source: Source) -> Extracted:
    tree = _tree(page)
    language, linked = _language(tree), media_links.found(tree, source.url)
    about, text = _found(tree, source.url)
    if len(text) < _FEW:
        tree = _tree(page)  # the extractor has taken the first one apart
        text = html_to_markdown.markdown(tree, html_to_markdown.AROUND)
        # The page of an episode may have nothing to read: what there is to hear will do.
        if len(text) < _FEW and not any(map(media_links.AUDIO_ENDING.search, linked)):
            _refuse_walls(tree, text)
    heading = title(about.title or tree.findtext(".//title") or "")
    return Extracted(
        heading or source.title,
        text,
        author=_author(about.author),
        published_at=_date(about.date),
        language=language,
        links=linked,
    )


def _found(tree: HtmlElement, url: str | None) -> tuple[Document, str]:
    """What the page says of itself, and its article. Of a page too large to look for it, all that it shows."""
    elements = sum(1 for _ in tree.iter())
    if elements > _MOST_ELEMENTS:
        return Document(), html_to_markdown.markdown(tree, html_to_markdown.AROUND)
    if sum(_fields(cell) for cell in tree.iter("td", "th")) > _MOST_PADDING * elements:
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
    return about, _UNSPACED_FENCE.sub("```\n\n", tidy(xmltotxt(about.body, True)))


def _fields(cell: HtmlElement) -> int:
    spans = [cell.get(name, "1")[:4] for name in ("colspan", "rowspan")]
    across, down = (int(span) if span.isdecimal() else 1 for span in spans)
    return across * down


def _tree(page: str) -> HtmlElement:
    tree = html_to_markdown.tree(page)
    if tree is None:
        raise IngestFailed(_NOTHING)
    return tree


def _refuse_walls(tree: HtmlElement, text: str) -> None:
    """So little text is either all that the page has to say, or stands in for what it does not show."""
    shown = html_to_markdown.markdown(tree)
    seen = f"{tree.findtext('.//title') or ''} {shown}" if len(shown) < 4 * _FEW else text
    if _ROBOT.search(seen):
        raise IngestFailed(_NOT_FOR_ROBOTS)
    if _SCRIPT.search(seen) or (
        not shown and any(script.get("src") for script in tree.iter("script"))
    ):
        raise IngestFailed(_BY_SCRIPT)
    # A link to the login stands on many pages; it counts where it is all there is.
    asks = any((field.get("type") or "").lower() == "password" for field in tree.iter("input"))
    if asks or _LOGIN.search(text or seen):
        raise IngestFailed(_BEHIND_LOGIN)
    if not text:
        raise IngestFailed(_NOTHING)


def _language(tree: HtmlElement) -> str | None:
    said = (
        tree.get("lang")
        or tree.get("{http://www.w3.org/XML/1998/namespace}lang")
        or tree.get("xml:lang")
        or ""
    )
    language = re.split(r"[-_]", said.strip())[0].lower()
    return language if language.isalpha() and len(language) in (2, 3) else None


def _author(names: str | None) -> str | None:
    return title(names.replace(";", ",")) or None if names else None


def _date(day: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(day).replace(tzinfo=UTC) if day else None
    except ValueError:
        return None
