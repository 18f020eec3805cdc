"""The words of a page with their places, as pdfium finds them, and the links around them."""

import ctypes
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import atan2, hypot, pi

import pypdfium2 as pdfium
import pypdfium2.raw as raw

_LINES = re.compile(r"[^\r\n\x02\ufffe]+[\x02\ufffe]?")
_WORDS = re.compile(
    r"[^ \t\xa0\u1680\u2000-\u200b\u2028\u2029\u202f\u205f\u3000\ufeff\x00\x02\ufffe]+"
    r"[\x02\ufffe]?"
)
_SIGNS = str.maketrans(
    {"\x02": "\u00ad", "\ufffe": "\u00ad", "\x88": "•"}
    | dict(zip("\ufb00\ufb01\ufb02\ufb03\ufb04", ("ff", "fi", "fl", "ffi", "ffl"), strict=True))
)
# The ligatures of TeX's fonts that do not say what they are; the same in others are no letters.
_LIGATURES = str.maketrans(
    dict(zip("\x0b\x0c\x0e\x0f", ("ff", "fi", "ffi", "ffl"), strict=True))
    | dict(zip("\x1b\x1c\x1d\x1e\x1f", ("ff", "fi", "fl", "ffi", "ffl"), strict=True))
)
_BOLD = re.compile(r"bold|black|heavy|demi|medi$|cmb|sfb|ssbx|bx\d", re.I)
_MONO = re.compile(r"mono|courier|cmtt|cmsltt|sftt|lmtt|consol|menlo|typewriter|inconsola", re.I)
_FIXED_PITCH, _FORCE_BOLD = 1, 1 << 18
_LINKS = 500  # on one page
_LONGEST_ADDRESS = 2000


@dataclass(slots=True)
class Word:
    text: str
    x0: float
    top: float  # from the upper edge of the page as it is shown
    x1: float
    bottom: float
    size: float  # of the font, in points
    bold: bool
    mono: bool
    base: float  # where the word stands: the same for all fonts of a line
    link: str = ""

    @property
    def middle(self) -> float:
        return self.base - 0.3 * self.size


Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class View:
    """How the coordinates of a page become those of the page as a reader holds it."""

    left: float
    low: float
    width: float
    height: float
    turns: int  # quarters by which text is turned against the coordinates

    @property
    def size(self) -> tuple[float, float]:
        across, along = self.width, self.height
        return (along, across) if self.turns % 2 else (across, along)

    def box(self, x0: float, y0: float, x1: float, y1: float) -> Box:
        x0, x1, y0, y1 = x0 - self.left, x1 - self.left, y0 - self.low, y1 - self.low
        match self.turns:
            case 1:
                return y0, x0, y1, x1
            case 2:
                return self.width - x1, y0, self.width - x0, y1
            case 3:
                return self.height - y1, self.width - x1, self.height - y0, self.width - x0
            case _:
                return x0, self.height - y1, x1, self.height - y0


def read_words(page: pdfium.PdfPage) -> tuple[View, list[list[Word]], list[str]]:
    """Return the lines of a page as words, and the lines that run in another direction."""
    reader = _TextReader(page)
    lines = [(turns, words) for turns, words in reader.lines() if words]
    seen = Counter({0: 0})
    for turns, words in lines:
        seen[turns] += sum(len(word.text) for word in words)
    left, low, right, high = page.get_bbox()
    view = View(left, low, right - left, high - low, seen.most_common(1)[0][0])
    width, height = view.size
    upright, others = [], []
    for turns, words in lines:
        if turns != view.turns:
            others.append(" ".join(word.text for word in words))
            continue
        for word in words:
            word.base = view.box(word.base, word.base, word.base, word.base)[1]
            word.x0, word.top, word.x1, word.bottom = view.box(
                word.x0, word.top, word.x1, word.bottom
            )
        inside = [w for w in words if -2 <= w.middle <= height + 2 and w.x1 > -2 < width + 2 - w.x0]
        if inside:
            upright.append(inside)
    _mark_fixed_pitch(upright, reader.pitches)
    _add_links(page, view, upright)
    return view, upright, others


