"""Decode recordings piece by piece, so that hours of audio are never in memory at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path

import av
import numpy as np
from av.audio.frame import AudioFrame
from av.audio.stream import AudioStream
from av.container import InputContainer
from numpy.typing import NDArray

from commonplace.errors import IngestFailed
from commonplace.model import Chapter

Samples = NDArray[np.float32]

RATE = 16_000  # samples a second, mono: the input of speech models
_SHORTEST, _LONGEST = 45, 60  # seconds of a piece; it ends at the quietest point in between
_FRAME, _PAUSE = RATE // 50, 15  # loudness is measured per 20 ms; a pause is 15 of them
_MOST_HOURS = 24
_MOST_CHAPTERS, _CHAPTER_CHARS = 1_000, 300
# Only formats that contain the audio: a playlist would make us open other files and addresses.
_OPTIONS = {
    "format_whitelist": (
        "aac,aiff,amr,asf,avi,caf,flac,matroska,mov,mp3,mpeg,mpegts,ogg,wav,w64,webm"
    ),
    "protocol_whitelist": "file",
}


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    start: float  # seconds
    samples: Samples

    @property
    def end(self) -> float:
        return self.start + len(self.samples) / RATE


def duration(recording: Path) -> float:
    """Return the seconds by the file's header, which may be an estimate, or by its packets."""
    with _open(recording) as (container, stream):
        if stream.duration and stream.time_base:
            return float(stream.duration * stream.time_base)
        if container.duration:
            return container.duration / av.time_base
        return max(
            (
                float((packet.pts + (packet.duration or 0)) * packet.time_base)
                for packet in container.demux(stream)
                if packet.pts is not None
            ),
            default=0.0,
        )


def chapters(recording: Path) -> tuple[Chapter, ...]:
    """Return the chapters that the file lists, as podcasts and audio books do."""
    with _open(recording) as (container, _):
        listed = [
            (float(each["start"] * each["time_base"]), str(each["metadata"].get("title", "")))
            for each in container.chapters()[:_MOST_CHAPTERS]
            if each["time_base"]
        ]
    titled = [(start, " ".join(title.split())[:_CHAPTER_CHARS]) for start, title in listed]
    return tuple(Chapter(start, title) for start, title in titled if title)


def pieces(recording: Path, after: float = 0.0) -> Iterator[Piece]:
    """Yield the recording in order, cut at pauses. Raises IngestFailed if it has no audio.

    `after`: seconds that are skipped, the end of an earlier piece.
    """
    with _open(recording) as (container, stream):
        held: list[Samples] = []
        start, length = round(after * RATE), 0
        for part in _skip(_samples(_frames(container, stream)), start):
            held.append(part)
            length += len(part)
            if length >= _LONGEST * RATE:
                whole = np.concatenate(held)
                cut = _quietest(whole)
                yield Piece(start / RATE, whole[:cut])
                held, start, length = [whole[cut:]], start + cut, length - cut
            if start > _MOST_HOURS * 3600 * RATE:
                raise IngestFailed(f"The recording is longer than {_MOST_HOURS} hours.")
        if not start + length:
            raise IngestFailed("The recording has no audio: it is empty or damaged.")
        yield Piece(start / RATE, np.concatenate(held))


@contextmanager
def _open(recording: Path) -> Iterator[tuple[InputContainer, AudioStream]]:
    try:
        with av.open(str(recording.absolute()), options=_OPTIONS) as container:
            if not container.streams.audio:
                raise IngestFailed("The recording has no audio track.")
            yield container, container.streams.audio[0]
    except av.FFmpegError as error:
        reason = error.strerror or type(error).__name__
        raise IngestFailed(
            "The recording cannot be read: it is damaged, or its format is not supported "
            f"({reason})."
        ) from error


def _frames(container: InputContainer, stream: AudioStream) -> Iterator[AudioFrame]:
    for packet in container.demux(stream):
        try:
            yield from packet.decode()
        except av.error.InvalidDataError:
            continue  # a damaged packet loses a fraction of a second, not the recording


def _skip(parts: Iterator[Samples], count: int) -> Iterator[Samples]:
    for part in parts:
        if count < len(part):
            yield part[count:]
        count = max(0, count - len(part))


def _samples(frames: Iterator[AudioFrame]) -> Iterator[Samples]:
    for _, alike in groupby(
        frames, lambda frame: (frame.format.name, frame.layout.name, frame.sample_rate)
    ):
        resampler = av.AudioResampler(format="flt", layout="mono", rate=RATE)
        for frame in chain(alike, [None]):
            if frame is not None:
                frame.pts = None  # the resampler fails on gaps in the timestamps
            for resampled in resampler.resample(frame):
                yield np.nan_to_num(resampled.to_ndarray()[0])


def _quietest(samples: Samples) -> int:
    """Return where to cut: the middle of the quietest pause near the end."""
    first = _SHORTEST * RATE
    frames = samples[first : len(samples) - (len(samples) - first) % _FRAME].reshape(-1, _FRAME)
    loudness = np.convolve(np.square(frames).mean(axis=1), np.ones(_PAUSE), "valid")
    return first + (int(np.argmin(loudness)) + _PAUSE // 2) * _FRAME
