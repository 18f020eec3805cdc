"""The rules of the default reflector: cue words, and the layout of notes."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from commonplace.adapters.reflect import cues
from commonplace.adapters.reflect.chat_facts import fact
from commonplace.adapters.reflect.note_parser import Block, parse_blocks, user_turns
from commonplace.model import EntityType, Proposal, Quote
from commonplace.text.prose import cut

TITLE_CHARS = 120
_READ = 1_000  # characters of a sentence that are examined
_LEAST = 0.4  # a less confident candidate is dropped
_LABELLED, _MILDLY = 0.88, 0.55
_SURE_OF_OPINION = 0.6  # a less confident claim must not be somebody's opinion
_REQUESTED = 0.62  # confidence that a request is a task
_FEWEST_WORDS, _FEWEST_MARKED = 3, 2  # in a sentence, and in one with a label, heading or box
_LONGEST_QUESTION_WORDS = 60
_FEWEST_ALONE = 6  # a shorter sentence needs its context, if there is one
_MOST_SUPPORT = 2  # following sentences that give a candidate's reasons


_USERS_RULE = re.compile(
    r"(?:please )?(?:always|never|from now on|don['’]t ever)\b(?=(?: \S++){3})(?!.*\?)",
    re.IGNORECASE,
)
_LINK = re.compile(r"\[([^\[\]\n]{1,200})\]\([^)\s]{0,2000}\)?")
_ADDRESS = re.compile(r"\*\*|\(?<{1,2}\w+>\)?|https?://\S+|\[#\d+\]|#\d{3,}")


@dataclass(frozen=True, slots=True)
class _Candidate:
    kind: str
    confidence: float
    reason: str
    sentences: tuple[Quote, ...]
    context: Quote | None = None  # what the first sentence is about
    name: str = ""  # set where the first sentence is not a title for it
    words: str = ""  # of the sentence, where not all of it counts


def reflect(text: str, limit: int) -> list[Proposal]:
    """Return up to `limit` candidate memories, surest first."""
    turns = user_turns(text)
    blocks = parse_blocks(text, frozenset(cues.LABELS), turns)
    found = (
        [one for block in blocks for one in map(_said_by_user, block.sentences) if one]
        if turns
        else [one for run in _runs(blocks) for one in _candidates(run)]
    )
    best = sorted(_merge(found), key=lambda one: (-one.confidence, one.sentences[0].start))
    return [_proposal(one) for one in best[:limit]]


def _said_by_user(sentence: Quote) -> _Candidate | None:
    text = plain(sentence.text)[:_READ]
    if _USERS_RULE.match(text):
        return _Candidate(EntityType.PATTERN, _REQUESTED, "asks to always do so", (sentence,))
    if stated := fact(text):
        kind, words, sure = stated
        return _Candidate(kind, sure, "the user says so", (sentence,), words=words)
    return None


def _runs(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Group numbered lists with the line that introduces them; yield other blocks alone."""
    rest = list(blocks)
    while rest:
        first = rest.pop(0)
        run = [first]
        if first.number is not None or first.sentences[-1].text.endswith(":"):
            while rest and rest[0].number is not None and (len(run) == 1 or rest[0].number > 1):
                run.append(rest.pop(0))
        yield run


def _candidates(run: list[Block]) -> Iterator[_Candidate]:
    steps = [block for block in run if block.number is not None]
    commands = sum(bool(cues.IMPERATIVE.match(block.sentences[0].text)) for block in steps)
    kind = _labelled_kind(run[0])
    if len(steps) > 1 and (
        kind == EntityType.PROCEDURE or (kind is None and 2 * commands > len(steps))
    ):
        is_named = run[0].number is not None and run[0].heading.lower() not in cues.LABELS
        yield _Candidate(
            EntityType.PROCEDURE,
            0.86,
            "lists steps in order",
            tuple(sentence for block in run for sentence in block.sentences),
            name=run[0].heading if is_named else "",
        )
        return
    for block in run:
        yield from _block_candidates(block)


def _block_candidates(block: Block) -> Iterator[_Candidate]:
    support = 0
    last: _Candidate | None = None
    before: Quote | None = None
    for number, sentence in enumerate(block.sentences):
        judged = _judge(block, sentence, before, is_first=number == 0)
        before = sentence
        if (
            last
            and support < _MOST_SUPPORT
            and cues.CONTINUES.match(sentence.text)
            and (judged is None or judged.confidence < last.confidence)
        ):
            # The sentence after a decision that gives the reason belongs to it.
            support += 1
            sure = last.confidence + (0.05 if cues.REASON.search(sentence.text) else 0.0)
            last = replace(last, sentences=(*last.sentences, sentence), confidence=min(0.97, sure))
            continue
        if last:
            yield last
        last, support = judged, 0
    if last:
        yield last


