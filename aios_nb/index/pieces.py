"""Words as the pieces that the model has a row for.

The pieces are those of a byte-pair tokenizer whose merges are numbered like their results, so the
vocabulary alone says how a word falls apart. The library that could do this reads its file in one
call of a tenth of a second, and no other thread runs meanwhile; and it is slower, because it does
not remember words.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Mapping
from pathlib import Path

BEGINS = "\u2581"
"""Marks a piece that begins a word."""
WORD_MAX_CHARS = 64
"""A longer word is cut; joining its letters takes time that grows with their square."""
REMEMBERED = 1 << 15

_ENTRY = re.compile(r'"((?:[^"\\]|\\.)*)":\s*([0-9]+)')


class Pieces:
    """The numbers of a text's pieces."""

    def __init__(self, numbers: Mapping[str, int]) -> None:
        self._numbers = numbers
        self._of = functools.lru_cache(REMEMBERED)(self._pieces_of)

    @classmethod
    def load(cls, path: Path) -> Pieces:
        """Read the vocabulary out of a ``tokenizer.json``, without holding up other threads."""
        text = path.read_text(encoding="utf-8")
        begin, end = text.index('"vocab"'), text.index('"merges"')
        numbers = {}
        for entry in _ENTRY.finditer(text, begin + len('"vocab":'), end):
            piece = entry[1]
            if "\\" in piece:
                piece = json.loads(f'"{piece}"')
            numbers[piece] = int(entry[2])
        return cls(numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def knows(self, word: str) -> bool:
        """Whether a word is one piece."""
        return BEGINS + word in self._numbers

    def of(self, text: str) -> list[int]:
        """The pieces of a text in their order."""
        return [piece for word in text.split() for piece in self._of(word[:WORD_MAX_CHARS])]

    def _pieces_of(self, word: str) -> tuple[int, ...]:
        whole = self._numbers.get(BEGINS + word)
        if whole is not None:
            return (whole,)
        parts = [BEGINS, *word]
        while True:
            pairs = [
                (self._numbers.get(one + other), at)
                for at, (one, other) in enumerate(itertools.pairwise(parts))
            ]
            known = [(number, at) for number, at in pairs if number is not None]
            if not known:
                break
            _, at = min(known)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return tuple(number for part in parts for number in self._numbers_of(part))

    def _numbers_of(self, part: str) -> list[int]:
        """One number, or those of its bytes for a character that has none."""
        number = self._numbers.get(part)
        if number is not None:
            return [number]
        raw = part.encode("utf-8", "replace")
        return [self._numbers[f"<0x{byte:02X}>"] for byte in raw]
