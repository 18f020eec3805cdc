"""Write what stands in one line of Markdown: words, emphasis, links, pictures, code, formulas."""

import re
from collections.abc import Callable
from urllib.parse import urljoin

from lxml.html import HtmlElement

from commonplace.adapters.extract.html.mathml import tex

_SPACES = re.compile(r"[ \t\r\n\f\u200b\ufeff]+")
_SPECIAL = re.compile(r"[\\`*\[\]<]|(?<!\w)_|_(?!\w)")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_BULLET, _NUMBER = re.compile(r"#{1,6}|[>+=-]+"), re.compile(r"\d{1,9}[.)]")
_EMPHASIS = {"b": "**", "strong": "**", "em": "*", "i": "*", "del": "~~", "s": "~~"}
_CODE = {"code", "kbd", "samp", "tt"}
_HIDDEN = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)\b", re.I)
_LAZY = ("data-src", "data-original", "data-lazy-src", "data-srcset", "srcset")
_TINY = 3  # pixels of pictures that only count visitors
_PERMALINKS = frozenset("¶#§🔗⚓")
_BACK = frozenset("↩↑^⏎")
_COPIES = {"katex-html", "mw-editsection"}  # of a formula; links to edit a section
_LONGEST_ADDRESS = 2000
_LONGEST_LABEL = 8  # characters of a footnote's mark


def is_hidden(node: HtmlElement) -> bool:
    style = node.get("style")
    return (
        node.get("hidden") is not None or (style is not None and bool(_HIDDEN.search(style)))
    ) and not any(True for _ in node.iter("math"))


def escape(text: str) -> str:
    """Escape what would be markup, and no more: agents read this text, too."""
    if not _SPECIAL.search(text):
        return text
    return _SPECIAL.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    sign, text, at = found[0], found.string, found.start()
    if sign == "<":
        return "\\<" if _TAG.match(text, at) else sign
    if sign == "[":
        return sign
    if sign == "]":
        return "\\]" if text[at + 1 : at + 2] in ("(", "[") else sign
    if sign == "*" and _is_space(text, at - 1) and _is_space(text, at + 1):
        return sign
    if sign == "\\" and not re.match(r"[!-/:-@\[-`{-~]", text[at + 1 : at + 2]):
        return sign
    return "\\" + sign


def _is_space(text: str, at: int) -> bool:
    return not 0 <= at < len(text) or text[at].isspace()


def escape_line_starts(text: str) -> str:
    """Escape words at the start of a paragraph's lines that would begin a heading or a list."""
    return "\n".join(map(_escape_start, text.split("\n")))


def _escape_start(line: str) -> str:
    first = line.partition(" ")[0]
    if _BULLET.fullmatch(first):
        return "\\" + line
    return (
        line.replace(first, f"{first[:-1]}\\{first[-1]}", 1) if _NUMBER.fullmatch(first) else line
    )


