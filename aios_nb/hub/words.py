"""Finding agents by the words of their cards: rare words count more, near spellings a little."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from aios_nb.ports import CardLike

_WORD = re.compile(r"[^\W_]+", re.UNICODE)
_COMMON = frozenset(
    re.split(
        " ",
        "a an and are as at be by can do for from have how i in is it me my of on or please that"
        " the this to up want what which with you your",
    )
)
_FIELDS = (("name", 4.0), ("tags", 3.0), ("title", 2.5), ("examples", 1.5), ("about", 1.0))
_NEAR = 0.8
"""How alike two spellings must be to count, and what the match is then worth."""
_PREFIX_LETTERS = 4


class Match(msgspec.Struct, frozen=True):
    key: str
    score: float
    """0 to 1: the share of the question's weight that was met."""
    why: str


def words_of(text: str) -> list[str]:
    return [_stem(word) for word in _WORD.findall(text.lower()) if word not in _COMMON]


def _stem(word: str) -> str:
    for ending in ("ing", "ers", "ies", "es", "er", "ed", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:  # noqa: PLR2004
            return word[: -len(ending)]
    return word


class WordIndex:
    """The words of a set of cards."""

    def __init__(self) -> None:
        self._words: dict[str, dict[str, float]] = {}

    def put(self, key: str, name: str, card: CardLike) -> None:
        texts: Mapping[str, Iterable[str]] = {
            "name": [name],
            "tags": card.tags,
            "title": [card.title],
            "examples": card.examples,
            "about": [card.about],
        }
        weights: dict[str, float] = {}
        for field, weight in _FIELDS:
            for word in words_of(" ".join(texts[field])):
                weights[word] = max(weights.get(word, 0.0), weight)
        self._words[key] = weights

    def drop(self, key: str) -> None:
        self._words.pop(key, None)

    def search(self, question: str) -> list[Match]:
        """Agents that share words with the question, best first."""
        wanted = list(dict.fromkeys(words_of(question)))
        if not wanted:
            return []
        rarity = {word: self._rarity(word) for word in wanted}
        total = sum(rarity.values()) * _FIELDS[0][1]
        matches = []
        for key, weights in self._words.items():
            met = {word: self._worth(word, weights) for word in wanted}
            score = sum(rarity[word] * worth for word, (worth, _) in met.items()) / total
            if score > 0:
                found = dict.fromkeys(hit for worth, hit in met.values() if worth)
                matches.append(Match(key, round(score, 4), f"matches {', '.join(found)}"))
        return sorted(matches, key=lambda match: (-match.score, match.key))

    def _rarity(self, word: str) -> float:
        having = sum(self._worth(word, weights)[0] > 0 for weights in self._words.values())
        return math.log(1 + len(self._words) / (1 + having)) + 0.1

    @staticmethod
    def _worth(word: str, weights: Mapping[str, float]) -> tuple[float, str]:
        """How much of this card meets the word, and by which of its own words."""
        if word in weights:
            return weights[word], word
        if len(word) >= _PREFIX_LETTERS:
            for other in weights:
                if other.startswith(word) or (
                    len(other) >= _PREFIX_LETTERS and word.startswith(other)
                ):
                    return weights[other] * 0.7, other
            near: Sequence[str] = difflib.get_close_matches(word, weights, 1, _NEAR)
            if near:
                return weights[near[0]] * 0.5, near[0]
        return 0.0, ""
