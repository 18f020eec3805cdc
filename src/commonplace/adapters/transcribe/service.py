"""Transcription services: upload a recording, start a job, poll for its transcript.

AssemblyAI (api.assemblyai.com/v2) and Gladia (api.gladia.io/v2), for recordings that are whole.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from time import monotonic
from urllib.parse import quote

import anyio
from anyio import sleep, to_thread

from commonplace.adapters.http_client import PAUSES, HttpService
from commonplace.adapters.transcribe import audio, transcript
from commonplace.errors import (
    CommonplaceError,
    ConfigurationError,
    IngestFailed,
    TranscriptionFailed,
)
from commonplace.model import Begun, Chapter, Json, Transcript, Utterance
from commonplace.settings import Settings

SECONDS = 60.0  # for all attempts of a request
_POLL_WITH_CALLBACK = 30.0
_UPLOADED, _STARTED = 0.2, 0.3  # shares of the progress, which services do not report
# An utterance ends with a sentence, at a pause (milliseconds), or when it gets long.
_PAUSE, _MOST_WORDS = 1500, 60
_SENTENCE_END = (".", "?", "!", "…", "。", "？", "！")
_THEIR_FAULT = re.compile(r"server|internal|try again|timed? ?out|download|capacity", re.IGNORECASE)


class RemoteTranscriber(HttpService, ABC):
    """The order of requests, which is common to all services; adapters give their content."""

    _url: str  # unless the settings have another
    _header: str  # of the key
    _jobs: str  # path
    _done: str  # the status of a finished job
    is_remote = True

    def __init__(
        self,
        settings: Settings,
        *,
        pauses: Sequence[float] = PAUSES,
        timeout: float = 60.0,
        poll: float = 3.0,
        least_wait: float = 1200.0,
    ) -> None:
        """`poll`: seconds between two polls. `least_wait`: seconds for a transcript; longer
        recordings get as long as they are."""
        service, key = settings.transcriber, settings.transcriber_key
        if not key:
            raise ConfigurationError(
                f"The {service} transcriber needs a key: set COMMONPLACE_TRANSCRIBER_KEY."
            )
        self._model, self._language = settings.transcriber_model, settings.transcriber_language
        self.name = f"{service}/{self._model or 'default'}"
        self._poll, self._least_wait = poll, least_wait
        self._secret = settings.webhook_secret
        site = settings.public_url.rstrip("/")
        self._callback = f"{site}/api/v1/webhooks/transcription/{service}" if self._secret else None
        super().__init__(
            f"{service} transcription",
            settings.transcriber_url or self._url,
            key,
            headers={self._header: key},
            setting="COMMONPLACE_TRANSCRIBER",
            failure=_failure,
            pauses=pauses,
            timeout=timeout,
        )

    async def transcribe(
        self,
        recording: Path | None,
        progress: Callable[[float], Awaitable[None]],
        begun: Begun | None = None,
    ) -> Transcript:
        begun = begun or Begun(None, _forget, sleep)
        job, seconds = str(begun.state["job"]) if begun.state else None, 0.0
        if job is None:
            if recording is None:
                raise self.failure("did not get the recording")
            # Also makes sure that nothing but a recording is uploaded.
            seconds = await to_thread.run_sync(audio.duration, recording)
            address = await self._upload(recording)
            await progress(_UPLOADED)
            body = self._job(address)
            job = self._text(
                await self.ask(
                    "POST", self._jobs, SECONDS, lambda: {"json": body}, repeatable=False
                ),
                "id",
            )
            await begun.remember({"job": job})
        await progress(_STARTED)
        try:
            found = await self._result(job, seconds, begun)
        except (IngestFailed, RemoteJobLost):
            await begun.remember(None)  # there is nothing to resume
            raise
        await progress(1.0)
        return found

    async def _result(self, job: str, seconds: float, begun: Begun) -> Transcript:
        deadline = monotonic() + max(self._least_wait, seconds)
        path = f"{self._jobs}/{quote(job, safe='')}"
        while (found := self._parse(await self.ask("GET", path, SECONDS), seconds)) is None:
            if monotonic() + self._poll > deadline:
                raise self.failure("has not finished in time")
            polled = monotonic()
            await begun.pause(self._poll if self._callback is None else _POLL_WITH_CALLBACK)
            # The callback may have been about another job.
            await sleep(max(0.0, polled + self._poll - monotonic()))
        return found

    @abstractmethod
    async def _upload(self, recording: Path) -> str:
        """Return the address that the service gives the recording."""

    @abstractmethod
    def _job(self, address: str) -> Json:
        """Return the body of the request that starts a job."""

    @abstractmethod
    def _transcript(self, answer: Json, seconds: float) -> Transcript:
        """Read a finished job. `seconds`: the recording's length, if the service omits it."""

    @abstractmethod
    def _job_failure(self, answer: Json) -> CommonplaceError:
        """Return IngestFailed when the recording is at fault, else RemoteJobLost."""

    def _parse(self, answer: Json, seconds: float) -> Transcript | None:
        """Return None while the job is running."""
        try:
            status = answer["status"]
            if status in ("queued", "processing"):
                return None
            if status == self._done:
                return self._transcript(answer, seconds)
            if status == "error":
                raise self._job_failure(answer)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise self.unexpected() from None
        raise self.unexpected()

    def _text(self, answer: Json, name: str) -> str:
        if not isinstance(answer.get(name), str):
            raise self.unexpected()
        return str(answer[name])


