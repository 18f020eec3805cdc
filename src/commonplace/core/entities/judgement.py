"""Judge whether a statement repeats, contradicts or updates an older one.

Most similar statements are both true, so something that can contradict must differ (a negation, an
opposite, a value, a date, a time), and a logistic regression must be nearly sure that the two speak
of the same thing. Its strongest sign is how far the older statement stands out from the new one's
other neighbours.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log1p

from commonplace.model import EntityType
from commonplace.text.statements import Difference, Statement, alignment, differences

BAR = 0.85  # the score from which a judgement is told, unless the caller moves it
DUPLICATE, NEAR_DUPLICATE, CONTRADICTION, UPDATE = (
    "duplicate",
    "near_duplicate",
    "contradiction",
    "update",
)
# They tell what happened or is to be done; what they say does not hold until further notice.
EVENTS = frozenset(
    (
        EntityType.SESSION,
        EntityType.EPISODE,
        EntityType.TASK,
        EntityType.EPIC,
        EntityType.PROJECT,
    )
)

VALUES = frozenset(("value", "date", "time"))
_REASONS = {
    "opposite": "They say opposite things.",
    "negation": "One of them is negated.",
    "value": "The values differ.",
    "date": "The dates differ.",
    "time": "The times differ.",
}

# Fitted to development pairs by `python -m benchmarks.quality.conflicts fit`: pairs against
# other statements of the same sets, also with their partner left out.
BIAS = -8.81
WEIGHTS = {
    "cosine": 1.29,
    "overlap": 1.25,
    "dice": 1.06,
    "rarest": 2.24,
    "shared": 1.37,
    "negated": 0.56,
    "denied": 2.02,
    "values": 0.77,
    "same_values": -0.98,
    "dates": 0.66,
    "same_dates": 1.28,
    "times": 0.9,
    "opposite": 1.82,
    "margin": 3.96,
    "swapped": -2.65,
    "slots": -12.25,
}
# Probabilities from which it is told: between short texts, a short and a long one, long ones.
BETWEEN_SHORT, SHORT_AND_LONG, BETWEEN_LONG = 0.4, 0.6, 0.75
UNSEEN = 100  # sections imagined beside the real ones, so that words of a few count as rare
LEXICAL = 0.05  # what a point of shared rarity adds to a cosine
# Of near duplicates: the similarity (on the calibrated scale) and the overlap of short statements,
# and the overlap of sentences that count as twins.
SAME_MEANING, SAME_WORDS, TWIN = 0.9, 0.6, 0.75
# Likeness of sentences of long texts: below it they are about two things, above it the same words.
LONG_LIKENESS = (0.7, 1.15)
ALMOST_SAME = 1.0


@dataclass(frozen=True, slots=True)
class Side:
    """A statement and the kind of text that it stands in."""

    statement: Statement
    entity_type: str
    is_short: bool


class Rarity:
    """The weight of words, by how many sections that the caller sees have them."""

    def __init__(self, frequencies: Mapping[int, int], size: int) -> None:
        self._frequencies, self._size = frequencies, size + UNSEEN

    def of(self, term: int) -> float:
        found = self._frequencies.get(term, 0)
        return log1p(max(0.0, self._size - found + 0.5) / (found + 0.5))

    def total(self, stems: frozenset[int]) -> float:
        return sum(map(self.of, stems))

    def dice(self, a: frozenset[int], b: frozenset[int]) -> float:
        return 2 * self.total(a & b) / ((self.total(a) + self.total(b)) or 1.0)


def features(
    new: Statement, old: Statement, cosine: float, margin: float, rarity: Rarity
) -> dict[str, float]:
    """`margin`: by how much the older statement is closer than the usual neighbour."""
    shared = new.stems & old.stems
    common = rarity.total(shared)
    mine, theirs = rarity.total(new.stems) or 1.0, rarity.total(old.stems) or 1.0
    differs = {found.kind for found in differences(new, old)}
    aligned = alignment(new, old)
    revised = new.tells_change or new.is_revision
    return {
        "cosine": cosine,
        "overlap": common / min(mine, theirs),
        "dice": 2 * common / (mine + theirs),
        "rarest": min(max(map(rarity.of, shared), default=0.0), 8.0) / 8,
        "shared": min(len(shared), 5) / 5,
        "negated": float("negation" in differs),
        "denied": float(new.is_strong != old.is_strong),
        "values": float("value" in differs),
        "same_values": float(any(v.unit and v in old.values for v in new.values)),
        "dates": float("date" in differs),
        "same_dates": float(not new.dates.keys().isdisjoint(old.dates)),
        "times": float("time" in differs),
        "opposite": float("opposite" in differs),
        "margin": min(max(margin, -0.5), 1.0),
        "swapped": 0.0 if revised or "opposite" in differs else aligned.swapped,
        "slots": 0.0 if revised else aligned.slots,
    }


def probability(found: Mapping[str, float]) -> float:
    """Return how sure the regression is that both speak of the same thing."""
    total = BIAS + sum(weight * found[name] for name, weight in WEIGHTS.items())
    return 1 / (1 + exp(-total))


def may_contradict(new: Side, old: Side) -> bool:
    """Return whether such texts can contradict each other at all."""
    if not EVENTS.isdisjoint((new.entity_type, old.entity_type)):
        both = new.is_short and old.is_short
        if not both or not new.entity_type == old.entity_type == EntityType.EPISODE:
            return False
    a, b = new.statement, old.statement
    if a.ids and b.ids and not a.ids & b.ids:
        return False
    return a.is_revision or a.is_strong != b.is_strong or bool(differences(a, b))


def bar(new: Side, old: Side, likeness: float, dice: float) -> float | None:
    """Return the probability from which a statement contradicts the older one; None: never.
    `likeness`: of the statements, as a share of that of paraphrases."""
    if not may_contradict(new, old):
        return None
    a, b = new.statement, old.statement
    differs = {found.kind for found in differences(a, b)}
    if new.is_short and old.is_short:
        return BETWEEN_SHORT if differs or a.is_revision else None
    if new.is_short or old.is_short:
        revised = a.is_revision or a.is_strong != b.is_strong
        return SHORT_AND_LONG if revised or ("value" in differs and dice > 0.5) else None
    least, most = LONG_LIKENESS
    told = a.is_revision and differs - {"time"} and least <= likeness < most
    return BETWEEN_LONG if told else None


def shown(found: float, bar: float) -> float:
    """Map a value to a score: 0 stays 0, the bar becomes BAR, and 1 stays 1."""
    if found < bar:
        return min(round(BAR * max(found, 0.0) / bar, 4), BAR - 0.0001)
    return round(BAR + (1 - BAR) * (min(found, 1.0) - bar) / (1 - bar), 4)


def kind_and_reason(new: Statement, differs: Sequence[Difference]) -> tuple[str, str]:
    """Return the kind of a contradiction, and the reason in one sentence without their words."""
    if not differs:
        return UPDATE, "The new statement says that something else held before."
    revised = new.is_revision or (new.tells_change and differs[0].kind in VALUES)
    return UPDATE if revised else CONTRADICTION, _REASONS[differs[0].kind]
