"""What a chat shows, one item after another: messages, replies as they grow, questions, notes."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from aios_nb import richtext
from aios_nb.notebook.widgets.contents import Blocks

REST = 10
"""A reply that grows is shown again after so many times what showing it took: a tenth of the
loop's time at most, however long it is."""
REST_MAX_S = 1.0
"""But it is shown: the first time may take long because the reader of Markdown is imported."""
SHOWN_AT_ONCE_CHARS = 8_000
"""Of what has come meanwhile; the rest is shown next time. To parse so much takes some ms."""


class Who(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    name: str
    agent: bool = False
    mine: bool = False
    node: str = ""
    """Of an agent elsewhere: its node, for people."""


class Item(msgspec.Struct, omit_defaults=True):
    """One thing to show. What is empty does not travel."""

    id: str
    who: Who
    at: str
    order: tuple[int, int, int] = (0, 0, 0)
    kind: str = "said"
    """``said``, ``asks`` or ``note``."""
    text: str = ""
    blocks: Blocks | None = None
    """The text as a tree; None until it is parsed."""
    status: str = ""
    """At work: ``waits``, ``runs`` or ``asks``. Ended badly: ``failed``, ``cancelled`` or
    ``interrupted``. Empty when it is there."""
    took_s: float | None = None
    problem: str = ""
    hint: str = ""
    progress: str = ""
    data: dict[str, Any] | None = None
    files: list[dict[str, Any]] = []
    re: str = ""
    """The message it answers."""
    to: list[str] = []
    """Whom it was sent to, where its text does not say so."""
    resent: str = ""
    """The message that was sent in its place."""
    edited: bool = False
    reactions: list[str] = []
    question: str = ""
    """Of ``asks``: which one, as long as it waits for an answer."""
    reply: str = ""
    """Of ``asks``: the reply that waits for it."""
    seq: int = 0


class Writing:
    """A reply that is being written."""

    def __init__(self, item: Item) -> None:
        self.item = item
        self.length = 0
        """Code points that came so far."""
        self._growing = richtext.Growing()
        self._pieces: list[str] = []
        self._rest_until = 0.0

    def add(self, text: str) -> None:
        self._pieces.append(text)
        self.length += len(text)

    @property
    def lags(self) -> bool:
        """Whether there is more of it than was shown."""
        return bool(self._pieces)

    def show(self) -> dict[str, Any] | None:
        """What a page must do to show more of it; None when it shows all, or it is too soon."""
        began = time.monotonic()
        if not self._pieces or began < self._rest_until:
            return None
        text = "".join(self._pieces)
        rest = text[SHOWN_AT_ONCE_CHARS:]
        self._pieces = [rest] if rest else []
        keep, nodes = self._growing.feed(text[:SHOWN_AT_ONCE_CHARS])
        blocks = richtext.to_data(nodes)
        self.item.blocks = [*(self.item.blocks or [])[:keep], *blocks]
        now = time.monotonic()
        self._rest_until = now + min(REST * (now - began), REST_MAX_S)
        return {"type": "grow", "id": self.item.id, "keep": keep, "blocks": blocks}


def as_plain(item: Item) -> dict[str, Any]:
    """As it travels."""
    fields: dict[str, Any] = msgspec.to_builtins(item)
    return fields
