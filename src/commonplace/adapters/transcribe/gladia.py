"""Gladia's pre-recorded transcription, api.gladia.io/v2."""

from pathlib import Path
from typing import Any

import anyio

from commonplace.adapters.transcribe.service import SECONDS, RemoteJobLost, RemoteTranscriber
from commonplace.adapters.transcribe.transcript import transcript
from commonplace.errors import CommonplaceError, IngestFailed
from commonplace.model import Json, Transcript, Utterance
from commonplace.settings import Settings


class GladiaTranscriber(RemoteTranscriber):
    _jobs, _done = "/v2/pre-recorded", "done"

    def __init__(self, settings: Settings, **timing: Any) -> None:
        super().__init__(settings, url="https://api.gladia.io", header="x-gladia-key", **timing)

    async def _upload(self, recording: Path) -> str:
        async with await anyio.open_file(recording, "rb") as file:
            name = f"recording{recording.suffix}"
            form = {"audio": (name, file.wrapped, "application/octet-stream")}
            answer = await self.ask("POST", "/v2/upload", SECONDS, lambda: {"files": form})
        return self._text(answer, "audio_url")

    def _job(self, address: str) -> Json:
        body: Json = {"audio_url": address} | ({"model": self._model} if self._model else {})
        if self._callback:
            url = f"{self._callback}?secret={self._secret}"
            body |= {"callback": True, "callback_config": {"url": url, "method": "POST"}}
        return body

    def _transcript(self, answer: Json, seconds: float) -> Transcript:
        result = answer["result"]
        found = result["transcription"]
        length = float(result["metadata"].get("audio_duration") or seconds)
        utterances = [
            Utterance(float(one["start"]), float(one["end"]), one["text"].strip())
            for one in found["utterances"]
        ]
        return transcript(utterances, length, next(iter(found.get("languages") or []), None))

    def _job_failure(self, answer: Json) -> CommonplaceError:
        code = answer.get("error_code") or 500
        if 400 <= code < 500 and code not in (401, 403, 408, 429):
            return IngestFailed(f"Gladia could not transcribe the recording (error {code}).")
        return RemoteJobLost(self.failure(f"failed (error {code})").message)
