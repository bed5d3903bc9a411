from __future__ import annotations

import numpy as np
import pytest

from aios_nb.index.vectors import SHORTLIST, Vectors


def points(count: int) -> np.ndarray:
    made = np.random.default_rng(5).standard_normal((count, 256)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


@pytest.mark.parametrize("count", [3, 300, SHORTLIST * 3])
def test_the_nearest_points_are_found(count) -> None:
    made = points(count)
    vectors = Vectors()
    for row, point in enumerate(made):
        vectors.put(row, point)
    for row in (0, count // 2, count - 1):
        asked = made[row] * 0.9 + points(count + 1)[-1] * 0.1
        found = vectors.nearest(asked, 5)
        assert row in found
        cosines = vectors.cosines(found, asked)
        assert found[int(np.argmax(cosines))] == row
        assert cosines == pytest.approx((made[found] @ asked).tolist(), abs=0.01)


def test_the_usual_nearness_follows_what_is_put_and_dropped() -> None:
    made = points(4)
    vectors = Vectors()
    for row, point in enumerate(made):
        vectors.put(row, point)
    assert vectors.usual(made[0]) == pytest.approx(float((made @ made[0]).mean()), abs=0.01)
    for row in (1, 2, 3):
        vectors.drop(row)
    assert vectors.usual(made[0]) == pytest.approx(1.0, abs=0.01)


def test_points_that_come_and_go_leave_no_trace_in_what_is_usual() -> None:
    stays, *others = points(500)
    vectors = Vectors()
    vectors.put(0, stays)
    before = vectors.usual(stays)
    for point in others:
        vectors.put(1, point)
        vectors.drop(1)
    assert vectors.usual(stays) == pytest.approx(before, abs=1e-6)


def test_dropped_points_do_not_crowd_out_those_that_are_there() -> None:
    asked, *others = points(SHORTLIST * 2 + 50)
    vectors = Vectors()
    for row in range(SHORTLIST * 2):
        vectors.put(row, asked)
    for row, point in enumerate(others[-20:], SHORTLIST * 2):
        vectors.put(row, point)
    for row in range(SHORTLIST * 2):
        vectors.drop(row)
    nearest = max(range(20), key=lambda at: float(others[at - 20] @ asked))
    assert SHORTLIST * 2 + nearest in vectors.nearest(asked, 5)


def test_a_dropped_point_is_near_to_nothing_and_its_row_can_be_used_again() -> None:
    one, other = points(2)
    vectors = Vectors()
    vectors.put(0, one)
    vectors.drop(0)
    assert vectors.cosines([0], one) == [0.0]
    vectors.put(0, other)
    assert vectors.cosines([0], other) == pytest.approx([1.0], abs=0.01)
