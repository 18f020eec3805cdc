"""Mask personal data and secrets in texts for others, found by form and check digits."""

import re
from collections.abc import Callable
from itertools import pairwise

EMAIL, PHONE, KEY, CARD, IBAN, SECRET = (
    "[email]",
    "[phone]",
    "[key]",
    "[card]",
    "[iban]",
    "[secret]",
)

# What services put in front of their keys, so that scanners find them.
_PREFIXES = r"""(?:sk|pk|rk)_(?:live|test)_|sk_|sk-(?:ant-|proj-)?|gh[pousr]_|github_pat_|glpat-|
    xox[abprs]-|xapp-|AKIA|ASIA|AIza|ya29\.|1//0|hf_|npm_|pypi-|SG\.|key-|dop_v1_|shpat_|whsec_|
    EAAC|sq0[a-z]{3}-|AGE-SECRET-KEY-|lin_api_|r8_|tvly-|gsk_|pplx-|nvapi-"""
_NAMES = r"""pass(?:word|wd|phrase|code)?|pwd|secret|token|api[ _-]?key|access[ _-]?key|
    private[ _-]?key|client[ _-]?secret|
    credentials?|auth|bearer|pin|passwort|kennwort|contraseña|mot\ de\ passe"""

# Private keys: PEM of every kind, OpenSSH, PGP, SSH2. Without a last line, the body ends it.
_KEY_LINE = r"-{{4,5}} ?{} [A-Z0-9 _-]{{0,100}}PRIVATE KEY(?: BLOCK)? ?-{{4,5}}"
_KEY_BEGINS, _KEY_ENDS = (re.compile(_KEY_LINE.format(word)) for word in ("BEGIN", "END"))
_KEY_BODY = re.compile(
    r"""(?>(?:[\s>|#*,"']|\\[nr])++"""
    r"""(?:[A-Za-z0-9+/=]{16,}+|[A-Za-z0-9+/=]{1,15}+(?=\r?\n|[\\"']|\Z)|"""
    r"(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|MessageID): [^\n]*+))*+"
)

# Words that say that a value stands for a secret, and words that may stand beside them.
_SAID_OF_PLACEHOLDERS = """
    change changeme dummy example fake here hidden insert masked none null placeholder redacted
    replace replaceme sample todo your"""
_BESIDE = """
    a access account admin an api app auth bearer client db demo email field goes id key live me
    my name pass password private secret some string test the this token user username value
    with sk pk rk ghp gho hf npm pat glpat xoxb xoxp whsec"""
_PLACEHOLDERS = frozenset(_SAID_OF_PLACEHOLDERS.split())
_PLACEHOLDER_WORDS = _PLACEHOLDERS.union(_BESIDE.split())
_VARIABLE = re.compile(
    r"\$\{[^}]*\}?|\$\([^)]*\)?|\$[A-Z_]+|\{\{.*|%[A-Z_]+%|<[A-Za-z _./:-]*>?|"
    r"(?:process\.env|os\.environ)\b.*"
)
_BETWEEN_WORDS = re.compile(r"[\W_]+")


def _digits(text: str) -> str:
    return "".join(character for character in text if character.isdecimal())


