"""The default transcriber: Whisper on this machine's processor, without a key."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, cast

from anyio import Lock, to_thread

from commonplace.adapters.model_download import WHISPER, download, find
from commonplace.adapters.transcribe import duration, transcript
from commonplace.errors import ConfigurationError, DownloadFailed, TranscriptionFailed, extra
from commonplace.malloc_trim import release_memory
from commonplace.model import RemoteJob, Transcript, Utterance
from commonplace.settings import Settings

if TYPE_CHECKING:
    from faster_whisper import WhisperModel

_MOST_THREADS = 4
_HUB = "huggingface_hub"


@dataclass(frozen=True, slots=True)
class _Step:
    """How far it has come, and what was said, if anything."""

    seconds: float
    language: str | None
    said: Utterance | None = None


class LocalTranscriber:
    def __init__(self, settings: Settings, *, idle: float = 300.0) -> None:
        """`idle`: seconds until a model that nobody needs is forgotten."""
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
        remote_job: RemoteJob | None = None,
    ) -> Transcript:
        if recording is None:  # it was begun by a service, before the settings were changed
            raise TranscriptionFailed("The local transcriber needs the recording itself.")
        expected = await to_thread.run_sync(duration, recording)
        steps: list[_Step] = []
        async with self._turn, self._awake() as model:
            with closing(_steps(model, recording)) as going:
                # A step at a time, so that it can be stopped in between.
                while (step := await to_thread.run_sync(next, going, None)) is not None:
                    steps.append(step)
                    await progress(min(1.0, step.seconds / max(expected, step.seconds, 1.0)))
        return transcript(
            (step.said for step in steps if step.said), steps[-1].seconds, steps[-1].language
        )

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


def _steps(model: "WhisperModel", recording: Path) -> Generator[_Step]:
    from commonplace.adapters.transcribe import audio  # with the first recording, like the model

    language: str | None = None
    for piece in audio.pieces(recording):
        spoken = False
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
                spoken = True
                yield _Step(
                    end,
                    info.language,
                    Utterance(round(start, 2), round(end, 2), segment.text.strip()),
                )
        except RuntimeError as error:  # CTranslate2's only error
            raise TranscriptionFailed(f"The local transcriber failed: {error}") from error
        if spoken:  # music has no language, whatever the model says
            language = info.language
        yield _Step(piece.end, language)
