"""Mask personal data and secrets in texts for others, found by form and check digits."""

import re
from collections.abc import Callable
from itertools import pairwise
from urllib.parse import unquote

from commonplace.text.key_formats import KEY as FORMS, VALUE, is_behind_name
from commonplace.text.placeholders import NUMBERS, SAID, TYPES, WORDS, is_code, is_placeholder

Found = re.Match[str]
EMAIL, PHONE, KEY, CARD, IBAN, SECRET = (
    "[email]",
    "[phone]",
    "[key]",
    "[card]",
    "[iban]",
    "[secret]",
)

_PASSWORDS = r"""passwort|kennwort|contraseña|mot\ de\ passe|pass(?:word|wd|phrase|code)?|pwd|pin"""
_NAMES = rf"""{_PASSWORDS}|secret|token|api[ _-]?key|access[ _-]?key|private[ _-]?key|
    client[ _-]?secret|credentials?|authorization|auth|bearer"""
_IS_PASSWORD = re.compile(_PASSWORDS, re.VERBOSE | re.IGNORECASE)

# Private keys: PEM of every kind, OpenSSH, PGP, SSH2. Without a last line, the body ends it.
_KEY_BEGINS = re.compile(
    r"-{4,5} ?BEGIN[A-Z0-9 _-]{0,100}PRIVATE KEY(?: BLOCK)? ?-{4,5}", re.IGNORECASE
)
_KEY_ENDS = re.compile(r"KEY(?: BLOCK)? ?-{4,5}", re.IGNORECASE)
_KEY_SHOWN = frozenset(" \r\n\t\\nxX.…*")  # in place of a key
_KEY_BODY = re.compile(
    r"""(?>(?:[\s>|#*,"']|\\[nr])++"""
    r"""(?:[A-Za-z0-9+/=]{16,}+|[A-Za-z0-9+/=]{1,15}+(?=\r?\n|[\\"']|\Z)|"""
    r"(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|MessageID): [^\n]*+))*+"
)


def _digits(text: str) -> str:
    return "".join(character for character in text if character.isdecimal())


