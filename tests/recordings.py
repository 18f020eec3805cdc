"""Recordings made on the spot: tones in any format, and speech where espeak-ng is there."""

import subprocess
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from av.video.frame import VideoFrame
from numpy.typing import NDArray

Samples = NDArray[np.float32]
SOUND = {
    "mp3": "libmp3lame",
    "m4a": "aac",
    "wav": "pcm_s16le",
    "ogg": "libopus",
    "flac": "flac",
    "aac": "aac",
    "opus": "libopus",
}
VIDEO = {
    "mp4": ("aac", "mpeg4"),
    "webm": ("libopus", "libvpx"),
    "mov": ("aac", "mpeg4"),
    "mkv": ("libopus", "mpeg4"),
}


def tone(seconds: float, rate: int, hertz: float = 440.0) -> Samples:
    times = np.arange(int(seconds * rate)) / rate
    return (0.3 * np.sin(2 * np.pi * hertz * times)).astype(np.float32)


def record(path: Path, samples: Samples, rate: int = 48_000, layout: str = "stereo") -> Path:
    """The samples in the format of the file's ending; videos get a picture as well."""
    ending = path.suffix[1:]
    codec, video = VIDEO[ending] if ending in VIDEO else (SOUND[ending], None)
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=rate, layout=layout)
        if video:
            _picture(container, video)
        for start in range(0, len(samples), rate):
            part = np.stack([samples[start : start + rate]] * stream.layout.nb_channels)
            frame = av.AudioFrame.from_ndarray(part, format="fltp", layout=layout)
            frame.sample_rate, frame.pts, frame.time_base = rate, start, Fraction(1, rate)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def picture_only(path: Path) -> Path:
    with av.open(str(path), "w") as container:
        _picture(container, "mpeg4")
    return path


def speech(path: Path, text: str) -> Path:
    """16 kHz or so, mono, one clear voice. `make test` installs espeak-ng."""
    subprocess.run(["espeak-ng", "-v", "en-us", "-s", "140", "-w", str(path), text], check=True)
    return path


def _picture(container: av.container.OutputContainer, codec: str) -> None:
    stream = container.add_stream(codec, rate=10, width=64, height=64, pix_fmt="yuv420p")
    for number in range(10):
        frame = VideoFrame(64, 64, "yuv420p")
        frame.pts = number
        container.mux(stream.encode(frame))
    container.mux(stream.encode(None))
