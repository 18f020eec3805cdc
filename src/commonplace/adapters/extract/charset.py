"""Decode bytes to text, even when the declared charset is wrong."""

import codecs
import re
from contextlib import suppress

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_META = re.compile(
    rb"""<meta[^<>]{0,200}charset\s{0,9}=\s{0,9}["']?\s{0,9}([\w.:-]{1,40})|"""
    rb"""<\?xml[^<>]{0,100}encoding\s{0,9}=\s{0,9}["']([\w.:-]{1,40})""",
    re.I,
)
# Browsers read these names as their supersets, and pages rely on it.
_SUPERSETS = {
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
}
_CONTROL = frozenset(range(32)) - frozenset(b"\t\n\v\f\r\x1b")


def decode(data: bytes, declared: str | None = None, *, markup: bool = False) -> str:
    """Decode by byte order mark, as UTF-8, as declared, or by statistics, in this order.

    `declared` is the sender's charset; with `markup`, the text may declare one itself.
    """
    for bom, name in _BOMS:
        if data.startswith(bom):
            return data.decode(name, "replace")
    if _codec_name(declared) not in ("utf-16", "utf-16-le", "utf-16-be", "utf-32"):
        with suppress(UnicodeDecodeError):
            # A character that is cut off at the end is ignored.
            return codecs.getincrementaldecoder("utf-8")().decode(data)
    within = _META.search(data[:4096]) if markup else None
    names = [declared, (within[1] or within[2]).decode("ascii") if within else None]
    for known in filter(None, map(_codec_name, names)):
        try:
            return data.decode(known)
        except (UnicodeError, LookupError):  # LookupError: "zip" is a codec, but not for text
            continue
    from charset_normalizer import from_bytes  # most texts are UTF-8

    best = from_bytes(data[: 64 * 1024]).best()
    return data.decode(best.encoding if best is not None else "cp1252", "replace")


def looks_like_text(head: bytes) -> bool:
    return (
        head.startswith(tuple(bom for bom, _ in _BOMS))
        or sum(byte in _CONTROL for byte in head) <= len(head) // 100
    )


def _codec_name(name: str | None) -> str | None:
    try:
        known = codecs.lookup(name or "").name
    except (LookupError, ValueError):
        return None
    return _SUPERSETS.get(known, known)