def _luhn(found: Found) -> bool:
    digits = [int(digit) for digit in _digits(found[0])]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    is_valid = (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0
    return is_valid and 13 <= len(digits) <= 19 and len(set(digits)) > 1


def _mod97(found: Found) -> bool:
    plain = "".join(found[0].split()).upper()
    return (
        15 <= len(plain) <= 34
        and int("".join(str(int(character, 36)) for character in plain[4:] + plain[:4])) % 97 == 1
    )


def _can_be_called(found: Found) -> bool:
    """As many digits as a telephone number has, not counted up or binary, and no date."""
    digits = _digits(found[0])
    return (
        7 <= len(digits) <= 15
        and found[0] not in "01234567890"
        and not {*digits} <= {*"01"}
        and not _DATE.fullmatch(found[0].strip())
    )


_MEETS = re.compile(r"(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])")
_RISES = re.compile(r"(?<=[a-z])(?=[A-Z])")
_HEX = re.compile(r"(?:0x)?[0-9a-f-]+", re.IGNORECASE)
_IDENTIFIER = re.compile(r"GHSA-.*|xn--.*|[a-z]+_[0-9A-Za-z]{12}")  # advisory, domain, our own
_WORDS = re.compile(r"[^\W\d]+(?:-[^\W\d]+)*")


def _changes(text: str) -> int:
    """Count where letters and digits meet, but not across a hyphen: `top-10-tips`."""
    return len(_MEETS.findall(text))


def _is_opaque(found: Found) -> bool:
    """Return whether letters and digits are mixed as in no word, name or digest."""
    text = found["only"]
    return (
        text is not None
        and (changes := _changes(text)) >= 3
        and (changes := changes + len(_RISES.findall(text))) >= 5
        and 3 * changes >= sum(map(str.isalpha, text))
        and not _HEX.fullmatch(text)
        and not _IDENTIFIER.fullmatch(text)
        and not is_placeholder(text)
    )


def _is_login(found: Found) -> bool:
    """Return whether `user:password` is none that everybody knows, or that shows the form."""
    user, password = unquote(found["user"]), unquote(found["password"]).strip("[]<>{}$")
    known = user == password or password.lower() in WORDS
    return not known and not is_placeholder(user) and not is_placeholder(password)


def _is_login_of_curl(found: Found) -> bool:
    before = found.string[max(0, found.start() - 300) : found.start()]
    return "curl" in before.lower() and _is_login(found)


def _is_key(found: Found) -> bool:
    """Return whether what has the form of a service's key is none that only shows the form."""
    key = found[0]
    plain = key.isalpha() and (key.islower() or key.isupper() or key.istitle())
    return not plain and not is_placeholder(key)


def _is_assigned(found: Found) -> bool:
    """Return whether a value behind a name is a secret, and neither prose nor code."""
    name, value = found["name"].lower(), found["value"].rstrip(".)]}>*|\\")
    if len(value) < 4 or value.endswith(":") or "://" in value:
        return False
    if is_placeholder(found["value"]) or is_placeholder(value):
        return False
    is_password = _IS_PASSWORD.match(name) is not None
    if NUMBERS.fullmatch(value):
        return is_password and not found["more"] and value.isdecimal()
    before = found.string[found.start("value") - 1]
    quote = before if before in "\"'`" else ""
    if not quote and is_code(found["value"]) and _changes(value) < 3:
        return False
    # `dbPassword`, `token_of_build`, `<token>`: such names stand for much else.
    if (
        found["more"]
        or found["is"] == ">"
        or found.string[max(0, found.start() - 1) : found.start()].isalnum()
    ):
        return _changes(value) > 1 and len(value) >= 8
    in_words = found["is"][0].isalpha()
    if not _WORDS.fullmatch(value):
        return not in_words or is_password or _changes(value) > 0
    if value.lower() in TYPES or name in value.lower():
        return False
    if quote:
        return found["after"] == quote
    # Of passes and pins much is said.
    said = (is_password and name not in ("pass", "pin")) or name.endswith("key")
    written = before == "=" or not found["after"]  # PASSWORD=word, or nothing behind it
    return said if in_words else written and name != "pin"


def _is_mixed(found: Found) -> bool:
    value = found["value"]
    return (
        _changes(value) > 0
        and not NUMBERS.fullmatch(value)
        and not is_placeholder(value)
        and not is_code(value)
    )


_DATE = re.compile(
    r"(?:\d{4}[-./]\d{1,2}[-./]\d{1,2}|\d{1,2}[-./]\d{1,2}[-./]\d{2,4}|(?:19|20)"
    r"\d{2}\s?[-–]\s?(?:19|20)\d{2})"
    r"(?:[ T]\d.*)?"
)
_LOCAL_PART = re.compile(r"(?<![\w.+-])[\w.!#$%&'*+/=?^`{|}~-]{1,64}(?<=[\w+-])\Z")
_IN_URL = r"(?<=/)(?<=://)(?P<user>[^\s/@:]+):(?P<password>[^\s/@]+)(?=@)"
_CURL = r"""(?<![\w-])(?:-u|--user)(?:=|[ \t]{0,5})["']?
    (?P<only>(?P<user>[^\s:"'$<]{0,100}):(?P<password>[^\s"'$<]{3,}+))"""
_ASSIGNED = rf"""(?<![?&])(?P<name>{_NAMES})(?P<more>[\w.-]{{0,20}})["'\]]{{0,2}}
    [ \t]{{0,100}}(?:\bvalue)?
    (?P<is>\b(?:is|are|was|lautet|ist|es|est)\b|=>|:=|\?=|>|[:=](?!:))[ \t]{{0,100}}
    (?:(?:basic|bearer|token)[ ])?["'`=]{{0,6}}
    (?!(?:{_NAMES})["']?\s{{0,3}}[:=])(?!(?:{SAID})\b(?![^\s.,;]))
    (?P<value>[^\s"'`,;]{{4,}})(?P<after>["'`]|[ ][^\W\d]+)?"""
_IN_ADDRESS = rf"(?<=[?&])(?:{_NAMES}|key|sig|signature)=(?P<value>[\w.%+/-]{{16,}})"
_BESIDE = rf"""(?<![^\W_])(?:{_PASSWORDS})[ ](?P<value>[^\s"'`,;]{{6,}})"""
_NEAR = rf"""(?<![^\W_])(?:{_NAMES}|session|licen[cs]e)[ ](?P<value>[^\s"'`,;]{{16,}})"""
# Addresses are read as a whole, so that their parts stay.
_OPAQUE = r"\w{2,9}://\S+|(?<![\w/.@#%&?-])(?P<only>[A-Za-z0-9][\w+-]{14,}={0,2})"
_CARD = r"""(?<![\d.-])[2-6]\d{3}(?:[ -]?\d{4}){2}(?:[ -]?\d{1,7})\b|
    (?<![\d.-])3[47]\d{2}[ -]?\d{6}[ -]?\d{5}\b|
    (?<![\d.-])3[068]\d{2}[ -]?\d{6}[ -]?\d{4}\b"""
_MAIL = r"""(?:@|[ ]?[\[(]at[\])][ ]?|[ ]AT[ ])[^\W_][\w-]*
    (?:(?:\.|[\[(]dot[\])][ ]?|[ ](?:[\[(]dot[\])][ ]?|DOT[ ]))[\w-]+)+"""
_PHONES = (
    r"""(?<![\w.+])(?:\+|00)[1-9]\d*+(?:[ ./-]?\(\d{1,5}\))?
    (?:[ ./-]?\d++)?(?:[ ./-]\d{2,}+){0,6}(?!\w)""",
    r"""(?<![\w.-])(?:1[ .-])?(?:[2-9]\d{2}[ .-]|\([2-9]\d{2}\)[ .-]?)\d{3}[ .-]\d{4}
    (?![\w-]|\.\d)""",
    r"""(?<![\w.,/-])(?:\(?0\d{1,4}\)?|\(0\)\d{2,4})(?:[ /-]\d{2,8}){1,4}
    (?![\w]|[.,:]\d)""",
    r"(?<![\w.,/-])0[1-9]\d{8,9}(?![\w]|[.,:]\d)",
)


def _pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile(text, re.VERBOSE | flags)


def _any(found: Found) -> bool:
    return True


# Names, patterns, and what must hold for what they find. What is masked ends with the group
# `value`; a group `only` is masked alone.
_RULES: tuple[tuple[str, re.Pattern[str], Callable[[Found], bool]], ...] = (
    (KEY, FORMS, _is_key),
    (KEY, VALUE, is_behind_name),
    (SECRET, _pattern(_IN_URL), _is_login),
    (SECRET, _pattern(_CURL), _is_login_of_curl),
    (EMAIL, _pattern(_MAIL), _any),
    (SECRET, _pattern(_ASSIGNED, re.IGNORECASE), _is_assigned),
    (SECRET, _pattern(_IN_ADDRESS, re.IGNORECASE), _is_mixed),
    (SECRET, _pattern(_BESIDE, re.IGNORECASE), _is_mixed),
    (KEY, _pattern(_NEAR, re.IGNORECASE), _is_mixed),
    (IBAN, _pattern(r"\b[A-Z]{2}\d{2}(?:[ ]?[0-9A-Z]{4}){2,7}(?:[ ]?[0-9A-Z]{1,4})?\b"), _mod97),
    (CARD, _pattern(_CARD), _luhn),
    *((PHONE, _pattern(each), _can_be_called) for each in _PHONES),
    (SECRET, _pattern(r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])"), _any),
    (KEY, _pattern(_OPAQUE), _is_opaque),
)


LONGEST = 200  # characters of a password with spaces
_TOKEN = re.compile(r"[\w./+=-]{13,}")
_JWT_HEAD, _JWT_PART = re.compile(r"\beyJ[\w-]{8}"), re.compile(r"[\w-]+")


def mask_secrets(text: str) -> str:
    text = _TOKEN.sub(lambda token: _mask_jwts(token[0]), _mask_private_keys(text))
    for rule in _RULES:
        text = _mask(text, *rule)
    return text


def _mask(text: str, name: str, pattern: re.Pattern[str], holds: Callable[[Found], bool]) -> str:
    kept, at = [], 0
    first = "only" if "only" in pattern.groupindex else 0
    last = "value" if "value" in pattern.groupindex else first
    for found in pattern.finditer(text):
        begin = found.start(first)
        if name == EMAIL:  # found by its domain; at most 64 characters before it are read
            local = _LOCAL_PART.search(text, max(at, begin - 64), begin)
            begin = local.start() if local else -1
        if begin >= at and holds(found):
            kept += [text[at:begin], name]
            at = found.end(last)
            if last == "value" and (quote := text[found.start(last) - 1]) in "\"'`":
                line = text[at : at + LONGEST].partition("\n")[0]
                at += max(0, line.find(quote))  # what else stands between the quotes
    return "".join([*kept, text[at:]])


def _mask_private_keys(text: str) -> str:
    begins = [*_KEY_BEGINS.finditer(text)]
    limits = [*(begin.start() for begin in begins[1:]), len(text)]
    kept, at = [], 0
    for begin, limit in zip(begins, limits, strict=False):
        inside = text, begin.end(), limit
        end = _KEY_ENDS.search(*inside) or _KEY_BODY.match(*inside) or begin
        body = {*text[begin.end() : end.end()].partition("-")[0]}
        if not body & {*"xX.…*"} or body - _KEY_SHOWN:
            kept += [text[at : begin.start()], KEY]
            at = end.end()
    return "".join([*kept, text[at:]])


def _mask_jwts(token: str) -> str:
    """Mask `eyJ….….…`: two or three parts with dots between them."""
    if "eyJ" not in token:
        return token
    parts = [*_JWT_PART.finditer(token)]
    kept, at = [], 0
    for place, (head, body) in enumerate(pairwise(parts)):
        start = _JWT_HEAD.search(token, max(at, head.start()), head.end())
        if start and len(body[0]) >= 8 and token[head.end() : body.start()] == ".":
            end = next(
                (
                    last.end()
                    for last in parts[place + 2 : place + 3]
                    if token[body.end() : last.start()] == "."
                ),
                body.end(),
            )
            kept += [token[at : start.start()], KEY]
            at = end
    return "".join([*kept, token[at:]])
