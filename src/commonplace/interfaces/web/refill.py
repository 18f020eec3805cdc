"""The page of a refused form again: with what was sent, and the error at its field.

The page is rendered first and its form filled afterwards, so that no template has to know about
refusals. Only tags of controls are rewritten: our templates quote every attribute, and escape `<`
and `>` in them. Whatever else a page contains is copied as it is.
"""

import re
from collections.abc import Iterator
from html import escape, unescape
from urllib.parse import urljoin

from starlette.datastructures import FormData

PAGE = "_page"  # the field of a refilled form that says which page it is on
_FORM = re.compile(r"<form\b([^<>]*)>")
_CONTROL = re.compile(r"<(input|select|option|textarea)\b([^<>]*)>([^<]*)")
_AFTER_FIELD = re.compile(r"</label>|</form>|<label\b|<button\b")
_DETAILS = re.compile(r"<(/?)details\b([^<>]*)>")
_ATTRIBUTE = re.compile(r'([a-z-]+)(?:="([^"]*)")?')
_ERROR = '<small class="failed" id="failed" role="alert">{}</small>'


class _Control:
    """The tag of an input, select, option or textarea, and the text behind it."""

    def __init__(self, found: re.Match[str]) -> None:
        self.tag, self.text, self.start, self.end = found[1], found[3], found.start(), found.end()
        pairs = ((each[1], unescape(each[2] or "")) for each in _ATTRIBUTE.finditer(found[2]))
        self.attributes = {name: value for name, value in pairs if name != "autofocus"}
        self.name = self.attributes.get("name", "")
        self.kind = self.attributes.get("type", self.tag)

    @property
    def is_field(self) -> bool:
        """Whether somebody fills it in."""
        unseen = self.kind in ("hidden", "file", "option") or "hidden" in self.attributes
        return bool(self.name) and not unseen

    def filled(self, sent: list[str], *, wrong: bool) -> str:
        """Return it with what was sent under its name, or under that of its select."""
        has, text = self.attributes, self.text
        if self.kind in ("checkbox", "radio", "option"):
            mark = "selected" if self.tag == "option" else "checked"
            has.pop(mark, None)
            if has.get("value", text.strip() if self.tag == "option" else "on") in sent:
                has[mark] = ""
        elif self.tag == "textarea":
            text = "\n" + escape("".join(sent[:1]))
        elif self.kind not in ("select", "password"):
            has["value"] = "".join(sent[:1])
        if wrong:
            told = f"{has.get('aria-describedby', '')} failed".strip()
            has |= {"autofocus": "", "aria-invalid": "true", "aria-describedby": told}
        said = "".join(f' {name}="{escape(value)}"' for name, value in has.items())
        return f"<{self.tag}{said}>{text}"


def refill(
    page: bytes | memoryview, address: str, action: str, sent: FormData, message: str, field: str
) -> bytes:
    """Return a page with its form to `action` as it was sent; nothing if it has none with fields.

    `address`: of the page, which forms without an action are sent to. `field`: that was wrong.
    """
    html = bytes(page).decode()
    known = [each for each in _forms(html, address, action) if any(one.is_field for one in each[1])]
    if not known:
        return b""
    # Of several forms to one address, the one with the hidden values that were sent.
    start, controls = min(known, key=lambda form: sum(_differs(one, sent) for one in form[1]))
    fields = [each for each in controls if each.is_field]
    typed = [each for each in fields if each.kind not in ("checkbox", "radio")]
    wrong = next(iter([each for each in fields if each.name == field] or typed or fields))
    edits, select = list[tuple[int, int, str]](), ""
    for each in controls:
        select = each.name if each.tag == "select" else select
        if each.is_field or each.tag == "option":
            values = [str(value) for value in sent.getlist(each.name or select)]
            edits.append((each.start, each.end, each.filled(values, wrong=each is wrong)))
    after = _AFTER_FIELD.search(html, wrong.end)
    place = after.end() if after and after[0] == "</label>" else after.start() if after else start
    edits += (
        (start, start, f'<input type="hidden" name="{PAGE}" value="{escape(address)}">'),
        (place, place, _ERROR.format(escape(message))),
        *_folded(html, place),
    )
    parts, at = list[str](), 0
    for begin, end, text in sorted(edits):
        parts += (html[at:begin], text)
        at = end
    return "".join([*parts, html[at:]]).encode()


def _differs(control: _Control, sent: FormData) -> bool:
    fixed = control.kind == "hidden" and control.name != "csrf"
    return fixed and control.attributes.get("value", "") not in sent.getlist(control.name)


def _forms(html: str, address: str, action: str) -> Iterator[tuple[int, list[_Control]]]:
    """Yield the forms to an address: where each starts, and its controls."""
    for form in _FORM.finditer(html):
        has = {each[1]: unescape(each[2] or "") for each in _ATTRIBUTE.finditer(form[1])}
        if has.get("method") != "post" or urljoin(address, has.get("action", "")) != action:
            continue
        start, end = form.end(), html.index("</form>", form.end())
        controls = [_Control(each) for each in _CONTROL.finditer(html, start, end)]
        if "id" in has:  # controls elsewhere may belong to it
            others = [_Control(each) for each in _CONTROL.finditer(html)]
            controls += [each for each in others if each.attributes.get("form") == has["id"]]
        yield start, controls


def _folded(html: str, place: int) -> Iterator[tuple[int, int, str]]:
    """Open what is folded around a place."""
    around = list[re.Match[str]]()
    for each in _DETAILS.finditer(html, 0, place):
        if not each[1]:
            around.append(each)
        elif around:
            around.pop()
    for each in around:
        if "open" not in each[2].split():
            yield each.start(), each.end(), f"<details open{each[2]}>"
