"""What all nouns need: names, and the time."""

import hashlib
import secrets
import uuid
from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]


def now() -> datetime:
    return datetime.now(UTC)


def new_id() -> str:
    return str(uuid.uuid4())


_PUBLIC_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ"


def new_public_id() -> str:
    """Twelve characters without look-alikes and without `_`, so that `<type>_<public_id>` splits one way only."""
    number, letters = secrets.randbits(128), ""  # so many that each letter is as likely as any
    for _ in range(12):
        number, letter = divmod(number, len(_PUBLIC_ALPHABET))
        letters += _PUBLIC_ALPHABET[letter]
    return letters


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
