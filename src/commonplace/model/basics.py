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
    return "".join(secrets.choice(_PUBLIC_ALPHABET) for _ in range(12))


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
