"""Stand-ins that tests hand to the application."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from anyio import Path as AsyncPath

from commonplace.model import Extracted, RemoteJob, Transcript, Utterance

SAID = (
    Utterance(0.0, 4.0, "The pelican nests beside the lagoon."),
    Utterance(4.5, 9.0, "Its bill holds eleven litres."),
    Utterance(30.0, 34.0, "In winter it flies to the delta."),
)


@dataclass
class FakeTranscriber:
    """Says what it is told to; `troubles` come first, one for each call."""

    name: str = "fake"
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
        remote_job: RemoteJob | None = None,
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
class FakeCaptions:
    found: Extracted | None
    asked: list[str] = field(default_factory=list)

    async def fetch(self, video_id: str) -> Extracted | None:
        self.asked.append(video_id)
        return self.found
