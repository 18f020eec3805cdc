"""Find the article of a page, and cut everything else out of the page's tree.

trafilatura tells which words belong to the article; what is written are the page's own nodes, which
keep links, quotes, lists and tables that its reduced tree loses.
"""

import re
from dataclasses import dataclass

from lxml.html import HtmlElement
from trafilatura.settings import Document

from commonplace.adapters.extract.html.blocks import BLOCKS, HEADINGS
from commonplace.adapters.extract.html.inline import is_hidden
from commonplace.adapters.extract.html.tables import is_data_table

_NOT_LETTERS = re.compile(r"[\W_]+")
_LONG = 12  # letters from which on a run of text is looked for by itself
_WINDOW = 5_000  # letters behind the last one found in which the next is looked for first
_MOST_SEARCHED = 300_000_000  # letters, for all runs of a page together: half a second
_MOST = 0.9  # of the found text that an element must hold to be looked into
_KEPT = frozenset(("table", "blockquote", "pre", "figure", *HEADINGS))
_LISTS = ("ul", "ol", "li", "dl")
_LONGEST_CAPTION = 300  # letters
_MOSTLY = 0.4  # of the text beside a block, for the block to belong to it
_LINKED = 0.5  # of a block's letters from which on it only leads elsewhere
_SILENT = ("script", "style", "template", "noscript", "svg", "head")
_FIELDS = {"form", "fieldset", "button", "select", "option", "textarea"}
_FRAMES = {"iframe", "object", "embed", "svg", "template"}
_DROPPED = (
    _FIELDS | _FRAMES | {"nav", "footer", "dialog", "menu", "link", "meta", "title", *_SILENT}
)
# Words in the class or id of what stands around an article.
_AROUND = frozenset(
    {"ad", "ads", "advert", "advertisement", "banner", "breadcrumb", "breadcrumbs", "comment"}
    | {"comments", "cookie", "disqus", "editsection", "footer", "gdpr", "masthead", "menu", "nav"}
    | {"navbar", "navigation", "newsletter", "noprint", "outbrain", "pager", "pagination", "popup"}
    | {"promo", "recirc", "related", "replies", "respond", "share", "sharing", "sidebar", "signup"}
    | {"skip", "social", "sponsor", "sponsored", "subscribe", "taboola", "toc", "toolbar", "widget"}
)
_NAME_PARTS = re.compile(r"[a-z]+")


@dataclass(slots=True)
class _Weight:
    """Letters of an element's text: all, in links, and of the article."""

    text: int = 0
    linked: int = 0
    chosen: int = 0

    def take(self, text: str | None, follower: "_Follower", linked: bool) -> None:
        if text and (found := letters(text)):
            self.text += len(found)
            self.linked += len(found) * linked
            self.chosen += follower.take(found)

    def add(self, other: "_Weight") -> None:
        self.text += other.text
        self.linked += other.linked
        self.chosen += other.chosen


