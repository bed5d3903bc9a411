from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aios_nb.index.documents import Document
from aios_nb.index.hybrid import POOL, HybridIndex
from tests.index.agents import AGENTS


def keys(index: HybridIndex, query: str, limit: int = 10) -> list[str]:
    return [hit.key for hit in index.search(query, limit)]


# With every engine ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("convert currencies", "fx"),
        ("currancy convertor", "fx"),
        ("train to Prague", "train"),
        ("ocr", "pdf"),
        ("pdf reader", "pdf"),
        ("PDFREADER", "pdf"),
        ("temperatur", "rain"),
        ("货币换算", "zh"),
        ("明日の天気", "ja"),
        ("Uebersetzer", "de"),
        ("übersetzt texte", "de"),
    ],
)
def test_an_agent_is_found_by_words_names_tags_and_near_spellings(index, query, key) -> None:
    assert keys(index, query)[0] == key


def test_an_exact_name_comes_first_and_says_so(index) -> None:
    called = {f"called{number}" for number in range(30)}
    for key in called:
        index.put(key, Document("weather", "For sailors", "Wind and waves on all the seas."))
    index.put("other", Document("weather-weather", "Weather", "weather weather", ("weather",)))
    index.refresh()
    hits = index.search("Weather", 40)
    assert {hit.key for hit in hits[:30]} == called
    assert {hit.why for hit in hits[:30]} == {"exact name"}
    assert "other" in {hit.key for hit in hits[30:]}


def test_the_reason_names_the_words_and_where_they_stand(index) -> None:
    assert index.search("cheap travel")[0].why == "tag match: travel"
    assert index.search("train fares")[0].why == "name match: train"
    assert index.search("any railways")[0].why == "text match: railways"
    assert "currency (for currancy)" in index.search("currancy")[0].why


def test_what_nobody_has_finds_nothing(index) -> None:
    for query in ("", "   ", "\u200b", "!!!", "xqzzk vvrrk"):
        assert keys(index, query) == []


def test_a_change_is_seen_after_a_refresh(index) -> None:
    index.put("rain", Document("umbrella", "Umbrella", "Knows about parasols."))
    index.drop("train")
    index.drop("nobody")
    index.refresh()
    assert keys(index, "parasols")[0] == "rain"
    assert "train" not in keys(index, "train tickets")
    assert "rain" not in keys(index, "skycast")
    assert len(index) == len(AGENTS) - 1


def test_only_what_may_be_shown_is_found_however_rare_it_is(make_index) -> None:
    index = make_index()
    for number in range(POOL * 3):
        index.put(f"crowd{number}", Document("weather", "Weather", "Weather weather."))
    index.put("mine", Document("one", "One", "Among many other things some weather."))
    index.refresh()
    found = index.search("weather", 10, keep=lambda key: key == "mine")
    assert [hit.key for hit in found] == ["mine"]


def test_the_page_is_cut_after_it_was_arranged(index) -> None:
    every = [hit.key for hit in index.search("travel train", 2)]
    turned = index.search("travel train", 2, arrange=lambda ranked: ranked[::-1])
    assert len(turned) == len(every) == 2
    assert turned[-1].key != every[-1] or turned[0].key != every[0]


def test_the_order_does_not_depend_on_how_the_index_came_to_be(make_index) -> None:
    many = {f"key{number}": Document(f"twin-{number % 7}", "Same", "text") for number in range(60)}
    pages = []
    for seed in (1, 2):
        index = make_index()
        order = list(many.items())
        random.Random(seed).shuffle(order)
        for key, document in order:
            index.put(key, document)
            index.put(f"gone{key}", document)
            index.drop(f"gone{key}")
        index.refresh()
        pages.append([hit.key for hit in index.search("same text", 60)])
    assert sorted(pages[0]) == sorted(many)
    assert pages[0] == pages[1]


def test_scores_fall_and_stay_between_zero_and_one(index) -> None:
    for query in ("travel", "train and rain", "skycast", "money for a hotel room"):
        scores = [hit.score for hit in index.search(query)]
        assert scores == sorted(scores, reverse=True)
        assert all(0 < score <= 1 for score in scores)


HOSTILE = [
    "a" * 4000,
    "train " * 700,
    '"train" AND (name:* OR ~2 [a TO z]) +- && || ! ^5 \\ / {} <s>',
    "t\u200brain\u202e \ud800\udfff \x00\x1b[31m",
    " ".join(f"word{number}" for number in range(600)),
    "and, then; also plus & " * 100,
    "\u0301" * 500,
    "\U0001f600" * 100,
    "tag:math node:x 'quoted' \"open",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_only_text(index, text) -> None:
    index.search(text)
    index.put("hostile", Document(text, text, text, (text, text), text))
    index.refresh()
    index.search(text)
    assert keys(index, "train tickets")[0] == "train"
    for hit in index.search(text):
        assert len(hit.why) < 200
        assert hit.why.isprintable()


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=st.text(max_size=60))
def test_any_question_is_answered(index, text) -> None:
    hits = index.search(text, 5)
    assert len(hits) <= 5
    assert all(hit.key in AGENTS for hit in hits)


# With words and meaning ----------------------------------------------------------------


def test_an_agent_is_found_by_what_it_means(best) -> None:
    hits = best.search("how many dollars for my pounds")
    assert hits[0].key == "fx"
    assert hits[0].why == "close in meaning to 'Exchange rates'"
    assert keys(best, "will there be a storm")[0] == "rain"


def test_two_needs_bring_agents_for_both(best) -> None:
    assert set(keys(best, "convert currency and show train tickets", 2)) == {"fx", "train"}
    assert set(keys(best, "is a storm coming, and where can I sleep", 2)) == {"rain", "hotel"}


def test_a_real_word_is_not_taken_for_a_slip(best) -> None:
    """``brain`` is one letter from ``train``, and is what was meant."""
    assert all("for brain" not in hit.why for hit in best.search("brain"))
