"""One bot in this home: its files, who bridges it now, and words for that program.

``telegram-BOTID.db`` is the bridge's database. Whoever bridges the bot holds the lock, so that it
is done once, and says in ``run/telegram-BOTID.json`` how it is doing; without the lock that file is
of a bridge that has ended.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from aios_bots.core.box import Box, Word
from aios_bots.core.bridge import BridgeStatus, Code
from aios_bots.core.pairing import CODE_S, Pairing, Role
from aios_bots.core.people import Line, Person
from aios_nb.errors import HomeError, NameTaken, NotRunning, UsageError
from aios_nb.home import Home
from aios_nb.private import read_private, replace_private

CLAIM_WAIT_S = 5.0
"""A kernel that restarts has let go of its bot by then."""
STOP_WAIT_S = 15.0
"""What is on its way out goes, for a moment."""
_RETRY_S = 0.05
_CARD_MAX_BYTES = 4 << 20
_PREFIX = "telegram-"


class Card(msgspec.Struct, frozen=True):
    """What a bridge tells this user's programs of itself. No secret is in it."""

    account: str
    node: str
    status: BridgeStatus
    link: str = ""
    """The address that a code is put behind; empty if the app has none."""
    people: tuple[Person, ...] = ()
    tried: tuple[Line, ...] = ()
    """What people did or tried last, the newest first."""
    pid: int = 0


class Bot:
    """The files of one bot."""

    def __init__(self, home: Home, account: str) -> None:
        self.home, self.account = home, account
        name = f"{_PREFIX}{account}"
        self.db = home.path / f"{name}.db"
        self.keys = home.path / "keys" / f"{name}.json"
        self._lock = home.path / "run" / f"{name}.lock"
        self._card = home.path / "run" / f"{name}.json"
        self.box = Box(home.path / "run" / f"{name}.box")

    @contextlib.contextmanager
    def claimed(self, wait_s: float = CLAIM_WAIT_S) -> Iterator[None]:
        """Be the one who bridges it; ``NameTaken`` if another program is and stays."""
        self.home.prepare()
        until = time.monotonic() + wait_s
        while (fd := self._try_lock()) is None:
            if time.monotonic() >= until:
                raise self._taken()
            time.sleep(_RETRY_S)
        try:
            yield
        finally:
            fcntl.flock(fd, fcntl.LOCK_UN)
            os.close(fd)

    def _try_lock(self) -> int | None:
        try:
            fd = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise HomeError(f"{self._lock} cannot be opened: {error.strerror}") from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            return None
        return fd

    def _taken(self) -> NameTaken:
        card = self.card()
        where = f", for the node {card.node} (process {card.pid})" if card is not None else ""
        return NameTaken(
            f"bot {self.account} is bridged already{where}",
            hint="it serves one program at a time; stop that one: aios-nb telegram stop",
        )

    @property
    def is_bridged(self) -> bool:
        """Whether a program bridges it now."""
        if not self._lock.exists():
            return False
        fd = self._try_lock()
        if fd is None:
            return True
        fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)
        return False

    def tell(self, card: Card) -> None:
        """Say how the bridge is doing."""
        replace_private(self._card, msgspec.json.encode(card))

    def card(self) -> Card | None:
        """What the bridge said last; None if there never was one, or it cannot be read."""
        try:
            content = read_private(self._card, limit_bytes=_CARD_MAX_BYTES)
            return msgspec.json.decode(content, type=Card)
        except (FileNotFoundError, HomeError, msgspec.DecodeError, UnicodeDecodeError):
            return None

    # For other programs of its owner -----------------------------------------------------------

    def pair(
        self, role: Role | None = None, agents: Iterable[str] = (), conversation: str = ""
    ) -> Code:
        """A code that lets somebody in. Without a role: the owner first, then members."""
        agents = tuple(agents)
        if agents and role is Role.OWNER:
            raise UsageError("an owner reaches all agents", hint="leave --agents out, or --role")
        card = self.card()
        usual = first_role(card.people if card is not None else ())
        if agents:  # then it is for somebody else
            usual = Role.MEMBER
        first = role is None and usual is Role.OWNER
        role = role or usual
        pairing = Pairing(time.time, secrets.token_bytes)
        code, offer = pairing.offer(
            self.account, role, agents=agents, conversation=conversation, first=first
        )
        self.box.put(Word(offer=offer))
        link = card.link if card is not None else ""
        return Code(code, link + code if link else "", CODE_S, role, conversation)

    def put_out(self, user_id: str) -> Person:
        """Somebody is let in no more."""
        card = self.card()
        for person in card.people if card is not None else ():
            if user_id in {person.user_id, f"tg:{self.account}:{person.user_id}"}:
                self.box.put(Word(revoke=person.user_id))
                return person
        raise UsageError(f"nobody with the id {user_id[:40]} is paired", hint="see telegram people")

    def stop(self) -> None:
        """Ask the program that bridges it to end that."""
        self.box.put(Word(stop=True))

    def has_ended(self, wait_s: float = STOP_WAIT_S) -> bool:
        """Whether nobody bridges it any more, within a while."""
        until = time.monotonic() + wait_s
        while self.is_bridged:
            if time.monotonic() > until:
                return False
            time.sleep(_RETRY_S)
        return True


def first_role(people: Iterable[Person]) -> Role:
    """Whom a code is for if nothing was said: the first is one's own phone."""
    return Role.MEMBER if any(one.role is Role.OWNER for one in people) else Role.OWNER


def bots(home: Home) -> list[Bot]:
    """The bots that were ever bridged in this home."""
    found: Iterable[Path] = sorted(home.path.glob(f"{_PREFIX}*.db"))
    names = (path.stem.removeprefix(_PREFIX) for path in found)
    return [Bot(home, name) for name in names if name.isdigit()]


def meant(home: Home, account: str = "") -> Bot:
    """The bot of that token; else the only one that is bridged, or was."""
    if account:
        return Bot(home, account)
    every = bots(home)
    bridged = [bot for bot in every if bot.is_bridged]
    if len(bridged or every) == 1:
        return (bridged or every)[0]
    if every:
        raise UsageError(
            f"several bots are here: {', '.join(bot.account for bot in bridged or every)}",
            hint="the one whose token is in TELEGRAM_BOT_TOKEN is meant",
        )
    raise NotRunning("no bot is bridged here", hint="start one: aios-nb telegram")
