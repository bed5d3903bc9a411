"""What is put into an index, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

Keep = Callable[[str], bool]
"""Whether the document with this key may be among the hits."""
Scored = tuple[str, float]
"""A key and its score."""
Arrange = Callable[[Sequence[Scored]], Sequence[Scored]]
"""Another order for hits that are already ranked, before the page is cut."""


class Document(msgspec.Struct, frozen=True):
    """A text with a name: an agent's card, or a passage of a file."""

    name: str
    title: str = ""
    about: str = ""
    tags: Sequence[str] = ()
    extra: str = ""
    """More words to be found by, such as examples; not quoted."""


class Hit(msgspec.Struct, frozen=True):
    key: str
    score: float
    """0 to 1; falls from hit to hit."""
    why: str


class Index(Protocol):
    """Finds documents. Not thread-safe: one thread uses it."""

    def put(self, key: str, document: Document) -> None:
        """Add it, or take it instead of what had this key; found after ``refresh``."""

    def drop(self, key: str) -> None: ...

    def refresh(self) -> None:
        """Let searches see what was put and dropped."""

    def search(
        self,
        query: str,
        limit: int = 10,
        keep: Keep | None = None,
        arrange: Arrange | None = None,
    ) -> list[Hit]:
        """The best hits, best first; the same for the same documents and query."""

    def __len__(self) -> int: ...
