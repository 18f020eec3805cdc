"""A server on this machine that speaks the documented protocols of AssemblyAI (v2) and Gladia (v2, pre-recorded).

Both: upload, create, look until it is done. It hears the same sentences in every recording.
"""

from dataclasses import dataclass, field
from email import message_from_bytes
from typing import Any

from tests.stub_service import KEY, Refused, Request, StubService

SENTENCES = [
    (0.5, 2.0, "The ferry leaves at dawn."),
    (2.2, 3.1, "Bring bread."),
    (6.0, 7.5, "Nobody waits for the tide"),
]
SECONDS = 8


@dataclass
class SpeechService(StubService):
    busy: list[str] = field(
        default_factory=lambda: ["queued", "processing"]
    )  # what it says before it is done
    error: Any = None  # AssemblyAI: a sentence; Gladia: an HTTP status
    dialogue: bool = False
    silent: bool = False  # it hears nobody speak
    uploads: list[bytes] = field(default_factory=list)
    jobs: list[dict[str, Any]] = field(default_factory=list)

    def answer(self, request: Request) -> dict[str, Any]:
        gladia = "x-gladia-key" in request.headers
        if request.headers.get("x-gladia-key" if gladia else "authorization") != KEY:
            raise Refused(401, {"error": f"Authentication error, key {KEY[:3]} is not it"})
        match request.method, request.path:
            case "POST", "/v2/upload":
                return self._upload(request, gladia)
            case "POST", "/v2/transcript" if not gladia:
                return self._create(
                    request,
                    {
                        "audio_url",
                        "language_detection",
                        "language_code",
                        "speaker_labels",
                        "speech_models",
                        "webhook_url",
                        "webhook_auth_header_name",
                        "webhook_auth_header_value",
                    },
                ) | {"status": "queued"}
            case "POST", "/v2/pre-recorded" if gladia:
                known = {"audio_url", "model", "callback", "callback_config"}
                job = self._create(request, known | {"diarization", "language_config"})
                return job | {"result_url": f"{self.url}/v2/pre-recorded/{job['id']}"}
            case "GET", path if path.rpartition("/")[2] in {
                f"job-{number}" for number in range(len(self.jobs))
            }:
                return self._gladia() if gladia else self._assemblyai()
        raise Refused(404, {"error": "Not found"})

    def _upload(self, request: Request, gladia: bool) -> dict[str, Any]:
        self.uploads.append(_form_file(request) if gladia else request.body)
        address = f"{self.url}/file/{len(self.uploads) - 1}"
        return (
            {"audio_url": address, "audio_metadata": {"size": len(self.uploads[-1])}}
            if gladia
            else {"upload_url": address}
        )

    def _create(self, request: Request, known: set[str]) -> dict[str, Any]:
        body = request.json()
        if set(body) - known or not body["audio_url"].startswith(f"{self.url}/file/"):
            raise Refused(400, {"error": f"Invalid request: {sorted(body)}"})
        self.jobs.append(body)
        return {"id": f"job-{len(self.jobs) - 1}"}

    def _assemblyai(self) -> dict[str, Any]:
        if self.busy:
            return {"status": self.busy.pop(0), "words": None, "text": None}
        if self.error:
            return {"status": "error", "error": self.error}
        words = (
            []
            if self.silent
            else [
                word | {"speaker": "AB"[number % 2] if self.dialogue else "A"}
                for number, sentence in enumerate(SENTENCES)
                for word in _words(*sentence)
            ]
        )
        return {
            "status": "completed",
            "words": words,
            "audio_duration": SECONDS,
            "language_code": "en",
            "error": None,
        }

    def _gladia(self) -> dict[str, Any]:
        if self.busy:
            return {"status": self.busy.pop(0), "result": None, "error_code": None}
        if self.error:
            return {"status": "error", "error_code": self.error, "result": None}
        spoken = (
            []
            if self.silent
            else [
                {"start": start, "end": end, "text": f" {text}", "language": "en"}
                | {"speaker": number % 2 if self.dialogue else 0}
                for number, (start, end, text) in enumerate(SENTENCES)
            ]
        )
        return {
            "status": "done",
            "error_code": None,
            "result": {
                "metadata": {"audio_duration": SECONDS, "billing_time": SECONDS},
                "transcription": {"utterances": spoken, "languages": ["en"], "full_transcript": ""},
            },
        }


def _words(start: float, end: float, text: str) -> list[dict[str, Any]]:
    words = text.split()
    step = (end - start) * 1000 / len(words)
    return [
        {
            "text": word,
            "start": round(start * 1000 + index * step),
            "end": round(start * 1000 + (index + 1) * step),
            "confidence": 0.9,
            "speaker": None,
        }
        for index, word in enumerate(words)
    ]


def _form_file(request: Request) -> bytes:
    form = message_from_bytes(
        f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode() + request.body
    )
    parts = [
        part
        for part in form.walk()
        if part.get_param("name", header="content-disposition") == "audio"
    ]
    if len(parts) != 1:
        raise Refused(400, {"message": "audio must be a file"})
    content = parts[0].get_payload(decode=True)
    assert isinstance(content, bytes)
    return content
