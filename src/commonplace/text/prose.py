"""Prose as a reader sees it: sentences without mark-up, their words, keyphrases and category."""

import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from math import sqrt

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


# -- tags: what a text keeps coming back to, in its own words

_LONGEST_TAG = 40
_RUN = re.compile(rf"[{UNSPACED}]+")
_IDEOGRAPHS = re.compile(
    r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+|[\u30a1-\u30ff]{2,}"
)
_TITLE = 3  # a word of the title or of a heading counts as often


def tags(
    said: Counter[str],
    sentences: Sequence[Sequence[str]],
    titles: Sequence[Sequence[str]],
    silent: frozenset[str],
    limit: int,
) -> tuple[str, ...]:
    """`said`: how often the sentences say each of their words."""
    telling = {
        word
        for word in chain(said, *titles)
        if len(word) > 2 and word not in silent and not word[0].isdigit() and not _is_unspaced(word)
    }
    counts = Counter({(word,): count for word, count in said.items() if word in telling})
    for word in said.keys() - telling:
        for gram in _grams(word, silent):
            counts[gram,] += said[word]
    for title in titles:
        grams = {gram for word in title for gram in _grams(word, silent)}
        counts.update({(word,): _TITLE for word in telling.intersection(title) | grams})
    # A run that is said twice is made of words that are: the others need not be looked at.
    again = {word for word in telling if counts[word,] > 1}
    runs = Counter(run for sentence in sentences for run in _runs(sentence, again))
    for title in titles:
        runs.update({run: _TITLE for run in _runs(title, again) if run in runs})
    worth = {
        phrase: count * (1 + 0.8 * (len(phrase) - 1)) * _length(phrase)
        for found, least in ((counts, 2 if len(sentences) > 3 else 1), (runs, 2))
        for phrase, count in found.items()
        if count >= least
    }
    chosen: list[tuple[str, ...]] = []
    taken: set[str] = set()
    for phrase in sorted(worth, key=lambda phrase: (-worth[phrase], phrase)):
        if len(chosen) == limit:
            break
        stems = {word[:-1] if word.endswith("s") and len(word) > 4 else word for word in phrase}
        if taken.isdisjoint(stems) and not (
            _RUN.match(phrase[0])
            and any(phrase[0] in other or other in phrase[0] for other in taken)
        ):
            chosen.append(phrase)
            taken |= stems
    return tuple(dict.fromkeys(" ".join(phrase)[:_LONGEST_TAG] for phrase in chosen))


def _runs(words: Sequence[str], again: Container[str]) -> Iterator[tuple[str, ...]]:
    """Two or three words side by side."""
    before, last = "", ""
    for word in words:
        if word not in again:
            before = last = ""
            continue
        if last:
            yield last, word
            if before:
                yield before, last, word
        before, last = last, word


def _is_unspaced(word: str) -> bool:
    return not word.isascii() and _RUN.match(word) is not None


def _grams(word: str, silent: frozenset[str]) -> Iterator[str]:
    """What stands for words in texts without spaces: runs of two to four characters."""
    if not _is_unspaced(word):
        return
    for part in _IDEOGRAPHS.findall(word):
        sizes = (2, 3, 4) if len(part) > 4 else (max(2, len(part)),)
        yield from (
            gram
            for size in sizes
            for start in range(len(part) - size + 1)
            if (gram := part[start : start + size]) not in silent
        )


def _length(phrase: tuple[str, ...]) -> float:
    """Longer words are rarer by themselves; two ideographs say as much as six letters."""
    letters = sum(len(word) * (3 if _is_unspaced(word) else 1) for word in phrase) / len(phrase)
    return sqrt(min(letters, 12.0))


# -- categories, and words that indicate each, in English, German, French and Spanish

OTHER = "Other"
_LETTERS = 6  # of a word that are compared, instead of stemming in each language
_LEAST = 3  # words that have to speak for a category
_SHARE = 0.012  # of all the words that say something

