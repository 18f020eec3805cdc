"""Make a transcript from utterances."""

from collections.abc import Iterable

from commonplace.errors import IngestFailed
from commonplace.model import Transcript, Utterance


def transcript(utterances: Iterable[Utterance], seconds: float, language: str | None) -> Transcript:
    spoken = tuple(utterance for utterance in utterances if utterance.text)
    if not spoken:
        raise IngestFailed("No speech was found in the recording.")
    return Transcript(spoken, seconds, language)
