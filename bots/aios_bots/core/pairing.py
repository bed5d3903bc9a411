"""Codes that let a person in: made by the owner, said once to the bot, good for ten minutes.

A code is eight characters (40 bits). Who guesses is stopped long before: five wrong ones from one
person, fifty from all together within an hour, and nobody is listened to for a while, not even with
the right one. Only a hash is kept, bound to the bot; rights come from the owner's offer, never from
what the person says.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import deque
from collections.abc import Callable, Iterable
from enum import StrEnum

import msgspec

from aios_bots.core.model import ChatKind

CODE_BYTES = 5
CODE_CHARS = 8
CODE_S = 600.0
FAILURES_PER_PERSON = 5
FAILURES_PER_BOT = 50
FAILURES_S = 3600.0

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's: no letter that looks like a figure."""
_ALIKE = str.maketrans("OIL", "011", "- ")
_BITS = 5


class Role(StrEnum):
    """What a person may do, from most to least."""

    OWNER = "owner"
    MEMBER = "member"
    GUEST = "guest"
    """Reads along."""


class Offer(msgspec.Struct, frozen=True):
    """What a code gives to whoever says it first."""

    digest: bytes
    account: str
    role: Role
    agents: tuple[str, ...] = ()
    """The only agents for that person; none: all."""
    conversation: str = ""
    """Where the person is put at once."""
    expires: float = 0.0
    """Unix seconds."""
    used_by: str = ""
    used_in: str = ""
    """The update that said it: dealt with again, it gets the same. No other does."""
    first: bool = False
    """The role is for the first owner; when there is one by then, it is a member's."""


class Answer(StrEnum):
    PAIRED = "paired"
    WRONG = "wrong"
    """No such code, or one that was used or is too old: who asks is not told which."""
    SILENT = "silent"
    """Say nothing: not a private chat, or too many wrong ones."""


def new_code(random: Callable[[int], bytes]) -> str:
    """A fresh code. ``random`` gives so many bytes that nobody can guess."""
    number = int.from_bytes(random(CODE_BYTES), "big")
    return "".join(
        _ALPHABET[number >> shift & (1 << _BITS) - 1]
        for shift in range((CODE_CHARS - 1) * _BITS, -1, -_BITS)
    )


def code_of(text: str) -> str | None:
    """The code that a person typed, in any case and with what looks alike; None if it is none."""
    code = text[: 4 * CODE_CHARS].strip().upper().translate(_ALIKE)
    return code if len(code) == CODE_CHARS and set(code) <= set(_ALPHABET) else None


def digest_of(account: str, code: str) -> bytes:
    """What is kept of a code. Another bot has another one for the same."""
    return hashlib.sha256(f"aios-pair:{account}:{code}".encode()).digest()


class Pairing:
    """The codes of all bots of one bridge, and how often people guessed wrong."""

    def __init__(self, clock: Callable[[], float], random: Callable[[int], bytes]) -> None:
        self._clock, self._random = clock, random
        self._wrong: dict[tuple[str, str], deque[float]] = {}

    def offer(
        self,
        account: str,
        role: Role,
        *,
        agents: Iterable[str] = (),
        conversation: str = "",
        first: bool = False,
    ) -> tuple[str, Offer]:
        """A code to show to the owner once, and the offer to keep."""
        code = new_code(self._random)
        return code, Offer(
            digest_of(account, code),
            account,
            role,
            tuple(agents),
            conversation,
            self._clock() + CODE_S,
            first=first,
        )

    def redeem(
        self, account: str, person: str, chat: ChatKind, text: str, offers: Iterable[Offer]
    ) -> tuple[Answer, Offer | None]:
        """What to answer to a code, and the offer that it takes.

        The caller then marks the offer as used, in one transaction with the person: of two who
        say the code at the same moment one is let in.
        """
        if chat is not ChatKind.PRIVATE or self._stopped(account, person):
            return Answer.SILENT, None
        code = code_of(text)
        digest = digest_of(account, code or "")
        now = self._clock()
        taken: Offer | None = None
        for offer in offers:  # all of them: how long it takes says nothing
            same = hmac.compare_digest(offer.digest, digest) and offer.account == account
            if same and code is not None and not offer.used_by and now < offer.expires:
                taken = offer
        if taken is None:
            self.failed(account, person)
            return Answer.WRONG, None
        return Answer.PAIRED, taken

    def failed(self, account: str, person: str, at: float | None = None) -> None:
        """Note a wrong code; after a restart those of the last hour, each with its time."""
        for who in (person, ""):
            self._wrong.setdefault((account, who), deque()).append(
                self._clock() if at is None else at
            )
        if len(self._wrong) > 2 * FAILURES_PER_BOT:
            for account_id, who in list(self._wrong):
                self._count(account_id, who)

    def _stopped(self, account: str, person: str) -> bool:
        return (
            self._count(account, person) >= FAILURES_PER_PERSON
            or self._count(account, "") >= FAILURES_PER_BOT
        )

    def _count(self, account: str, who: str) -> int:
        times = self._wrong.get((account, who))
        if times is None:
            return 0
        while times and times[0] + FAILURES_S <= self._clock():
            times.popleft()
        if not times:
            del self._wrong[account, who]
        return len(times)
