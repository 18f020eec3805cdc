"""Personal data and secrets in texts that others will see: found by their form and check digits, and named instead."""

import re
from collections.abc import Callable
from typing import NamedTuple

EMAIL, PHONE, KEY, CARD, IBAN, SECRET = "[email]", "[phone]", "[key]", "[card]", "[iban]", "[secret]"

# What services put in front of their keys, so that scanners find them.
_PREFIXES = r"""(?:sk|pk|rk)_(?:live|test)_|sk_|sk-(?:ant-|proj-)?|gh[pousr]_|github_pat_|glpat-|xox[abprs]-|xapp-|AKIA|
    ASIA|AIza|ya29\.|1//0|hf_|npm_|pypi-|SG\.|key-|dop_v1_|shpat_|whsec_|EAAC|sq0[a-z]{3}-|AGE-SECRET-KEY-|lin_api_|r8_|tvly-|gsk_|pplx-|nvapi-"""
_NAMES = r"""pass(?:word|wd|phrase|code)?|pwd|secret|token|api[ _-]?key|access[ _-]?key|private[ _-]?key|client[ _-]?secret|
    credentials?|auth|bearer|pin|passwort|kennwort|contraseña|mot\ de\ passe"""


class _Rule(NamedTuple):
    name: str
    pattern: re.Pattern[str]
    holds: Callable[[str], bool]


def _digits(text: str) -> str:
    return "".join(character for character in text if character.isdecimal())


def _luhn(text: str) -> bool:
    digits = [int(digit) for digit in _digits(text)]
    if not 13 <= len(digits) <= 19 or len(set(digits)) == 1:
        return False
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _mod97(text: str) -> bool:
    plain = "".join(text.split()).upper()
    if not 15 <= len(plain) <= 34:
        return False
    return int("".join(str(int(character, 36)) for character in plain[4:] + plain[:4])) % 97 == 1


def _can_be_called(text: str) -> bool:
    """As many digits as a telephone number has, and not written as a date is."""
    return 7 <= len(_digits(text)) <= 15 and not _DATE.fullmatch(text.strip())


def _opaque(text: str) -> bool:
    """Letters and digits as no word mixes them: long, and changing between the two all the time, or of hex digits only."""
    plain = re.sub(r"[^0-9A-Za-z]", "", text)
    changes = len(re.findall(r"(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])", text))  # not across a hyphen: `top-10-tips`
    if re.fullmatch(r"[0-9a-f]{24,}|[0-9A-F]{24,}", plain):
        return changes > 2
    return changes >= 4 or (changes >= 2 and len(plain) >= 20 and not plain.isupper() and not plain.islower())


def _always(text: str) -> bool:
    return True


_DATE = re.compile(r"(?:\d{4}[-./]\d{1,2}[-./]\d{1,2}|\d{1,2}[-./]\d{1,2}[-./]\d{2,4}|(?:19|20)\d{2}\s?[-–]\s?(?:19|20)\d{2})"
                   r"(?:[ T]\d.*)?")
_RULES = tuple(_Rule(name, re.compile(pattern, re.VERBOSE | re.IGNORECASE if name == SECRET else re.VERBOSE), holds)
               for name, pattern, holds in (
    (KEY, r"-----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----(?:.*?-----END[ ][A-Z ]*PRIVATE[ ]KEY-----|.*)", _always),
    (KEY, r"\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?", _always),
    (KEY, rf"\b(?:{_PREFIXES})[\w./+=-]{{10,}}", _always),
    (SECRET, r"(?<=://)[^\s/@:]+:[^\s/@]+(?=@)", _always),
    (EMAIL, r"""(?<![\w.+-])[\w.!#$%&'*+/=?^`{|}~-]{0,63}[\w+-](?:@|[ ]?[\[(]at[\])][ ]?|[ ]AT[ ])
        [^\W_][\w-]*(?:(?:\.|[ ]?[\[(]dot[\])][ ]?|[ ]DOT[ ])[\w-]+)+""", _always),
    (SECRET, rf"""(?<![^\W_])(?:{_NAMES})\b["']?\s{{0,3}}(?:is|are|was|lautet|ist|es|est|=>|:=|[:=])\s{{0,3}}["'`]?
        (?!(?:not|never|a|an|the|required|missing|invalid|expired|needed|optional|wrong|good|set|stored|kept|sent|used|shared|safe|hashed|
        \w+ed)\b)[^\s"'`,;]{{4,}}""", _always),
    (SECRET, rf"""(?<![^\W_])(?:{_NAMES})[ ](?=[^\s"'`,;]*\d)(?=[^\s"'`,;]*[^\W\d])[^\s"'`,;]{{6,}}""", _always),
    (IBAN, r"\b[A-Z]{2}\d{2}(?:[ ]?[0-9A-Z]{4}){2,7}(?:[ ]?[0-9A-Z]{1,4})?\b", _mod97),
    (CARD, r"(?<![\d.-])[2-6]\d{3}(?:[ -]?\d{4}){2}(?:[ -]?\d{1,7})\b|(?<![\d.-])3[47]\d{2}[ -]?\d{6}[ -]?\d{5}\b|"
           r"(?<![\d.-])3[068]\d{2}[ -]?\d{6}[ -]?\d{4}\b", _luhn),
    (PHONE, r"""(?<![\w.+])(?:\+|00)[1-9]\d{0,2}[ ./-]?(?:\(0?\d{1,4}\)[ ./-]?)?\d{1,4}(?:[ ./-]?\d{2,4}){1,5}(?!\w)""",
     _can_be_called),
    (PHONE, r"(?<![\w.-])(?:1[ .-])?(?:[2-9]\d{2}[ .-]|\([2-9]\d{2}\)[ .-]?)\d{3}[ .-]\d{4}(?![\w-]|\.\d)", _can_be_called),
    (PHONE, r"(?<![\w.,/-])(?:\(?0\d{1,4}\)?|\(0\)\d{2,4})(?:[ /-]\d{2,8}){1,4}(?![\w]|[.,:]\d)", _can_be_called),
    (PHONE, r"(?<![\w.,/-])0[1-9]\d{8,9}(?![\w]|[.,:]\d)", _can_be_called),
    (SECRET, r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])", _always),
    (KEY, r"(?<![\w/.-])(?=[\w+=-]*\d)(?=[\w+=-]*[A-Za-z])[A-Za-z0-9][\w+=-]{14,}", _opaque),
))


def masked(text: str) -> str:
    for name, pattern, holds in _RULES:
        text = pattern.sub(lambda found, name=name, holds=holds: name if holds(found[0]) else found[0], text)  # type: ignore[misc]
    return text
