"""Prose as a reader sees it: sentences without mark-up, a lead, key points, tags and category."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import log

from commonplace.text.language import detect, stop_words
from commonplace.text.query_terms import UNSPACED

ELLIPSIS = "…"
_FENCES = ("```", "~~~")
# Tables, headings, directives, fields, definitions of links, code.
_NOT_PROSE = re.compile(
    r"[|#@+]|//|\.\. |\$ |>>> |\[[^\[\]]{1,200}\]: |:[\w -]{1,40}:(?: |$)|"
    r"(?:-{3,}|={3,}|~{3,}|\*{3,}|_{3,}|\^{3,}|\"{3,}|'{3,}|`{3,}|\.{3,})$"
)
_QUOTED, _ITEM = re.compile(r"(?:>\s?)+"), re.compile(r"(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s)?")
_TAG = re.compile(r"<[/!?a-zA-Z][^<>`]{0,1000}>")
_IMAGE = re.compile(r"!\[[^\[\]]{0,200}\](?:\([^()\[]{0,2000}\)|\[[^\[\]]{0,200}\])")
_LINK = re.compile(r"\[([^\[\]]{0,200})\](?:\([^()\[]{0,2000}\)|\[[^\[\]]{0,200}\])")
_MARKS = re.compile(
    r"\*{1,3}|_{2,3}|~~|:[a-z:]{1,40}:(?=`)|`{1,3}_{0,2}|\|[\w .-]{1,60}\|_{0,2}|https?://\S+"
)
# A full stop ends a sentence before a space and no small letter; not after an abbreviation.
END = re.compile(
    r"(?<=[.!?…])(?<!\b[A-Z]\.)(?<!\b(?:Dr|Mr|Ms|St|Nr|vs|No)\.)(?<!\b(?:Mrs|e\.g|i\.e|bzw|"
    r"etc|z\.B|Fig)\.)"
    r"[\"'”’»)\]]{0,2}\s+(?![a-zà-öø-ÿ])|(?<=[。！？])"
)
# Words, characters of scripts without spaces, marks.
_TOKEN = re.compile(rf"[{UNSPACED}]|[^\W_{UNSPACED}]+(?:-[^\W_{UNSPACED}]+)*|[^\w\s]|_")
_CODE = re.compile(r"[{}\[\]=<>\\_|;#$]")
_STARTS, _READ, _LONGEST_WORD = 300, 1_000, 40  # characters of a sentence, of a word
_FEWEST, _EASY_CHARS = 4, 220  # words of a statement; longer ones make worse key points


def sentences(text: str) -> list[str]:
    """Prose only: no tables, headings, code blocks, addresses."""
    return [sentence for _, block in _blocks(text) for sentence in _split(block)]


def running(text: str) -> Iterator[str]:
    """Yield sentences that are not items of lists."""
    return (sentence for is_item, b in _blocks(text) if not is_item for sentence in _split(b))


def lead(text: str, limit: int) -> list[str]:
    """Return the first statements of running text: no list items, badges, navigation."""
    return list(islice(filter(is_statement, running(text)), limit))


def is_statement(sentence: str) -> bool:
    """Whether it is long enough, and prose rather than code, numbers or an announcement."""
    said = sum(token[0].isalpha() for token in _TOKEN.findall(sentence[:_STARTS]))
    return said >= _FEWEST and not sentence.endswith((":", "：")) and is_readable(sentence)


def is_readable(sentence: str) -> bool:
    """Whether it has letters rather than numbers and marks of code."""
    start = sentence[:_STARTS]
    letters = sum(map(str.isalpha, start)) + start.count(" ")
    return letters > 0.75 * len(start) and len(_CODE.findall(start)) < 0.02 * len(start)


def words(sentence: str) -> list[str]:
    """Return words and marks in lower case; characters of scripts without spaces one by one."""
    found = _TOKEN.findall(sentence[:_READ].lower())
    return [token for token in found if len(token) <= _LONGEST_WORD]


def key_points(
    sentences: Iterable[str], counts: Mapping[str, int], silent: frozenset[str], limit: int
) -> list[str]:
    """Return the statements that say most of what the whole text comes back to, in order."""
    worth = {}
    for sentence in filter(is_statement, sentences):
        said = {word for word in words(sentence) if word.isalpha() and word not in silent}
        score = sum(log(1 + counts.get(word, 0)) for word in said) / (len(said) + 6)
        worth[sentence] = score * min(1.0, _EASY_CHARS / len(sentence))
    best = sorted(worth, key=lambda sentence: -worth[sentence])[:limit]
    return [sentence for sentence in worth if sentence in best]


def cut(text: str, limit: int) -> str:
    """At most `limit` characters, cut after a whole word where there is one."""
    text = " ".join(text[: 4 * limit].split())
    if len(text) <= limit:
        return text
    kept = text[: limit - 1]
    whole = kept[: kept.rfind(" ")] if " " in kept[limit // 2 :] else kept
    return (whole.rstrip(" ,;:–—-(") or whole) + ELLIPSIS


def _split(block: str) -> Iterator[str]:
    return (whole for sentence in END.split(block) if (whole := sentence.strip()))


def _blocks(text: str) -> Iterator[tuple[bool, str]]:
    """Yield list items (True) and paragraphs (False), without mark-up."""
    lines: list[str] = []
    fence, is_item, is_verbatim = "", False, False
    for line in [*_TAG.sub("", _TAG.sub("", text)).split("\n"), ""]:
        plain = line.strip()
        if fence:
            fence = "" if plain[:3] == fence else fence
            continue
        if plain[:1] == ">" and plain[:4] != ">>> ":
            plain = _QUOTED.sub("", plain, count=1)
        is_indented = line[:1] in (" ", "\t")
        is_verbatim = (is_verbatim and (is_indented or not plain)) or (
            not lines and not is_item and line.startswith(("    ", "\t"))
        )
        item, other = _ITEM.match(plain), _NOT_PROSE.match(plain)
        if plain[:3] in _FENCES:
            fence = plain[:3]
        if item or other or fence or is_verbatim or not plain:
            if lines and not (other and len(lines) == 1 and plain[:1] == plain[-1]):  # a heading
                yield is_item, _plain(" ".join(lines))
                is_verbatim = is_verbatim or lines[-1].endswith("::")
            is_verbatim = is_verbatim or plain.startswith(".. ")
            lines = []
        if plain and not (other or fence or is_verbatim):
            is_item = bool(item) or (is_item and (bool(lines) or is_indented))
            lines.append(plain[item.end() :] if item else plain)


def _plain(block: str) -> str:
    """Return a block without mark-up; nothing of one that is mostly links."""
    if "[" in block:
        block = _IMAGE.sub("", block)
        spelled, beside = _LINK.sub(r"\1", block), _LINK.sub("", block)
        block = spelled if 2 * len(beside.strip()) >= len(spelled) else ""
    return " ".join(_MARKS.sub("", block).split())


# -- tags: what a text keeps coming back to, in its own words

_TAGS, _TERMS, _LONGEST_TAG = 5, 20, 40
_SENTENCES = 50  # of so many more, a phrase must be said once more
_STEM = 5  # letters that are compared, instead of stemming in each language
_WRITTEN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff\u30a1-\u30ff]")


def tags(title: str, sentences: Sequence[str], silent: frozenset[str]) -> tuple[str, ...]:
    """Return words of the title, or else of the first sentence, that the text says again, and
    phrases with a word of either that it says more often."""
    often = 3 + len(sentences) // _SENTENCES
    first = words("".join(sentences[:1]))
    named = set(words(title) or first)
    counts = {
        run: count * (2 if named.issuperset(run) else 1)
        for run, count in _said_again(sentences, silent)
        if named.issuperset(run) or (count >= often and len(run) > 1 and {*run} & {*named, *first})
    }
    return tuple(_distinct(counts, _TAGS))


def recurring(text: str) -> list[str]:
    """Return the words and phrases that a text says again."""
    return _distinct(dict(_said_again(sentences(text), stop_words(detect(text)))), _TERMS)


def _said_again(
    sentences: Iterable[str], silent: frozenset[str]
) -> Iterator[tuple[tuple[str, ...], int]]:
    counts = Counter(run for sentence in sentences for run in _runs(words(sentence), silent))
    return ((run, count) for run, count in counts.items() if count > 1)


def _distinct(counts: Mapping[tuple[str, ...], int], limit: int) -> list[str]:
    """Return the runs that are said most, longer ones first, none with a word of another."""
    chosen: list[str] = []
    taken: set[str] = set()
    for run in sorted(counts, key=lambda run: (-counts[run] * len(run), run)):
        is_written = bool(_WRITTEN.match(run[0]))
        tag = ("" if is_written else " ").join(run)
        stems = set() if is_written else {part[:_STEM] for one in run for part in one.split("-")}
        is_new = taken.isdisjoint(stems) and not any(tag in one or one in tag for one in chosen)
        if is_new and len(tag) <= _LONGEST_TAG:
            chosen.append(tag)
            taken |= stems
        if len(chosen) == limit:
            break
    return chosen


def _runs(said: list[str], silent: frozenset[str]) -> Iterator[tuple[str, ...]]:
    """Yield words, and two or three side by side; two to four characters of Chinese, Japanese."""
    run: list[str] = []
    for at, word in enumerate(said):
        is_written = bool(_WRITTEN.match(word))
        is_label = at == 0 and said[1:2] == [":"]  # who says it
        if run and bool(_WRITTEN.match(run[0])) != is_written:
            run = []
        is_telling = len(word) > 2 and word[0].isalpha() and word not in silent
        if is_label or not (is_written or is_telling):
            run = []
            continue
        run = [*run[-3:], word]
        sizes = range(2, 5) if is_written else range(1, 4)
        yield from (tuple(run[-size:]) for size in sizes if size <= len(run))


# -- categories, and words that indicate each

OTHER = "Other"
_LETTERS = 6  # of a word that are compared, instead of stemming
_LEAST = 3  # words that have to speak for a category
_SHARE = 0.012  # of all the words that say something

_PROFILES = {
    "Technology": """software hardware computer computing code coding program programming
        programmer algorithm api server client database query cache deploy docker kubernetes linux
        python javascript typescript rust java function compiler library framework backend
        frontend browser http https json protocol network internet cloud encryption security token
        agent model embedding neural llm chatbot robot smartphone app developer debug bug git
        repository commit test runtime thread kernel cpu gpu memory web website async request
        endpoint schema config install""",
    "Science": """science scientific research experiment hypothesis theory physics chemistry
        chemical biology astronomy planet galaxy star telescope quantum particle atom molecule
        cell gene dna protein evolution species fossil ecosystem climate ocean geology mathematics
        theorem equation laboratory measurement observation
        energy gravity neuron radiation wavelength orbit""",
    "Business": """business company companies corporate startup founder market marketing customer
        sales revenue profit pricing price investor investment finance financial bank economy
        economic trade budget strategy executive ceo employee hiring brand advertising competitor
        supply inflation tax income loan debt industry commercial""",
    "Health": """health medical medicine doctor physician patient hospital disease illness symptom
        diagnosis therapy treatment drug vaccine virus infection cancer heart blood diabetes diet
        nutrition vitamin exercise fitness sleep anxiety depression surgery clinical dose nurse
        obesity immune pain pregnancy""",
    "Learning": """learn learner teach teacher student school university college education course
        lesson lecture curriculum classroom study studying exam homework textbook memory memorize
        recall flashcard practice pedagogy tutor repetition mentor""",
    "Arts": """art artist painting painter sculpture museum gallery exhibition music musician song
        album band concert orchestra melody guitar piano film movie cinema actor theater theatre
        dance novel poem poet poetry literature fiction photography architecture opera rhythm
        lyrics typography""",
    "History": """history historical historian century ancient medieval empire emperor king queen
        kingdom dynasty war battle army soldier revolution conquest colonial civilization
        archaeology roman greek egypt renaissance treaty invasion fortress ruins monarchy feudal
        castle tomb viking""",
    "Society": """society social politics political politician government election vote voter
        parliament senate congress president minister party law legal union court judge justice
        rights citizen democracy policy police crime migration refugee religion church culture
        community gender inequality poverty protest constitution journalism media censorship
        welfare housing""",
    "Life": """life family home house parents mother father children kids baby marriage wedding
        friend relationship cooking cook recipe kitchen bake oven flour dough garlic butter dinner
        breakfast garden plant travel trip hotel flight vacation hiking beach sport football
        tennis hobby pet dog cat birthday""",
}

_VOICES = {
    word[:_LETTERS]: name
    for name, profile in reversed(_PROFILES.items())
    for word in profile.split()
}
CATEGORIES = (*_PROFILES, OTHER)


def category(counts: Mapping[str, int]) -> str:
    """Return the category that most words indicate; repeated words count a little more."""
    votes = dict.fromkeys(_PROFILES, 0.0)
    kinds = dict.fromkeys(_PROFILES, 0)
    for word, count in counts.items():
        if name := _VOICES.get(word[:_LETTERS]):
            votes[name] += min(count, 3) ** 0.5
            kinds[name] += 1
    best = max(votes, key=votes.__getitem__)
    return best if kinds[best] >= _LEAST and votes[best] >= _SHARE * len(counts) else OTHER
