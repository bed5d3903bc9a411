"""Many made-up records, and SQLite's full-text search over the same ones.

``python -m aios_nb.bench.many COUNT ROUNDS`` measures both in a process of its own, whose memory
is then theirs, and prints one JSON line.
"""

from __future__ import annotations

import itertools
import os
import random
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing

import msgspec

from aios_nb.bench import labelled, usage
from aios_nb.index.documents import Document
from aios_nb.index.opening import open_index
from aios_nb.index.text import clean, content, words

SEED = 7
MADE_WORDS = 20_000
RECORD_WORDS = 40
QUESTIONS = 100
_SYLLABLES = "ka lo mi ter son ra vel dor pi nu shi ban gro est al um".split(" ")  # noqa: SIM905


Search = Callable[[str, int], object]


class Measured(msgspec.Struct):
    """Milliseconds for each question by each way, one list per round; memory in MB."""

    count: int
    build_s: float
    texts_mb: float
    fixed_mb: float
    """Libraries and the model."""
    index_mb: float
    fts5: list[list[float]] = []
    hybrid: list[list[float]] = []


def records(count: int) -> list[Document]:
    """Records of forty words: real ones are frequent, as in real records, made-up ones rare."""
    rng = random.Random(SEED)  # noqa: S311
    texts = [
        document for name in labelled.OWN for document in labelled.own(name).documents.values()
    ]
    real = sorted({word for each in texts for word in words(clean(f"{each.title} {each.about}"))})
    made = {"".join(rng.choices(_SYLLABLES, k=rng.randint(2, 4))) for _ in range(MADE_WORDS)}
    rng.shuffle(real)
    every = [*real, *sorted(made - set(real))]
    steps = list(itertools.accumulate(1 / rank for rank in range(1, len(every) + 1)))

    def record() -> Document:
        drawn = rng.choices(every, cum_weights=steps, k=RECORD_WORDS)
        name, title = "-".join(drawn[:2]), " ".join(drawn[2:4])
        return Document(name, title, " ".join(drawn[4:37]), drawn[37:])

    return [record() for _ in range(count)]


def questions() -> list[str]:
    """Real questions, in the words that records are made of."""
    asked = [each for name in labelled.OWN for each in labelled.own(name).questions]
    return [each.text for each in labelled.few(asked, QUESTIONS)]


class FullText:
    """SQLite FTS5 in memory, with stems; finds records that have any of the words."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._database = sqlite3.connect(":memory:")
        self._database.execute(
            "CREATE VIRTUAL TABLE texts USING"
            " fts5(name, title, tags, about, tokenize='porter unicode61')"
        )
        self._database.executemany(
            "INSERT INTO texts VALUES (?, ?, ?, ?)",
            ((each.name, each.title, " ".join(each.tags), each.about) for each in documents),
        )
        self._database.commit()

    def search(self, question: str, limit: int) -> list[int]:
        asked = " OR ".join(f'"{word}"' for word in content(words(clean(question))))
        found = self._database.execute(
            "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?", (asked, limit)
        )
        return [row[0] for row in found]

    def close(self) -> None:
        self._database.close()


def measured(count: int, rounds: int) -> Measured:
    memory = [_memory()]
    documents = records(count)
    memory.append(_memory())
    index = open_index()
    index.put("warm", documents[0])
    index.refresh()
    index.drop("warm")
    memory.append(_memory())
    begun = time.perf_counter()
    for number, document in enumerate(documents):
        index.put(str(number), document)
    index.refresh()
    built = time.perf_counter() - begun
    memory.append(_memory())
    texts, fixed, filled = (after - before for before, after in itertools.pairwise(memory))
    found = Measured(count, built, texts, fixed, filled)
    asked = questions()
    with closing(FullText(documents)) as full_text:
        for _ in range(rounds):
            times = [_side_by_side((full_text.search, index.search), each) for each in asked]
            found.fts5.append([one for one, _ in times])
            found.hybrid.append([other for _, other in times])
    return found


def _memory() -> float:
    return usage.rss_mb(os.getpid()) or 0.0


def _side_by_side(searches: tuple[Search, Search], question: str) -> tuple[float, float]:
    """Milliseconds of both, one right after the other."""
    first, second = (_timed(search, question) for search in searches)
    return first, second


def _timed(search: Search, question: str) -> float:
    begun = time.perf_counter()
    search(question, labelled.TOP)
    return (time.perf_counter() - begun) * 1e3


if __name__ == "__main__":
    _, how_many, how_often = sys.argv
    print(msgspec.json.encode(measured(int(how_many), int(how_often))).decode())
