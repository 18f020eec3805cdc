"""Parse response headers, which may be malformed, and turn failures into messages."""

import math
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC
from email.message import Message
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import httpcore
import httpx

from commonplace.errors import IngestFailed
from commonplace.model import Json, now

_HEADER = re.compile(r"[\x21-\x7e][\x20-\x7e]{0,500}")
_MEDIA_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+")


def media_type(content_type: str) -> str:
    """Return the media type in lower case, without parameters; "" if it is invalid."""
    name = content_type.partition(";")[0].strip().lower()
    return name if _MEDIA_TYPE.fullmatch(name) else ""


def charset(content_type: str) -> str | None:
    """Return the charset in lower case; None if it is missing or unknown."""
    message = Message()
    message["Content-Type"] = re.sub(r"[^\x20-\x7e]", "", content_type)
    name = message.get_content_charset("").strip("'\" ")
    try:
        b"any".decode(name, "replace")
    except (LookupError, ValueError):
        return None
    return name


def validators(headers: httpx.Headers) -> Json:
    """Return the validators for a later conditional request; none that could not be sent back."""
    sent = {"etag": headers.get("ETag", ""), "last_modified": headers.get("Last-Modified", "")}
    return {name: value for name, value in sent.items() if _HEADER.fullmatch(value)}


def conditional_headers(known: Json) -> dict[str, str]:
    names = {"etag": "If-None-Match", "last_modified": "If-Modified-Since"}
    return {names[name]: value for name, value in known.items()}


def max_age(headers: httpx.Headers) -> int:
    """Return the seconds that a response may be cached; 0 if it must not be, or does not say."""
    rules = [rule.strip().lower() for rule in headers.get("Cache-Control", "").split(",")]
    ages = [rule.removeprefix("max-age=") for rule in rules if rule.startswith("max-age=")]
    forbidden = "no-store" in rules or "no-cache" in rules
    return 0 if forbidden or not ages or not ages[0].isdecimal() else int(ages[0][:9])


def retry_after(headers: httpx.Headers) -> float | None:
    """Return the seconds to wait; None if the header is missing or invalid."""
    value = headers.get("Retry-After", "").strip()
    if value.isdecimal():
        return float(value[:9])
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (when.replace(tzinfo=when.tzinfo or UTC) - now()).total_seconds())


def status_error(status: int, wait: float | None) -> IngestFailed:
    phrase = f" {HTTPStatus(status).phrase}" if status in set(HTTPStatus) else ""
    later = f" and asks for a retry in {wait:.0f} s" if wait else ""
    return IngestFailed(
        f"The page answered {status}{phrase}{later}.",
        transient=status in (408, 425, 429) or status >= 500,
        http_status=status,
        **({} if wait is None else {"retry_after": math.ceil(wait)}),
    )


@contextmanager
def translate_errors(host: str, timeout: float) -> Iterator[None]:
    """Raise IngestFailed for errors of the connection to `host`."""
    try:
        yield
    except httpcore.TimeoutException as error:
        raise IngestFailed(
            f"The server did not answer within {timeout:g} s.", transient=True
        ) from error
    except httpcore.ConnectError as error:
        raise IngestFailed(_unreachable(host, error), transient=True) from error
    except httpcore.NetworkError as error:
        raise IngestFailed(
            "The server closed the connection before the response was complete.", transient=True
        ) from error
    except httpcore.ProtocolError as error:
        raise IngestFailed(
            f"The server sent an invalid response: {str(error).rstrip('.')}."
        ) from error


def _unreachable(host: str, error: httpcore.ConnectError) -> str:
    cause = error.__cause__ or error.__context__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"The certificate of {host} is not valid ({cause.verify_message})."
    if isinstance(cause, ssl.SSLError):
        return f"No secure connection to {host} can be made ({cause.reason})."
    return f"The server {host} cannot be reached."
