"""Stand-ins that tests hand to the application."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path

from anyio import Path as AsyncPath

from commonplace.model import Begun, Extracted, Transcript, Utterance, Video

SAID = (
    Utterance(0.0, 4.0, "The pelican nests beside the lagoon."),
    Utterance(4.5, 9.0, "Its bill holds eleven litres."),
    Utterance(30.0, 34.0, "In winter it flies to the delta."),
)


@dataclass
class FakeTranscriber:
    """Says what it is told to; `troubles` come first, one for each call."""

    name: str = "fake"
    is_remote: bool = False
    said: tuple[Utterance, ...] = SAID
    seconds: float = 60.0
    troubles: list[Exception] = field(default_factory=list)
    calls: int = 0
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event | None = None  # when given, it waits here, half done

    async def transcribe(
        self,
        recording: Path | None,
        progress: Callable[[float], Awaitable[None]],
        begun: Begun | None = None,
    ) -> Transcript:
        assert recording is not None
        self.calls += 1
        assert await AsyncPath(recording).read_bytes()
        if self.troubles:
            raise self.troubles.pop(0)
        await progress(0.5)
        self.begun.set()
        if self.go_on:
            await self.go_on.wait()
        return Transcript(self.said, self.seconds, "en")

    async def close(self) -> None:
        pass


@dataclass
class FakeVideos:
    """Videos with captions."""

    found: Extracted
    asked: list[str] = field(default_factory=list)

    async def read(self, video_id: str) -> Video:
        self.asked.append(video_id)
        return Video(self.found, has_captions=True)

    def open(self, video_id: str, *, max_bytes: int) -> AbstractAsyncContextManager[Path]:
        raise AssertionError("nobody needs the sound of a video with captions")
