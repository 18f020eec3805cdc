"""What stands where a secret could be, and is none: placeholders, code and prose."""

import binascii
import re
from base64 import b64decode

# Words that say that a value stands for a secret, and words that may stand beside them.
_SAYING_SO = """
    change changeme demo dummy example fake foo here hidden insert masked mock none null placeholder
    redacted replace replaceme sample test testing todo undefined your"""
_BESIDE = """
    a access account admin an api app auth bar basic bearer client code data db django email field
    goes hash id key keys live me my myapp name new not number of or pass passwd password private
    real registry sec secret server service some string super text the this to token user username
    value with sk pk rk ghp gho hf npm pat glpat xoxb xoxp whsec"""
SAYING_SO = frozenset(_SAYING_SO.split())
WORDS = SAYING_SO.union(_BESIDE.split())
_BETWEEN_WORDS = re.compile(r"[\W_]+|(?<=[a-z])(?=[A-Z])")
_VARIABLE = re.compile(
    r"\$\{[^}]*\}?|\$\([^)]*\)?|\$[A-Za-z_]+|\{\{.*|\{[A-Za-z_.]*\}|%[A-Z_]+%|%\([a-z_]+\)s|"
    r"<[A-Za-z _./:|-]*>?|\[[A-Za-z _./:|-]*\]?|(?:process\.env|os\.environ|env|secrets)\b[.\[(].*"
)
# A call, an index, a path of names or of files, an address, markup.
_CODE = re.compile(
    r"(?=[\d.]*+[A-Za-z_])[\w.]*+[(\[].*|[A-Za-z_]\w*+(?:(?:\.|::|->)[A-Za-z_]\w*+)++|[(\[{|*:\\].*|"
    r"\.{0,2}/.*|[A-Za-z][\w+-]{1,15}://.*"
)
NUMBERS = re.compile(r"[\d.,:/+-]+%?")
_TYPES = """
    any array auto basic bool boolean bytes callable datetime default dict false file float int
    integer json list new nil none null number object option optional path required sequence set
    str string text true tuple type undefined union uuid value varchar"""
TYPES = frozenset(_TYPES.split())
# What is said of passwords and tokens, instead of what they are.
SAID = r"""not|never|no|a|an|the|this|that|there|your|their|its|in|on|of|for|to|at|as|by|from|per|
    about|and|or|required|missing|invalid|valid|expired|optional|wrong|good|safe|correct|incorrect|
    empty|longer|shorter|larger|smaller|greater|just|only|always|also|too|case|now|then|available|necessary|present|public|secret|short|long|
    weak|strong|known|unknown|different|equal|same|specific|unique|usually|still|already|set|kept|
    sent|written|read|shown|made|given|taken|put|hidden|both|either|what|when|where|how|why|
    \w{1,30}(?:ed|able|ible|ally|ing)"""


LONGEST = 200  # characters of base64 that are read


def is_placeholder(value: str) -> bool:
    """Return whether a value stands for a secret, like `YOUR_API_KEY`, `xxxx` or `${TOKEN}`."""
    if _VARIABLE.fullmatch(value) or (len(set(value)) == 1 and not value.isalnum()):
        return True
    if len(value) > 5 and len(set(value)) > 1 and value in (value + value)[1:-1]:  # blahblah
        return True
    words = {word.lower() for word in _BETWEEN_WORDS.split(value) if word}
    if any(word.startswith("deadbeef") or (word[2:] and not word.strip("x")) for word in words):
        return True
    said = value.endswith(("...", "…")) or not SAYING_SO.isdisjoint(words) or len(words) > 1
    if said and all(word in WORDS or word in TYPES or word in "xx1234" for word in words):
        return True
    return (value.endswith("=") or len(value) >= 24) and _is_encoded(value)


def _is_encoded(value: str) -> bool:
    """Return whether a value is a placeholder in base64, with a user before it or not."""
    try:
        text = b64decode(value[:LONGEST], validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        return False
    password = text.rpartition(":")[2]
    return password in WORDS or (" " in password and is_placeholder(password))


def is_code(value: str) -> bool:
    return _CODE.fullmatch(value) is not None
