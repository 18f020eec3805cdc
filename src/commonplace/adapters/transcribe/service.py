"""Transcription services: upload the recording, ask for its transcript, look again until it is there."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from time import monotonic

from anyio import sleep, to_thread

from commonplace.adapters.http_client import PAUSES, Service
from commonplace.adapters.transcribe import audio
from commonplace.errors import (
    CommonplaceError,
    ConfigurationError,
    IngestFailed,
    TranscriptionFailed,
)
from commonplace.model import Json, RemoteJob, Transcript
from commonplace.settings import Settings

PATIENCE, _TIMEOUT, _LOOK = (
    60.0,
    60.0,
    3.0,
)  # seconds: for an answer, for a sign of life, between two looks
_LOOK_SELDOM = 30.0  # where the service reports by itself
_LEAST_WAIT = 1200.0  # seconds until it is given up; longer for what is longer itself
_UPLOADED, _BEGUN = 0.2, 0.3  # they do not say how far they are


class RemoteTranscriber(ABC):
    """What a service is asked is its adapter's; `transcribe` is the order of the questions."""

    name: str

    def __init__(
        self,
        settings: Settings,
        *,
        url: str,
        header: str,
        pauses: Sequence[float] = PAUSES,
        timeout: float = _TIMEOUT,
        look: float = _LOOK,
        least_wait: float = _LEAST_WAIT,
    ) -> None:
        if not settings.transcriber_key:
            raise ConfigurationError(
                f"The {settings.transcriber} transcriber needs a key: set COMMONPLACE_TRANSCRIBER_KEY."
            )
        self._model = settings.transcriber_model
        self._look, self._least_wait = look, least_wait
        self._secret = settings.webhook_secret
        self._callback = (
            f"{settings.public_url.rstrip('/')}/api/v1/webhooks/transcription/{settings.transcriber}"
            if self._secret
            else None
        )
        self._service = Service(
            f"{settings.transcriber} transcription",
            settings.transcriber_url or url,
            settings.transcriber_key,
            headers={header: settings.transcriber_key},
            setting="COMMONPLACE_TRANSCRIBER",
            failure=_failure,
            pauses=pauses,
            timeout=timeout,
        )

    async def transcribe(
        self,
        recording: Path | None,
        progress: Callable[[float], Awaitable[None]],
        remote_job: RemoteJob | None = None,
    ) -> Transcript:
        remote_job = remote_job or RemoteJob(None, _forget, sleep)
        job, seconds = remote_job.id, 0.0
        if job is None:
            if recording is None:
                raise self._service.failed("has not been given the recording")
            seconds = await to_thread.run_sync(
                audio.duration, recording
            )  # what is not a recording is not sent anywhere
            address = await self._upload(recording)
            await progress(_UPLOADED)
            job = await self._begin(address)
            await remote_job.remember(job)
        await progress(_BEGUN)
        try:
            found = await self._result(job, seconds, remote_job)
        except (IngestFailed, Lost):
            await remote_job.remember(None)  # there is nothing to come back for
            raise
        await progress(1.0)
        return found

    async def _result(self, job: str, seconds: float, remote_job: RemoteJob) -> Transcript:
        deadline = monotonic() + max(self._least_wait, seconds)
        while (found := self._understood(await self._status(job), seconds)) is None:
            if monotonic() + self._look > deadline:
                raise self._service.failed("has not finished in time")
            looked = monotonic()
            await remote_job.pause(self._look if self._callback is None else _LOOK_SELDOM)
            await sleep(
                max(0.0, looked + self._look - monotonic())
            )  # not every piece of news is about this one
        return found

    async def close(self) -> None:
        await self._service.close()

    @abstractmethod
    async def _upload(self, recording: Path) -> str:
        """The address that the service gives the recording."""

    @abstractmethod
    async def _begin(self, address: str) -> str:
        """The job's id."""

    @abstractmethod
    async def _status(self, job: str) -> Json: ...

    @abstractmethod
    def _read(self, answer: Json, seconds: float) -> Transcript | None:
        """None: not yet. `seconds` is how long the recording is, for services that do not say."""

    def _understood(self, answer: Json, seconds: float) -> Transcript | None:
        try:
            return self._read(answer, seconds)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise self._service.puzzled() from None

    def _text(self, answer: Json, name: str) -> str:
        if not isinstance(answer.get(name), str):
            raise self._service.puzzled()
        return str(answer[name])


class Lost(TranscriptionFailed):
    """What was begun there came to nothing, or is not known there: another try begins anew."""


def _failure(message: str, status: int | None) -> CommonplaceError:
    """Too large, of the wrong kind, not processable: the same recording will be refused again."""
    if status in (413, 415, 422):
        return IngestFailed(message)
    return Lost(message) if status in (400, 404, 410) else TranscriptionFailed(message)


async def _forget(begun: str | None) -> None:
    """Nobody will come back for it."""
