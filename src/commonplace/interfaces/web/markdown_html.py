"""Untrusted text as safe HTML: Markdown without raw HTML, then a sanitizer."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markupsafe import Markup, escape

from commonplace.errors import Invalid
from commonplace.interfaces.web.jinja import web_address
from commonplace.text.chunking import FENCE
from commonplace.text.front_matter import split_front_matter
from commonplace.text.snippets import Part

NO_IMAGES: Mapping[str, str] = {}
TAGS = {
    "p",
    "br",
    "hr",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "ul",
    "ol",
    "li",
    "blockquote",
    "pre",
    "code",
    "em",
    "strong",
    "s",
    "a",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "span",
    "sup",
    "sub",
    "input",
    "img",
}
ATTRIBUTES = {
    "a": {"href", "title"},
    "img": {"src", "alt", "loading"},
    "ol": {"start"},
    "span": {"class"},
    "li": {"class"},
    "th": {"align"},
    "td": {"align"},
    "code": {"class"},
    "input": {"disabled", "checked", "aria-label"},
}
_ROW, _HEAD = re.compile(r"\s*\|"), re.compile(r"\s*\|.*\n\s*\|[\s|:-]+(?:\n|$)")
_HEADINGS = re.compile(r"(?m)^(#{1,6})[ \t]")
_BOX = re.compile(r"\[([ xX])\] ")
_ADDRESS = re.compile(r"\bhttps?://[^\s<>\"`]{1,2000}")
_OPENS = {")": "(", "]": "["}
_NEWLINE = re.compile(r"(\r\n?|\n)")


class _Renderer(RendererHTML):
    def image(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """Render the image if it was kept, with its text as caption; else a link: loading it would
        tell its host who reads."""
        token = tokens[idx]
        words = self.renderInlineAsText(token.children, options, env) if token.children else ""
        source = web_address(str(token.attrGet("src") or ""))
        if kept := env.get("images", {}).get(source):
            shown = f'<img src="{escape(kept)}" alt="{escape(words)}" loading="lazy">'
            return f'{shown}<span class="caption">{escape(words)}</span>' if words else shown
        label = escape(words or "picture")
        return (
            f'<a href="{escape(source)}"><span class="picture">{label}</span></a>'
            if source
            else str(label)
        )

    def box(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """Render the box of a task in a list. Scripts enable it for those who may write."""
        words = self.renderInlineAsText(tokens[idx + 1 :], options, env).strip()
        return f'<input{self.renderAttrs(tokens[idx])} aria-label="{escape(words or "Done")}"> '


def _boxes(state: StateCore) -> None:
    """`- [ ] to do` and `- [x] done`, as most programs that write Markdown mean them."""
    for item, _, inline in zip(state.tokens, state.tokens[1:], state.tokens[2:], strict=False):
        first = inline.children[0] if inline.children else None
        if item.type != "list_item_open" or not first or first.type != "text":
            continue
        if box := _BOX.match(first.content):
            first.content = first.content[box.end() :]
            shown = Token("box", "input", 0, {"type": "checkbox", "disabled": ""}, inline.map)
            if box[1] != " ":
                shown.attrSet("checked", "")
            inline.children = [shown, *(inline.children or ())]
            item.attrSet("class", "box")


def _addresses(state: StateCore) -> None:
    """Make links of web addresses that stand in the text."""
    for inline in state.tokens:
        if not inline.children or "://" not in inline.content:
            continue
        children, within = list[Token](), 0
        for child in inline.children:
            within += child.nesting if child.type.startswith("link_") else 0
            plain = child.type == "text" and not within and "://" in child.content
            children += _linked(state.md, child.content) if plain else [child]
        inline.children = children


def _linked(markdown: MarkdownIt, text: str) -> Iterator[Token]:
    at = 0
    for found in _ADDRESS.finditer(text):
        address = _without_punctuation(found[0])
        url = markdown.normalizeLink(address)
        if not (web_address(url) and markdown.validateLink(url)):
            continue
        end = found.start() + len(address)
        yield Token("text", "", 0, content=text[at : found.start()])
        yield Token("link_open", "a", 1, {"href": url})
        yield Token("text", "", 0, content=address)
        yield Token("link_close", "a", -1)
        at = end
    yield Token("text", "", 0, content=text[at:])


def _without_punctuation(address: str) -> str:
    """Leave out what ends the sentence or closes the bracket around an address."""
    counts, end = Counter(address), len(address)
    while end:
        last = address[end - 1]
        if last not in ".,;:!?'*_~" and counts[last] <= counts[_OPENS.get(last, last)]:
            break
        counts[last] -= 1
        end -= 1
    return address[:end]


def _aligned(state: StateCore) -> None:
    """The page's policy takes no styles from a text."""
    for token in state.tokens:
        style = str(token.attrs.pop("style", "")) if token.type in ("th_open", "td_open") else ""
        if style:
            token.attrSet("align", style.removeprefix("text-align:"))


