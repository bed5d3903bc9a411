"""What the machine wants done. It does no I/O: the shell takes these and carries them out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from aios_nb.hub.gossip.members import Member
from aios_nb.hub.gossip.packets import Message, Piece, pack, packets
from aios_nb.hub.gossip.trust import Account


class Send(msgspec.Struct, frozen=True):
    """A packet for that node, by whatever way there is; it may get lost."""

    to: str
    packet: bytes


class Pull(msgspec.Struct, frozen=True):
    """Too much differs for packets: fetch it over a link and hand it to ``pulled``."""

    node_id: str


class Changed(msgspec.Struct, frozen=True):
    """A member came, went, or said something new of itself."""

    member: Member
    before: Member | None
    """As it was; None if it was unknown."""


class Superseded(msgspec.Struct, frozen=True):
    """Another program runs with our key, in a later epoch: stop publishing, and say so."""

    epoch: int


Instruction: TypeAlias = Send | Pull | Changed | Superseded


class Outbox:
    """Instructions in the order in which they were given."""

    def __init__(self) -> None:
        self._waiting: list[Instruction] = []
        self.payer: Account | None = None
        """Who is to blame for what is sent now; None: we ourselves."""

    def put(self, instruction: Instruction) -> None:
        self._waiting.append(instruction)

    def send(self, to: str, *pieces: Piece) -> None:
        """One packet of a few small messages."""
        self._post(to, pack(pieces))

    def send_all(self, to: str, messages: Iterable[Message]) -> None:
        """As many packets as it takes."""
        for packet in packets(messages):
            self._post(to, packet)

    def _post(self, to: str, packet: bytes) -> None:
        if self.payer is None or self.payer.pay(len(packet)):
            self._waiting.append(Send(to, packet))

    def take(self) -> list[Instruction]:
        taken, self._waiting = self._waiting, []
        return taken
