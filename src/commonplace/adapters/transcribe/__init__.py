"""Transcribers, chosen by the setting `transcriber`. Each is imported only when it is the one."""

from collections.abc import Iterable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from commonplace.adapters.lazy_import import Maker, maker
from commonplace.errors import IngestFailed, extra
from commonplace.model import Chapter, Transcript, Utterance
from commonplace.ports import Transcriber

TRANSCRIBERS = {
    "local": "whisper:LocalTranscriber",
    "assemblyai": "service:AssemblyAITranscriber",
    "gladia": "service:GladiaTranscriber",
}
# A model is loaded when it is first used.
make_transcriber: Maker[Transcriber] = maker("transcriber", TRANSCRIBERS, __name__)


def measure(recording: Path) -> tuple[float, tuple[Chapter, ...]]:
    """Return the seconds and the chapters that the file lists. The decoder is imported with the
    first recording."""
    require_speech()
    from commonplace.adapters.transcribe import audio

    return audio.duration(recording), audio.chapters(recording)


def require_speech() -> None:
    """Refuse recordings where the packages that decode and transcribe them are not installed."""
    with extra("speech", "Transcription", IngestFailed):
        if find_spec("av") is None:
            raise ModuleNotFoundError("av")


def transcript(
    utterances: Iterable[Utterance],
    seconds: float,
    language: str | None,
    chapters: tuple[Chapter, ...] = (),
) -> Transcript:
    spoken = tuple(utterance for utterance in utterances if utterance.text)
    if not spoken:
        raise IngestFailed("No speech was found in the recording.")
    if len({utterance.speaker for utterance in spoken}) == 1:  # nobody to tell apart
        spoken = tuple(replace(utterance, speaker=None) for utterance in spoken)
    return Transcript(spoken, seconds, language, chapters)