_MD = MarkdownIt("commonmark", {"html": False, "linkify": False}, renderer_cls=_Renderer)
_MD.enable(["table", "strikethrough"])
_MD.core.ruler.push("boxes", _boxes)
_MD.core.ruler.push("addresses", _addresses)
_MD.core.ruler.push("aligned", _aligned)


def without_title(text: str, title: str) -> str:
    """Texts often begin with their own title, which the page says already."""
    first, _, rest = text.lstrip().partition("\n")
    words, title = first.lstrip("#"), title.strip()
    is_heading, said = first.startswith("#") and words.startswith(" "), words.strip()
    is_title = said.startswith(title) and not said[len(title) :].strip(" #")
    return rest if is_heading and is_title else text


def without_front_matter(text: str) -> str:
    """Show the front matter of a text as the data that it is, not as a heading."""
    head, rest = split_front_matter(text)
    if head is None:
        return text
    shown = "\n".join(f"    {line}" for line in head.splitlines())
    return f"{shown}\n\n{rest}"


def beginning(
    text: str,
    title: str = "",
    highest: int | None = None,
    images: Mapping[str, str] = NO_IMAGES,
) -> Markup:
    """Render a text, or its first passage: without the title, which its page says already."""
    return rendered(without_title(without_front_matter(text), title), highest, images)


def _boxes_at(text: str) -> list[int]:
    """Return the numbers of the lines with task boxes, in order."""
    return [
        child.map[0]
        for token in _MD.parse(text)
        for child in token.children or ()
        if child.type == "box" and child.map
    ]


def box_lines(text: str) -> list[str]:
    """Return the lines of the task boxes in a text, as if none was ticked."""
    if not _BOX.search(text):
        return []
    lines = _NEWLINE.split(text)[::2]
    return [_BOX.sub("[ ] ", lines[at], count=1) for at in _boxes_at(text)]


def ticked(text: str, number: int, done: bool) -> str:
    """Return the text with its box of this number, from 0, ticked or not."""
    found = _boxes_at(text)
    if not 0 <= number < len(found):
        raise Invalid("The text has no such task. Reload the page.")
    lines = _NEWLINE.split(text)
    at = 2 * found[number]  # every other one is the end of a line
    lines[at] = _BOX.sub("[x] " if done else "[ ] ", lines[at], count=1)
    return "".join(lines)


def resumed(passages: Iterable[str]) -> Iterator[str]:
    """Complete passages that were cut out of a code block or a table: add its fence or its head."""
    fence, mark, head = "", "", ""
    for passage in passages:
        text = passage.lstrip(" \t")  # of the line that it begins in; only code keeps it
        if fence:
            text = f"{fence}\n{passage}"
        elif head and _ROW.match(passage) and not _HEAD.match(passage):
            text = f"{head}\n{passage}"
        fence, mark, head = _left_open(text)
        yield f"{text}\n{mark}" if fence else text


def _left_open(text: str) -> tuple[str, str, str]:
    """Return the open code fence, its closing line, and the head of the table the text ends in."""
    fence, mark = "", ""
    table: list[str] = []
    for line in text.splitlines():
        bare = line.strip()
        if fence:
            fence = "" if bare.startswith(mark) and not bare.strip(mark[0]) else fence
        elif found := FENCE.match(line):
            fence, mark, table = line, found[1], []
        else:
            table = [*table, line] if bare.startswith("|") else []
    head = "\n".join(table[:2])
    return fence, mark, head if _HEAD.match(head) else ""


def rendered(
    text: str, highest: int | None = None, images: Mapping[str, str] = NO_IMAGES
) -> Markup:
    """`highest`: heading of the whole that this is a part of. `images`: the addresses of kept ones,
    by those in the text."""
    highest = highest_heading(text) if highest is None else highest
    clean = nh3.clean(
        _MD.render(text, {"images": images}),
        tags=TAGS,
        attributes=ATTRIBUTES,
        tag_attribute_values={"input": {"type": {"checkbox"}}},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    by = 2 - highest  # the page has its own first heading: those of the text begin below it
    return Markup(
        re.sub(
            r"<(/?)h([1-6])\b",
            lambda found: f"<{found[1]}h{min(max(int(found[2]) + by, 2), 6)}",
            clean,
        )
    )


def highest_heading(text: str) -> int:
    return min((len(found) for found in _HEADINGS.findall(text)), default=1)


def marked(parts: Iterable[Part]) -> Markup:
    """Render a snippet, with the words that were asked for marked."""
    return Markup("").join(
        Markup("<mark>{}</mark>").format(part.text) if part.is_asked else escape(part.text)
        for part in parts
    )