def _judge(
    block: Block, sentence: Quote, before: Quote | None, *, is_first: bool
) -> _Candidate | None:
    text = plain(sentence.text)[:_READ]
    words = len(text.split())
    is_question = sentence.text.endswith("?")
    topic = block.topic
    marked = is_first and (block.box is False or _labelled_kind(block) is not None)
    if (
        words < (_FEWEST_MARKED if marked or topic else _FEWEST_WORDS)
        or text.endswith((":", "…", "..."))
        or block.box
        or block.is_topic
        or cues.LISTED.match(block.heading)
        or (is_question and words > _LONGEST_QUESTION_WORDS)
    ):
        return None
    said = text[match.end() :] if (match := cues.SAID_BY.match(text)) else text
    kind, sure, reason = _match_cue(block, said, is_first)
    if is_question and cues.REQUEST.match(text):
        return _Candidate(EntityType.TASK, _REQUESTED, "asks somebody to act", (sentence,))
    if is_question or cues.UNDECIDED.search(text):
        # A question is not settled, whatever it is about.
        if kind not in (EntityType.DECISION, EntityType.IDEA, EntityType.PLAN):
            return None
        if kind != EntityType.IDEA:
            kind, sure, reason = EntityType.IDEA, 0.5, "asks an open question"
    elif cues.HEDGE.search(text) and kind != EntityType.IDEA:
        sure -= 0.14
    if cues.REASON.search(text) and kind in (
        EntityType.DECISION,
        EntityType.CLAIM,
        EntityType.EPISODE,
        EntityType.PATTERN,
    ):
        sure += 0.05
    is_outcome = marked or kind in (EntityType.DECISION, EntityType.TASK, EntityType.PLAN)
    if kind == EntityType.CLAIM and sure < _SURE_OF_OPINION and cues.OPINION.search(text):
        return None
    if sure < _LEAST or (not is_outcome and cues.HOUSEKEEPING.search(text)):
        return None
    context = topic
    if not marked and (cues.VAGUE.match(said) or cues.REFERS.search(said) or words < _FEWEST_ALONE):
        # It may say nothing without what stands before it.
        context = topic or before
        if context is None and (words < _FEWEST_WORDS or cues.VAGUE.match(said)):
            return None
    return _Candidate(kind, min(sure, 0.97), reason, (sentence,), context)


def _match_cue(block: Block, text: str, is_first: bool) -> tuple[str, float, str]:
    """Return kind, confidence and reason: by check box, label, words or heading."""
    if block.box is False and is_first:
        return EntityType.TASK, _LABELLED, "has an empty check box"
    by_words = next(
        ((cue.kind, cue.confidence, cue.reason) for cue in cues.CUES if cue.matches(text)),
        ("", 0.0, ""),
    )
    label = block.label or block.heading.lower()
    if not is_first or label not in cues.LABELS:
        return by_words
    sure = _LABELLED if block.label else _LABELLED - 0.06
    if label in cues.MILD:
        sure = _MILDLY
    reason = f"is labelled “{label}”" if block.label else f"stands under “{block.heading}”"
    return (cues.LABELS[label], sure, reason) if sure >= by_words[1] else by_words


def _labelled_kind(block: Block) -> str | None:
    """Return the kind that the block's label or heading stands for."""
    by_heading = EntityType.PROCEDURE if "how to" in block.heading.lower() else None
    kinds = map(cues.LABELS.get, (block.label, block.heading.lower()))
    return next(filter(None, kinds), by_heading)


def _merge(found: Sequence[_Candidate]) -> list[_Candidate]:
    """Merge candidates with the same words into one that quotes all places."""
    merged = []
    for _, same in groupby(sorted(found, key=_key), key=_key):
        first, *again = sorted(same, key=lambda one: one.sentences[0].start)
        merged.append(
            replace(
                first,
                confidence=max([first.confidence, *(other.confidence for other in again)]),
                sentences=(*first.sentences, *(s for other in again for s in other.sentences)),
            )
        )
    return merged


def _key(one: _Candidate) -> str:
    said = one.words or f"{one.context.text if one.context else ''} {one.sentences[0].text}"
    return " ".join("".join(c if c.isalnum() else " " for c in said.lower()).split())


def _proposal(one: _Candidate) -> Proposal:
    texts = [one.words] if one.words else [plain(sentence.text) for sentence in one.sentences]
    texts = list(dict.fromkeys(texts))
    topic = plain(one.context.text).rstrip(" :") if one.context else ""
    if topic:
        topic += " " if topic.endswith((".", "!", "?")) else ": "
    return Proposal(
        one.kind,
        _title(one.name or topic + texts[0]),
        topic + ("\n" if one.kind == EntityType.PROCEDURE and len(texts) > 2 else " ").join(texts),
        round(one.confidence, 2),
        one.reason,
        (*one.sentences, *([one.context] if one.context else ())),
    )


def plain(text: str) -> str:
    """Return a sentence on one line, without emphasis and the addresses of its links."""
    return " ".join(_ADDRESS.sub("", _LINK.sub(r"\1", " ".join(text.split()))).split())


def _title(sentence: str) -> str:
    plain = cut(sentence, 4 * TITLE_CHARS).strip("*_ ")
    shorter = plain[match.end() :] if (match := cues.PREAMBLE.match(plain)) else plain
    title = cut((shorter if len(shorter) > 8 else plain).rstrip(" .:;,"), TITLE_CHARS)
    return title[:1].upper() + title[1:]
