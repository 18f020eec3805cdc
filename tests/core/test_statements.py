"""What statements are about, and how two of them differ."""

import pytest
from hypothesis import given, strategies as st

from commonplace.core.entities import judgement
from commonplace.core.entities.judgement import BAR, Rarity, Side
from commonplace.text.statements import (
    Difference,
    Statement,
    alignment,
    differences,
    is_short,
    sentences,
    whole,
)


@pytest.mark.parametrize(
    ("old", "new", "kind", "text"),
    [
        ("Wait 5 seconds first", "Wait 30 seconds first", "value", "5 seconds against 30 seconds"),
        ("Tokens live 30 minutes", "Tokens live 2 hours", "value", "30 minutes against 2 hours"),
        ("Budget: $500 monthly", "Budget: $550 monthly", "value", "$500 against $550"),
        ("Logs stay for ten days", "Logs stay for 12 days", "value", "ten days against 12 days"),
        ("Use 512 MB of memory", "Use 2048 MB of memory", "value", "512 MB against 2048 MB"),
        ("The fee is $500", "The fee is €550", "value", "$500 against €550"),
        ("We run Python 3.11 here", "We run Python 3.12 here", "value", "3.11 against 3.12"),
        ("Meet on 3 May 2026", "Meet on 4 May 2026", "date", "3 May against 4 May"),
        ("Launch by Sept 1", "Launch by September 15", "date", "Sept 1 against September 15"),
        ("Sync on Mondays", "Sync on Tuesdays", "date", "Mondays against Tuesdays"),
        ("The call is at 3 PM", "The call is at 11 AM", "time", "3 PM against 11 AM"),
        ("The cache is enabled", "The cache is disabled", "opposite", "enabled against disabled"),
        ("We log tokens", "We never log tokens", "negation", 'affirmed against "never"'),
        (
            "The table is ours",
            "The table is no longer ours",
            "negation",
            'affirmed against "no longer"',
        ),
    ],
)
def test_what_differs_is_said_with_the_older_first(
    old: str, new: str, kind: str, text: str
) -> None:
    assert differences(Statement(new), Statement(old)) == [Difference(kind, text)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("It costs $5", "It costs €5"),
        ("Stop at x < 5", "Stop at x > 5"),
        ("Freeze at -5 degrees", "Freeze at 5 degrees"),
        ("Write it in C", "Write it in C#"),
        ("Build: ✅", "Build: ❌"),
        ("🎉🎉🎉", "---"),
        ("---", "!!!"),
    ],
)
def test_a_sign_can_change_what_is_said(old: str, new: str) -> None:
    assert Statement(old).normal != Statement(new).normal


def test_markup_and_punctuation_do_not() -> None:
    plain, marked = (
        Statement("Use the small queue, first"),
        Statement("- **Use** the small-queue: first!"),
    )
    assert plain.normal == marked.normal


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Wait 60 seconds", "Wait 1 minute"),
        ("1,000 rows are read", "1000 rows are read"),
        ("Due on 3 May", "Due on May 3, 2026"),
        ("3 workers, 2 queues", "3 workers"),
        ("Deploy on Friday. It does not wait.", "Deploy on Friday."),
        ("It has 4 nodes in Bonn", "It has 16 cores in Bonn"),
    ],
)
def test_what_can_both_hold_does_not_differ(old: str, new: str) -> None:
    assert differences(Statement(new), Statement(old)) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The staging cluster has 3 nodes", "The production cluster has 9 nodes"),
        ("Tom is allergic to peanuts", "Anna is not allergic to peanuts"),
        ("20 people came on Monday", "25 people came on Friday"),
    ],
)
def test_statements_built_alike_may_be_about_two_things(old: str, new: str) -> None:
    found = alignment(Statement(new), Statement(old))
    assert found.swapped or found.slots


def test_one_value_in_title_and_text_is_one_difference() -> None:
    old, new = (whole(f"Rotate every {n} days", f"Rotate keys every {n} days.") for n in (30, 90))
    assert alignment(new, old) == (0, 0)


def test_another_thing_in_the_same_place_is_seen_behind_any_title() -> None:
    old = whole("Queue", "We use Postgres for the job queue.")
    new = whole("Job queue", "We use Redis for the job queue.")
    assert alignment(new, old).swapped


def test_a_short_text_is_one_statement_and_of_a_long_one_only_prose_counts() -> None:
    assert is_short("We retry three times.") and not is_short("```\nretry()\n```")
    assert whole("Retries", "We retry.").text == "Retries. We retry."
    assert whole("We retry", "We retry twice.").text == "We retry twice."
    assert whole("Note 12", "We retry.").text == "We retry."
    text = """# Retries

Status: accepted for all services of ours

We retry failed uploads three times before giving up.

| a | b |
Should we also retry failed downloads in the same way?

```
retry = 3  # this is code and not a statement of anything
```

- Uploads are limited to 20 MB by the gateway in front of them."""
    assert [each.text for each in sentences(text)] == [
        "We retry failed uploads three times before giving up.",
        "Uploads are limited to 20 MB by the gateway in front of them.",
    ]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Request SR-2023-052 is open", "Request SR-2023-053 is not open"),
        ("Bug #17 crashes", "Bug #18 never crashes"),
        ("INC0012345: disk full", "INC0012346: disk not full"),
        ("Commit 1a2b3c4d broke it", "Commit 9f8e7d6c never broke it"),
    ],
)
def test_names_of_records_tell_things_apart(a: str, b: str) -> None:
    old, new = (Side(Statement(text), "claim", True) for text in (a, b))
    assert not judgement.may_contradict(new, old)


@pytest.mark.parametrize(
    ("types", "short", "may"),
    [
        (("claim", "decision"), (True, True), True),
        (("episode", "episode"), (True, True), True),
        (("episode", "episode"), (True, False), False),
        (("episode", "claim"), (True, True), False),
        (("claim", "task"), (True, True), False),
        (("session", "session"), (True, True), False),
    ],
)
def test_events_do_not_contradict(
    types: tuple[str, str], short: tuple[bool, bool], may: bool
) -> None:
    new, old = (
        Side(Statement(text), kind, is_short)
        for text, kind, is_short in zip(
            ("We retry 5 times", "We retry 3 times"), types, short, strict=True
        )
    )
    assert judgement.may_contradict(new, old) is may


TEXTS = st.text(alphabet="abc 12.-N$%:", min_size=1, max_size=40)


@given(TEXTS, TEXTS, st.floats(-1, 2), st.floats(-1, 2), st.floats(0.01, 0.99))
def test_scores_lie_within_the_scale(
    a: str, b: str, cosine: float, margin: float, bar: float
) -> None:
    signs = judgement.features(Statement(a), Statement(b), cosine, margin, Rarity({}, 0))
    sure = judgement.probability(signs)
    assert 0 <= sure <= 1 and 0 <= judgement.shown(sure, bar) <= 1
    assert (judgement.shown(sure, bar) >= BAR) == (sure >= bar)