class Article:
    def __init__(self, tree: HtmlElement, about: Document) -> None:
        self._weights: dict[HtmlElement, _Weight] = {}
        chosen = letters(" ".join(about.body.itertext())) if about.body is not None else ""
        self._weigh(tree, _Follower(chosen), False)
        self._tree = tree

    def root(self) -> HtmlElement | None:
        """Return the element of the article, without what does not belong to it; None if no text
        of the page belongs to it."""
        body = self._tree.find("body") if self._tree.find("body") is not None else self._tree
        if not self._of(body).chosen:
            return None
        root = self._descend(body)
        self._prune(root)
        return root

    def _of(self, node: HtmlElement) -> _Weight:
        return self._weights.get(node) or _Weight()

    def _weigh(self, node: HtmlElement, follower: "_Follower", linked: bool) -> _Weight:
        """Weigh an element and all within it, in the order of the text."""
        weight = _Weight()
        linked = linked or node.tag == "a"
        weight.take(node.text, follower, linked)
        for child in node:
            if isinstance(child.tag, str) and child.tag not in _SILENT:
                weight.add(self._weigh(child, follower, linked))
            weight.take(child.tail, follower, linked)
        self._weights[node] = weight
        return weight

    def _descend(self, node: HtmlElement) -> HtmlElement:
        """Return the innermost element with nearly all of the article."""
        while True:
            enough = _MOST * self._of(node).chosen
            inner = next(
                (
                    child
                    for child in node
                    if isinstance(child.tag, str)
                    and child.tag in BLOCKS | {"span", "font", "center"}
                    and self._of(child).chosen >= enough
                ),
                None,
            )
            if inner is None or inner.tag in ("p", "li", "tr", "table", "tbody", "pre", *HEADINGS):
                return node
            node = inner

    def _prune(self, node: HtmlElement, before: bool = False, after: bool = False) -> None:
        """Remove what does not belong to the article. `before`, `after`: whether parts of it stand
        there, outside of this element."""
        children = [child for child in node if isinstance(child.tag, str)]
        weights = [self._of(child) for child in children]
        places = [at for at, weight in enumerate(weights) if weight.chosen]
        first, last = (places[0], places[-1]) if places else (len(children), -1)
        before = before or sum(weight.chosen for weight in weights) < self._of(node).chosen
        for at, (child, weight) in enumerate(zip(children, weights, strict=True)):
            if child.tag in _SILENT or (
                (child.tag in _DROPPED or is_hidden(child)) and weight.chosen * 2 <= weight.text
            ):
                _drop(child)
            elif not _is_block(child):
                continue
            elif weight.chosen and child.tag == "table" and is_data_table(child):
                self._prune_inside(child)
            elif weight.chosen:
                self._prune(child, before or at > first, after or at < last)
            elif self._stays(child, weight, before or at > first, after or at < last):
                self._prune_inside(child)
            else:
                _drop(child)

    def _prune_inside(self, node: HtmlElement) -> None:
        for child in list(node.iterdescendants(*_DROPPED)):
            _drop(child)

    def _stays(self, node: HtmlElement, weight: _Weight, before: bool, after: bool) -> bool:
        """Whether a block that was not found in the article belongs to it all the same."""
        if _is_around(node):
            return False
        if not after:  # what a last heading is about, such as references
            above = node.getprevious()
            return (
                before
                and node.tag in _LISTS
                and above is not None
                and above.tag in HEADINGS
                and self._of(above).chosen > 0
            )
        if not before:
            return node.tag in HEADINGS
        around = self._of(node.getparent())
        if around.chosen < _MOSTLY * around.text:
            return False
        if (
            node.tag == "p"
            or not weight.text
            or node.tag in _KEPT
            or node.getparent().tag in _LISTS
        ):
            return weight.text > 0 or _has_picture(node)
        if _has_picture(node) and weight.text <= _LONGEST_CAPTION:
            return True
        return weight.linked <= _LINKED * weight.text


class _Follower:
    """Finds the runs of a page in the text of its article, mostly one behind the other."""

    def __init__(self, whole: str) -> None:
        self._whole = whole
        self._at = 0
        self._left = _MOST_SEARCHED

    def take(self, text: str) -> int:
        """Return the number of these letters if they belong to the article, else 0."""
        if not self._whole.startswith(text, self._at):
            if len(text) < _LONG or self._left < 0:
                return 0
            found = self._whole.find(text, self._at, self._at + _WINDOW)
            if found < 0:
                self._left -= len(self._whole)
                found = self._whole.find(text)
            if found < 0:
                return 0
            self._at = found
        self._at += len(text)
        return len(text)


def letters(text: str) -> str:
    return _NOT_LETTERS.sub("", text).casefold()


def _is_block(node: HtmlElement) -> bool:
    return node.tag in BLOCKS or next(node.iterdescendants(*BLOCKS), None) is not None


def _is_around(node: HtmlElement) -> bool:
    named = f"{node.get('class') or ''} {node.get('id') or ''} {node.get('role') or ''}"
    return node.tag in ("nav", "aside", "footer") or not _AROUND.isdisjoint(
        _NAME_PARTS.findall(named.lower())
    )


def _has_picture(node: HtmlElement) -> bool:
    return node.tag in ("hr", "figure") or next(node.iter("img"), None) is not None


def _drop(node: HtmlElement) -> None:
    node.drop_tree()
