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


def relevant(query: str, hits: Sequence[Hit], scale: Scale, least: float = RELEVANT) -> list[Hit]:
    """Return the hits of items that have a relevant hit, and of what replaced these items."""
    asked = {
        found[0]
        for phrase in query_terms.parse_query(query).phrases
        if len(phrase) == 1 and len(found := stems.terms(phrase[0])) == 1
    }

    def passes(hit: Hit) -> bool:
        if hit.cosine is not None and (similarity := scale(hit.cosine)) + WORDS < least:
            return False
        words = len(asked & _terms(hit.passage)) / max(1, len(asked))
        return words >= WORDED if hit.cosine is None else similarity + WORDS * words >= least

    items = {hit.passage.item_id for hit in hits if passes(hit)}
    newer = set[str]()
    for hit in reversed(hits):  # a replacement stands above what it replaced
        if hit.passage.entity_id in newer:
            items.add(hit.passage.item_id)
        if hit.passage.item_id in items and hit.passage.superseded_by:
            newer.add(hit.passage.superseded_by)
    return [hit for hit in hits if hit.passage.item_id in items]


def _terms(passage: Passage) -> set[int]:
    text = f"{passage.title} {passage.heading} {passage.text}"
    return set(stems.terms(f"{text} {query_terms.extra_terms(text)}"))
