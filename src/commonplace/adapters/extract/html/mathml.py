"""Formulas: the TeX that MathML carries, else TeX made from its elements."""

from lxml.html import HtmlElement

_LONGEST = 2000  # characters
_STYLES = ("displaystyle", "textstyle", "scriptstyle")
_SIGNS = {
    "∑": r"\sum", "∏": r"\prod", "∫": r"\int", "∞": r"\infty", "≤": r"\le", "≥": r"\ge",
    "≠": r"\ne", "≈": r"\approx", "±": r"\pm", "×": r"\times", "⋅": r"\cdot", "·": r"\cdot",
    "÷": r"\div", "→": r"\to", "⇒": r"\Rightarrow", "∈": r"\in", "∉": r"\notin", "⊂": r"\subset",
    "∪": r"\cup", "∩": r"\cap", "∀": r"\forall", "∃": r"\exists", "∂": r"\partial",
    "∇": r"\nabla", "√": r"\sqrt", "…": r"\dots", "⋯": r"\cdots", "−": "-", "′": "'",
    "\u2061": "", "\u2062": "", "\u2063": ",", "\u2064": "", "&": r"\&", "%": r"\%", "#": r"\#",
    "{": r"\{", "}": r"\}",
    "α": r"\alpha", "β": r"\beta", "γ": r"\gamma", "δ": r"\delta", "ε": r"\epsilon",
    "ζ": r"\zeta", "η": r"\eta", "θ": r"\theta", "ι": r"\iota", "κ": r"\kappa", "λ": r"\lambda",
    "μ": r"\mu", "ν": r"\nu", "ξ": r"\xi", "π": r"\pi", "ρ": r"\rho", "σ": r"\sigma",
    "τ": r"\tau", "φ": r"\phi", "χ": r"\chi", "ψ": r"\psi", "ω": r"\omega", "Γ": r"\Gamma",
    "Δ": r"\Delta", "Θ": r"\Theta", "Λ": r"\Lambda", "Ξ": r"\Xi", "Π": r"\Pi", "Σ": r"\Sigma",
    "Φ": r"\Phi", "Ψ": r"\Psi", "Ω": r"\Omega",
}  # fmt: skip
_FUNCTIONS = {"sin", "cos", "tan", "log", "ln", "exp", "lim", "max", "min", "det", "arg", "sup"}
_OVER = {"¯": r"\bar", "‾": r"\bar", "^": r"\hat", "ˆ": r"\hat", "~": r"\tilde", "˜": r"\tilde",
         "→": r"\vec", "⃗": r"\vec", "˙": r"\dot", "¨": r"\ddot", "\u0302": r"\hat",
         "\u0303": r"\tilde", "\u0304": r"\bar", "\u0305": r"\bar", "\u0307": r"\dot",
         "\u0308": r"\ddot", "⏞": r"\overbrace"}  # fmt: skip


_FENCES = {"{": r"\{", "}": r"\}", "‖": r"\|", "⌊": r"\lfloor ", "⌋": r"\rfloor ",
           "⌈": r"\lceil ", "⌉": r"\rceil ", "⟨": r"\langle ", "⟩": r"\rangle "}  # fmt: skip


def tex(math: HtmlElement) -> str:
    """Return a formula as TeX in one line; "" if it is empty."""
    for note in math.iter("annotation"):
        if "tex" in (note.get("encoding") or "").lower() and (note.text or "").strip():
            return _clean(note.text or "")
    if (math.get("alttext") or "").strip():
        return _clean(math.get("alttext") or "")
    return _clean(_row(math))


def _clean(text: str) -> str:
    text = " ".join(text.split())
    for style in _STYLES:  # which Wikipedia puts around each formula
        if text.startswith("{\\" + style) and text.endswith("}"):
            text = text[len(style) + 2 : -1]
    return text.strip().strip("$")[:_LONGEST]


def _row(node: HtmlElement) -> str:
    parts = [_write(child) for child in node if isinstance(child.tag, str)]
    return " ".join(filter(None, parts)) if parts else _token(node)


def _token(node: HtmlElement) -> str:
    text = "".join((node.text or "").split()) if node.tag != "mtext" else (node.text or "")
    if node.tag == "mtext":
        return rf"\text{{{text.strip()}}}" if text.strip() else ""
    if text in _FUNCTIONS:
        return "\\" + text
    if node.tag == "mi" and len(text) > 1 and text.isalpha() and text.isascii():
        return rf"\mathrm{{{text}}}"
    return "".join(
        sign + " " if sign.startswith("\\") and sign[1:].isalpha() else sign
        for sign in (_SIGNS.get(letter, letter) for letter in text)
    ).strip()


def _write(node: HtmlElement) -> str:
    tag = node.tag.rpartition(":")[2] if isinstance(node.tag, str) else ""
    parts = [child for child in node if isinstance(child.tag, str)]
    if tag in ("annotation", "annotation-xml", "mphantom", "mspace"):
        return ""
    if tag == "semantics":
        return _write(parts[0]) if parts else ""
    pattern, count = _PATTERNS.get(tag, ("", 0))
    if count and len(parts) == count:
        values = [_write(part) for part in parts]
        if tag == "mover" and values[1] in _OVER:
            return rf"{_OVER[values[1]]}{{{values[0]}}}"
        base = values[0] if len(values[0]) < 2 or values[0].startswith("\\") else f"{{{values[0]}}}"
        return pattern.format(
            base if "{0}" in pattern and count > 1 and tag in _SCRIPTS else values[0], *values[1:]
        )
    if tag == "msqrt":
        return rf"\sqrt{{{_row(node)}}}"
    if tag == "mfenced":
        inner = (", " if not node.get("separators") else node.get("separators") or "").join(
            map(_write, parts)
        )
        start, end = node.get("open", "("), node.get("close", ")")
        return f"{_FENCES.get(start, start)}{inner}{_FENCES.get(end, end)}"
    if tag == "mtable":
        rows = [" & ".join(map(_write, row)) for row in parts]
        return r"\begin{matrix}" + r" \\ ".join(rows) + r"\end{matrix}"
    return _row(node)


_SCRIPTS = {"msup", "msub", "msubsup", "munder", "mover", "munderover"}
_PATTERNS = {
    "mfrac": (r"\frac{{{0}}}{{{1}}}", 2),
    "msup": ("{0}^{{{1}}}", 2),
    "msub": ("{0}_{{{1}}}", 2),
    "msubsup": ("{0}_{{{1}}}^{{{2}}}", 3),
    "munder": ("{0}_{{{1}}}", 2),
    "mover": ("{0}^{{{1}}}", 2),
    "munderover": ("{0}_{{{1}}}^{{{2}}}", 3),
    "mroot": (r"\sqrt[{1}]{{{0}}}", 2),
}
