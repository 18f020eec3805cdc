"""When a job that failed is tried again."""

from datetime import timedelta

from commonplace.core.jobs.worker import LONGEST_PAUSE, SOURCE_PAUSE, SOURCE_SECONDS, retry_at
from commonplace.errors import EmbeddingFailed, IngestFailed
from commonplace.model import Job, now


def pause(age: float, error: Exception) -> float | None:
    job = Job("job", "library", "item", "ingest", created_at=now() - timedelta(seconds=age))
    at = retry_at(job, error)
    return None if at is None else round((at - now()).total_seconds())


def test_a_source_that_stays_away_is_asked_less_and_less_and_given_up_after_a_day() -> None:
    down = IngestFailed("The server did not answer.", transient=True)
    pauses = [pause(age, down) or 0 for age in (0, 600, 6_000, SOURCE_SECONDS - 60)]
    assert pauses == sorted(pauses) and LONGEST_PAUSE < pauses[2] <= pauses[3] <= SOURCE_PAUSE
    assert pause(SOURCE_SECONDS + 60, down) is None


def test_a_service_that_is_down_is_asked_at_least_once_a_minute_without_end() -> None:
    assert 0 < (pause(10 * SOURCE_SECONDS, EmbeddingFailed("It is down.")) or 0) <= LONGEST_PAUSE
