from __future__ import annotations

import pytest

from aios_nb.index.fusion import Sight, Weights, fused

WEIGHTS = Weights()
CHANCE, MEANT = 0, 1
"""Documents: one has a word of the question by chance, the other means what was asked."""


def test_a_chance_word_does_not_beat_the_meaning() -> None:
    sight = Sight({CHANCE: 1.0}, asked_weight=20.0, cosines=[0.0, 0.6], usual=0.0)
    by_chance, meant = fused([CHANCE, MEANT], sight, WEIGHTS)
    assert meant > by_chance > 0


def test_all_words_of_a_question_beat_the_meaning() -> None:
    sight = Sight({CHANCE: 30.0}, asked_weight=20.0, cosines=[0.0, 0.6], usual=0.0)
    words, meant = fused([CHANCE, MEANT], sight, WEIGHTS)
    assert words > meant > 0


def test_without_a_model_words_decide_and_without_words_the_meaning() -> None:
    assert fused([4, 5], Sight({4: 1.0, 5: 2.0}, 3.0), WEIGHTS) == [0.5, 1.0]
    assert fused([4, 5], Sight({}, 3.0, [0.1, 0.3], 0.1), WEIGHTS) == pytest.approx([0.0, 1.0])
    assert fused([], Sight({}, 0.0), WEIGHTS) == []


def test_a_score_is_never_below_zero() -> None:
    assert min(fused([1, 2], Sight({}, 1.0, [-0.4, 0.2], 0.1), WEIGHTS)) == 0
