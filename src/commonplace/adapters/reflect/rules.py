"""What the default reflector goes by: cue words, and how notes are laid out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from commonplace.adapters.reflect import cue_words
from commonplace.adapters.reflect.note_parser import Block, Sentence, blocks
from commonplace.model import EntityType, Proposal, Quote
from commonplace.text.sentences import cut

TITLE_CHARS = 120
_READ = 1_000  # characters of a sentence that are looked at
_LEAST = 0.4  # what is less sure is no candidate
_LABELLED, _MILDLY = 0.88, 0.55
_ASKED = 0.62  # how sure a request is to be a task
_FEWEST_WORDS, _FEWEST_TOLD = (
    3,
    2,
)  # in a sentence, and in one whose label, heading or box says what it is
_LONGEST_QUESTION_WORDS = 60
_MOST_SUPPORT = 2  # sentences that a candidate may take along because they give its reasons


@dataclass(frozen=True, slots=True)
class _Found:
    kind: str
    confidence: float
    reason: str
    sentences: tuple[Sentence, ...]
    name: str = ""  # where its first sentence is no title for it


def reflected(text: str, limit: int) -> list[Proposal]:
    found = [
        each for run in _runs(blocks(text, frozenset(cue_words.LABELS))) for each in _found(run)
    ]
    merged = _merged(found)
    best = sorted(merged, key=lambda one: (-one.confidence, one.sentences[0].start))[:limit]
    return [_proposal(one) for one in best]


def _runs(all_blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Numbered lists together with the line that leads to them, everything else by itself."""
    rest = list(all_blocks)
    while rest:
        first = rest.pop(0)
        run = [first]
        leads = first.number is None and first.sentences[-1].text.endswith(":")
        if first.number is not None or leads:
            while rest and rest[0].number is not None and (len(run) == 1 or rest[0].number > 1):
                run.append(rest.pop(0))
        yield run


def _found(run: list[Block]) -> Iterator[_Found]:
    steps = [block for block in run if block.number is not None]
    commands = sum(bool(cue_words.IMPERATIVE.match(block.sentences[0].text)) for block in steps)
    told = _labelled(run[0]) in (EntityType.PROCEDURE, None)
    if (
        len(steps) > 1
        and told
        and (2 * commands > len(steps) or _labelled(run[0]) == EntityType.PROCEDURE)
    ):
        heading = (
            run[0].heading
            if run[0].number is not None and run[0].heading.lower() not in cue_words.LABELS
            else ""
        )
        sentences = tuple(sentence for block in run for sentence in block.sentences)
        yield _Found(EntityType.PROCEDURE, 0.86, "lists steps in order", sentences, heading)
        return
    for block in run:
        yield from _of_block(block)


def _of_block(block: Block) -> Iterator[_Found]:
    support = 0
    last: _Found | None = None
    for number, sentence in enumerate(block.sentences):
        judged = _judged(block, sentence, is_first=number == 0)
        if (
            last
            and support < _MOST_SUPPORT
            and cue_words.CONTINUES.match(sentence.text)
            and (judged is None or judged.confidence < last.confidence)
        ):
            # The sentence after a decision that says why belongs to it.
            support += 1
            sure = last.confidence + (0.05 if cue_words.REASON.search(sentence.text) else 0.0)
            last = replace(last, sentences=(*last.sentences, sentence), confidence=min(0.97, sure))
            continue
        if last:
            yield last
        last, support = judged, 0
    if last:
        yield last


def _judged(block: Block, sentence: Sentence, *, is_first: bool) -> _Found | None:
    text = sentence.text[:_READ]
    words = len(text.split())
    is_question = sentence.text.endswith("?")
    told = is_first and (block.box is False or _labelled(block) is not None)
    is_short, is_long = (
        words < (_FEWEST_TOLD if told else _FEWEST_WORDS),
        words > _LONGEST_QUESTION_WORDS,
    )
    if is_short or text.endswith(":") or block.box or (is_question and is_long):
        return None
    kind, sure, reason = _cued(block, text, is_first)
    if is_question and cue_words.REQUEST.match(text):
        return _Found(EntityType.TASK, _ASKED, "asks somebody to do it", (sentence,))
    if is_question or cue_words.UNDECIDED.search(text):
        # What is asked is not settled, whatever it is about.
        if kind not in (EntityType.DECISION, EntityType.IDEA, EntityType.PLAN):
            return None
        if kind != EntityType.IDEA:
            kind, sure, reason = EntityType.IDEA, 0.5, "asks what is not decided yet"
    elif cue_words.HEDGE.search(text) and kind != EntityType.IDEA:
        sure -= 0.14
    if cue_words.REASON.search(text) and kind in (
        EntityType.DECISION,
        EntityType.CLAIM,
        EntityType.EPISODE,
        EntityType.PATTERN,
    ):
        sure += 0.05
    return _Found(kind, min(sure, 0.97), reason, (sentence,)) if sure >= _LEAST else None


def _cued(block: Block, text: str, is_first: bool) -> tuple[str, float, str]:
    """Kind, confidence and reason: by the label before it, the box in front of it, its own words, the heading above it."""
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
    if block.label and is_first:
        sure = _MILDLY if block.label in cue_words.MILD else _LABELLED
        return (
            (cue_words.LABELS[block.label], sure, f"is labelled “{block.label}”")
            if sure >= by_words[1]
            else by_words
        )
    heading = block.heading.lower()
    if heading in cue_words.LABELS and is_first:
        sure = _MILDLY if heading in cue_words.MILD else _LABELLED - 0.06
        if sure >= by_words[1]:
            return cue_words.LABELS[heading], sure, f"stands under “{block.heading}”"
    return by_words


def _labelled(block: Block) -> str | None:
    for name in (block.label, block.heading.lower()):
        if name in cue_words.LABELS:
            return cue_words.LABELS[name]
    return EntityType.PROCEDURE if "how to" in block.heading.lower() else None


def _merged(found: Sequence[_Found]) -> list[_Found]:
    """What is said twice in the same words is one candidate with both places."""
    by_words = sorted(found, key=_key)
    merged = []
    for _, same in groupby(by_words, key=_key):
        first, *again = sorted(same, key=lambda one: one.sentences[0].start)
        merged.append(
            replace(
                first,
                confidence=max([first.confidence, *(other.confidence for other in again)]),
                sentences=(*first.sentences, *(s for other in again for s in other.sentences)),
            )
        )
    return merged


def _key(one: _Found) -> str:
    return " ".join(
        "".join(c if c.isalnum() else " " for c in one.sentences[0].text.lower()).split()
    )


def _proposal(one: _Found) -> Proposal:
    texts = list(dict.fromkeys(sentence.text for sentence in one.sentences))
    content = ("\n" if one.kind == EntityType.PROCEDURE and len(texts) > 2 else " ").join(texts)
    return Proposal(
        one.kind,
        _title(one.name or texts[0]),
        content,
        round(one.confidence, 2),
        one.reason,
        tuple(Quote(s.start, s.end, s.text) for s in one.sentences),
    )


def _title(sentence: str) -> str:
    plain = cut(sentence, 4 * TITLE_CHARS).strip("*_ ")
    shorter = plain[match.end() :] if (match := cue_words.PREAMBLE.match(plain)) else plain
    title = cut((shorter if len(shorter) > 8 else plain).rstrip(" .:;,"), TITLE_CHARS)
    return title[:1].upper() + title[1:]
