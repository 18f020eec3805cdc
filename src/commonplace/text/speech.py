"""Write speech as Markdown: paragraphs with their times, speakers in bold, chapters as headings."""

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from commonplace.model import Chapter, Mark, Utterance

_SENTENCE_END = (".", "!", "?", "…", "。", "！", "？", '."', '?"')
_NOT_SAID = re.compile(r"(?:## [^\n]*\n+)*(?:\*\*[^*\n]+:\*\* )?")


@dataclass(frozen=True, slots=True)
class Paragraphs:
    """When a paragraph ends, in seconds; a chapter or another speaker always begins a new one."""

    pause: float
    least: float  # from here on with the sentence
    most: float  # from here on even within one
    each: bool  # mark each utterance, not just each paragraph


SUBTITLES = Paragraphs(pause=4, least=30, most=60, each=False)  # cues of two seconds
TRANSCRIPT = Paragraphs(pause=2, least=60, most=60, each=True)


def join_speech(
    utterances: Iterable[Utterance], form: Paragraphs, chapters: Sequence[Chapter] = ()
) -> tuple[str, tuple[Mark, ...]]:
    """Return the text, and the times of its paragraphs or utterances."""
    text = ""
    marks: list[Mark] = []
    coming = deque(sorted(chapters, key=lambda chapter: chapter.start))
    began = end = 0.0
    speaker: str | None = None
    for said in utterances:
        headings = ""
        while coming and coming[0].start <= (said.start + said.end) / 2:
            headings += f"## {coming.popleft().title}\n\n"
        lasts = said.start - began
        new = (
            not text
            or bool(headings)
            or said.speaker != speaker
            or said.start - end >= form.pause
            or lasts >= (form.least if text.endswith(_SENTENCE_END) else form.most)
        )
        text += "" if not text else "\n\n" if new else " "
        if new or form.each:
            locator = {"seconds": round(said.start, 2)}
            marks.append(
                Mark(len(text), locator | ({"speaker": said.speaker} if said.speaker else {}))
            )
        text += headings
        if said.speaker and (headings or said.speaker != speaker):
            text += f"**{said.speaker}:** "
        text += said.text.strip()
        began = said.start if new else began
        end, speaker = said.end, said.speaker
    return text, tuple(marks)


def introduced(intro: str, text: str, marks: tuple[Mark, ...]) -> tuple[str, tuple[Mark, ...]]:
    """Put what a page says about a recording before its transcript."""
    if not intro or not text:
        return intro or text, marks
    intro += "\n\n" if text.startswith("## ") else "\n\n## Transcript\n\n"
    return intro + text, tuple(Mark(mark.at + len(intro), mark.locator) for mark in marks)


def spoken(text: str) -> str:
    """Return a passage of a transcript without its headings and its speaker's name."""
    return text[_NOT_SAID.match(text).end() :].strip()  # type: ignore[union-attr]