def _luhn(text: str) -> bool:
    digits = [int(digit) for digit in _digits(text)]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    is_valid = (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0
    return is_valid and 13 <= len(digits) <= 19 and len(set(digits)) > 1


def _mod97(text: str) -> bool:
    plain = "".join(text.split()).upper()
    return (
        15 <= len(plain) <= 34
        and int("".join(str(int(character, 36)) for character in plain[4:] + plain[:4])) % 97 == 1
    )


def _can_be_called(text: str) -> bool:
    """As many digits as a telephone number has, and not written as a date is."""
    return 7 <= len(_digits(text)) <= 15 and not _DATE.fullmatch(text.strip())


def _opaque(text: str) -> bool:
    """Return whether letters and digits are mixed as in no word: long and alternating, or hex."""
    plain = re.sub(r"[^0-9A-Za-z]", "", text)
    changes = len(
        re.findall(r"(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])", text)
    )  # not across a hyphen: `top-10-tips`
    if re.fullmatch(r"[0-9a-f]{24,}|[0-9A-F]{24,}", plain):
        return changes > 2
    return changes >= 4 or (
        changes >= 2 and len(plain) >= 20 and not plain.isupper() and not plain.islower()
    )


def _is_secret(value: str) -> bool:
    """Return whether a value can be a secret, unlike `YOUR_API_KEY`, `xxxx` or `${TOKEN}`."""
    if _VARIABLE.fullmatch(value) or (len(set(value)) == 1 and not value.isalnum()):
        return False
    words = {
        word if word.strip("x") else "example"
        for word in _BETWEEN_WORDS.split(value.lower())
        if word
    }
    said = value.endswith(("...", "…")) or not _PLACEHOLDERS.isdisjoint(words)
    return not said or not words <= _PLACEHOLDER_WORDS


def _is_mixed_secret(value: str) -> bool:
    return any(map(str.isdecimal, value)) and not value.isdecimal() and _is_secret(value)


_DATE = re.compile(
    r"(?:\d{4}[-./]\d{1,2}[-./]\d{1,2}|\d{1,2}[-./]\d{1,2}[-./]\d{2,4}|(?:19|20)"
    r"\d{2}\s?[-–]\s?(?:19|20)\d{2})"
    r"(?:[ T]\d.*)?"
)
_LOCAL_PART = re.compile(r"(?<![\w.+-])[\w.!#$%&'*+/=?^`{|}~-]{1,64}(?<=[\w+-])\Z")
# Names, patterns, and what must hold for the group `value`, or for all that the pattern matches.
# `bool` holds for all text.
_RULES = tuple(
    (
        name,
        re.compile(pattern, re.VERBOSE | re.IGNORECASE if name == SECRET else re.VERBOSE),
        holds,
    )
    for name, pattern, holds in (
        (SECRET, r"(?<=/)(?<=://)[^\s/@:]+:[^\s/@]+(?=@)", bool),
        (
            EMAIL,
            r"""(?:@|[ ]?[\[(]at[\])][ ]?|[ ]AT[ ])[^\W_][\w-]*
        (?:(?:\.|[\[(]dot[\])][ ]?|[ ](?:[\[(]dot[\])][ ]?|DOT[ ]))[\w-]+)+""",
            bool,
        ),
        (
            SECRET,
            rf"""(?<![^\W_])(?:{_NAMES})\b["']?\s{{0,3}}
        (?:is|are|was|lautet|ist|es|est|=>|:=|[:=])\s{{0,3}}["'`]?
        (?!(?:{_NAMES})["']?\s{{0,3}}[:=])(?!(?:not|never|a|an|the|required|missing|invalid|
        expired|needed|optional|wrong|good|set|stored|kept|sent|used|shared|safe|hashed|
        \w{{1,30}}ed)\b)(?P<value>[^\s"'`,;]{{4,}})""",
            _is_secret,
        ),
        (
            SECRET,
            rf"""(?<![^\W_])(?:{_NAMES})[ ](?=(?P<value>[^\s"'`,;]{{6,}}))""",
            _is_mixed_secret,
        ),
        (IBAN, r"\b[A-Z]{2}\d{2}(?:[ ]?[0-9A-Z]{4}){2,7}(?:[ ]?[0-9A-Z]{1,4})?\b", _mod97),
        (
            CARD,
            r"(?<![\d.-])[2-6]\d{3}(?:[ -]?\d{4}){2}(?:[ -]?\d{1,7})\b|(?<![\d.-])3[47]\d{2}[ "
            r"-]?\d{6}[ -]?\d{5}\b|"
            r"(?<![\d.-])3[068]\d{2}[ -]?\d{6}[ -]?\d{4}\b",
            _luhn,
        ),
        (
            PHONE,
            r"""(?<![\w.+])(?:\+|00)[1-9]\d*+(?:[ ./-]?\(\d{1,5}\))?
        (?:[ ./-]?\d++)?(?:[ ./-]\d{2,}+){0,6}(?!\w)""",
            _can_be_called,
        ),
        (
            PHONE,
            r"(?<![\w.-])(?:1[ .-])?(?:[2-9]\d{2}[ .-]|\([2-9]\d{2}\)[ .-]?)\d{3}[ "
            r".-]\d{4}(?![\w-]|\.\d)",
            _can_be_called,
        ),
        (
            PHONE,
            r"(?<![\w.,/-])(?:\(?0\d{1,4}\)?|\(0\)\d{2,4})(?:[ /-]\d{2,8}){1,4}(?![\w]|[.,:]\d)",
            _can_be_called,
        ),
        (PHONE, r"(?<![\w.,/-])0[1-9]\d{8,9}(?![\w]|[.,:]\d)", _can_be_called),
        (SECRET, r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])", bool),
        (KEY, r"(?<![\w/.-])[A-Za-z0-9][\w+=-]{14,}", _opaque),
    )
)


# A text is cut into tokens once, and formats of keys are looked for in the long ones.
_TOKEN = re.compile(r"[\w./+=-]{13,}")
_KEY = re.compile(rf"\b(?:{_PREFIXES})[\w./+=-]{{10,}}", re.VERBOSE)
_JWT_HEAD, _JWT_PART = re.compile(r"\beyJ[\w-]{8}"), re.compile(r"[\w-]+")


def mask_secrets(text: str) -> str:
    text = _TOKEN.sub(lambda token: _mask_keys(token[0]), _mask_private_keys(text))
    for rule in _RULES:
        text = _mask(text, *rule)
    return text


def _mask(text: str, name: str, pattern: re.Pattern[str], holds: Callable[[str], bool]) -> str:
    group = "value" if "value" in pattern.groupindex else 0
    kept, at = [], 0
    for found in pattern.finditer(text):
        start: re.Match[str] | None = found
        if name == EMAIL:  # found by its domain; at most 64 characters before it are read
            start = _LOCAL_PART.search(text, max(at, found.start() - 64), found.start())
        if start and start.start() >= at and holds(found[group]):
            kept += [text[at : start.start()], name]
            at = found.end(group)
    return "".join([*kept, text[at:]])


def _mask_private_keys(text: str) -> str:
    begins = [*_KEY_BEGINS.finditer(text)]
    limits = [*(begin.start() for begin in begins[1:]), len(text)]
    kept, at = [], 0
    for begin, limit in zip(begins, limits, strict=False):
        inside = text, begin.end(), limit
        end = _KEY_ENDS.search(*inside) or _KEY_BODY.match(*inside) or begin
        kept += [text[at : begin.start()], KEY]
        at = end.end()
    return "".join([*kept, text[at:]])


def _mask_keys(token: str) -> str:
    if "eyJ" in token:
        token = _mask_jwts(token)
    return _KEY.sub(lambda key: KEY if _is_secret(key[0]) else key[0], token)


def _mask_jwts(token: str) -> str:
    """Mask `eyJ….….…`: two or three parts with dots between them."""
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
