"""The rules of the default reflector: cue words, and the layout of notes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from commonplace.adapters.reflect import cue_words
from commonplace.adapters.reflect.note_parser import Block, parse_blocks
from commonplace.model import EntityType, Proposal, Quote
from commonplace.text.prose import cut

TITLE_CHARS = 120
_READ = 1_000  # characters of a sentence that are examined
_LEAST = 0.4  # a less confident candidate is dropped
_LABELLED, _MILDLY = 0.88, 0.55
_REQUESTED = 0.62  # confidence that a request is a task
_FEWEST_WORDS, _FEWEST_MARKED = 3, 2  # in a sentence, and in one with a label, heading or box
_LONGEST_QUESTION_WORDS = 60
_MOST_SUPPORT = 2  # following sentences that give a candidate's reasons


@dataclass(frozen=True, slots=True)
class _Candidate:
    kind: str
    confidence: float
    reason: str
    sentences: tuple[Quote, ...]
    name: str = ""  # set where the first sentence is not a title for it


def reflect(text: str, limit: int) -> list[Proposal]:
    """Return up to `limit` candidate memories, surest first."""
    found = [
        candidate
        for run in _runs(parse_blocks(text, frozenset(cue_words.LABELS)))
        for candidate in _candidates(run)
    ]
    best = sorted(_merge(found), key=lambda one: (-one.confidence, one.sentences[0].start))
    return [_proposal(one) for one in best[:limit]]


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
    commands = sum(bool(cue_words.IMPERATIVE.match(block.sentences[0].text)) for block in steps)
    kind = _labelled_kind(run[0])
    if len(steps) > 1 and (
        kind == EntityType.PROCEDURE or (kind is None and 2 * commands > len(steps))
    ):
        is_named = run[0].number is not None and run[0].heading.lower() not in cue_words.LABELS
        yield _Candidate(
            EntityType.PROCEDURE,
            0.86,
            "lists steps in order",
            tuple(sentence for block in run for sentence in block.sentences),
            run[0].heading if is_named else "",
        )
        return
    for block in run:
        yield from _block_candidates(block)


def _block_candidates(block: Block) -> Iterator[_Candidate]:
    support = 0
    last: _Candidate | None = None
    for number, sentence in enumerate(block.sentences):
        judged = _judge(block, sentence, is_first=number == 0)
        if (
            last
            and support < _MOST_SUPPORT
            and cue_words.CONTINUES.match(sentence.text)
            and (judged is None or judged.confidence < last.confidence)
        ):
            # The sentence after a decision that gives the reason belongs to it.
            support += 1
            sure = last.confidence + (0.05 if cue_words.REASON.search(sentence.text) else 0.0)
            last = replace(last, sentences=(*last.sentences, sentence), confidence=min(0.97, sure))
            continue
        if last:
            yield last
        last, support = judged, 0
    if last:
        yield last


def _judge(block: Block, sentence: Quote, *, is_first: bool) -> _Candidate | None:
    text = sentence.text[:_READ]
    words = len(text.split())
    is_question = sentence.text.endswith("?")
    marked = is_first and (block.box is False or _labelled_kind(block) is not None)
    if (
        words < (_FEWEST_MARKED if marked else _FEWEST_WORDS)
        or text.endswith(":")
        or block.box
        or (is_question and words > _LONGEST_QUESTION_WORDS)
    ):
        return None
    kind, sure, reason = _match_cue(block, text, is_first)
    if is_question and cue_words.REQUEST.match(text):
        return _Candidate(EntityType.TASK, _REQUESTED, "asks somebody to act", (sentence,))
    if is_question or cue_words.UNDECIDED.search(text):
        # A question is not settled, whatever it is about.
        if kind not in (EntityType.DECISION, EntityType.IDEA, EntityType.PLAN):
            return None
        if kind != EntityType.IDEA:
            kind, sure, reason = EntityType.IDEA, 0.5, "asks an open question"
    elif cue_words.HEDGE.search(text) and kind != EntityType.IDEA:
        sure -= 0.14
    if cue_words.REASON.search(text) and kind in (
        EntityType.DECISION,
        EntityType.CLAIM,
        EntityType.EPISODE,
        EntityType.PATTERN,
    ):
        sure += 0.05
    return _Candidate(kind, min(sure, 0.97), reason, (sentence,)) if sure >= _LEAST else None


def _match_cue(block: Block, text: str, is_first: bool) -> tuple[str, float, str]:
    """Return kind, confidence and reason: by check box, label, words or heading."""
    if block.box is False and is_first:
        return EntityType.TASK, _LABELLED, "has an empty check box"
    by_words = next(
        (
            (cue.kind, cue.confidence, cue.reason)
            for cue in cue_words.CUES
            if cue.pattern.search(text)
        ),
        ("", 0.0, ""),
    )
    label = block.label or block.heading.lower()
    if not is_first or label not in cue_words.LABELS:
        return by_words
    sure = _LABELLED if block.label else _LABELLED - 0.06
    if label in cue_words.MILD:
        sure = _MILDLY
    reason = f"is labelled “{label}”" if block.label else f"stands under “{block.heading}”"
    return (cue_words.LABELS[label], sure, reason) if sure >= by_words[1] else by_words


def _labelled_kind(block: Block) -> str | None:
    """Return the kind that the block's label or heading stands for."""
    by_heading = EntityType.PROCEDURE if "how to" in block.heading.lower() else None
    kinds = map(cue_words.LABELS.get, (block.label, block.heading.lower()))
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
    return " ".join(
        "".join(c if c.isalnum() else " " for c in one.sentences[0].text.lower()).split()
    )


def _proposal(one: _Candidate) -> Proposal:
    texts = list(dict.fromkeys(sentence.text for sentence in one.sentences))
    return Proposal(
        one.kind,
        _title(one.name or texts[0]),
        ("\n" if one.kind == EntityType.PROCEDURE and len(texts) > 2 else " ").join(texts),
        round(one.confidence, 2),
        one.reason,
        one.sentences,
    )


def _title(sentence: str) -> str:
    plain = cut(sentence, 4 * TITLE_CHARS).strip("*_ ")
    shorter = plain[match.end() :] if (match := cue_words.PREAMBLE.match(plain)) else plain
    title = cut((shorter if len(shorter) > 8 else plain).rstrip(" .:;,"), TITLE_CHARS)
    return title[:1].upper() + title[1:]
