"""The default transcriber: Whisper on this machine's processor, without a key."""

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from types import ModuleType
from typing import TYPE_CHECKING, cast

from anyio import Lock, to_thread

from commonplace.adapters.model_download import WHISPER, download, find
from commonplace.adapters.transcribe import measure, transcript
from commonplace.errors import (
    ConfigurationError,
    DownloadFailed,
    IngestFailed,
    TranscriptionFailed,
    extra,
)
from commonplace.malloc_trim import release_memory
from commonplace.model import Begun, Json, Transcript, Utterance
from commonplace.settings import Settings
from commonplace.text.query_terms import STOP_WORDS

if TYPE_CHECKING:
    from faster_whisper import WhisperModel
    from faster_whisper.transcribe import Segment

_MOST_THREADS = 4
_SAVE_SECONDS = 10.0
_SURE = 0.5  # of the language, by a model that knows several
_UNSURE = -0.8  # mean log-probability of the words
_GUESSING = 0.8  # the temperature of the last attempt at a piece
_COMMON = 0.2  # share of words without which there is no English
_ENOUGH_SECONDS, _ENOUGH_WORDS = 30.0, 20  # of speech, to judge its language
_WORD = re.compile(r"[a-z']+")
_HUB = "huggingface_hub"


@dataclass(frozen=True, slots=True)
class _Step:
    """How far it has come, and what was said, if anything."""

    seconds: float
    language: str | None
    said: Utterance | None = None
    is_end: bool = False  # of a piece, behind which a later attempt can go on


class LocalTranscriber:
    is_remote = False

    def __init__(
        self, settings: Settings, *, idle: float = 300.0, save_seconds: float = _SAVE_SECONDS
    ) -> None:
        """`idle`: seconds until a model that nobody needs is forgotten. `save_seconds`: between two
        times that finished pieces are stored."""
        self._language = settings.transcriber_language or None
        self._save_seconds = save_seconds
        self._models = settings.data_dir / "models"
        self._folder = (
            _find(settings.transcriber_model, self._models) if settings.transcriber_model else None
        )
        self.name = f"local/{settings.transcriber_model or 'tiny.en'}"
        self._threads = settings.threads or min(_MOST_THREADS, os.cpu_count() or 1)
        self._turn = Lock()
        self._idle = idle
        self._model: WhisperModel | None = None
        self._bedtime: asyncio.TimerHandle | None = None

    @property
    def loaded(self) -> bool:
        return self._model is not None

    async def transcribe(
        self,
        recording: Path | None,
        progress: Callable[[float], Awaitable[None]],
        begun: Begun | None = None,
    ) -> Transcript:
        if recording is None:
            raise TranscriptionFailed("The local transcriber needs the recording itself.")
        expected, _ = await to_thread.run_sync(measure, recording)
        state = (begun and begun.state) or {"seconds": 0.0, "language": None, "said": []}
        said = [Utterance(*one) for one in state["said"]]
        step, saved = _Step(state["seconds"], state["language"]), monotonic()
        async with self._turn, self._awake() as model:
            with closing(_steps(model, recording, step, self._language)) as going:
                # A step at a time, so that it can be stopped in between.
                while (found := await to_thread.run_sync(next, going, None)) is not None:
                    step = found
                    said += [step.said] if step.said else []
                    await progress(min(1.0, step.seconds / max(expected, step.seconds, 1.0)))
                    if begun and step.is_end and monotonic() - saved >= self._save_seconds:
                        await begun.remember(_state(step, said))
                        saved = monotonic()
        return transcript(said, step.seconds, step.language)

    async def close(self) -> None:
        if self._bedtime:
            self._bedtime.cancel()
        if self._model:
            self._forget()

    @asynccontextmanager
    async def _awake(self) -> AsyncIterator["WhisperModel"]:
        if self._bedtime:
            self._bedtime.cancel()
        if self._model is None:
            self._model = await to_thread.run_sync(
                _load, self._folder or await self._own_model(), self._threads
            )
        try:
            yield self._model
        finally:
            self._bedtime = asyncio.get_running_loop().call_later(self._idle, self._forget)

    async def _own_model(self) -> Path:
        try:
            return find(WHISPER, self._models) or await download(WHISPER, self._models)
        except DownloadFailed as error:
            raise TranscriptionFailed(error.message) from error

    def _forget(self) -> None:
        self._model = None
        release_memory()  # a server should not carry it until the next recording


