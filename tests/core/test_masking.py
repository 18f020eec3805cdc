"""Masking, measured on a set of its own: how much of what must go goes, and how little of the rest."""

import re
import time

import pytest
from hypothesis import given, strategies as st

from commonplace.core.masking import masked
from tests.core.masking_set import HIDDEN, KEPT, LATER_HIDDEN, LATER_KEPT

_MARKED = re.compile("‹([^›]*)›")
POSITIVE = [(kind, line) for kind, lines in HIDDEN.items() for line in lines.strip().splitlines()]
ALL_POSITIVE, ALL_NEGATIVE = [*(line for _, line in POSITIVE), *LATER_HIDDEN], [*KEPT, *LATER_KEPT]
LEAST_RECALL, LEAST_PRECISION = 0.97, 0.97


def _hides(line: str) -> bool:
    secret = _MARKED.findall(line)[0]
    return secret not in masked(_MARKED.sub(r"\1", line))


def test_the_set_is_large_enough() -> None:
    assert len(ALL_POSITIVE) >= 148 and len(ALL_NEGATIVE) >= 130


def test_recall_and_precision() -> None:
    missed = [line for line in ALL_POSITIVE if not _hides(line)]
    wrong = [(line, masked(line)) for line in ALL_NEGATIVE if masked(line) != line]
    found = len(ALL_POSITIVE) - len(missed)
    recall, precision = found / len(ALL_POSITIVE), found / (found + len(wrong))
    assert recall >= LEAST_RECALL, (recall, missed)
    assert precision >= LEAST_PRECISION, (precision, wrong)


@pytest.mark.parametrize("kind", HIDDEN)
def test_what_is_hidden_is_named(kind: str) -> None:
    named = [masked(_MARKED.sub(r"\1", line)) for k, line in POSITIVE if k == kind]
    assert sum(f"[{kind}]" in text for text in named) >= 0.9 * len(named), named


def test_the_rest_of_the_sentence_stays() -> None:
    assert masked("Write to ann@example.org or call +1 415 555 0132 today.") == "Write to [email] or call [phone] today."


@given(st.text(max_size=300))
def test_masking_takes_any_text_and_is_done_at_once(text: str) -> None:
    once = masked(text)
    assert isinstance(once, str)
    assert len(once) <= 4 * len(text) + 20


@pytest.mark.parametrize("text", ["0" * 20_000, "a1" * 10_000, "a@" * 10_000, "+1 " * 7_000, "password " * 3_000, "DE89 " * 4_000,
                                  "a-" * 10_000, "(0" * 8_000, "token 1" * 3_000])
def test_hostile_texts_take_no_longer_than_others(text: str) -> None:
    start = time.process_time()
    masked(text)
    assert time.process_time() - start < 1.0
