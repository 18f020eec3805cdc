"""Subtitles: WebVTT and SubRip as paragraphs, each with its time."""

import html
import re
from collections.abc import Iterable, Iterator
from itertools import takewhile

from commonplace.adapters.extract import charset
from commonplace.adapters.extract.input_file import Caps, Source
from commonplace.errors import IngestFailed
from commonplace.model import Extracted, Mark, Utterance

_TIME = r"(?:(\d+):)?(\d\d?):(\d\d)[.,](\d{3})"
_CUE = re.compile(rf"^{_TIME}[ \t]+-->[ \t]+{_TIME}.*$", re.MULTILINE)
_VOICE = re.compile(r"<v(?:\.[^ \t<>]*)?[ \t]++([^<>]+)>")
_TAG = re.compile(r"</?[a-z0-9][^<>]*>|\{\\[^{}]*\}", re.IGNORECASE)
_SENTENCE_END = (".", "!", "?", "…", "。", "！", "？", '."', '?"')
_PARAGRAPH_SECONDS = 30
_LONGEST_SECONDS = 60  # even within a sentence: automatic captions have no full stops
_PAUSE_SECONDS = 4


def read(source: Source, caps: Caps) -> Extracted:
    lines = charset.decode(source.read_all(caps), source.charset).replace("\r\n", "\n")
    text, marks = join_utterances(_utterances(lines.replace("\r", "\n")))
    if not text:
        raise IngestFailed("The file contains no subtitles.")
    return Extracted(source.title, text, marks)


def join_utterances(utterances: Iterable[Utterance]) -> tuple[str, tuple[Mark, ...]]:
    """Join speech to paragraphs of half a minute or up to a pause, each marked with its time."""
    text = ""
    marks: list[Mark] = []
    end = 0.0
    for utterance in utterances:
        began = marks[-1].locator["seconds"] if marks else 0.0
        long = utterance.start - began >= (
            _PARAGRAPH_SECONDS if text.endswith(_SENTENCE_END) else _LONGEST_SECONDS
        )
        if not marks or long or utterance.start - end >= _PAUSE_SECONDS:
            text += "\n\n" if text else ""
            marks.append(Mark(len(text), {"seconds": round(utterance.start, 2)}))
        else:
            text += " "
        text += utterance.text
        end = utterance.end
    return text, tuple(marks)


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
