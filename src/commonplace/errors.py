"""Errors that callers are told about. Each interface maps `code` in one place."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class CommonplaceError(Exception):
    """Base of all reported errors: a code for programs, a sentence for people, data for both."""

    code = "internal_error"
    transient = False  # the request is fine and may work later: jobs retry until it succeeds

    def __init__(self, message: str, *, field: str = "", **data: Any) -> None:
        super().__init__(message)
        self.message = message
        self.field = field  # of a form: where the web app shows the message
        self.data = data


class Invalid(CommonplaceError):
    """The request itself is wrong; repeating it unchanged cannot help."""

    code = "invalid_request"


class BadRequest(CommonplaceError):
    """As Invalid, where another product's clients expect this code."""

    code = "bad_request"


class BatchTooLarge(CommonplaceError):
    code = "batch_too_large"


class SearchFailed(CommonplaceError):
    """A search that has meaning only, while the embedder does not answer."""

    code = "search_failed"


class InvalidJson(CommonplaceError):
    code = "invalid_json"


class UnsupportedMediaType(CommonplaceError):
    code = "unsupported_media_type"


class PayloadTooLarge(CommonplaceError):
    code = "payload_too_large"


class Unauthorized(CommonplaceError):
    code = "unauthorized"


class CapabilityDenied(CommonplaceError):
    code = "capability_denied"

    def __init__(self, required: str, have: list[str]) -> None:
        super().__init__(
            f"This needs the '{required}' capability; the token has: {', '.join(have)}.",
            required=required,
            have=have,
        )


class ForbiddenScope(CommonplaceError):
    """The caller sees the target, but its folder scope does not allow the action."""

    code = "forbidden_scope"


class NotFound(CommonplaceError):
    """Missing, or hidden from this caller: deliberately indistinguishable."""

    code = "not_found"


class Conflict(CommonplaceError):
    """Somebody else changed it first (`expected_revision`)."""

    code = "conflict"


class PreconditionFailed(CommonplaceError):
    """Somebody else changed it first (`If-Match`)."""

    code = "precondition_failed"


class NameTaken(CommonplaceError):
    code = "name_taken"


class RateLimited(CommonplaceError):
    """A rate limit is reached."""

    code = "rate_limited"

    def __init__(self, retry_after_sec: int, message: str = "", **data: Any) -> None:
        super().__init__(
            message or f"Too many requests; try again in {retry_after_sec} s.",
            **data,
            retry_after_sec=retry_after_sec,
        )


class QuotaExceeded(CommonplaceError):
    code = "quota_exceeded"


class LibraryFull(QuotaExceeded):
    """A library holds as many items, sections or megabytes as the server allows."""

    def __init__(self, resource: str, cap: int, used: float) -> None:
        setting = "MB" if resource == "megabytes" else resource.upper()
        super().__init__(
            f"The library holds {used:,} {resource} of at most {cap:,}, its trash included "
            f"(COMMONPLACE_QUOTA_{setting}), and this would exceed it; nothing was stored. Delete "
            "something and empty the trash, or ask whoever runs the server for more.",
            resource=resource,
            cap=cap,
            used=used,
        )


class IngestFailed(CommonplaceError):
    """The source could not be fetched or read; nothing was stored."""

    code = "ingest_failed"

    def __init__(self, message: str, *, transient: bool = False, **data: Any) -> None:
        super().__init__(message, **data)
        self.transient = transient


class TranscriptionFailed(CommonplaceError):
    """The transcriber did not answer or gave up; the job is retried."""

    code = "transcription_failed"


class TransformFailed(CommonplaceError):
    """The model gave no usable answer; what there was before stays."""

    code = "transform_failed"

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status  # of HTTP, if the service refused


class EmbeddingFailed(CommonplaceError):
    """The embedder did not answer. Searches fall back to keywords; jobs are retried."""

    code = "embedding_failed"
    transient = True


class DownloadFailed(CommonplaceError):
    """A model could not be downloaded; the message says what to do."""

    code = "download_failed"


class StorageFailed(CommonplaceError):
    """The database or file store refused: full disk, lost connection, a newer version's file."""

    code = "storage_failed"
    transient = True


class ConfigurationError(CommonplaceError):
    """The server cannot start with these settings; the message says which one to change."""

    code = "configuration_error"


class Damaged(ConfigurationError):
    """The database is corrupt, or lost (`missing=True`): only a backup helps."""


# Errors of one source among several; the others are added all the same.
SOURCE_ERRORS = (IngestFailed, Invalid, QuotaExceeded)


@contextmanager
def extra(
    name: str, what: str, error: type[CommonplaceError] = ConfigurationError
) -> Iterator[None]:
    """Turn the missing packages of an extra into the line that installs them."""
    try:
        yield
    except ModuleNotFoundError as missing:
        raise error(
            f"{what} needs the extra '{name}'. Install it: pip install 'commonplace[{name}]'"
        ) from missing
