"""The small signed notes by which nodes and their agents become known: made, read and compared.

A record is ``pk(32) || sig(64) || payload``, at most 1000 bytes, so that it fits into one datagram.
The payload is a msgpack map with sorted keys, signed as it came: fields this program does not know
stay in it, and whoever gets it from us can still check it. No function here looks at a clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from aios_nb.access import Access
from aios_nb.errors import RecordError, UnknownRecord
from aios_nb.identity import (
    PUBLIC_KEY_BYTES,
    SIGNATURE_BYTES,
    TAG_RECORD,
    Identity,
    node_id_of,
    verify,
)

RECORD_VERSION: Final = 1
RECORD_LIMIT_BYTES = 1000
ABOUT_LIMIT_BYTES = 400
TAGS_MAX = 8
CARD_HASH_BYTES = 32
HOUR_MS = 3_600_000
LIFETIME_MS = 24 * HOUR_MS
WITHDRAWN_LIFETIME_MS = 26 * HOUR_MS
"""Longer than anything it ends can still be believed: 24 h and the tolerance."""
CLOCK_TOLERANCE_MS = HOUR_MS
_HEAD_BYTES = PUBLIC_KEY_BYTES + SIGNATURE_BYTES
_INT_MAX = 2**53 - 1

Name = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_-]{0,47}\Z")]
NodeId = Annotated[str, Meta(pattern=r"^[a-z2-7]{32}\Z")]
Count = Annotated[int, Meta(ge=0, le=_INT_MAX)]
Millis = Annotated[int, Meta(ge=0, le=_INT_MAX)]
"""Milliseconds since 1970, UTC."""
Port = Annotated[int, Meta(ge=1, le=65535)]
Host = Annotated[str, Meta(min_length=1, max_length=253)]


class Scope(StrEnum):
    """From where the endpoints of a node record can be reached; the widest last."""

    LOOPBACK = "loopback"
    PRIVATE = "private"
    GLOBAL = "global"


WIDTH: Final = {scope: width for width, scope in enumerate(Scope)}
"""How far a scope reaches, to compare two of them."""


def may_be_told(about: Scope, peer: Scope) -> bool:
    """Whether what is about a node of one scope may be told to a peer of the other.

    What is reachable only on this machine is nothing to the world, and what the world can reach is
    for everyone.
    """
    return WIDTH[peer] <= WIDTH[about]


class Endpoint(msgspec.Struct, frozen=True, array_like=True):
    """One way to reach a node; travels as ``[kind, host, port]``."""

    kind: Annotated[str, Meta(min_length=1, max_length=16)]
    host: Host
    port: Port


class NodeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Where a node is, as seen from one scope."""

    net: Name
    node: NodeId
    seq: Millis
    epoch: Millis
    exp: Millis
    name: Name
    scope: Scope
    endpoints: tuple[Endpoint, ...]
    index: Count = 0
    """How many records this node holds."""
    v: Literal[1] = RECORD_VERSION
    type: Literal["node"] = "node"

    @property
    def key(self) -> str:
        """What a newer record of the same thing has in common with this one."""
        return f"node/{self.net}/{self.node}/{self.scope}"


class AgentRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent says of itself to everyone; the whole is in the card with this hash."""

    net: Name
    node: NodeId
    seq: Millis
    epoch: Millis
    exp: Millis
    name: Name
    access: Literal["network", "public"]
    title: str = ""
    about: str = ""
    tags: Annotated[tuple[str, ...], Meta(max_length=TAGS_MAX)] = ()
    version: str = ""
    card: bytes = b""
    """SHA-256 of the card; empty once withdrawn."""
    withdrawn: bool = False
    v: Literal[1] = RECORD_VERSION
    type: Literal["agent"] = "agent"

    @property
    def key(self) -> str:
        """What a newer record of the same thing has in common with this one."""
        return f"agent/{self.net}/{self.node}/{self.name}"

    @property
    def id(self) -> str:
        return f"{self.name}@{self.node}"


Record: TypeAlias = NodeRecord | AgentRecord


class Signed(msgspec.Struct, frozen=True):
    """A record with its proof. Made where it is signed or proven, so it is genuine."""

    pk: bytes
    sig: bytes
    payload: bytes
    """The signed map as it came, unknown fields included."""
    record: Record

    def to_bytes(self) -> bytes:
        """The record as it travels."""
        return self.pk + self.sig + self.payload

    @property
    def key(self) -> str:
        return self.record.key


class Unproven(msgspec.Struct, frozen=True):
    """A well-formed record whose signature nobody has looked at. Made by ``peek``."""

    pk: bytes
    sig: bytes
    payload: bytes
    record: Record

    def prove(self) -> Signed:
        """The record, if the node it names signed it; else ``RecordError``."""
        if not verify(self.pk, TAG_RECORD, self.payload, self.sig):
            raise RecordError("the signature of the record is wrong")
        return Signed(self.pk, self.sig, self.payload, self.record)


_encoder = msgspec.msgpack.Encoder(order="sorted")
_fields = msgspec.msgpack.Decoder(dict[str, msgspec.Raw])
_version = msgspec.msgpack.Decoder(int)
_type = msgspec.msgpack.Decoder(str)
_decoders: dict[str, msgspec.msgpack.Decoder[NodeRecord] | msgspec.msgpack.Decoder[AgentRecord]] = {
    "node": msgspec.msgpack.Decoder(NodeRecord),
    "agent": msgspec.msgpack.Decoder(AgentRecord),
}


# Making ----------------------------------------------------------------------------------


def agent_record(
    *,
    net: str,
    node: str,
    name: str,
    access: Access | str,
    card: bytes,
    seq: int,
    epoch: int,
    now_ms: int,
    title: str = "",
    about: str = "",
    tags: Sequence[str] = (),
    version: str = "",
) -> AgentRecord:
    """The record of an agent that is offered now, good for a day; ``about`` is cut to fit."""
    if access not in {Access.NETWORK, Access.PUBLIC}:
        raise RecordError(
            f"the agent {name} is {access} and gets no record",
            hint="only access network and public are published",
        )
    if len(tags) > TAGS_MAX:
        raise RecordError(f"the agent {name} has {len(tags)} tags", hint=f"{TAGS_MAX} at most")
    return AgentRecord(
        net=net,
        node=node,
        name=name,
        access="public" if access == Access.PUBLIC else "network",
        card=card,
        seq=seq,
        epoch=epoch,
        exp=now_ms + LIFETIME_MS,
        title=title,
        about=cut_about(about),
        tags=tuple(tags),
        version=version,
    )


def node_record(
    *,
    net: str,
    node: str,
    name: str,
    scope: Scope,
    endpoints: Sequence[tuple[str, str, int]],
    seq: int,
    epoch: int,
    now_ms: int,
    index: int = 0,
) -> NodeRecord:
    """The record of a node as it can be reached from ``scope`` now, good for a day."""
    return NodeRecord(
        net=net,
        node=node,
        name=name,
        scope=scope,
        endpoints=tuple(Endpoint(*endpoint) for endpoint in endpoints),
        seq=seq,
        epoch=epoch,
        exp=now_ms + LIFETIME_MS,
        index=index,
    )


def card_bytes(card: Any) -> bytes:
    """A card as canonical JSON (sorted keys, no spaces, UTF-8): what a record's hash is of."""
    return msgspec.json.encode(card, order="sorted")


def withdrawal(ended: AgentRecord, *, seq: int, epoch: int, now_ms: int) -> AgentRecord:
    """The record that ends ``ended``. It says no more than needed and outlives what it ends."""
    return AgentRecord(
        net=ended.net,
        node=ended.node,
        name=ended.name,
        access=ended.access,
        seq=seq,
        epoch=epoch,
        exp=now_ms + WITHDRAWN_LIFETIME_MS,
        version=ended.version,  # offered again, it is a later one
        withdrawn=True,
    )


def cut_about(text: str) -> str:
    """As much of ``text`` as 400 bytes hold, without half characters."""
    return text.encode("utf-8", "replace")[:ABOUT_LIMIT_BYTES].decode("utf-8", "ignore")


def sign_record(identity: Identity, record: Record) -> Signed:
    """``record``, signed. What we would refuse from others we do not sign."""
    try:
        payload = _encoder.encode(record)
    except UnicodeEncodeError as error:
        raise RecordError(f"{record.name} has text that is not Unicode") from error
    size = _HEAD_BYTES + len(payload)
    if size > RECORD_LIMIT_BYTES:
        raise RecordError(
            f"the record of {record.name} has {size} bytes; {RECORD_LIMIT_BYTES} is the limit",
            hint="shorten its title or tags"
            if isinstance(record, AgentRecord)
            else "give it fewer endpoints",
        )
    _decode(payload, identity.node_id)
    sig = identity.sign(TAG_RECORD, payload)
    return Signed(identity.public_key, sig, payload, record)


# Reading ---------------------------------------------------------------------------------


def parse(content: bytes) -> Signed:
    """The record in these bytes, with its signature checked; ``check_time`` is for the caller."""
    return peek(content).prove()


def peek(content: bytes) -> Unproven:
    """The record in these bytes, right in every respect but its signature, which is not checked.

    A check costs ten times what the rest does: one who knows the record already can spare it.
    """
    if len(content) > RECORD_LIMIT_BYTES:
        raise RecordError(f"a record has at most {RECORD_LIMIT_BYTES} bytes, not {len(content)}")
    if len(content) <= _HEAD_BYTES:
        raise RecordError("too short for a record")
    pk, sig = content[:PUBLIC_KEY_BYTES], content[PUBLIC_KEY_BYTES:_HEAD_BYTES]
    payload = content[_HEAD_BYTES:]
    return Unproven(pk, sig, payload, _decode(payload, node_id_of(pk)))


