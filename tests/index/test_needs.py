from __future__ import annotations

import pytest

from aios_nb.index.needs import in_order, parts


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("weather in Rome", []),
        ("weather in Rome and a hotel", ["weather in Rome", "a hotel"]),
        ("clean the csv, then plot it", ["clean the csv", "plot it"]),
        ("summarize; translate", ["summarize", "translate"]),
        ("What is it? And why", []),
        ("a and b. c; d e, f and g plus h", []),
        ("天气、酒店", ["天气", "酒店"]),
        ("天气,酒店", ["天气", "酒店"]),
        ("1,000 euros in dollars", []),
    ],
)
def test_a_question_is_split_where_another_need_begins(question, found) -> None:
    assert parts(question) == found


def test_without_needs_the_best_come_first() -> None:
    assert in_order([[0.1, 0.9, 0.5]], 2) == [(1, 0.9), (2, 0.5)]


def test_a_need_that_nothing_meets_yet_goes_before_more_of_the_same() -> None:
    whole = [0.9, 0.85, 0.8, 0.5]
    first, second = [1.0, 0.95, 0.9, 0.0], [0.0, 0.0, 0.1, 1.0]
    order = in_order([whole, first, second], 4)
    assert [place for place, _ in order][:2] == [0, 3]
    assert sorted(place for place, _ in order) == [0, 1, 2, 3]
    scores = [score for _, score in order]
    assert scores == sorted(scores, reverse=True)


def test_equal_scores_keep_their_order() -> None:
    assert [place for place, _ in in_order([[0.5] * 6], 6)] == list(range(6))
