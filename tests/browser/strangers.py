"""Agents of somebody who means harm: hostile cards, replies, errors, data and file names."""

from __future__ import annotations

from itertools import islice

import aios_nb as aios
from aios_nb.agents.definition import Definition, describe
from aios_nb.errors import AiosError
from tests.hostile.corpus import CORPUS

SENDABLE = [
    text
    for text in CORPUS.values()
    if text.isascii() or text.encode("utf-8", "ignore").decode() == text
]
SHORT = [text for text in SENDABLE if 0 < len(text) <= 120]


def mirror(text):
    yield from (text[at : at + 7] for at in range(0, len(text), 7))


def breaks(text):
    raise ValueError(text)


def gives(text):
    import pandas as pd

    frame = pd.DataFrame(
        {name: [value] for name, value in zip(SHORT, reversed(SHORT), strict=True)}
    )
    files = [aios.File(b"x", name=name) for name in SHORT if "/" not in name][:10]
    return {"all": SHORT, **dict.fromkeys(SHORT, 1)} if text == "dict" else (frame, *files)


def evil_cards() -> list[Definition]:
    """Agents whose cards hold all of the short ones, in title, about, tags and examples."""
    texts = iter(SHORT)
    cards = []
    while five := list(islice(texts, 5)):
        title, about, tag, *examples = (five * 5)[:5]
        try:
            options = {"title": title, "about": about, "tags": [tag[:48]], "examples": examples}
            cards.append(describe(mirror, name=f"evil-{len(cards)}", **options))
        except AiosError:  # not even a card may hold it
            continue
    return cards


def agents() -> list[Definition]:
    return [describe(mirror), describe(breaks), describe(gives), *evil_cards()]
