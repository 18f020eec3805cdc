"""What all nouns need: names, and the time."""

import hashlib
import secrets
import time
import uuid
from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]


def now() -> datetime:
    return datetime.now(UTC)


def new_id() -> str:
    """A UUID of version 7: it begins with the time, so that what is added together lies together in every index."""
    drawn = time.time_ns() // 1_000_000 << 80 | secrets.randbits(80)
    return str(uuid.UUID(int=drawn & ~(0xF << 76 | 0x3 << 62) | 0x7 << 76 | 0x2 << 62))


def new_shared_id() -> str:
    """A UUID of version 4, for what several libraries may share: it must not tell one of them when another had it first."""
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