class _TextReader:
    def __init__(self, page: pdfium.PdfPage) -> None:
        self._text_page = page.get_textpage()
        self._box, self._matrix = raw.FS_RECTF(), raw.FS_MATRIX()
        self._flags, self._name = ctypes.c_int(), ctypes.create_string_buffer(100)
        self._fonts: dict[tuple[bytes, int], tuple[bool, bool]] = {}
        self._x, self._y = ctypes.c_double(), ctypes.c_double()
        self.pitches: dict[int, int] = {}  # of words in fonts without a name

    def lines(self) -> Iterator[tuple[int, list[Word]]]:
        handle, count = self._text_page.raw, self._text_page.count_chars()
        text = self._text_page.get_text_range(0, count) if count > 0 else ""
        if len(text) != count:  # characters that are none, or take two units
            text = "".join(chr(raw.FPDFText_GetUnicode(handle, at) or 32) for at in range(count))
        for line in _LINES.finditer(text):
            turned: Counter[int] = Counter()
            words = []
            for found in _WORDS.finditer(text, line.start(), line.end()):
                turns, word = self._word(found.start(), found.end() - 1, found[0])
                turned[turns] += 1
                words.append(word)
            if words:
                yield turned.most_common(1)[0][0], words

    def _word(self, first: int, last: int, text: str) -> tuple[int, Word]:
        handle, box, matrix = self._text_page.raw, self._box, self._matrix
        raw.FPDFText_GetLooseCharBox(handle, first, box)
        x0, y0, x1, y1 = box.left, box.bottom, box.right, box.top
        if last > first:
            raw.FPDFText_GetLooseCharBox(handle, last, box)
            if box.right > box.left:
                x0, x1 = min(x0, box.left), max(x1, box.right)
                y0, y1 = min(y0, box.bottom), max(y1, box.top)
        raw.FPDFText_GetMatrix(handle, first, matrix)
        turns = round(atan2(matrix.b, matrix.a) / (pi / 2)) % 4
        size = raw.FPDFText_GetFontSize(handle, first) * hypot(matrix.c, matrix.d)
        bold, mono = self._font(first)
        base = matrix.e if turns % 2 else matrix.f
        text = text.translate(_SIGNS)
        if any("a" <= char <= "z" for char in text):
            text = text.translate(_LIGATURES)
        word = Word(text, x0, y0, x1, y1, size, bold, mono, base)
        if not self._name.value and last > first:
            away = hypot(*(b - a for a, b in zip(self._at(first), self._at(last), strict=True)))
            self.pitches[id(word)] = round(200 * away / (last - first) / max(size, 0.1))
        return turns, word

    def _at(self, char: int) -> tuple[float, float]:
        raw.FPDFText_GetCharOrigin(self._text_page.raw, char, self._x, self._y)
        return self._x.value, self._y.value

    def _font(self, at: int) -> tuple[bool, bool]:
        raw.FPDFText_GetFontInfo(self._text_page.raw, at, self._name, 100, self._flags)
        key = (self._name.value, self._flags.value)
        if key not in self._fonts:
            name = key[0].decode("utf-8", "replace").partition("+")[2] or key[0].decode(
                "utf-8", "replace"
            )
            self._fonts[key] = (
                bool(_BOLD.search(name) or key[1] & _FORCE_BOLD),
                bool(_MONO.search(name) or key[1] & _FIXED_PITCH),
            )
        return self._fonts[key]


def _mark_fixed_pitch(lines: list[list[Word]], pitches: dict[int, int]) -> None:
    """Tell the lines in a typewriter's font without a name by the distance of their letters."""
    usual, times = Counter(pitches.values()).most_common(1)[0] if pitches else (0, 0)
    if times < max(10, 0.1 * len(pitches)):
        return
    for line in lines:
        known = [pitches[id(word)] for word in line if id(word) in pitches]
        if known and sum(abs(pitch - usual) <= 1 for pitch in known) > 0.7 * len(known):
            for word in line:
                word.mono = True


def _add_links(page: pdfium.PdfPage, view: View, lines: list[list[Word]]) -> None:
    links = list(_links(page, view))
    if not links:
        return
    for word in (word for line in lines for word in line):
        middle, across = word.middle, (word.x0 + word.x1) / 2
        for address, (x0, top, x1, bottom) in links:
            if x0 <= across <= x1 and top <= middle <= bottom:
                word.link = address
                break


def _links(page: pdfium.PdfPage, view: View) -> Iterator[tuple[str, Box]]:
    document, link, box = page.pdf.raw, raw.FPDF_LINK(), raw.FS_RECTF()
    place = ctypes.c_int(0)
    for _ in range(_LINKS):
        if not raw.FPDFLink_Enumerate(page.raw, place, link):
            return
        action = raw.FPDFLink_GetAction(link)
        if not action or raw.FPDFAction_GetType(action) != raw.PDFACTION_URI:
            continue
        length = raw.FPDFAction_GetURIPath(document, action, None, 0)
        if not 0 < length <= _LONGEST_ADDRESS or not raw.FPDFLink_GetAnnotRect(link, box):
            continue
        buffer = ctypes.create_string_buffer(length)
        raw.FPDFAction_GetURIPath(document, action, buffer, length)
        address = buffer.value.decode("utf-8", "replace").strip()
        if address.startswith(("http://", "https://", "mailto:")):
            low, high = sorted((box.bottom, box.top))
            left, right = sorted((box.left, box.right))
            yield address, view.box(left, low, right, high)
