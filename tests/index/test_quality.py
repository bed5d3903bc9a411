"""How well agents are found, on questions on which no weight was chosen."""

from __future__ import annotations

import pytest

from aios_nb.bench import labelled
from aios_nb.bench.labelled import Labelled, Question
from aios_nb.bench.scenarios.search import GAIN_MIN, quality

QUESTIONS = 300


def labels(name: str) -> Labelled:
    if name != "metatool":
        return labelled.own(name)
    found = labelled.metatool()
    if found is None:
        pytest.skip("MetaTool is not at ../shared/data/metatool: quality on it was NOT tested")
    return found


@pytest.mark.parametrize("name", labelled.OWN)
def test_our_sets_are_large_enough_and_right(name) -> None:
    found = labels(name)
    assert len(found.documents) >= 60
    assert len(found.questions) >= 120
    assert len({each.text for each in found.questions}) == len(found.questions)
    every = [*found.questions, *found.both]
    assert all(set(each.agents) <= found.documents.keys() for each in every)
    assert all(len(each.agents) == 2 for each in found.both)
    assert 0.35 < sum(each.is_held_out for each in every) / len(every) < 0.65


@pytest.mark.parametrize("name", [*labelled.OWN, "metatool"])
def test_fusion_is_not_below_words_alone(name) -> None:
    scores = quality(labels(name), QUESTIONS)
    assert scores["fusion"] >= max(scores["BM25"], scores["FTS5"])
    if name != "names":
        assert scores["fusion"] >= GAIN_MIN * scores["BM25"]
    assert scores["two needs"] >= 0.5


def test_the_measure_is_one_for_always_first_and_falls_with_the_place() -> None:
    asked = [Question("q", ["a"])]
    gains = [
        labelled.ndcg(asked, lambda _, limit, at=at: [*"xyzuv"[:at], "a"][:limit])
        for at in range(4)
    ]
    assert gains[0] == 1
    assert gains == sorted(gains, reverse=True)
    assert labelled.ndcg(asked, lambda *_: ["b"]) == 0
    both = [Question("q", ["a", "b"])]
    assert labelled.both_found(both, lambda *_: ["b", "c", "a"]) == 1
    assert labelled.both_found(both, lambda *_: ["b"]) == 0
