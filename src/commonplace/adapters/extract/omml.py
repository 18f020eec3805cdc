"""Formulas of Office documents: their OMML rewritten as MathML, and that as TeX."""

from collections.abc import Iterator
from unicodedata import normalize

from lxml import etree

from commonplace.adapters.extract.html import mathml

M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
# The element of MathML for each of OMML, and the parts of it in the order that MathML has them.
_SHAPES = {
    "f": ("mfrac", "num den"),
    "sSup": ("msup", "e sup"),
    "sSub": ("msub", "e sub"),
    "sSubSup": ("msubsup", "e sub sup"),
    "limLow": ("munder", "e lim"),
    "limUpp": ("mover", "e lim"),
    "func": ("mrow", "fName e"),
}
_ITALIC = range(0x1D400, 0x1D800)  # letters in the styles of mathematics, which TeX does not need


def formulas(root: etree._Element) -> list[etree._Element]:
    return list(root.iter(M + "oMath"))


def tex(formula: etree._Element) -> str:
    """Return a formula (`m:oMath`) as TeX in one line; "" if it is empty."""
    return mathml.tex(_row(formula))


def _row(node: etree._Element | None, tag: str = "mrow") -> etree._Element:
    row = etree.Element(tag)
    row.extend(shape for child in (() if node is None else node) for shape in _shapes(child))
    return row


def _shapes(node: etree._Element) -> Iterator[etree._Element]:
    """Yield what stands for an element of OMML: nothing for its properties."""
    name = etree.QName(node).localname
    if name in _SHAPES:
        tag, parts = _SHAPES[name]
        yield _join(tag, *(_row(node.find(M + part)) for part in parts.split()))
    elif name == "r":
        yield _token(node)
    elif name == "nary":
        yield from _operator(node)
    elif name == "rad":
        degree = _row(node.find(M + "deg"))
        root = _row(node.find(M + "e"))
        yield _join("mroot", root, degree) if len(degree) else _join("msqrt", root)
    elif name == "d":
        inner = [_row(part) for part in node.iterchildren(M + "e")]
        fence = _join("mfenced", *inner)
        fence.set("open", _property(node, "begChr", "("))
        fence.set("close", _property(node, "endChr", ")"))
        fence.set("separators", _property(node, "sepChr", "|"))
        yield fence
    elif name in ("m", "eqArr"):
        rows = node.iterchildren(M + "mr") if name == "m" else node.iterchildren(M + "e")
        yield _join("mtable", *(_cells(row) for row in rows))
    elif name in ("acc", "bar"):
        sign = _property(node, "chr", "\u0302") if name == "acc" else "¯"
        yield _join("mover", _row(node.find(M + "e")), _text("mo", sign))
    elif not name.endswith("Pr"):
        yield _row(node)


def _operator(node: etree._Element) -> Iterator[etree._Element]:
    """Yield a sum or an integral with its limits, and what it is over."""
    limits = {name: _row(node.find(M + name)) for name in ("sub", "sup")}
    given = [name for name, limit in limits.items() if len(limit)]
    sign = _text("mo", _property(node, "chr", "∫"))
    if given:
        sign = _join("m" + "".join(given), sign, *(limits[name] for name in given))
    yield sign
    yield _row(node.find(M + "e"))


def _cells(row: etree._Element) -> etree._Element:
    cells = [_row(cell) for cell in row.iterchildren(M + "e")]
    return _join("mtr", *(cells or [_row(row)]))


def _token(run: etree._Element) -> etree._Element:
    text = "".join(map(_plain, "".join(node.text or "" for node in run.iter(M + "t"))))
    if run.find(f"{M}rPr/{M}nor") is not None:
        return _text("mtext", text)
    style = run.find(f"{M}rPr/{M}sty")
    upright = style is not None and style.get(M + "val") in ("p", "b")
    return _text("mi" if upright else "mo", text)


def _plain(letter: str) -> str:
    return normalize("NFKC", letter) if ord(letter) in _ITALIC else letter


def _property(node: etree._Element, name: str, default: str) -> str:
    """Return a property's sign; "" if it is stated to be none."""
    found = node.find(f"{M}{etree.QName(node).localname}Pr/{M}{name}")
    return default if found is None else found.get(M + "val", "")


def _join(tag: str, *parts: etree._Element) -> etree._Element:
    element = etree.Element(tag)
    element.extend(parts)
    return element


def _text(tag: str, text: str) -> etree._Element:
    element = etree.Element(tag)
    element.text = text
    return element