def reread(content: bytes, kind: Literal["node", "agent"]) -> Signed:
    """A record that was proven before and has been in our own memory since: nothing is checked."""
    pk, sig = content[:PUBLIC_KEY_BYTES], content[PUBLIC_KEY_BYTES:_HEAD_BYTES]
    payload = content[_HEAD_BYTES:]
    return Signed(pk, sig, payload, _decoders[kind].decode(payload))


def _decode(payload: bytes, node_id: str) -> Record:
    """The map in ``payload``, if it is one of ours in every respect but the signature."""
    try:
        record = _decode_map(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError(f"not a record: {error}") from error
    if record.node != node_id:
        raise RecordError("the record is signed by another node than it names")
    if isinstance(record, AgentRecord):
        _check_agent(record)
    return record


def _decode_map(payload: bytes) -> Record:
    fields = _fields.decode(payload)
    names = list(fields)
    # One meaning per payload: sorted, and no name twice (a second one would hide the first).
    if _map_size(payload) != len(names) or names != sorted(names):
        raise RecordError("not a record: its fields are not sorted or not unique")
    if "v" not in fields or "type" not in fields:
        raise RecordError("not a record: it has no version or type")
    version, kind = _version.decode(fields["v"]), _type.decode(fields["type"])
    decoder = _decoders.get(kind)
    if version != RECORD_VERSION or decoder is None:
        raise UnknownRecord(f"a record of unknown type or version: {kind[:32]!r}, {version}")
    return decoder.decode(payload)


def _map_size(payload: bytes) -> int:
    """How many fields the msgpack map in ``payload`` says it has; it was decoded before."""
    first = payload[0]
    if first & 0xF0 == 0x80:  # noqa: PLR2004 (fixmap)
        return first & 0x0F
    return int.from_bytes(payload[1:3] if first == 0xDE else payload[1:5], "big")  # noqa: PLR2004


def _check_agent(record: AgentRecord) -> None:
    if len(record.about.encode()) > ABOUT_LIMIT_BYTES:
        raise RecordError(f"the about of a record has at most {ABOUT_LIMIT_BYTES} bytes")
    if len(record.card) != (0 if record.withdrawn else CARD_HASH_BYTES):
        raise RecordError(f"the card of a record is a hash of {CARD_HASH_BYTES} bytes")


# Order and time --------------------------------------------------------------------------


def next_seq(last: int | None, now_ms: int) -> int:
    """The ``seq`` after ``last`` (what the store has for this key). Save it before sending.

    A stored one more than an hour ahead comes from a wrong clock. Nobody took it, so it is
    dropped: counting on from it would keep us refused until the world's clock gets there.
    """
    if last is None or last > now_ms + CLOCK_TOLERANCE_MS:
        return now_ms
    return max(last + 1, now_ms)


def next_epoch(last: int | None, now_ms: int) -> int:
    """The epoch of a start after ``last``; always a later one. Save it before sending."""
    return now_ms if last is None else max(last + 1, now_ms)


def check_time(record: Record, now_ms: int) -> None:
    """Return if this clock lets the record count; else ``RecordError``."""
    if record.seq > now_ms + CLOCK_TOLERANCE_MS:
        raise RecordError("the record comes from more than an hour ahead")
    if record.exp - record.seq > lifetime_ms(record) + CLOCK_TOLERANCE_MS:
        raise RecordError("the record would live too long")
    if record.exp + CLOCK_TOLERANCE_MS < now_ms:
        raise RecordError("the record has expired")


def lifetime_ms(record: Record) -> int:
    """How long such a record may live."""
    return WITHDRAWN_LIFETIME_MS if is_withdrawal(record) else LIFETIME_MS


def supersedes(new: Signed, old: Signed) -> bool:
    """Whether ``new`` takes the place of ``old``, a record with the same key.

    The later epoch wins, then the higher ``seq``. A copied key can make two records equal in both;
    then a withdrawal wins, then the greater bytes, so that all nodes end with the same one.
    """
    if new.key != old.key:
        raise ValueError(f"{new.key} and {old.key} are not about the same thing")
    return rank(new) > rank(old)


def rank(record: Signed | Unproven) -> tuple[int, int, bool, bytes]:
    """By what records with the same key are ordered; the greatest one counts."""
    said = record.record
    return said.epoch, said.seq, is_withdrawal(said), record.payload


def is_withdrawal(record: Record) -> bool:
    """Whether it ends an agent instead of offering it."""
    return isinstance(record, AgentRecord) and record.withdrawn


def is_live(record: AgentRecord, node_epoch: int | None) -> bool:
    """Whether the agent is offered by a node that is alive in ``node_epoch`` (``None``: is not)."""
    return not record.withdrawn and record.epoch == node_epoch
