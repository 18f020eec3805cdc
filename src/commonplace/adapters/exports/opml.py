"""Subscriptions to feeds (OPML)."""

from lxml import etree

from commonplace.adapters.exports.parts import NO_ADDRESS, Found, folder, is_web, line
from commonplace.errors import IngestFailed
from commonplace.model import Saved, SavedAs

_DEEPEST = 50


def knows(head: str) -> bool:
    return head.startswith("<") and "<opml" in head.lower()


def read(text: str) -> Found:
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, recover=True, remove_pis=True
    )
    root = etree.fromstring(text.encode(), parser)
    if root is None:
        raise IngestFailed("The OPML file is damaged.")
    return _inside(root, ())


def _inside(element: etree._Element, names: tuple[str, ...]) -> Found:
    for child in element:
        if child.tag == "outline":
            title = line(child.get("title") or child.get("text"))
            url = (child.get("xmlUrl") or "").strip()
            if url and is_web(url):
                yield Saved(title or url, url, folder=folder(*names), kind=SavedAs.FEED)
            elif url:
                yield Saved(title or url[:100], lost=NO_ADDRESS)
            elif len(names) < _DEEPEST:
                yield from _inside(child, (*names, title))
        elif child.tag == "body":
            yield from _inside(child, names)
