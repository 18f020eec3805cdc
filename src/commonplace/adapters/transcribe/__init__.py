"""Transcribers, chosen by the setting `transcriber`. Each is imported only when it is the one."""

from pathlib import Path

from commonplace.adapters.lazy_import import chosen
from commonplace.ports import Transcriber
from commonplace.settings import Settings

TRANSCRIBERS = {
    "local": "whisper:LocalTranscriber",
    "assemblyai": "assemblyai:AssemblyAITranscriber",
    "gladia": "gladia:GladiaTranscriber",
}


def duration(recording: Path) -> float:
    """Seconds. What decodes sound is brought in with the first recording."""
    from commonplace.adapters.transcribe import audio

    return audio.duration(recording)


def make_transcriber(settings: Settings) -> Transcriber:
    """The transcriber of the settings. A model is loaded when it is first used; a mistake in the settings shows here."""
    transcriber: Transcriber = chosen("transcriber", TRANSCRIBERS, __name__, settings)
    return transcriber
