"""WordPiece, the tokenizer of uncased BERT models, for texts of one language or many.

The `tokenizers` package gives the same ids, but brings 35 MB and a client for downloads.
"""

import unicodedata
from pathlib import Path

from commonplace.model import normalize

_UNKNOWN, _START, _END = "[UNK]", "[CLS]", "[SEP]"
_LONGEST = 100  # characters of a word; a longer one counts as unknown
_CACHED = 10_000  # characters; no text fills the memory with the million that there are
# Characters of writing systems without spaces between words: each is a word.
_IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B81F),
    (0x2B920, 0x2CEAF),  # the gap is in what the models were trained with
    (0x2F800, 0x2FA1F),
)


class WordPiece:
    def __init__(self, vocabulary: Path, most: int) -> None:
        """`vocabulary`: a file with a piece on each line; `most`: tokens of a text,
        including the first and the last, which mark its ends."""
        with vocabulary.open(encoding="utf-8") as lines:
            self._ids = {line.rstrip("\n"): number for number, line in enumerate(lines)}
        self._most = most - 2
        self._plain = _Plain()

    def tokens(self, text: str) -> list[int]:
        found: list[int] = []
        for word in normalize("NFD", text).translate(self._plain).split():
            number = self._ids.get(word)
            found += [number] if number is not None else self._pieces(word)
            if len(found) >= self._most:
                break
        return [self._ids[_START], *found[: self._most], self._ids[_END]]

    def _pieces(self, word: str) -> list[int]:
        """Return the longest known beginning, then the longest known continuation, and so on."""
        found: list[int] = []
        start, end = 0, len(word) if len(word) <= _LONGEST else 0
        while start < end:
            number = self._ids.get(f"##{word[start:end]}" if start else word[:end])
            if number is None:
                end -= 1
            else:
                found.append(number)
                start, end = end, len(word)
        return found if found and start == len(word) else [self._ids[_UNKNOWN]]


class _Plain(dict[int, str]):
    """A translation table, filled on demand: lower case, no accents, punctuation apart."""

    def __missing__(self, code: int) -> str:
        character, kind = chr(code), unicodedata.category(chr(code))
        if kind[0] == "Z" or character in "\t\n\r":
            plain = " "
        elif kind in ("Mn", "Cc", "Cf", "Co", "Cs") or character == "\ufffd":
            plain = ""
        elif (
            kind[0] == "P"
            or (0x21 <= code <= 0x7E and not character.isalnum())  # ASCII's other signs
            or any(a <= code <= z for a, z in _IDEOGRAPHS)
        ):
            plain = f" {character} "
        else:
            plain = character.lower()
        if len(self) < _CACHED:
            self[code] = plain
        return plain
