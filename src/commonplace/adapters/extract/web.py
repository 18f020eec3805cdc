"""Web pages: the article, without what stands around it, as Markdown."""

import re
from datetime import UTC, datetime

from lxml.html import HtmlElement
from trafilatura import bare_extraction
from trafilatura.settings import Document
from trafilatura.xml import xmltotxt

from commonplace.adapters.extract import charsets, links, markup
from commonplace.adapters.extract.source import Caps, Source, tidy, title
from commonplace.errors import IngestFailed
from commonplace.model import Extracted

_FEW = 250  # characters; a page as short as this may only say why it shows nothing
_NOTHING = "There is nothing to read in the page."
_BY_SCRIPT = "The page builds its text with JavaScript; there is nothing to read in what the server sends."
_BEHIND_LOGIN = "The page shows its text only after a login."
_NOT_FOR_ROBOTS = "The page wants to know first whether a person reads it."
_ROBOT = re.compile(r"captcha|are you (?:a )?(?:human|robot)|verify(?:ing)? (?:that )?you are (?:a )?human|unusual traffic|"
                    r"checking your browser|just a moment\.\.\.", re.I)
_SCRIPT = re.compile(r"\b(?:enable|requires?|needs?|turn on|activate)\b.{0,40}\bjava ?script\b|"
                     r"\bjava ?script\b.{0,40}\b(?:disabled|required|enabled|aktivieren|activer)\b", re.I | re.S)
_LOGIN = re.compile(r"\b(?:log ?in|sign ?in|sign up|subscribers? only|members only|anmelden|connexion)\b", re.I)
_UNSPACED_FENCE = re.compile(r"^```\n(?=\|)", re.MULTILINE)


def read(source: Source, caps: Caps) -> Extracted:
    page = charsets.decode(source.data(caps), source.charset, markup=True)
    return article(page, source)


def article(page: str, source: Source) -> Extracted:
    tree = _tree(page)
    language, linked = _language(tree), links.found(tree, source.url)
    found = bare_extraction(tree, url=source.url, with_metadata=True, include_comments=False, include_formatting=True,
                            date_extraction_params={"extensive_search": False})
    about = found if isinstance(found, Document) else Document()
    text = _UNSPACED_FENCE.sub("```\n\n", tidy(xmltotxt(about.body, True)))
    if len(text) < _FEW:
        tree = _tree(page)  # the extractor has taken the first one apart
        text = markup.markdown(tree, markup.AROUND)
        # The page of an episode may have nothing to read: what there is to hear will do.
        if len(text) < _FEW and not any(map(links.AUDIO_ENDING.search, linked)):
            _refuse_walls(tree, text)
    heading = title(about.title or tree.findtext(".//title") or "")
    return Extracted(heading or source.title, text, author=_author(about.author), published_at=_date(about.date),
                     language=language, links=linked)


def _tree(page: str) -> HtmlElement:
    tree = markup.tree(page)
    if tree is None:
        raise IngestFailed(_NOTHING)
    return tree


def _refuse_walls(tree: HtmlElement, text: str) -> None:
    """So little text is either all that the page has to say, or stands in for what it does not show."""
    shown = markup.markdown(tree)
    seen = f"{tree.findtext('.//title') or ''} {shown}" if len(shown) < 4 * _FEW else text
    if _ROBOT.search(seen):
        raise IngestFailed(_NOT_FOR_ROBOTS)
    if _SCRIPT.search(seen) or (not shown and any(script.get("src") for script in tree.iter("script"))):
        raise IngestFailed(_BY_SCRIPT)
    # A link to the login stands on many pages; it counts where it is all there is.
    asks = any((field.get("type") or "").lower() == "password" for field in tree.iter("input"))
    if asks or _LOGIN.search(text or seen):
        raise IngestFailed(_BEHIND_LOGIN)
    if not text:
        raise IngestFailed(_NOTHING)


def _language(tree: HtmlElement) -> str | None:
    said = tree.get("lang") or tree.get("{http://www.w3.org/XML/1998/namespace}lang") or tree.get("xml:lang") or ""
    language = re.split(r"[-_]", said.strip())[0].lower()
    return language if language.isalpha() and len(language) in (2, 3) else None


def _author(names: str | None) -> str | None:
    return title(names.replace(";", ",")) or None if names else None


def _date(day: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(day).replace(tzinfo=UTC) if day else None
    except ValueError:
        return None
