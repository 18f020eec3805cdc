"""Ids of events: their numbers, encrypted.

In clear, numbers would tell callers how much happens outside their scope. The mode is that of SIV:
a keyed hash of the number is the nonce that it is encrypted with, and proves it when it is read.
"""

import hmac
import secrets

from commonplace.errors import Invalid

_NUMBER, _SALT, _TAG = 6, 4, 16  # bytes
BEGINNING = "0"


def event_id(key: str, seq: int) -> str:
    """Return the id of an event, which is also the cursor behind it."""
    return _encrypt(key, seq, bytes(_SALT))


def new_cursor(key: str, seq: int) -> str:
    """Return a cursor. It differs each time, also when nothing has happened out of scope."""
    return _encrypt(key, seq, secrets.token_bytes(_SALT)) if key else BEGINNING


def read_cursor(key: str, cursor: str) -> int:
    if cursor == BEGINNING:
        return 0
    try:
        found = bytes.fromhex(cursor)
    except ValueError:
        found = b""
    tag, hidden = found[:_TAG], found[_TAG:]
    plain = _xor(hidden, _hash(key, b"number", tag))
    if len(hidden) != _NUMBER + _SALT or not hmac.compare_digest(tag, _tag(key, plain)):
        raise Invalid(
            "`after` is not a cursor of this library. Take `next` of an answer or the id of an "
            "event, or leave it out for the oldest events."
        )
    return int.from_bytes(plain[:_NUMBER])


def _encrypt(key: str, seq: int, salt: bytes) -> str:
    plain = seq.to_bytes(_NUMBER) + salt
    tag = _tag(key, plain)
    return (tag + _xor(plain, _hash(key, b"number", tag))).hex()


def _tag(key: str, plain: bytes) -> bytes:
    return _hash(key, b"tag", plain)[:_TAG]


def _hash(key: str, purpose: bytes, text: bytes) -> bytes:
    return hmac.digest(key.encode(), purpose + text, "sha256")


def _xor(text: bytes, stream: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(text, stream, strict=False))
