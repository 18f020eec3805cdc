"""Gladia's pre-recorded transcription, api.gladia.io/v2."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio

from commonplace.adapters.transcribe.service import PATIENCE, Lost, RemoteTranscriber
from commonplace.adapters.transcribe.transcript import transcript
from commonplace.errors import IngestFailed
from commonplace.model import Json, Transcript, Utterance
from commonplace.settings import Settings


class GladiaTranscriber(RemoteTranscriber):
    def __init__(self, settings: Settings, **patience: Any) -> None:
        super().__init__(settings, url="https://api.gladia.io", header="x-gladia-key", **patience)
        self.name = f"gladia/{self._model or 'default'}"

    async def _upload(self, recording: Path) -> str:
        async with await anyio.open_file(recording, "rb") as file:
            form = {
                "audio": (f"recording{recording.suffix}", file.wrapped, "application/octet-stream")
            }
            answer = await self._service.ask(
                "POST", "/v2/upload", PATIENCE, lambda: {"files": form}
            )
        return self._text(answer, "audio_url")

    async def _begin(self, address: str) -> str:
        body: Json = {"audio_url": address} | ({"model": self._model} if self._model else {})
        if self._callback:
            body |= {
                "callback": True,
                "callback_config": {
                    "url": f"{self._callback}?secret={self._secret}",
                    "method": "POST",
                },
            }
        answer = await self._service.ask(
            "POST", "/v2/pre-recorded", PATIENCE, lambda: {"json": body}, repeatable=False
        )
        return self._text(answer, "id")

    async def _status(self, job: str) -> Json:
        return await self._service.ask("GET", f"/v2/pre-recorded/{quote(job, safe='')}", PATIENCE)

    def _read(self, answer: Json, seconds: float) -> Transcript | None:
        if answer["status"] in ("queued", "processing"):
            return None
        if answer["status"] == "done":
            result = answer["result"]
            spoken = result["transcription"]
            length = float(result["metadata"].get("audio_duration") or seconds)
            said = [
                Utterance(float(one["start"]), float(one["end"]), one["text"].strip())
                for one in spoken["utterances"]
            ]
            return transcript(said, length, next(iter(spoken.get("languages") or []), None))
        if answer["status"] != "error":
            raise ValueError(answer["status"])
        code = answer.get("error_code") or 500
        if 400 <= code < 500 and code not in (401, 403, 408, 429):
            raise IngestFailed(f"Gladia could not transcribe the recording (error {code}).")
        raise Lost(self._service.failed(f"failed (error {code})").message)
