"""Write the blocks of HTML as Markdown: paragraphs, headings, lists, quotes, code, tables."""

import re
from collections.abc import Iterator

from lxml.html import HtmlElement

from commonplace.adapters.extract.html.inline import InlineWriter, escape_line_starts
from commonplace.adapters.extract.html.tables import table_rows
from commonplace.adapters.extract.zip_xml import markdown_table

_LISTS = ("ul", "ol", "menu")
BLOCKS = frozenset(
    {"address", "article", "aside", "blockquote", "body", "center", "details", "dialog", "div"}
    | {"fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "hr", "html"}
    | {"main", "nav", "noscript", "optgroup", "option", "p", "pre", "section", "summary"}
    | {"h1", "h2", "h3", "h4", "h5", "h6", "dd", "dl", "dt", "li", *_LISTS}
    | {"caption", "table", "tbody", "td", "tfoot", "th", "thead", "tr"}
)
HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
_EMPTY_LINES = re.compile(r"\n{2,}")
_LANGUAGE = re.compile(
    r"(?:^|\s)(?:language|lang|highlight-source|highlight|sourcecode|brush:)[-_ ]?([\w+#.-]{1,30})"
)
_TICKS = re.compile(r"`{3,}")
_NOTES = re.compile(r"\b(?:footnotes?|endnotes?|doc-endnotes?|doc-footnote)\b", re.I)
_BOXES = {"☐": "[ ]", "☑": "[x]", "☒": "[x]"}
_NO_LANGUAGE = {"default", "none", "text", "plain", "plaintext", "source", "highlighter-rouge"}


class BlockWriter:
    def __init__(
        self,
        root: HtmlElement,
        without: frozenset[str],
        base: str,
        notes: dict[str, str] | None = None,
    ) -> None:
        self._root = root
        notes = footnotes(root) if notes is None else notes
        self._inline = InlineWriter(without, base, notes)
        self._notes = notes
        self._containers = _block_containers(root)

    def write(self) -> str:
        return "\n\n".join(self._blocks(self._root))

    def _blocks(self, node: HtmlElement, href: str | None = None) -> Iterator[str]:
        """Yield the blocks of a container. `href`: of a link around all of them."""
        line = [self._inline.text(node.text)]
        for child in node:
            if self._inline.skips(child):
                pass
            elif child.tag in BLOCKS or child in self._containers:
                yield from self._paragraphs(line, href)
                line = []
                yield from self._block(child, href)
            else:
                line.append(self._inline.element(child))
            line.append(self._inline.text(child.tail))
        yield from self._paragraphs(line, href)

    def _paragraphs(self, line: list[str], href: str | None) -> Iterator[str]:
        text = "\n".join(part.strip(" ") for part in "".join(line).split("\n")).strip()
        for part in _EMPTY_LINES.split(text) if text else ():
            words = "\n".join(" ".join(each.split()) for each in part.split("\n"))
            if href and "](" not in words:
                words = self._inline.linked(words, href)
            yield escape_line_starts(words)

    def _block(self, node: HtmlElement, href: str | None) -> Iterator[str]:
        tag = node.tag
        if tag in HEADINGS:
            yield from self._heading(node, href)
        elif tag in _LISTS:
            yield from filter(None, [self._list(node)])
        elif tag == "blockquote":
            yield from _quote(list(self._blocks(node)))
        elif tag == "pre":
            yield from _code(node)
        elif tag == "table":
            yield from self._table(node)
        elif tag == "dl":
            yield from filter(None, ["\n\n".join(self._definitions(node))])
        elif tag == "hr":
            yield "---"
        elif tag == "li":  # outside of a list
            yield from filter(None, [self._items([node], ["- "])])
        elif (label := self._notes.get(node.get("id") or "")) and tag in ("p", "div", "aside"):
            yield _indented(f"[^{label}]: ", "\n\n".join(self._blocks(node)), 4)
        else:
            yield from self._blocks(node, node.get("href") if tag == "a" else href)

    def _heading(self, node: HtmlElement, href: str | None) -> Iterator[str]:
        parts = [" ".join(part.split()) for part in self._blocks(node)]
        words = " ".join(parts).replace("\\#", "#")
        if href and "](" not in words:
            words = self._inline.linked(words, href)
        if words:
            yield f"{HEADINGS[node.tag]} {words}"

    def _list(self, node: HtmlElement) -> str:
        items, marks = [], []
        start = node.get("start") or "1"
        number = int(start) if re.fullmatch(r"\d{1,9}", start) else 1
        for item in _list_items(node):
            if self._inline.skips(item):
                continue
            items.append(item)
            marks.append(f"{number}. " if node.tag == "ol" else "- ")
            number += 1
        return self._items(items, marks)

    def _items(self, items: list[HtmlElement], marks: list[str]) -> str:
        written: list[str] = []
        loose = False
        for item, mark in zip(items, marks, strict=True):
            if item.tag in _LISTS:  # directly within a list, as some editors write it
                blocks = [self._list(item)]
                lead = "  " if written else ""
            else:
                blocks = list(self._blocks(item))
                lead = mark
                if blocks and (box := _BOXES.get(blocks[0][:1])):
                    blocks[0] = f"{box} {blocks[0][1:].lstrip()}"
            label = self._notes.get(item.get("id") or "")
            if label and blocks:
                written.append(_indented(f"[^{label}]: ", "\n\n".join(blocks), 4))
                loose = True
            elif blocks:
                tight = all(re.match(r"\s*(?:[-*] |\d+\. )", block) for block in blocks[1:])
                loose = loose or not tight
                written.append(_indented(lead, ("\n" if tight else "\n\n").join(blocks), len(lead)))
        return ("\n\n" if loose else "\n").join(written)

    def _definitions(self, node: HtmlElement) -> Iterator[str]:
        lines: list[str] = []
        for part in _parts_of(node, ("dt", "dd")):
            if self._inline.skips(part):
                continue
            text = "\n\n".join(self._blocks(part))
            if part.tag == "dt":
                if lines and lines[-1].startswith(":"):
                    yield "\n".join(lines)
                    lines = []
                lines.append(" ".join(text.split()))
            elif text:
                lines.append(_indented(": ", text, 2))
        if lines:
            yield "\n".join(lines)

    def _table(self, node: HtmlElement) -> Iterator[str]:
        caption = next(node.iterchildren("caption"), None)
        if caption is not None:
            yield from self._blocks(caption)
        rows = table_rows(node, self._cell)
        if rows:
            yield markdown_table(rows)
            return
        for part in _parts_of(node, ("td", "th", "table")):  # only there for the layout
            if not self._inline.skips(part):
                yield from self._blocks(part)

    def _cell(self, cell: HtmlElement) -> str:
        if self._inline.skips(cell):
            return ""
        return " ".join(" ".join(self._blocks(cell)).split()).replace("\\#", "#")


def footnotes(root: HtmlElement) -> dict[str, str]:
    """Map the ids of footnotes to their marks, where the page says that they are footnotes."""
    notes: dict[str, str] = {}
    for element in root.iter("li", "p", "div", "aside"):
        name = element.get("id")
        if name and (
            _NOTES.search(
                f"{element.get('class') or ''} {element.get('role') or ''} {name} "
                f"{element.get('epub:type') or ''}".replace("-", " ").replace("_", " ")
            )
            if element.tag != "li"
            else any(
                _NOTES.search(
                    f"{above.get('class') or ''} {above.get('role') or ''} "
                    f"{above.get('epub:type') or ''}"
                )
                for above in (
                    element,
                    *element.iterancestors("ol", "ul", "section", "div", "aside"),
                )
            )
            or re.fullmatch(r"(?:foot|end)note-\d+", name)
        ):
            notes[name] = str(len(notes) + 1)
    return notes


def _block_containers(root: HtmlElement) -> set[HtmlElement]:
    """Return the inline elements that contain blocks, such as a link around a card."""
    found: set[HtmlElement] = set()
    for element in root.iter(*BLOCKS):
        for above in element.iterancestors():
            if above in found:
                break
            if above.tag not in BLOCKS:
                found.add(above)
    return found


def _list_items(node: HtmlElement) -> Iterator[HtmlElement]:
    for child in node:
        if child.tag == "li" or child.tag in _LISTS:
            yield child
        elif isinstance(child.tag, str):
            yield from _list_items(child)


def _parts_of(node: HtmlElement, tags: tuple[str, ...]) -> Iterator[HtmlElement]:
    """Yield the nearest descendants with one of these tags, in order."""
    for child in node:
        if child.tag in tags:
            yield child
        elif isinstance(child.tag, str):
            yield from _parts_of(child, tags)


def _indented(lead: str, text: str, width: int) -> str:
    first, *others = text.split("\n")
    return "\n".join([lead + first, *(" " * width + line if line else "" for line in others)])


def _quote(blocks: list[str]) -> Iterator[str]:
    """Quote blocks, unless there are mostly tables or code: those are only indented by the page."""
    framed = sum(len(block) for block in blocks if block.startswith(("|", "```")))
    if 2 * framed > sum(map(len, blocks)):
        yield from blocks
    else:
        lines = "\n\n".join(blocks).split("\n")
        yield "\n".join(f"> {line}".rstrip() for line in lines)


def _code(node: HtmlElement) -> Iterator[str]:
    for line_break in node.iter("br"):
        line_break.tail = "\n" + (line_break.tail or "")
    text = node.text_content().strip("\r\n").rstrip()
    if text.strip():
        ticks = "`" * (max(map(len, _TICKS.findall(text)), default=2) + 1)
        yield f"{ticks}{_language(node)}\n{text}\n{ticks}"


def _language(node: HtmlElement) -> str:
    """Return the programming language that a code block or its frame names."""
    inner = next(node.iterdescendants("code"), None)
    frame = node.getparent()
    for each in (node, inner, frame, frame.getparent() if frame is not None else None):
        if each is None:
            continue
        named = each.get("data-lang") or each.get("data-language")
        found = _LANGUAGE.search(each.get("class") or "")
        name = (named or (found[1] if found else "")).lower().strip()
        if name and name not in _NO_LANGUAGE and re.fullmatch(r"[\w+#.-]{1,30}", name):
            return name
    return ""
