"""Which hits have to do with a question. Search ranks whatever is closest, however far it is."""

from collections.abc import Sequence

from commonplace.core.search.similarity import Scale
from commonplace.model import Hit, Passage
from commonplace.text import query_terms, stems

# A hit's relevance is its cosine on the calibrated scale, and WORDS for all words of the question.
# Measured on four development sets (docs/lab/quality.md).
WORDS = 0.3
RELEVANT = 0.65
CLEARLY_RELEVANT = 0.85
WORDED = 0.5  # share of the question's words, where there is no cosine


WEIGHED = 8  # best hits of which one must be relevant


def is_weak(query: str, hits: Sequence[Hit], scale: Scale) -> bool:
    """Return whether no hit answers the question: none is relevant or has all of its words."""
    asked = asked_terms(query)
    return not any(
        _passes(hit, asked, scale, scale.relevant) or (asked and asked <= _terms(hit.passage))
        for hit in hits[:WEIGHED]
    )


def relevant(query: str, hits: Sequence[Hit], scale: Scale, least: float = RELEVANT) -> list[Hit]:
    """Return the hits of items that have a relevant hit, and of what replaced these items."""
    asked, least = asked_terms(query), max(least, scale.relevant)
    items = {hit.passage.item_id for hit in hits if _passes(hit, asked, scale, least)}
    newer = set[str]()
    for hit in reversed(hits):  # a replacement stands above what it replaced
        if hit.passage.entity_id in newer:
            items.add(hit.passage.item_id)
        if hit.passage.item_id in items and hit.passage.superseded_by:
            newer.add(hit.passage.superseded_by)
    return [hit for hit in hits if hit.passage.item_id in items]


def asked_terms(query: str) -> set[int]:
    """Return the words of a question that tell something."""
    return {
        found[0]
        for phrase in query_terms.parse_query(query).phrases
        if len(phrase) == 1 and len(found := stems.terms(phrase[0])) == 1
    }


def _passes(hit: Hit, asked: set[int], scale: Scale, least: float) -> bool:
    similarity = 0.0 if hit.cosine is None else scale(hit.cosine)
    if hit.cosine is not None and not least - WORDS <= similarity < least:
        return similarity >= least  # whatever its words
    words = len(asked & _terms(hit.passage)) / max(1, len(asked))
    return words >= WORDED if hit.cosine is None else similarity + WORDS * words >= least


def _terms(passage: Passage) -> set[int]:
    return terms_of(f"{passage.title} {passage.heading} {passage.text}")


def terms_of(text: str) -> set[int]:
    """Return the words of a text, with the parts of identifiers and stems of its language."""
    return set(stems.terms(f"{text} {query_terms.extra_terms(text)}"))
