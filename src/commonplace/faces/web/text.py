"""Texts of others as HTML that can do no harm: Markdown without raw HTML, and a sanitiser behind it."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape

from commonplace.faces.web.templating import web_address

TAGS = {"p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong", "s",
        "a", "table", "thead", "tbody", "tr", "th", "td", "span", "sup", "sub"}
ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}, "span": {"class"}, "th": {"align"}, "td": {"align"}, "code": {"class"}}
_WORD = re.compile(r"\w+")
_COMMON = frozenset(["a", "an", "and", "are", "as", "at", "be", "by", "do", "for", "from", "how", "i", "in", "is", "it", "of",
                     "on", "or", "that", "the", "to", "was", "what", "when", "where", "which", "who", "why", "with"])


class _Renderer(RendererHTML):
    def image(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """Not loaded: a picture from elsewhere would tell that elsewhere who reads. Its words, and the way to it."""
        token = tokens[idx]
        words = self.renderInlineAsText(token.children, options, env) if token.children else ""
        source = web_address(str(token.attrGet("src") or ""))
        label = escape(words or "picture")
        return f'<a href="{escape(source)}"><span class="picture">{label}</span></a>' if source else str(label)


def _markdown() -> MarkdownIt:
    md = MarkdownIt("commonmark", {"html": False, "linkify": False}, renderer_cls=_Renderer)
    return md.enable(["table", "strikethrough"])


_MD = _markdown()


def without_title(text: str, title: str) -> str:
    """Texts often begin with their own title, which the page says already."""
    first, _, rest = text.lstrip().partition("\n")
    return rest if re.fullmatch(r"#+ +" + re.escape(title.strip()) + r"[ #]*", first.strip()) else text


def rendered(text: str) -> Markup:
    clean = nh3.clean(_MD.render(text), tags=TAGS, attributes=ATTRIBUTES, url_schemes={"http", "https", "mailto"},
                      link_rel="noopener noreferrer nofollow")
    return Markup(_demoted(clean))


def _demoted(html: str) -> str:
    """The page has its own first heading: those of the text begin below it."""
    return re.sub(r"<(/?)h([1-5])\b", lambda found: f"<{found[1]}h{int(found[2]) + 1}", html)


def snippet(text: str, query: str, length: int = 280) -> Markup:
    """The stretch of a passage that says most of what was asked for, with the words marked."""
    plain = plain_text(text)
    stems = _stems(query)
    spots = [found.span() for found in _WORD.finditer(plain) if _is_asked(found[0], stems)]
    start = _best_start(spots, length, len(plain))
    if start > 0:
        start = plain.find(" ", start) + 1 or start
    end = min(len(plain), start + length)
    if end < len(plain):
        end = plain.rfind(" ", start, end) if plain.rfind(" ", start, end) > start else end
    inside = [(a, b) for a, b in spots if a >= start and b <= end]
    return Markup("{}{}{}").format("… " if start else "", _marked(plain, start, end, inside), " …" if end < len(plain) else "")


def marked(text: str, query: str) -> Markup:
    stems = _stems(query)
    return _marked(text, 0, len(text), [f.span() for f in _WORD.finditer(text) if _is_asked(f[0], stems)])


def plain_text(text: str) -> str:
    """Markdown's signs would only be noise in a line of a list."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"(?m)^\s*(#{1,6}|>|[-*+]|\d{1,3}[.)])\s+|^[\s|:-]+$", " ", text)
    return " ".join(re.sub(r"\*{1,3}|`{1,3}|\s\|\s|^\||\|$", " ", text, flags=re.MULTILINE).split())


def _marked(text: str, start: int, end: int, spots: Iterable[tuple[int, int]]) -> Markup:
    parts, at = [], start
    for a, b in spots:
        parts += [escape(text[at:a]), Markup("<mark>{}</mark>").format(text[a:b])]
        at = b
    return Markup("").join([*parts, escape(text[at:end])])


def _stems(query: str) -> tuple[str, ...]:
    words = [word.lower() for word in _WORD.findall(query)]
    wanted = [word for word in words if word not in _COMMON] or words
    return tuple(dict.fromkeys(_stem(word) for word in wanted))


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s", "ly"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[:-len(ending)]
    return word


def _is_asked(word: str, stems: Sequence[str]) -> bool:
    lower = word.lower()
    return any(lower == stem or (len(stem) >= 3 and lower.startswith(stem) and len(lower) - len(stem) <= 4) for stem in stems)


def _best_start(spots: Sequence[tuple[int, int]], length: int, whole: int) -> int:
    if not spots or whole <= length:
        return 0
    best = max(spots, key=lambda spot: (sum(spot[0] <= a < spot[0] + length - 60 for a, _ in spots), -spot[0]))
    return max(0, min(best[0] - 40, whole - length))
