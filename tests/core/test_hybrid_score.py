"""How the two kinds of scores come together."""

from dataclasses import replace

import numpy as np
import pytest

from commonplace.core.search.scoring import blend
from commonplace.core.search.similarity import DEFAULT
from commonplace.model import Mode
from commonplace.ports import Matches


def found(*each: tuple[int, float, float | None]) -> Matches:
    ids, keyword, cosines = zip(*each, strict=True) if each else ((), (), ())
    return Matches(
        np.array(ids, np.int64), np.array(keyword, np.float32), np.array(cosines, np.float32)
    )


BOTH = found((1, 8.0, -0.2), (2, 4.0, 0.9), (3, 0.0, 0.5), (4, 2.0, None))


def test_hybrid_weighs_the_cosine_and_the_share_of_the_best_keyword_score() -> None:
    assert blend(Mode.HYBRID, BOTH, (0.7, 0.3)) == [
        (2, pytest.approx(0.7 * 0.9 + 0.3 * 0.5)),
        (3, pytest.approx(0.7 * 0.5)),
        (1, pytest.approx(0.3)),
        (4, pytest.approx(0.3 * 0.25)),
    ]


def test_each_other_mode_uses_its_own_side_only() -> None:
    assert blend(Mode.KEYWORD, BOTH, (0.7, 0.3)) == [(1, 1.0), (2, 0.5), (4, 0.25)]
    assert blend(Mode.SEMANTIC, BOTH, (0.7, 0.3)) == [(2, pytest.approx(0.9)), (3, 0.5), (1, 0.0)]
    assert blend(Mode.KEYWORD, BOTH, (0.7, 0.3), 1) == [(1, 1.0)]


def test_equal_scores_come_in_the_order_of_their_ids() -> None:
    same = found((9, 1.0, None), (3, 1.0, None), (5, 1.0, None))
    assert [section for section, _ in blend(Mode.HYBRID, same, (0.7, 0.3))] == [3, 5, 9]


@pytest.mark.parametrize("weights", [(0.7, 0.3), (7.0, 3.0), (1.0, 0.0), (0.0, 1.0)])
@pytest.mark.parametrize("mode", Mode)
def test_scores_lie_between_0_and_1(mode: Mode, weights: tuple[float, float]) -> None:
    answer = blend(mode, found((1, 1e-6, 1.0000002), (2, 0.0, -1.0)), weights)
    assert answer
    assert all(0.0 <= score <= 1.0 for _, score in answer)


@pytest.mark.parametrize("mode", Mode)
def test_nothing_found_is_an_empty_answer(mode: Mode) -> None:
    assert blend(mode, found(), (0.7, 0.3)) == []


def test_feedback_prefers_what_is_like_the_best() -> None:
    """Two sections are equally near to the question; one of them is also near to the best."""
    vectors = np.array([[1, 0, 0], [0.8, 0.6, 0], [0.8, 0, 0.6], [0.95, 0.31, 0]], np.float16)
    ids, keyword = np.array([1, 2, 3, 4]), np.array([0, 0, 0, 3], np.float32)
    question = np.array([1, 0, 0], np.float32)
    matches = Matches(ids, keyword, vectors @ question, vectors=lambda chosen: vectors[chosen])
    plain = dict(blend(Mode.HYBRID, matches, (0.7, 0.3)))
    assert plain[2] == plain[3]
    fed = dict(blend(Mode.HYBRID, matches, (0.7, 0.3), vector=question))
    assert fed[2] > fed[3]
    assert all(0 <= score <= 1 for score in fed.values())


def test_cosines_of_another_scale_count_like_those_of_the_default_embedder() -> None:
    narrow = replace(DEFAULT, cosines=(-1.0, 0.45, 0.65, 0.88, 1.0))
    medians = np.array(narrow.cosines[1:4], np.float32)
    matches = found(*zip((1, 2, 3), (0.0, 0.0, 0.0), medians.tolist(), strict=True))
    scores = dict(blend(Mode.SEMANTIC, matches, (0.7, 0.3), rescale=narrow.to_default))
    assert [scores[n] for n in (1, 2, 3)] == pytest.approx(DEFAULT.cosines[1:4], abs=1e-5)
    assert DEFAULT.to_default(medians) is medians


def test_feedback_needs_a_vector_of_some_section() -> None:
    unknown = found((1, 2.0, None))._replace(vectors=lambda chosen: np.empty((0, 0), np.float16))
    answer = blend(Mode.HYBRID, unknown, (0.7, 0.3), vector=np.ones(3, np.float32))
    assert answer == [(1, pytest.approx(0.3))]
