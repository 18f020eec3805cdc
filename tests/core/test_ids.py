"""Ids: unlike each other, and in the order of time."""

import time
from uuid import UUID

import pytest

from commonplace.model import new_id


def test_what_is_made_later_sorts_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    second = 1_000_000_000
    for at in (17 * second, 17 * second + 300, 17 * second + 1_000_000, 1_900_000_000 * second):
        monkeypatch.setattr(time, "time_ns", lambda at=at: at)
        made += [sorted(new_id() for _ in range(50))]
    flat = [each for moment in made for each in moment]
    assert flat == sorted(flat) and len(set(flat)) == 200
    assert {(UUID(each).version, UUID(each).variant) for each in flat} == {
        (7, "specified in RFC 4122")
    }
