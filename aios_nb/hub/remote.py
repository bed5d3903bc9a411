"""An agent of another node, and its card as that node tells it.

Everything a node says about its agents is data: bounded, read into our own shape, and called
verified only if its signature, or the link it came over, proves that it is about this agent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from aios_nb.access import Access
from aios_nb.config import KB
from aios_nb.envelope import DEADLINE_MAX_S
from aios_nb.errors import AgentFailed, RecordError, TooLarge
from aios_nb.identity import from_base64url
from aios_nb.ports import Carrier
from aios_nb.records import AgentRecord, card_bytes, check_time, parse

CARD_LIMIT_BYTES = 256 * KB
"""Of a card as it comes; the largest of our own, all of it escaped, stays below."""
_RECORD_LIMIT_CHARS = 1400
"""A record of 1000 bytes as base64url has fewer."""


class RemoteAgent(msgspec.Struct, frozen=True):
    """An agent of another node. Is a ``ports.Target``.

    Whether it may be called, how long it may take and whether it may run again is for its node
    to say: nothing here limits it further.
    """

    id: str
    carrier: Carrier
    access: Access = Access.PUBLIC
    idempotent: bool = False
    timeout_s: float = DEADLINE_MAX_S
    may_call: Sequence[str] | None = None
    is_remote: bool = True


SHORT_CHARS = 200
Short = Annotated[str, Meta(max_length=SHORT_CHARS)]


class RemoteCard(msgspec.Struct, frozen=True, kw_only=True):
    """A card of another node: the fields this program knows, in bounds. Others are dropped."""

    id: Annotated[str, Meta(max_length=96)]
    name: Annotated[str, Meta(max_length=48)]
    title: Short = ""
    about: Annotated[str, Meta(max_length=4000)] = ""
    tags: Annotated[tuple[Short, ...], Meta(max_length=32)] = ()
    examples: Annotated[tuple[Annotated[str, Meta(max_length=1000)], ...], Meta(max_length=20)] = ()
    version: Short = ""
    access: Short = "network"
    engine: Short = ""
    streams: bool = False
    idempotent: bool = False
    timeout_s: float = 0.0
    source: Short = ""


class Told(msgspec.Struct, frozen=True):
    """The result of ``agents.card``, read."""

    card: RemoteCard
    record: str | None
    verified: bool


class _Answer(msgspec.Struct, frozen=True):
    card: dict[str, Any]
    record: Annotated[str, Meta(max_length=_RECORD_LIMIT_CHARS)] | None = None


def read_card(answer: Any, agent: str, network: str, now_ms: int) -> Told:
    """What another node answered about ``agent``, of the node at the other end of the link.

    Raises ``TooLarge`` or ``AgentFailed`` for what is no card.
    """
    try:
        given = msgspec.convert(answer, _Answer)
        content = card_bytes(given.card)
        if len(content) > CARD_LIMIT_BYTES:
            raise TooLarge(
                f"the card of {agent} has {len(content)} bytes",
                hint=f"{CARD_LIMIT_BYTES} is the limit",
            )
        card = msgspec.convert(given.card, RemoteCard)
    except (msgspec.ValidationError, UnicodeEncodeError, RecursionError) as error:
        raise AgentFailed(
            f"the node of {agent} sent something that is not its card",
            hint="it may run another version of this program",
        ) from error
    if card.id != agent or card.name != agent.partition("@")[0]:
        return Told(card, given.record, verified=False)
    if given.record is None:
        # Agents for known nodes have no record. The link proves who says this.
        return Told(card, None, verified=card.access not in {Access.NETWORK, Access.PUBLIC})
    record = _vouching(given.record, agent, network, given.card, now_ms)
    if record is not None and not card.version:  # its node counts: then only the record tells it
        card = msgspec.structs.replace(card, version=record.version[:SHORT_CHARS])
    return Told(card, given.record, verified=record is not None)


def _vouching(
    text: str, agent: str, network: str, card: dict[str, Any], now_ms: int
) -> AgentRecord | None:
    """The record, if it is a valid one of this agent and this very card."""
    try:
        record = parse(from_base64url(text)).record
        check_time(record, now_ms)
    except (RecordError, ValueError):
        return None
    if not isinstance(record, AgentRecord) or record.id != agent or record.net != network:
        return None
    return record if _is_of(record, card) else None


def _is_of(record: AgentRecord, card: dict[str, Any]) -> bool:
    """Whether the hash is that of the card; a counted version of the record may stand in it."""
    if record.card == _hash(card):  # one that was withdrawn has none
        return True
    counted = card.get("version") == record.version
    return counted and record.card == _hash({**card, "version": ""})


def _hash(card: dict[str, Any]) -> bytes:
    return hashlib.sha256(card_bytes(card)).digest()