class AssemblyAITranscriber(RemoteTranscriber):
    _url, _header = "https://api.assemblyai.com", "Authorization"
    _jobs, _done = "/v2/transcript", "completed"

    async def _upload(self, recording: Path) -> str:
        headers = {
            "Content-Length": str((await anyio.Path(recording).stat()).st_size),
            "Content-Type": "application/octet-stream",
        }
        return self._text(
            await self.ask(
                "POST",
                "/v2/upload",
                SECONDS,
                lambda: {"content": _chunks(recording), "headers": headers},
            ),
            "upload_url",
        )

    def _job(self, address: str) -> Json:
        body: Json = {"audio_url": address, "speaker_labels": True}
        if self._language:
            body["language_code"] = self._language
        else:
            body["language_detection"] = True
        if self._model:
            body["speech_models"] = [self._model]
        if self._callback:
            body |= {
                "webhook_url": self._callback,
                "webhook_auth_header_name": "X-Commonplace-Secret",
                "webhook_auth_header_value": self._secret,
            }
        return body

    def _transcript(self, answer: Json, seconds: float) -> Transcript:
        return transcript(
            _utterances(answer["words"] or []),
            float(answer.get("audio_duration") or seconds),
            answer.get("language_code"),
            tuple(
                Chapter(each["start"] / 1000, each["headline"])
                for each in answer.get("chapters") or []
            ),
        )

    def _job_failure(self, answer: Json) -> CommonplaceError:
        reason = str(answer.get("error"))
        if _THEIR_FAULT.search(reason):
            return RemoteJobLost(self.failure(f"failed ({reason})").message)
        return IngestFailed(f"AssemblyAI could not transcribe the recording: {reason}")


class GladiaTranscriber(RemoteTranscriber):
    _url, _header = "https://api.gladia.io", "x-gladia-key"
    _jobs, _done = "/v2/pre-recorded", "done"

    async def _upload(self, recording: Path) -> str:
        async with await anyio.open_file(recording, "rb") as file:
            content = (f"recording{recording.suffix}", file.wrapped, "application/octet-stream")
            answer = await self.ask(
                "POST", "/v2/upload", SECONDS, lambda: {"files": {"audio": content}}
            )
        return self._text(answer, "audio_url")

    def _job(self, address: str) -> Json:
        body: Json = {"audio_url": address, "diarization": True}
        if self._model:
            body["model"] = self._model
        if self._language:
            body["language_config"] = {"languages": [self._language]}
        if self._callback:
            body |= {
                "callback": True,
                "callback_config": {
                    "url": f"{self._callback}?secret={self._secret}",
                    "method": "POST",
                },
            }
        return body

    def _transcript(self, answer: Json, seconds: float) -> Transcript:
        result = answer["result"]
        found = result["transcription"]
        length = float(result["metadata"].get("audio_duration") or seconds)
        return transcript(
            [
                Utterance(
                    float(one["start"]),
                    float(one["end"]),
                    one["text"].strip(),
                    _speaker(one.get("speaker")),
                )
                for one in found["utterances"]
            ],
            length,
            next(iter(found.get("languages") or []), None),
        )

    def _job_failure(self, answer: Json) -> CommonplaceError:
        code = answer.get("error_code") or 500
        if 400 <= code < 500 and code not in (401, 403, 408, 429):
            return IngestFailed(f"Gladia could not transcribe the recording (error {code}).")
        return RemoteJobLost(self.failure(f"failed (error {code})").message)


class RemoteJobLost(TranscriptionFailed):
    """The job failed, or the service does not know it: the next attempt starts a new one."""


def _failure(message: str, status: int | None) -> CommonplaceError:
    """Blame the recording where the service will always refuse it: too large, wrong type."""
    if status in (413, 415, 422):
        return IngestFailed(message)
    return RemoteJobLost(message) if status in (400, 404, 410) else TranscriptionFailed(message)


async def _forget(state: Json | None) -> None:
    """Store nothing: nobody will resume the job."""


async def _chunks(recording: Path) -> AsyncIterator[bytes]:
    async with await anyio.open_file(recording, "rb") as file:
        while chunk := await file.read(1 << 20):
            yield chunk


def _utterances(words: list[Json]) -> Iterator[Utterance]:
    run: list[Json] = []
    for word in words:
        if run and (
            word["start"] - run[-1]["end"] > _PAUSE
            or len(run) == _MOST_WORDS
            or run[-1]["text"].endswith(_SENTENCE_END)
            or word.get("speaker") != run[-1].get("speaker")
        ):
            yield _utterance(run)
            run = []
        run.append(word)
    if run:
        yield _utterance(run)


def _utterance(words: list[Json]) -> Utterance:
    return Utterance(
        words[0]["start"] / 1000,
        words[-1]["end"] / 1000,
        " ".join(word["text"] for word in words),
        _speaker(words[0].get("speaker")),
    )


def _speaker(label: object) -> str | None:
    """Return a name: services number voices, or give them letters."""
    return None if label is None else f"Speaker {label}"