_PROFILES = {
    "Technology": """software hardware computer computing code coding program programming
        programmer programmieren algorithm api server client database query cache deploy docker
        kubernetes linux python javascript typescript rust java function compiler library
        framework backend frontend browser http https json protocol network internet cloud
        encryption security token agent model embedding neural llm chatbot robot smartphone app
        developer debug bug git repository commit test runtime thread kernel cpu gpu memory
        logiciel ordinateur informatique rechner datenbank netzwerk ordenador servidor
        software-entwicklung web website async request endpoint schema config install""",
    "Science": """science scientific scientist research researcher experiment hypothesis theory
        physics physicist chemistry chemical biology biologist astronomy planet galaxy star
        telescope quantum particle atom molecule cell gene genome dna protein evolution species
        fossil ecosystem climate ocean geology mathematics theorem equation proof laboratory
        observation measurement energy gravity neuron wissenschaft forschung versuch physik
        chemie biologie recherche scientifique physique chimie ciencia investigación física
        química universe radiation wavelength orbit nasa""",
    "Business": """business company companies corporate startup founder market marketing customer
        sales revenue profit pricing price investor investment invest venture stock shares
        finance financial bank banking economy economic economist trade budget cost strategy
        management manager executive ceo employee hiring product launch growth brand advertising
        competitor supply unternehmen wirtschaft kunde umsatz gewinn entreprise marché économie
        client-base empresa mercado economía negocio inflation tax taxes income capital loan
        debt industry commercial quarter""",
    "Health": """health healthy medical medicine doctor physician patient hospital disease illness
        symptom diagnosis therapy treatment drug vaccine virus infection cancer heart blood
        pressure diabetes diet nutrition vitamin exercise fitness sleep mental anxiety
        depression stress surgery clinical trial dose nurse brain gesundheit krankheit arzt
        medizin santé maladie médecin salud enfermedad médico obesity immune pain muscle calorie
        protein-rich workout pregnancy""",
    "Learning": """learn learning learner teach teacher teaching student school university college
        education educational course lesson lecture curriculum classroom study studying exam
        homework tutorial textbook memorise memorize recall flashcard practice skill training
        pedagogy knowledge reading writing notes note-taking spaced repetition lernen lehrer
        schule unterricht studium apprendre école élève enseignement aprender escuela estudiante
        enseñanza mentor feedback habit""",
    "Arts": """art artist artistic painting painter paint sculpture museum gallery exhibition
        music musician song album band concert orchestra composer melody guitar piano film movie
        cinema director actor actress theatre theater dance novel novelist poem poet poetry
        literature fiction author writer photography photographer design designer architecture
        kunst künstler musik gemälde musique peinture roman cinéma arte música pintura novela
        película drawing canvas opera rhythm chord lyrics typography""",
    "History": """history historical historian century ancient medieval empire emperor king queen
        kingdom dynasty war battle army soldier revolution conquest colonial colony civilization
        archaeology archaeologist roman rome greek egypt egyptian pharaoh renaissance treaty
        victory invasion fortress ruins manuscript monarchy feudal geschichte jahrhundert krieg
        kaiser könig histoire siècle guerre empire-building roi historia siglo guerra rey
        imperio crusade viking napoleon castle tomb reign""",
    "Society": """society social politics political politician government election vote voter
        parliament senate congress president minister party law legal court judge justice rights
        human citizen democracy democratic policy police crime migration refugee immigration
        religion religious church culture community gender inequality poverty protest campaign
        constitution regierung wahl gesellschaft recht partei gesetz gouvernement loi société
        gobierno ley sociedad elección journalism journalist newspaper media censorship privacy
        union welfare housing city urban""",
    "Life": """life family home house parent parents mother father child children kids baby
        marriage wedding love friend friendship relationship happiness cooking cook recipe
        kitchen bake oven flour dough garlic onion butter dinner breakfast garden gardening
        plant travel trip hotel flight vacation holiday hiking beach sport football soccer
        tennis game player team hobby pet dog cat fashion dress money-saving familie leben küche
        rezept reise garten famille cuisine recette voyage vie familia cocina receta viaje vida
        weekend birthday morning routine""",
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
