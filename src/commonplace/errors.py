"""Every way a request can fail. A face maps `code` once; nobody catches these to guess at them."""

from typing import Any


class CommonplaceError(Exception):
    """Base of all errors a caller is told about: a code for programs, a sentence for people, data for both."""

    code = "internal_error"
    transient = (
        False  # nothing is wrong with what was asked: a job waits and asks again until it succeeds
    )

    def __init__(self, message: str, **data: Any) -> None:
        super().__init__(message)
        self.message = message
        self.data = data


class Invalid(CommonplaceError):
    """The request itself is wrong; sending it again unchanged cannot help."""

    code = "invalid_request"


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
    """The caller sees the thing, but its folder scope does not let it do this."""

    code = "forbidden_scope"


class NotFound(CommonplaceError):
    """Not there, or not for this caller: the two read the same on purpose."""

    code = "not_found"


class Conflict(CommonplaceError):
    """Somebody else was first (`expected_revision`)."""

    code = "conflict"


class NameTaken(CommonplaceError):
    code = "name_taken"


class RateLimited(CommonplaceError):
    """A per-token hourly allowance is used up."""

    code = "rate_limited"

    def __init__(self, retry_after_sec: int) -> None:
        super().__init__(
            f"Too many requests; try again in {retry_after_sec} s.", retry_after_sec=retry_after_sec
        )


class QuotaExceeded(CommonplaceError):
    code = "quota_exceeded"


class IngestFailed(CommonplaceError):
    """The source could not be reached or read; nothing was stored. `transient`: the same source may work later."""

    code = "ingest_failed"

    def __init__(self, message: str, *, transient: bool = False, **data: Any) -> None:
        super().__init__(message, **data)
        self.transient = transient


class TranscriptionFailed(CommonplaceError):
    """The transcriber did not answer or gave up; the job is tried again."""

    code = "transcription_failed"


class TransformFailed(CommonplaceError):
    """The service that summarises did not answer, or not usefully; what there was before stays."""

    code = "transform_failed"


class EmbeddingFailed(CommonplaceError):
    """The embedder did not answer. Searches fall back to keywords; jobs are tried again."""

    code = "embedding_failed"
    transient = True


class StorageFailed(CommonplaceError):
    """The database refused: full disk, lost connection, a file from a newer version."""

    code = "storage_failed"
    transient = True


class ConfigurationError(CommonplaceError):
    """The server cannot start like this; the message says which setting to change."""

    code = "configuration_error"


class Damaged(ConfigurationError):
    """The database is broken, or gone although there was one (`missing=True`): only a backup helps."""


SOURCE_ERRORS = (
    IngestFailed,
    Invalid,
    QuotaExceeded,
)  # one source of several; the others are added all the same
