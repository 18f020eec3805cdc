"""Subtitles: WebVTT and SubRip as paragraphs, each with its time."""

import html
import re
from collections.abc import Iterator
from itertools import takewhile

from commonplace.adapters.extract import charset
from commonplace.adapters.extract.input_file import Caps, Source
from commonplace.errors import IngestFailed
from commonplace.model import Extracted, Utterance
from commonplace.text.speech import SUBTITLES, join_speech

_TIME = r"(?:(\d+):)?(\d\d?):(\d\d)[.,](\d{3})"
_CUE = re.compile(rf"^{_TIME}[ \t]+-->[ \t]+{_TIME}.*$", re.MULTILINE)
_VOICE = re.compile(r"<v(?:\.[^ \t<>]*)?[ \t]++([^<>]+)>")
_TAG = re.compile(r"</?[a-z0-9][^<>]*>|\{\\[^{}]*\}", re.IGNORECASE)


def read(source: Source, caps: Caps) -> Extracted:
    lines = charset.decode(source.read_all(caps), source.charset).replace("\r\n", "\n")
    text, marks = join_speech(_utterances(lines.replace("\r", "\n")), SUBTITLES)
    if not text:
        raise IngestFailed("The file contains no subtitles.")
    return Extracted(source.title, text, marks)


def _utterances(text: str) -> Iterator[Utterance]:
    """Yield the cues in order, without the lines that rolling captions repeat."""
    cues = list(_CUE.finditer(text))
    ends = [*(cue.start() for cue in cues[1:]), len(text)]
    shown: list[str] = []
    for cue, end in zip(cues, ends, strict=False):
        body = text[cue.end() : end].split("\n")[1:]
        lines = list(filter(None, map(_plain_line, takewhile(str.strip, body))))
        new = [line for line in lines if line not in shown]
        shown = lines or shown
        if new:
            yield Utterance(_seconds(cue, 1), _seconds(cue, 5), " ".join(new))


def _plain_line(line: str) -> str:
    return " ".join(
        html.unescape(_TAG.sub("", _VOICE.sub(lambda voice: f"{voice[1].strip()}: ", line))).split()
    )


def _seconds(cue: re.Match[str], group: int) -> float:
    hours, minutes, seconds, millis = (int(cue[i] or 0) for i in range(group, group + 4))
    return hours * 3600 + minutes * 60 + seconds + millis / 1000
