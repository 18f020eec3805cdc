"""How fast and in how much memory the local transcriber writes down speech, and how much of it is understood.

    python benchmarks/transcription.py                          # ten minutes, made by espeak-ng
    python benchmarks/transcription.py --minutes 180 --format mp3 --decode-only
    python benchmarks/transcription.py talk.mp3 --model small.en

The rate is recording seconds per CPU second, all threads counted. Synthetic speech is harder to understand than people are:
the share of words understood is a floor. `--decode-only` shows what reading a recording costs without a model.
"""

import argparse
import asyncio
import re
import resource
import subprocess
import tempfile
import time
from itertools import cycle
from pathlib import Path

import av

from commonplace.adapters.transcribe import audio
from commonplace.adapters.transcribe.whisper import LocalTranscriber
from commonplace.settings import Settings

TEXT = """Knowledge grows when people share it. A library keeps what a town has learned, and lends it to everybody who asks.
Every morning the doors open at nine, and the first visitors come in from the rain. Some of them look for a quiet table, others
for a book about gardens, engines or distant stars. The old clock in the hall is always three minutes late. In the afternoon the
children arrive from school and listen to stories. When evening comes, the lights are turned down, and the books rest until the
next day. Nobody knows how many questions have been answered here, but the librarian says that the best ones are still open."""


def make(folder: Path, minutes: float, ending: str) -> tuple[Path, int]:
    """A recording of about so many minutes, and how often it says the text."""
    said = folder / "said.wav"
    subprocess.run(["espeak-ng", "-v", "en-us", "-s", "145", "-w", str(said), TEXT], check=True)
    pieces = [piece.samples for piece in audio.pieces(said)]
    times = max(1, round(minutes * 60 / audio.duration(said)))
    path = folder / f"recording.{ending}"
    with av.open(str(path), "w") as container:
        codec = {"mp3": "libmp3lame", "flac": "flac", "ogg": "libopus", "wav": "pcm_s16le"}[ending]
        stream = container.add_stream(codec, rate=audio.RATE, layout="mono")
        for samples, _ in zip(cycle(pieces), range(times * len(pieces)), strict=False):
            frame = av.AudioFrame.from_ndarray(samples[None], format="fltp", layout="mono")
            frame.sample_rate = audio.RATE
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path, times


def words(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())


async def transcribe(path: Path, model: str, times: int) -> float:
    transcriber = LocalTranscriber(Settings(transcriber_model=model))

    async def progress(share: float) -> None:
        print(f"\r{share:6.1%}", end="", flush=True)

    found = await transcriber.transcribe(path, progress)
    await transcriber.close()
    heard = words(" ".join(one.text for one in found.utterances))
    print(
        f"\r{len(found.utterances)} utterances, {len(heard)} words; the first: {found.utterances[0].text}"
    )
    if times:
        known = set(words(TEXT))
        understood = sum(word in known for word in heard) / (times * len(words(TEXT)))
        print(f"words understood: {understood:.1%}")
    return found.seconds


def decode(path: Path) -> float:
    return sum(len(piece.samples) for piece in audio.pieces(path)) / audio.RATE


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recording", nargs="?", type=Path)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--format", default="mp3", choices=["mp3", "flac", "ogg", "wav"])
    parser.add_argument("--model", default="")
    parser.add_argument("--decode-only", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, times = (
            (arguments.recording, 0)
            if arguments.recording
            else make(Path(folder), arguments.minutes, arguments.format)
        )
        wall, cpu = time.perf_counter(), time.process_time()
        seconds = (
            decode(path)
            if arguments.decode_only
            else asyncio.run(transcribe(path, arguments.model, times))
        )
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{seconds:.0f} s of sound in {wall:.1f} s, {cpu:.1f} CPU seconds: {seconds / cpu:.1f} x real time per CPU second, "
        f"peak memory {peak:.0f} MB"
    )


if __name__ == "__main__":
    main()
