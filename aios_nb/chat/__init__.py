"""Conversations, and the exchange that keeps their promises."""

from __future__ import annotations

from aios_nb.chat.keeping import Keeping
from aios_nb.chat.talking import Talking


class Chat(Talking, Keeping):
    """The chat room with all its doors: the ``chat.*`` methods of the contract."""
