"""What documents mean, as far as a table of word pieces can tell."""

from __future__ import annotations

from collections.abc import Sequence

from aios_nb.index.documents import Document
from aios_nb.index.model import Floats, Model
from aios_nb.index.text import clean, words
from aios_nb.index.vectors import Vectors


class Near:
    """Candidates for a text, and how near to it any document is."""

    def __init__(self, vectors: Vectors, asked: Floats, count: int) -> None:
        self._vectors = vectors
        self._asked = asked
        self.rows = vectors.nearest(asked, count)
        self.usual = vectors.usual(asked)

    def cosines(self, rows: Sequence[int]) -> list[float]:
        return self._vectors.cosines(rows, self._asked)


class Meaning:
    """The meanings of numbered documents."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._vectors = Vectors()

    def put(self, row: int, document: Document) -> None:
        self._vectors.put(row, self._model.embed(_text(document)))

    def drop(self, row: int) -> None:
        self._vectors.drop(row)

    def knows(self, word: str) -> bool:
        return self._model.knows(word)

    def near(self, text: str, count: int) -> Near:
        return Near(self._vectors, self._model.embed(text), count)


def _text(document: Document) -> str:
    """What is embedded: the name as words, then what is said about it."""
    name = " ".join(words(clean(document.name)))
    parts = [name, document.title, ", ".join(document.tags), document.about, document.extra]
    return ". ".join(clean(part) for part in parts if part)
