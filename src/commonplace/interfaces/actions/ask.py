"""Asking a question: an answer whose sentences cite passages of the library."""

from datetime import datetime, timedelta
from typing import Annotated, Any

from commonplace.core.entities.validation import moment
from commonplace.interfaces.actions.action import Action, Tool
from commonplace.interfaces.actions.entities import item_url
from commonplace.interfaces.actions.fields import (
    NOT_BLANK,
    WHOLE,
    Cli,
    Day,
    Input,
    Project,
    about,
    chars,
    number,
)
from commonplace.interfaces.actions.items import DEGRADED, WEAK, on_one_line
from commonplace.interfaces.actions.shapes import Field, Shape, many, said
from commonplace.model import Citation, CitedAnswer, ItemFilter, Json, Sentence
from commonplace.text.time_expressions import find_date

NO_ANSWER = "No answer found. Closest passages:"


class AskQuestion(Input):
    query: Annotated[str, chars(1, 2_000, "The question"), NOT_BLANK, Cli(argument=True)]
    project: Project | None = None
    as_of: Annotated[Day | None, about("Answer from what held then: a day, or 2025-03")] = None
    limit: Annotated[int, number(1, 10, "Maximum number of citations"), WHOLE] = 5
    thread_id: Annotated[
        Annotated[str, chars(1, 4_000), NOT_BLANK] | None,
        about("Of the answer before"),
        Cli("--thread"),
    ] = None

    @property
    def where(self) -> ItemFilter:
        return ItemFilter(as_of=None if self.as_of is None else _end(self.as_of))


def _end(as_of: str) -> datetime:
    """Return the last moment of a day or a month."""
    window = find_date(as_of) if len(as_of.strip()) < len("2025-03-31") else None
    if window is not None and window.end is not None:
        return window.end - timedelta(microseconds=1)
    return moment("as_of", as_of, end=True)


CITATION = Shape(
    "Citation",
    Citation,
    n=Field(int, lambda cited, call: cited.number),
    item_id="passage.item_id",
    section_index=said(int, "passage.position", "From 0, as in `from_section`"),
    title="passage.title",
    url=Field(
        str,
        lambda cited, call: item_url(cited.passage.url, cited.passage.public_id, call.settings),
    ),
    quote="quote",
)
SENTENCE = Shape(
    "AnswerSentence",
    Sentence,
    text="text",
    citations=said(list[int], "citations", "The `n` of citations"),
)
ANSWER = Shape(
    "CitedAnswer",
    CitedAnswer,
    answer=said(str | None, "answer", "null if no passage answers"),
    sentences=many(SENTENCE, "sentences"),
    citations=many(CITATION, "citations"),
    closest=many(CITATION, "closest"),
    thread_id=said(str, "thread_id", "For a question that follows this one"),
    weak=said(bool, "weak", WEAK),
    degraded=DEGRADED,
)


def answer_text(found: Json, value: Any) -> str:
    """Return an answer with its citations, or the closest passages."""
    lines = [f"Note: {found['degraded']}"] if found["degraded"] else []
    for sentence in found["sentences"]:
        lines.append(f"{sentence['text']} {''.join(f'[{n}]' for n in sentence['citations'])}")
    if found["weak"]:
        lines.append(NO_ANSWER if found["closest"] else "No answer found.")
    for cited in [*found["citations"], *found["closest"]]:
        lines.append(f"[{cited['n']}] {on_one_line(cited['title'])} ({cited['url']})")
        quoted = on_one_line(cited["quote"])
        if all(quoted != on_one_line(sentence["text"]) for sentence in found["sentences"]):
            lines.append(f'   "{quoted}"')
        lines.append(f"   item_id: {cited['item_id']}, section {cited['section_index']}")
    return "\n".join(lines)


ACTIONS = (
    Action(
        "ask",
        "Answer a question from the library",
        AskQuestion,
        "ask.ask",
        ANSWER,
        "POST /api/v1/ask",
        cli="ask",
        description="Every sentence cites passages. Without a language model the sentences are "
        "the sources' own. With `Accept: text/event-stream` each sentence is an event `sentence`, "
        "and the whole answer is the event `done`.",
        tool=Tool(
            "Answer a question from the user's library, citing passages.",
            answer_text,
            shown="answer citations thread_id",
        ),
    ),
)
