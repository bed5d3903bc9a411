"""A node's own word that it is alive, in which life, and at which UDP address.

``pk(32) || sig(64) || payload``, signed under its own tag. Members of the gossip and contacts of
the DHT are known by it, so an address is used only if its owner signed it. No I/O, no clock.
"""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from aios_nb.addresses import scope_of
from aios_nb.errors import RecordError
from aios_nb.identity import (
    PUBLIC_KEY_BYTES,
    SIGNATURE_BYTES,
    TAG_ALIVE,
    Identity,
    node_id_of,
    verify,
)
from aios_nb.records import Millis, Name, Scope

PRESENCE_LIMIT_BYTES = 240
_HEAD_BYTES = PUBLIC_KEY_BYTES + SIGNATURE_BYTES
_INCARNATION_MAX = 2**32
_scope_of = lru_cache(maxsize=1024)(scope_of)
"""The words of the same nodes come again and again."""


class State(StrEnum):
    ALIVE = "alive"
    LEFT = "left"


class Said(msgspec.Struct, frozen=True, array_like=True):
    """What is signed; travels as an array."""

    v: Literal[1]
    net: Name
    epoch: Millis
    incarnation: Annotated[int, Meta(ge=0, lt=_INCARNATION_MAX)]
    state: State
    scope: Scope
    """From where this node can be reached at all."""
    host: Annotated[str, Meta(max_length=45)]
    """An IP address; empty if no datagrams reach it."""
    port: Annotated[int, Meta(ge=0, le=65535)]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Said)


class Presence(msgspec.Struct, frozen=True):
    """A statement with its proof. Made by ``declare``, or by ``peek`` and not yet believed."""

    node_id: str
    pk: bytes
    sig: bytes
    payload: bytes
    said: Said

    def to_bytes(self) -> bytes:
        """The statement as it travels."""
        return self.pk + self.sig + self.payload

    @property
    def address(self) -> tuple[str, int] | None:
        """Where its datagrams go; None if it takes none."""
        return (self.said.host, self.said.port) if self.said.port else None

    @property
    def rank(self) -> tuple[int, int, bool]:
        """The greater one of the same node counts: a later life, a later word, its last word."""
        return self.said.epoch, self.said.incarnation, self.said.state is State.LEFT

    def is_genuine(self) -> bool:
        """Whether that node's key signed it. It costs a signature check each time."""
        return verify(self.pk, TAG_ALIVE, self.payload, self.sig)


def declare(
    identity: Identity,
    net: str,
    *,
    epoch: int,
    incarnation: int,
    scope: Scope,
    address: tuple[str, int] | None,
    state: State = State.ALIVE,
) -> Presence:
    """This node's word, signed."""
    host, port = address or ("", 0)
    said = Said(1, net, epoch, incarnation, state, scope, host, port)
    payload = _encoder.encode(said)
    _check(said)
    sig = identity.sign(TAG_ALIVE, payload)
    return Presence(identity.node_id, identity.public_key, sig, payload, said)


def peek(content: bytes) -> Presence:
    """The statement in these bytes, well-formed but not proven: ask ``is_genuine``.

    Raises ``RecordError``.
    """
    if not _HEAD_BYTES < len(content) <= PRESENCE_LIMIT_BYTES:
        raise RecordError(f"a presence cannot have {len(content)} bytes")
    pk, sig = content[:PUBLIC_KEY_BYTES], content[PUBLIC_KEY_BYTES:_HEAD_BYTES]
    payload = content[_HEAD_BYTES:]
    try:
        said = _decoder.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError(f"not a presence: {error}") from error
    _check(said)
    return Presence(node_id_of(pk), pk, sig, payload, said)


def _check(said: Said) -> None:
    if bool(said.host) != bool(said.port):
        raise RecordError("a presence has a whole address or none")
    if said.host and _scope_of(said.host) is not said.scope:
        raise RecordError("the address of a presence is not of its scope")
