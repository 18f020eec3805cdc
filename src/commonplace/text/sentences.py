"""Text as a reader sees it: sentences without mark-up, words without those that say nothing."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache

ELLIPSIS = "…"
UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u4dbf"
    r"\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_FENCES = ("```", "~~~")
_NOT_PROSE = re.compile(
    r"^\s*(?:\||#|<|@|//|\$ |>>> |[-*_=~]{3,}\s*$)"
)  # tables, headings, tags, code
_LEAD = re.compile(r"^\s*(?:[-*+•>]\s+|\d{1,3}[.)]\s+|\[[ x]\]\s+)+")
_IMAGE = re.compile(r"!\[[^\[\]\n]{0,200}\]\([^)\[\n]{0,2000}\)")
_LINK = re.compile(r"\[([^\[\]\n]{1,200})\]\([^)\[\n]{0,2000}\)")
_ADDRESS, _MARKS = (
    re.compile(r"https?://\S+"),
    re.compile(r"\*{1,3}|_{2,3}|~~|`+|</?[a-zA-Z][^<>\n]{0,200}>"),
)
# A full stop ends a sentence before a space and no small letter; not after an abbreviation.
END = re.compile(
    r"(?<=[.!?…])(?<!\b[A-Z]\.)(?<!\b(?:Dr|Mr|Ms|St|Nr|vs|No)\.)(?<!\b(?:Mrs|e\.g|i\.e|bzw|"
    r"etc|z\.B|Fig)\.)"
    r"[\"'”’»)\]]{0,2}\s+(?![a-zà-öø-ÿ])|(?<=[。！？])"
)
# Words, and the marks that part them.
_WORD = re.compile(
    rf"[{UNSPACED}]+|[^\W_{UNSPACED}]+(?:-[^\W_{UNSPACED}]+)*|[.,;:!?()\[\]/|"
    rf"\"“”„«»–—、，：；]"
)
_LONGEST_SENTENCE, _LONGEST_WORD = 1_000, 40
_SURE = 0.25  # of the words are English stop words: then it is English

# Snowball's English list, and other words without a subject. The general list has "computer".
_ENGLISH_LIST = """
    i me my myself we our ours ourselves you your yours yourself yourselves he him his himself
    she her hers herself it its itself they them their theirs themselves what which who whom
    this that these those am is are was were be been being have has had having do does did doing
    a an the and but if or because as until while of at by for with about against between into
    through during before after above below to from up down in out on off over under again
    further then once here there when where why how all any both each few more most other some
    such no nor not only own same so than too very s t can will just don should now ll re ve d m
    isn aren wasn weren hasn haven hadn doesn didn won wouldn shan couldn mustn ain could would
    may might must shall also however therefore thus yet still even ever never always often
    sometimes usually already almost many much several every either neither another anything
    something nothing one two three first second last next new old good better best like likely
    well way ways thing things lot make makes made making get gets got getting go goes going
    went come comes came take takes took use uses used using say says said see seen look know
    known think want need needs let put within without across along around among upon per via
    etc since though although whether rather quite really actually simply instead else able less
    least different example became become becomes called based given found include includes
    including show shows due start started"""
_ENGLISH = frozenset(_ENGLISH_LIST.split())


def sentences(text: str) -> list[str]:
    """Prose only: no tables, headings, code blocks, addresses."""
    is_fenced = any(fence in text for fence in _FENCES)
    # What begins with a letter is neither a mark nor behind one.
    paragraphs = " ".join(
        line
        if line[:1].isalpha()
        else "\0"
        if not line or _NOT_PROSE.match(line)
        else _LEAD.sub("\0", line).strip()
        for line in map(str.lstrip, _outside_fences(text) if is_fenced else text.split("\n"))
    ).split("\0")
    plain = (_plain(paragraph) for paragraph in paragraphs if paragraph.strip())
    return [whole for part in plain for sentence in END.split(part) if (whole := sentence.strip())]


def _outside_fences(text: str) -> Iterator[str]:
    """Lines; a code block is an empty one."""
    fence = ""
    for line in text.split("\n"):
        mark = line.lstrip(" \t")[:3]
        if fence:
            fence = "" if mark == fence else fence
        elif mark in _FENCES:
            fence = mark
            yield ""
        else:
            yield line


def headings(text: str) -> Iterator[str]:
    return (line.lstrip("# ") for line in text.split("\n") if line.startswith("#"))


def words(sentence: str) -> list[str]:
    """Return words in lower case with the punctuation between them, which separates neighbours."""
    start = sentence[:_LONGEST_SENTENCE]
    if start.isascii():
        return [word for word in _WORD.findall(start.lower()) if len(word) <= _LONGEST_WORD]
    return [word.lower() for word in _WORD.findall(start) if len(word) <= _LONGEST_WORD]


def stop_words(said: Counter[str]) -> frozenset[str]:
    """Return the stop words of the language whose list the counted words use most."""
    if sum(said[word] for word in _ENGLISH & said.keys()) >= _SURE * said.total():
        return _ENGLISH
    counted = {
        language: sum(said[word] for word in silent & said.keys())
        for language, silent in _lists().items()
    }
    return _lists()[max(counted, key=lambda language: (counted[language], language == "en"))]


@cache
def _lists() -> dict[str, frozenset[str]]:
    from stopwordsiso import langs, stopwords  # fifty languages, which few texts need

    return {language: frozenset(stopwords(language)) for language in sorted(langs())} | {
        "en": _ENGLISH
    }


def cut(text: str, limit: int) -> str:
    """At most `limit` characters, cut after a whole word where there is one."""
    text = " ".join(text[: 4 * limit].split())
    if len(text) <= limit:
        return text
    kept = text[: limit - 1]
    whole = kept[: kept.rfind(" ")] if " " in kept[limit // 2 :] else kept
    return (whole.rstrip(" ,;:–—-(") or whole) + ELLIPSIS


def _plain(paragraph: str) -> str:
    if "](" in paragraph:
        paragraph = _LINK.sub(r"\1", _IMAGE.sub("", paragraph))
    paragraph = _MARKS.sub("", paragraph)
    if "://" in paragraph:
        paragraph = _ADDRESS.sub("", paragraph)
    return " ".join(paragraph.split())