class InlineWriter:
    """Writes inline content. `notes`: the footnotes' marks, by the id of their text."""

    def __init__(self, without: frozenset[str], base: str, notes: dict[str, str]) -> None:
        self._without = without
        self._base = base
        self._notes = notes

    def skips(self, node: HtmlElement) -> bool:
        tag = node.tag
        return not isinstance(tag, str) or tag in self._without or is_hidden(node)

    def text(self, words: str | None) -> str:
        return escape(_SPACES.sub(" ", words)) if words else ""

    def children(self, node: HtmlElement) -> str:
        parts = [self.text(node.text)]
        for child in node:
            parts.append(self.element(child))
            parts.append(self.text(child.tail))
        return "".join(parts)

    def element(self, node: HtmlElement) -> str:
        if self.skips(node):
            return ""
        writer = _WRITERS.get(node.tag)
        if writer is not None:
            return writer(self, node)
        if _COPIES & set((node.get("class") or "").split()):
            return ""
        return self.children(node)

    def address(self, href: str | None) -> str:
        """Return an absolute address; "" for one that does not lead anywhere."""
        href = (href or "").strip()
        if not href or href.startswith("#"):
            return ""
        try:
            full = urljoin(self._base, href)
        except ValueError:
            return ""
        if not full.startswith(("http://", "https://", "mailto:")) or len(full) > _LONGEST_ADDRESS:
            return ""
        full = re.sub(r"[\s<>]", lambda found: f"%{ord(found[0]) & 0xFF:02X}", full)
        return f"<{full}>" if "(" in full or ")" in full else full

    def picture(self, node: HtmlElement) -> str:
        """Write an image with its text. One without text or size only decorates."""
        words = " ".join((node.get("alt") or node.get("title") or "").split())
        css = (node.get("class") or "").lower()
        if "mwe-math" in css:  # beside the formula that it shows
            return ""
        if words and ("latex" in css or "tex" in css.split() or "math" in css):
            return f"${words}$"
        if any(
            (node.get(side) or "9")[:4].strip("px ") in map(str, range(_TINY))
            for side in ("width", "height")
        ):
            return ""
        places = [node.get("src") or "", *(node.get(name) or "" for name in _LAZY)]
        full = (self.address(each.split(",")[0].split(" ")[0]) for each in places if each)
        address = next(filter(None, full), "")
        label = escape(words).replace("[", "\\[").replace("]", "\\]").replace("\\\\", "\\")
        return f"![{label}]({address})" if address else label

    def _link(self, node: HtmlElement) -> str:
        href = node.get("href") or ""
        words = self.children(node)
        bare = words.strip()
        if href.startswith("#"):
            if bare in _PERMALINKS or "footnote-back" in (node.get("class") or ""):
                return ""
            if (label := self._notes.get(href[1:])) and len(bare) <= _LONGEST_LABEL:
                return f"[^{label}]"
        if bare and set(bare) <= _BACK:
            return ""
        return self.linked(words, href)

    def linked(self, words: str, href: str | None) -> str:
        address, bare = self.address(href), words.strip()
        if not address or not bare:
            return words
        before, after = words[: len(words) - len(words.lstrip())], words[len(words.rstrip()) :]
        return f"{before}[{' '.join(bare.split())}]({address}){after}"

    def _emphasis(self, node: HtmlElement) -> str:
        words, sign = self.children(node), _EMPHASIS[node.tag]
        bare = words.strip()
        around = node.iterancestors(*(tag for tag, same in _EMPHASIS.items() if same == sign))
        above = next(node.iterancestors("h1", "h2", "h3", "h4", "h5", "h6", "th", "dt"), None)
        if not any(map(str.isalnum, bare)) or "\n\n" in bare or next(around, None) is not None:
            return words
        if above is not None and sign == "**":
            return words
        at = words.find(bare)
        return f"{words[:at]}{sign}{bare}{sign}{words[at + len(bare) :]}"

    def _code(self, node: HtmlElement) -> str:
        words = " ".join(node.text_content().split())
        if not words or next(node.iterancestors(*_CODE), None) is not None:
            return words
        ticks = "`" * (max(map(len, re.findall("`+", words)), default=0) + 1)
        pad = " " if words.startswith("`") or words.endswith("`") else ""
        link = next(node.iterdescendants("a"), None)
        code = f"{ticks}{pad}{words}{pad}{ticks}"
        whole = link is not None and " ".join(link.text_content().split()) == words
        return self.linked(code, link.get("href")) if link is not None and whole else code

    def _formula(self, node: HtmlElement) -> str:
        formula = tex(node)
        return f"${formula}$" if formula else self.children(node)

    def _box(self, node: HtmlElement) -> str:
        if (node.get("type") or "").lower() != "checkbox":
            return ""
        return "[x] " if node.get("checked") is not None else "[ ] "

    def _quoted(self, node: HtmlElement) -> str:
        return f'"{self.children(node)}"'

    def _break(self, node: HtmlElement) -> str:
        return "\n"


_WRITERS: dict[str, Callable[[InlineWriter, HtmlElement], str]] = {
    "a": InlineWriter._link,
    "br": InlineWriter._break,
    "img": InlineWriter.picture,
    "math": InlineWriter._formula,
    "input": InlineWriter._box,
    "q": InlineWriter._quoted,
    **dict.fromkeys(_EMPHASIS, InlineWriter._emphasis),
    **dict.fromkeys(_CODE, InlineWriter._code),
}
