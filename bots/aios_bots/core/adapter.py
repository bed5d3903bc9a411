"""What a chat app is to the bridge: a second one is added by one more module in ``adapters``.

An adapter keeps nothing and decides nothing. It hands over updates as they came, makes one call for
each ``Outgoing``, and says by one of the errors here what became of a call that did not succeed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec

from aios_bots.core.model import Attachment, Incoming, Outgoing

Take = Callable[[Sequence[tuple[int, str]]], Awaitable[None]]
"""Keeps updates (id, raw); done when they are safe, and the app may forget them."""
Content = Callable[[Attachment], Awaitable[bytes]]
"""The bytes of a file that goes out."""


class Caps(msgspec.Struct, frozen=True):
    """What an app can do, as far as that is known now."""

    text_units: int = 4096
    caption_units: int = 1024
    spans: int = 100
    edits: bool = True
    files: bool = True
    typing: bool = True
    reactions: bool = True
    file_bytes: int = 50 << 20
    """The largest file that goes out."""


class Trouble(msgspec.Struct, frozen=True):
    """Why nothing comes in at the moment, in one line for people; and since when (unix s)."""

    what: str
    since: float


class Adapter(Protocol):
    """One bot of one app."""

    @property
    def platform(self) -> str:
        """A short word, the first part of people's sender ids."""

    @property
    def account(self) -> str:
        """The bot's own id."""

    @property
    def address(self) -> str:
        """How the app is reached and reaches us; another one needs a new start. No secret."""

    @property
    def name(self) -> str:
        """What people call the bot; known after ``open``."""

    @property
    def caps(self) -> Caps: ...

    @property
    def trouble(self) -> Trouble | None: ...

    @property
    def notes(self) -> Sequence[str]:
        """What the owner should know, a line each: what this server cannot do, privacy mode."""

    async def open(self) -> None:
        """Say hello to the app. Raises ``AiosError``, one line, for a token it does not know.

        No network is no error here: ``intake`` goes on trying.
        """

    async def intake(self, take: Take) -> None:
        """Hand over updates until cancelled; each batch is confirmed after ``take`` is done.

        Raises ``AiosError`` for what will not pass, such as a token that was revoked.
        """

    async def set_commands(self, owners: Sequence[str]) -> None:
        """Show which commands there are, and to these people the owner's too, if there is a menu.

        It does not wait for it: a menu is not a must.
        """

    def read(self, raw: str) -> Incoming:
        """What an update means. Raises ``ValueError`` for one that cannot be understood."""

    async def call(self, out: Outgoing, content: Content) -> str:
        """Make one call; gives the id of the message it made. Raises a ``CallError``."""

    async def fetch(self, file: Attachment) -> bytes:
        """A file that came in. Raises a ``CallError``."""

    def is_group(self, chat: str) -> bool: ...

    def link(self, code: str) -> str:
        """An address that opens the bot and says that code; empty if the app has none."""

    async def close(self) -> None: ...


class CallError(Exception):
    """A call did not succeed. What it says is for the owner: no token, one line."""


class NotTaken(CallError):
    """The app surely does not have it: no connection. It may be made again."""


class Flooded(CallError):
    """The app wants nothing for that chat for so long."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the app wants a pause of {seconds:g} s")
        self.seconds = seconds


class Unsure(CallError):
    """Nobody knows whether the app has it: the connection broke, or the app broke."""


class BadStyle(CallError):
    """The app does not understand how the text looks: plain, it may."""


class Unreachable(CallError):
    """The chat does not want this bot: blocked, removed, deleted."""


class Moved(CallError):
    """The chat has another id now."""

    def __init__(self, chat: str) -> None:
        super().__init__("the chat has another id now")
        self.chat = chat


class Impossible(CallError):
    """It will never be taken as it is."""


class Absent(CallError):
    """This server does not know that call; the adapter has noted it in its ``caps``."""
