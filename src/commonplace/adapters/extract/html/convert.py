"""Convert HTML to Markdown: articles, chapters, feed entries, mail, whole pages."""

from lxml import etree
from lxml.html import HtmlElement, HTMLParser, document_fromstring

from commonplace.adapters.extract.html.blocks import BlockWriter
from commonplace.adapters.extract.input_file import CONTROLS, clean_text

INVISIBLE = frozenset(
    ("script", "style", "template", "svg", "head", "iframe", "object", "select", "textarea", "rp")
)
_OF_HEAD = {"title", "meta", "link", "base", "script", "style", "template", "noscript"}
PAGE_FURNITURE = INVISIBLE | {"noscript", "nav", "header", "footer", "aside", "button"}


def parse(page: str) -> HtmlElement | None:
    """Parse a page; None if it is empty. The tree has at most 256 levels: recursion is safe."""
    parser = HTMLParser(
        collect_ids=False,
        default_doctype=False,
        encoding="utf-8",
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = document_fromstring(CONTROLS.sub("", page).encode(), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError):
        return None
    _begin_body(root)
    return root


def _begin_body(root: HtmlElement) -> None:
    """Move content out of the head: the parser does not know that `<article>` begins the body of a
    page without the tag `<body>`."""
    head, body = root.find("head"), root.find("body")
    if head is None:
        return
    stray = next((at for at, child in enumerate(head) if child.tag not in _OF_HEAD), len(head))
    content = head[stray:]
    if not content:
        return
    if body is None:
        body = etree.SubElement(root, "body")
    content[-1].tail = (content[-1].tail or "") + (body.text or "")
    body.text = None
    body[:0] = content


def convert(
    root: HtmlElement,
    without: frozenset[str] = INVISIBLE,
    base: str = "",
    notes: dict[str, str] | None = None,
) -> str:
    """Convert a parsed page, leaving out the elements named in `without`.

    `base`: the address that links are relative to. `notes`: the marks of footnotes by their id, if
    they are known.
    """
    return clean_text(BlockWriter(root, without, base, notes).write())


def convert_page(page: str, base: str = "") -> str:
    root = parse(page)
    return "" if root is None else convert(root, base=base)


def convert_fragment(fragment: str, base: str = "") -> str:
    """Convert a fragment, such as a feed's summary; text without markup stays as it is."""
    is_plain = "<" not in fragment and "&" not in fragment
    return clean_text(fragment) if is_plain else convert_page(f"<div>{fragment}</div>", base)


def plain_text(fragment: str) -> str:
    """Return the words of a fragment in one line, such as a title's."""
    root = parse(f"<div>{fragment}</div>") if "<" in fragment or "&" in fragment else None
    return " ".join((fragment if root is None else root.text_content()).split())
