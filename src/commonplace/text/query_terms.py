"""Search terms of queries, and extra terms of texts beyond their own words.

The index takes runs of letters and digits as words. That misses the parts of `camelCase`, and
scripts without spaces, which are found by pairs of neighbouring characters instead. The index
stems by English rules; stems of other languages are extra terms on both sides.
"""

import re
from collections.abc import Iterator, Set
from itertools import pairwise

from commonplace.model import Words, normalize
from commonplace.text import language as languages
from commonplace.text.link_texts import link_texts

MOST_PHRASES = 64
_MOST_READ = 4_000  # characters of a query; more could only repeat itself
_LONGEST_PHRASE = 16
_LONGEST_WORD = 256
_FEW_WORDS = 2

# Scripts without spaces between words, and Hangul, where particles cling to the words.
UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    r"\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_RUN = re.compile(f"[{UNSPACED}]+")
_WORD = re.compile(r"[^\W_]+")
_HUMP = re.compile(
    r"[A-Z](?:(?<=[a-z0-9].)|[A-Z][a-z]{2})"
)  # a capital after a small letter, or HTTPServer's S
_BETWEEN_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})")
_NEXT_HUMP = re.compile(
    r"[A-Z](?:(?<=[a-z0-9].)|(?<=[A-Z].)(?=[a-z]{2}))"
)  # what follows such a gap; sooner found in a text

# Snowball's English list. In a small library, or one of code, such words are rare.
_ENGLISH = """
    i me my myself we our ours ourselves you your yours yourself yourselves he him his himself
    she her hers herself it its itself they them their theirs themselves what which who whom
    this that these those am is are was were be been being have has had having do does did doing
    a an the and but if or because as until while of at by for with about against between into
    through during before after above below to from up down in out on off over under again
    further then once here there when where why how all any both each few more most other some
    such no nor not only own same so than too very s t can will just don should now"""
STOP_WORDS = frozenset(_ENGLISH.split())


def extra_terms(text: str, language: str | None = None) -> str:
    """Return words to index beside a text: parts of identifiers, pairs of unspaced characters,
    and stems by the rules of its language, if that is not English."""
    text = link_texts(text)
    found = languages.stems(_WORD.findall(text), language)
    if _HUMP.search(text):
        found += [
            part.lower()
            for word in filter(_HUMP.search, _WORD.findall(text))
            for part in _BETWEEN_HUMPS.split(word)
        ]
    if not text.isascii() and _RUN.search(text := normalize("NFKC", text)):
        runs = _RUN.findall(text)
        found += [
            part.lower()
            for word in filter(_RUN.search, _WORD.findall(text))
            for part in _RUN.sub(" ", word).split()
        ]
        found += [pair for run in runs for pair in _pairs(run)]
        found += sorted({letter for letter in "".join(runs) if letter.isalnum()})
    return " ".join(found)


def parse_query(query: str) -> Words:
    """Return a query as alternatives: strings such as `os.path.join`, each word, and pairs."""
    text = normalize("NFC", query.strip()[:_MOST_READ])
    found = dict.fromkeys(phrase for chunk in text.split() for phrase in _alternatives(chunk))
    language = languages.detect(text)
    spelled = [word for word in _WORD.findall(text) if len(word) <= _LONGEST_WORD]
    silent = STOP_WORDS
    # Of other languages only the longer lists are known, which have nouns in them, too: a question
    # of two words needs both. English questions do well with the short list.
    if language != "en" and len(spelled) > _FEW_WORDS:
        silent |= languages.stop_words(language)
    stems = languages.stems([word for word in spelled if word.lower() not in silent], language)
    found |= dict.fromkeys((_plain(stem),) for stem in stems)
    telling = [phrase for phrase in found if not silent.issuperset(phrase)] or found
    return Words(tuple(dict.fromkeys([*telling, *_neighbours(text, silent)]))[:MOST_PHRASES])


def for_embedding(text: str) -> str:
    """Identifiers taken apart, for embedders: `runTarget_now` reads as words that they know; and
    links without their addresses."""
    text = link_texts(text)
    return _NEXT_HUMP.sub(lambda found: " " + found[0], text).replace("_", " ")


def _alternatives(chunk: str) -> Iterator[tuple[str, ...]]:
    for form in dict.fromkeys((chunk, normalize("NFKC", chunk))):
        for run in _RUN.findall(form):
            yield from ((pair,) for pair in _pairs(run))
        found = [word for word in _WORD.findall(_RUN.sub(" ", form)) if len(word) <= _LONGEST_WORD]
        if 1 < len(found) <= _LONGEST_PHRASE:
            yield tuple(_plain(word) for word in found)
        for word in found:
            if len(found) == 1 or len(word) > 1:
                yield (_plain(word),)
            if _HUMP.search(word):
                yield from ((_plain(part),) for part in _BETWEEN_HUMPS.split(word))


def _neighbours(text: str, silent: Set[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of neighbouring words: a text that has them side by side fits better."""
    spelled = (
        _plain(word) for word in _WORD.findall(_RUN.sub(" ", text)) if len(word) <= _LONGEST_WORD
    )
    return (
        (a, b)
        for a, b in pairwise(spelled)
        if {a, b}.isdisjoint(STOP_WORDS) and not {a, b} <= silent
    )


def _pairs(run: str) -> list[str]:
    """Neighbouring letters, marks left out: engines take marks for gaps."""
    letters = [character for character in run if character.isalnum()]
    return [a + b for a, b in pairwise(letters)] or letters


def _plain(word: str) -> str:
    word = word.lower()
    return (
        word if word.isalnum() else "".join(character for character in word if character.isalnum())
    )
