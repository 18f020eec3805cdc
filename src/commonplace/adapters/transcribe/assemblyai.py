"""AssemblyAI's pre-recorded transcription, api.assemblyai.com/v2."""

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio

from commonplace.adapters.transcribe.service import SECONDS, RemoteJobLost, RemoteTranscriber
from commonplace.adapters.transcribe.transcript import transcript
from commonplace.errors import CommonplaceError, IngestFailed
from commonplace.model import Json, Transcript, Utterance
from commonplace.settings import Settings

_CHUNK = 1 << 20
# An utterance ends with a sentence, at a pause (milliseconds), or when it gets long.
_PAUSE, _MOST_WORDS = 1500, 60
_SENTENCE_END = (".", "?", "!", "…", "。", "？", "！")
_THEIR_FAULT = re.compile(r"server|internal|try again|timed? ?out|download|capacity", re.IGNORECASE)


class AssemblyAITranscriber(RemoteTranscriber):
    _jobs, _done = "/v2/transcript", "completed"

    def __init__(self, settings: Settings, **timing: Any) -> None:
        super().__init__(
            settings, url="https://api.assemblyai.com", header="Authorization", **timing
        )

    async def _upload(self, recording: Path) -> str:
        headers = {
            "Content-Length": str((await anyio.Path(recording).stat()).st_size),
            "Content-Type": "application/octet-stream",
        }
        answer = await self.ask(
            "POST",
            "/v2/upload",
            SECONDS,
            lambda: {"content": _chunks(recording), "headers": headers},
        )
        return self._text(answer, "upload_url")

    def _job(self, address: str) -> Json:
        body: Json = {"audio_url": address, "language_detection": True}
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
        length = float(answer.get("audio_duration") or seconds)
        return transcript(_utterances(answer["words"] or []), length, answer.get("language_code"))

    def _job_failure(self, answer: Json) -> CommonplaceError:
        reason = str(answer.get("error"))
        if _THEIR_FAULT.search(reason):
            return RemoteJobLost(self.failure(f"failed ({reason})").message)
        return IngestFailed(f"AssemblyAI could not transcribe the recording: {reason}")


async def _chunks(recording: Path) -> AsyncIterator[bytes]:
    async with await anyio.open_file(recording, "rb") as file:
        while chunk := await file.read(_CHUNK):
            yield chunk


def _utterances(words: list[Json]) -> Iterator[Utterance]:
    run: list[Json] = []
    for word in words:
        if run and (
            word["start"] - run[-1]["end"] > _PAUSE
            or len(run) == _MOST_WORDS
            or run[-1]["text"].endswith(_SENTENCE_END)
        ):
            yield _utterance(run)
            run = []
        run.append(word)
    if run:
        yield _utterance(run)


def _utterance(words: list[Json]) -> Utterance:
    return Utterance(
        words[0]["start"] / 1000, words[-1]["end"] / 1000, " ".join(word["text"] for word in words)
    )
