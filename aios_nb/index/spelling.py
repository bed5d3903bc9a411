"""Words that were probably meant."""

from __future__ import annotations

from collections.abc import Iterable

LETTERS_MIN = 4
"""In a shorter word one letter makes another word."""
LETTERS_TWO_SLIPS = 8


def slips_in(word: str) -> int:
    """How many letters of a word of this length may be wrong."""
    if len(word) < LETTERS_MIN or not word.isalpha():
        return 0
    return 2 if len(word) >= LETTERS_TWO_SLIPS else 1


def meant(typed: str, known: Iterable[str]) -> str | None:
    """The known word that was most likely meant: one that begins so, or with the fewest slips."""
    if len(typed) < LETTERS_MIN:
        return None
    most = slips_in(typed)
    ranked = []
    for word in set(known):
        if word.startswith(typed):
            ranked.append((0, len(word), word))
        elif (wrong := slips(typed, word, most)) is not None:
            ranked.append((wrong, abs(len(word) - len(typed)), word))
    return min(ranked)[2] if ranked else None


def slips(one: str, other: str, most: int) -> int | None:
    """Letters left out, added, changed or swapped with the next; None if more than ``most``."""
    if abs(len(one) - len(other)) > most or len(set(one) ^ set(other)) > 2 * most:
        return None
    before: list[int] = []
    line = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        before, last, line = line, before, [at]
        for there, wanted in enumerate(other, 1):
            cost = min(
                before[there] + 1,
                line[there - 1] + 1,
                before[there - 1] + (letter != wanted),
            )
            swapped = at > 1 and there > 1 and letter == other[there - 2] and one[at - 2] == wanted
            if swapped:
                cost = min(cost, last[there - 2] + 1)
            line.append(cost)
    return line[-1] if line[-1] <= most else None
