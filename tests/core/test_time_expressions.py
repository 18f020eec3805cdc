"""The times that questions name, as seen from a Wednesday in November, and words that only look like times."""

import time
from datetime import UTC, datetime

import pytest

from commonplace.text.time_expressions import LONGEST, Event, Times, Window, find_date, find_times

NOW = datetime(2026, 11, 18, 15, tzinfo=UTC)

NAMED = {
    "what did we decide last week": "2026-11-09..2026-11-16",
    "what did we decide yesterday?": "2026-11-17..2026-11-18",
    "notes from the day before yesterday": "2026-11-16..2026-11-17",
    "what happened on Monday": "2026-11-16..2026-11-17",
    "Friday's standup": "2026-11-13..2026-11-14",
    "last Friday’s standup": "2026-11-13..2026-11-14",
    "what did I read this morning": "2026-11-18..2026-11-19",
    "what did I save today": "2026-11-18..2026-11-19",
    "decisions this week": "2026-11-16..2026-11-23",
    "decisions last month about billing": "2026-10-01..2026-11-01",
    "decisions last quarter": "2026-07-01..2026-10-01",
    "what was decided last year": "2025-01-01..2026-01-01",
    "in the past week": "2026-11-11..2026-11-19",
    "over the past month": "2026-10-19..2026-11-19",
    "what changed in the last year": "2025-11-18..2026-11-19",
    "of the last quarter": "2026-08-19..2026-11-19",
    "in the last 3 days": "2026-11-15..2026-11-19",
    "in the last two weeks": "2026-11-04..2026-11-19",
    "three weeks ago": "2026-10-25..2026-11-01",
    "2 days ago": "2026-11-16..2026-11-17",
    "a couple of days ago": "2026-11-16..2026-11-17",
    "a fortnight ago": "2026-10-28..2026-11-11",
    "in March 2026": "2026-03-01..2026-04-01",
    "in march": "2026-03-01..2026-04-01",
    "in December": "2025-12-01..2026-01-01",
    "notes from Sept 2025": "2025-09-01..2025-10-01",
    "since March": "2026-03-01..",
    "before March 2026": "..2026-03-01",
    "after 5 March 2026": "2026-03-06..",
    "what did we write on 5 March": "2026-03-05..2026-03-06",
    "meeting of March 5th, 2025": "2025-03-05..2025-03-06",
    "on the 5th of March": "2026-03-05..2026-03-06",
    "on 12 may 2025": "2025-05-12..2025-05-13",
    "on 24 December": "2025-12-24..2025-12-25",
    "2026-03-05 standup": "2026-03-05..2026-03-06",
    "notes from 2026-03": "2026-03-01..2026-04-01",
    "am 2026/03/05 entschieden": "2026-03-05..2026-03-06",
    "5.3.2026": "2026-03-05..2026-03-06",
    "13/03/2026": "2026-03-13..2026-03-14",
    "03/13/2026": "2026-03-13..2026-03-14",
    "between March and May 2026": "2026-03-01..2026-06-01",
    "from 2026-01-01 to 2026-02-01": "2026-01-01..2026-02-02",
    "in Q1 2026": "2026-01-01..2026-04-01",
    "Q3 2025 results": "2025-07-01..2025-10-01",
    "in q2": "2026-04-01..2026-07-01",
    "last summer": "2026-06-01..2026-09-01",
    "summer of 2024": "2024-06-01..2024-09-01",
    "in 2024": "2024-01-01..2025-01-01",
    "since 2024": "2024-01-01..",
    "what did I do recently": "2026-10-19..2026-11-19",
    "last weekend": "2026-11-14..2026-11-16",
    "the other day": "2026-11-11..2026-11-18",
    "last night": "2026-11-17..2026-11-18",
    "in May": "2026-05-01..2026-06-01",
    "May 2026 report": "2026-05-01..2026-06-01",
    "until Tuesday": "..2026-11-18",
    "as of March 2026": "..2026-04-01",
}
NO_TIMES = [
    "may I see the report",
    "which tokens may a reader create",
    "may 5 requests run at once",
    "how do ants march",
    "the march on Rome",
    "second attempt of the retry",
    "in the second quarter",
    "seconds since the epoch",
    "python 3.11.2 release notes",
    "version 2024.1 of the driver",
    "v2.0 changes",
    "HTTP 2026 error",
    "port 2024 is taken",
    "day of the triffids",
    "what is a day trader",
    "the last day",
    "how is steel made today",
    "tasks due this week",
    "what is planned next week",
    "in March 2027",
    "on 2026-13-45",
    "how do I run this before the request is sent",
    "what happens before the release",
    "we met before",
    "mon repos",
    "١٢ days ago ² weeks ago 999999999999999999 days ago 0 days ago",
    "",
]


@pytest.mark.parametrize(("question", "said"), NAMED.items())
def test_a_time_is_read(question: str, said: str) -> None:
    start, _, end = said.partition("..")
    window = Window(
        *(datetime.fromisoformat(f"{day}T00:00Z") if day else None for day in (start, end))
    )
    [found] = find_times(question, NOW).windows
    days = [at and at.replace(hour=0, minute=0) for at in found]
    assert Window(*days) == window


@pytest.mark.parametrize("question", NO_TIMES)
def test_what_only_looks_like_a_time_is_none(question: str) -> None:
    assert find_times(question, NOW) == Times()


def test_events_of_our_own_past_are_read() -> None:
    found = find_times("what did we decide about caching before the release?", NOW)
    assert found.event == Event(("release",), before=True)
    found = find_times("how did I configure nginx after the database migration", NOW)
    assert found.event == Event(("database", "migration"), before=False)


def test_words_of_a_relative_time_are_not_looked_for_and_dates_are() -> None:
    assert find_times("what did we decide last week on caching", NOW).rest == (
        "what did we decide on caching"
    )
    assert find_times("what broke in the last 3 days", NOW).rest == "what broke"
    assert find_times("what broke in March 2026", NOW).rest == "what broke in March 2026"
    assert find_times("yesterday?", NOW).rest == "yesterday?"


def test_dates_in_titles_are_days_and_months_in_full() -> None:
    assert find_date("2026-03-05 Standup") == find_date("Standup, 5 March 2026")
    assert find_date("Report of March 2026") == Window(
        datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC)
    )
    for title in (
        "Plans for 2026",
        "Version 2024.1",
        "What may be done",
        "March",
        "Friday's notes",
    ):
        assert find_date(title) is None


def test_long_texts_are_no_questions_and_cost_nothing() -> None:
    assert find_times("word " * LONGEST + "yesterday", NOW) == Times()
    began = time.process_time()
    for piece in (
        "3 days ago ",
        "in march ",
        "9" * 10_000,
        "before the ",
        "5 may 5 ",
        "-/." * 3_000,
    ):
        find_times((piece * 10_000)[:10_000], NOW)
    assert time.process_time() - began < 5
