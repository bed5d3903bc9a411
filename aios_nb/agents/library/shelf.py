"""The passages of one folder in an index, kept as the folder is."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path

import msgspec

from aios_nb.agents.library.folder import NOTEBOOKS, Stamp, suffix, survey
from aios_nb.agents.library.passages import Passage
from aios_nb.agents.library.reading import NotText, read
from aios_nb.index.documents import Document, Index

log = logging.getLogger("aios_nb.agents")

_SIGNS = re.compile(r"(?!(?<=\w)'(?=\w))[!-/:-@\[-`{-~]+")
"""Code has these between its words. Without them most are known ones, and cost half the time."""

Tell = Callable[[int, int], None]
"""Hears how many files of how many have been read."""


class Found(msgspec.Struct, frozen=True):
    path: str
    """Inside the folder."""
    passage: Passage
    score: float


class Stock(msgspec.Struct, frozen=True):
    """What is on a shelf, and what is not."""

    files: int
    notebooks: int
    passages: int
    waiting: int = 0
    """Files for which there was no time yet."""
    unreadable: int = 0
    """Files that are no text after all, and folders that cannot be opened."""
    complete: bool = True
    """False when there was more than fits."""


class Shelf:
    """Not thread-safe. One that an error left in the middle of ``update`` is thrown away."""

    def __init__(
        self,
        folder: Path,
        *,
        files_max: int,
        passages_max: int,
        avoid: frozenset[Path] = frozenset(),
        open_index: Callable[[], Index],
    ) -> None:
        self.folder = folder
        self._files_max = files_max
        self._passages_max = passages_max
        self._avoid = avoid
        self._index = open_index()
        self._stamps: dict[str, Stamp] = {}
        self._keys: dict[str, list[str]] = {}
        """Of a file's passages."""
        self._refused: set[str] = set()
        self._passages: dict[str, tuple[str, Passage]] = {}

    def update(self, tell: Tell, is_late: Callable[[], bool]) -> Stock:
        """Read what is new or changed and forget what is gone, until it gets late.

        Raises ``OSError`` if the folder itself cannot be read.
        """
        found = survey(self.folder, self._files_max, self._avoid)
        for path in self._stamps.keys() - found.files.keys():
            self._forget(path)
        changed = [path for path, stamp in found.files.items() if self._stamps.get(path) != stamp]
        full = False
        for number, path in enumerate(changed):
            if is_late():
                break
            tell(number, len(changed))
            self._forget(path)
            if full := len(self._passages) >= self._passages_max:
                break
            self._take(path, found.files[path])
        self._index.refresh()
        read_in = self._stamps.keys() - self._refused
        return Stock(
            files=len(read_in),
            notebooks=sum(suffix(path) in NOTEBOOKS for path in read_in),
            passages=len(self._passages),
            waiting=0 if full else len(found.files) - len(self._stamps),
            unreadable=found.closed + len(self._refused),
            complete=found.complete and not full,
        )

    def _take(self, path: str, stamp: Stamp) -> None:
        passages: list[Passage] = []
        try:
            passages = read(self.folder / path)
        except (OSError, NotText) as error:
            log.info("the librarian cannot read %s: %s", path, error)
            self._refused.add(path)
        room = self._passages_max - len(self._passages)
        *above, name = path.split("/")
        keys = self._keys[path] = []
        for number, passage in enumerate(passages[:room]):
            key = f"{path}\n{number}"
            text = _SIGNS.sub(" ", passage.text)
            self._index.put(key, Document(name, passage.title, text, above))
            self._passages[key] = (path, passage)
            keys.append(key)
        self._stamps[path] = stamp

    def _forget(self, path: str) -> None:
        for key in self._keys.pop(path, ()):
            self._index.drop(key)
            del self._passages[key]
        self._stamps.pop(path, None)
        self._refused.discard(path)

    def search(self, question: str, limit: int) -> list[Found]:
        """The passages that fit best, best first."""
        return [
            Found(*self._passages[hit.key], hit.score)
            for hit in self._index.search(question, limit)
        ]
