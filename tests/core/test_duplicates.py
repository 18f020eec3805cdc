"""What is alike, in which way: what the rules promise of any text."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from commonplace.adapters.embed import make_embedder
from commonplace.core.entities.duplicates import THRESHOLD, compare
from commonplace.core.search.similarity import (
    RELATED,
    SAME,
    SAMPLES,
    UNRELATED,
    SimilarityScale,
)
from commonplace.settings import Settings
from commonplace.text.contrasts import Text


@pytest.mark.anyio
async def test_the_scale_means_the_same_for_its_samples(data_dir: Path) -> None:
    embedder = make_embedder(Settings(data_dir=data_dir, embedder="static"))
    scale = await SimilarityScale(embedder).scale()
    assert list(scale.cosines) == sorted(scale.cosines) and scale.values == (
        0.0,
        UNRELATED,
        RELATED,
        SAME,
        1.0,
    )
    vectors = [
        document[0]
        for document in await embedder.documents([[text] for triple in SAMPLES for text in triple])
    ]
    related = sorted(scale(float(vectors[n] @ vectors[n + 2])) for n in range(0, len(vectors), 3))
    assert related[len(related) // 2 - 1] <= RELATED <= related[len(related) // 2]
    assert scale(-1.0) == 0 and scale(1.0) == 1 and 0 < scale(0.0) < RELATED


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Request SR-2023-052 is open", "Request SR-2023-053 is open"),
        ("Bug #17 crashes", "Bug #18 crashes"),
        ("INC0012345: disk full", "INC0012346: disk full"),
        ("Commit 1a2b3c4d broke it", "Commit 9f8e7d6c broke it"),
    ],
)
def test_names_of_records_tell_things_apart(a: str, b: str) -> None:
    assert compare(Text("Note", a), Text("Note", b), 0.99) is None


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        (
            "Use UTF-8 everywhere for files",
            "Use UTF-16 everywhere for files",
            "numbers: 16 against 8",
        ),
        (
            "Wait 5 seconds before retrying",
            "Wait 30 seconds before retrying",
            "numbers: 30 against 5",
        ),
        (
            "Meet on 3 May 2026 in Bonn",
            "Meet on 4 May 2026 in Bonn",
            "dates: 4 may 2026 against 3 may 2026",
        ),
        ("Logs are kept for ten days", "Logs are kept for 12 days", "numbers: 12 against 10"),
        ("The cache is enabled here", "The cache is disabled here", "disabled against enabled"),
        ("Tokens are logged by us", "Tokens are never logged by us", "one of them is negated"),
    ],
)
def test_what_contradicts_is_said_in_words(a: str, b: str, reason: str) -> None:
    found = compare(Text("Note", b), Text("Note", a), 0.9)
    assert found is not None and (found[1], found[2]) == ("contradiction", reason)
    assert found[0] >= THRESHOLD


def test_of_few_words_more_must_be_shared_than_of_many() -> None:
    short = compare(Text("", "We use Redis."), Text("", "We use Kafka."), 0.9)
    long = compare(
        Text(
            "",
            "Failed uploads are retried with growing pauses before the user of the portal sees any error page.",
        ),
        Text(
            "",
            "Uploads that fail get retried, pauses growing, until finally somebody sees some error.",
        ),
        0.9,
    )
    assert short is not None and long is not None and short[0] < THRESHOLD <= long[0]


TEXTS = st.text(alphabet="abc 12.-N", min_size=1, max_size=40)


@given(TEXTS, TEXTS, TEXTS, st.floats(0, 1))
def test_scores_lie_within_the_scale_and_a_text_is_its_own_duplicate(
    title: str, a: str, b: str, similarity: float
) -> None:
    found = compare(Text(title, a), Text(title, b), similarity)
    assert found is None or (0 <= found[0] <= 1 and found[2])
    assert compare(Text(title, a), Text(title, a), similarity) == (
        1.0,
        "duplicate",
        "the same words",
    )
    other = compare(Text(title, b), Text(title, a), similarity)
    assert (found is None) == (other is None) and (
        found is None or other is None or found[:2] == other[:2]
    )