def _find(name: str, models: Path) -> Path:
    for folder in (models / name, Path(name).expanduser()):
        if folder.is_dir():
            missing = [
                file
                for file in ("model.bin", "config.json", "tokenizer.json")
                if not (folder / file).is_file()
            ]
            if missing:
                raise ConfigurationError(
                    f"The Whisper model in {folder} is not whole: it has no {', '.join(missing)}."
                )
            return folder
    raise ConfigurationError(
        f"COMMONPLACE_TRANSCRIBER_MODEL is {name!r}, but there is no such folder, "
        f"and none in {models}. "
        "Put a Whisper model in CTranslate2's format there (only the default model is downloaded)."
    )


def _load(folder: Path, threads: int) -> "WhisperModel":
    try:
        return _whisper()(
            str(folder), device="cpu", compute_type="int8", cpu_threads=threads, num_workers=1
        )
    except (RuntimeError, ValueError, OSError) as error:
        raise ConfigurationError(
            f"The Whisper model in {folder} cannot be loaded: {error}"
        ) from error


def _whisper() -> type["WhisperModel"]:
    """faster_whisper imports the hub's library, which only its own downloads use."""
    absent = _HUB not in sys.modules and find_spec(_HUB) is None
    if absent:
        sys.modules[_HUB] = ModuleType(_HUB)
    try:
        with extra("speech", "Transcription", TranscriptionFailed):
            from faster_whisper import WhisperModel
    finally:
        if absent:
            del sys.modules[_HUB]
    return cast("type[WhisperModel]", WhisperModel)


class _Evidence:
    """Whether a recording is in English: how sure a model that knows nothing else is of it.

    Other languages come out as fluent English that nobody said. Their mean log-probability was
    below -.8 in recordings by people and by synthesizers, or too few of the words were those that
    no English goes without; English ones had -.2 to -.6 (docs/lab/sources.md).
    """

    def __init__(self) -> None:
        self.seconds = self._log_probability = self._guessed = 0.0
        self._words: list[str] = []

    def hear(self, segment: "Segment") -> None:
        lasts = max(0.1, segment.end - segment.start)
        self.seconds += lasts
        self._log_probability += lasts * segment.avg_logprob
        self._guessed += lasts * ((segment.temperature or 0.0) >= _GUESSING)
        self._words += _WORD.findall(segment.text.lower())

    @property
    def is_enough(self) -> bool:
        return self.seconds >= _ENOUGH_SECONDS

    def require_english(self) -> str:
        common = sum(word in STOP_WORDS for word in self._words)
        if (
            self._log_probability < _UNSURE * self.seconds
            or self._guessed > self.seconds / 2
            or (len(self._words) >= _ENOUGH_WORDS and common < _COMMON * len(self._words))
        ):
            raise IngestFailed(
                "The recording does not seem to be in English, or it is hard to hear; the local "
                "model knows English only. Set COMMONPLACE_TRANSCRIBER_MODEL to a multilingual "
                "Whisper model, or COMMONPLACE_TRANSCRIBER to a service."
            )
        return "en"


def _state(step: _Step, said: list[Utterance]) -> Json:
    return {
        "seconds": step.seconds,
        "language": step.language,
        "said": [[one.start, one.end, one.text] for one in said],
    }


def _steps(
    model: "WhisperModel", recording: Path, behind: _Step, declared: str | None
) -> Generator[_Step]:
    """Transcribe what comes `behind` an earlier step. `declared`: the language, if a setting says
    it; else a model that knows several finds it out."""
    from commonplace.adapters.transcribe import audio  # with the first recording, like the model

    language = declared or behind.language
    evidence = None if language or model.model.is_multilingual else _Evidence()
    for piece in audio.pieces(recording, behind.seconds):
        try:
            # Without the text so far: a mistake in it would repeat itself to the end.
            # Wider beams understand 1 % more, in half again the time.
            segments, info = model.transcribe(
                piece.samples,
                language=language,
                beam_size=1,
                best_of=1,
                temperature=[0.0, 0.4, 0.8],
                vad_filter=True,
                condition_on_previous_text=False,
            )
            for segment in segments:
                start, end = (
                    min(piece.start + time, piece.end) for time in (segment.start, segment.end)
                )
                if evidence:
                    evidence.hear(segment)
                elif info.language_probability >= _SURE:
                    language = info.language  # music has none, whatever the model says
                text = segment.text.strip()
                yield _Step(end, language, Utterance(round(start, 2), round(end, 2), text))
        except RuntimeError as error:  # CTranslate2's only error
            raise TranscriptionFailed(f"The local transcriber failed: {error}") from error
        if evidence and evidence.is_enough:
            language, evidence = evidence.require_english(), None
        yield _Step(piece.end, language, is_end=True)
    if evidence and evidence.seconds:
        yield _Step(piece.end, evidence.require_english(), is_end=True)
