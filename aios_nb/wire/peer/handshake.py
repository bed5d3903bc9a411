"""Two nodes prove their keys to each other and agree on a session that nobody else can read.

Three messages, made and checked here; whoever carries them is elsewhere::

    I → R   M1 = v ‖ len ‖ net ‖ pk_i ‖ e_i
    R → I   M2 = pk_r ‖ e_r ‖ sig_r
    I → R   M3 = sig_i

Both sign T, the hash of all that was said, each under its own letter; so neither side can be shown
a different version, network, key or role. The ephemeral keys die with the objects: a node key that
is stolen later opens nothing that was recorded before. Cheap checks come first: who is refused
costs no signature, and who cannot sign costs no key exchange.
"""

from __future__ import annotations

import hashlib
import struct

import msgspec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from aios_nb.envelope import NAME
from aios_nb.errors import Impostor
from aios_nb.identity import (
    PUBLIC_KEY_BYTES,
    SIGNATURE_BYTES,
    TAG_PEER,
    Identity,
    is_weak_key,
    node_id_of,
    verify,
)
from aios_nb.wire.peer.sealing import KEY_BYTES, Opener, Sealer

VERSION = 1

_M1_KEYS = struct.Struct(f"{PUBLIC_KEY_BYTES}s{KEY_BYTES}s")
_M2 = struct.Struct(f"{PUBLIC_KEY_BYTES}s{KEY_BYTES}s{SIGNATURE_BYTES}s")
_INITIATOR = b"i"
_RESPONDER = b"r"
_KEYS_INFO = b"aios-peer-1 keys"
_OVER = -1


class Refused(Exception):
    """No session. The reason is for our own log: the other side only sees the link close."""


class AnotherNode(Refused, Impostor):
    """The node that answers is not the one that was dialled; ``node_id`` is what it claims."""

    def __init__(self, node_id: str, expected: str) -> None:
        super().__init__(
            f"another node answers there: {node_id}, not {expected}",
            hint="ask its owner for the right address or id",
        )
        self.node_id = node_id
        self.expected = expected


class Session(msgspec.Struct, frozen=True, eq=False):
    """A proven node at the other end, and the two directions of the link to it."""

    node_id: str
    public_key: bytes
    sealer: Sealer
    opener: Opener


class _Side:
    """What both sides do alike. Each step is made once, in order; a refusal ends them all."""

    def __init__(
        self, identity: Identity, network: str, ephemeral: X25519PrivateKey | None
    ) -> None:
        if not NAME.fullmatch(network):
            raise ValueError(f"{network!r} is not the name of a network")
        self._identity = identity
        self._network = network.encode()
        self._ephemeral = ephemeral
        self._step = 0

    def _begin(self, step: int) -> None:
        if self._step != step:
            raise RuntimeError("a handshake is made once, step by step")
        self._step = _OVER  # until this step is done

    def _head(self) -> bytes:
        return bytes((VERSION, len(self._network))) + self._network

    def _fresh(self) -> X25519PrivateKey:
        self._ephemeral = self._ephemeral or X25519PrivateKey.generate()
        return self._ephemeral

    def _claimed(self, public_key: bytes) -> str:
        """The node id of the key the other side says it has."""
        if public_key == self._identity.public_key:
            raise Refused("it has our own key")
        if is_weak_key(public_key):
            raise Refused("anyone can sign for its key")
        return node_id_of(public_key)

    def _check(self, public_key: bytes, role: bytes, transcript: bytes, signature: bytes) -> None:
        if not verify(public_key, TAG_PEER, role + transcript, signature):
            raise Refused(f"{node_id_of(public_key)} did not sign this handshake")

    def _sign(self, role: bytes, transcript: bytes) -> bytes:
        return self._identity.sign(TAG_PEER, role + transcript)

    def _transcript(self, pk_i: bytes, pk_r: bytes, e_i: bytes, e_r: bytes) -> bytes:
        return hashlib.sha256(
            b"".join(
                struct.pack(">I", len(part)) + part
                for part in (bytes((VERSION,)), self._network, pk_i, pk_r, e_i, e_r)
            )
        ).digest()

    def _keys(self, theirs: bytes, transcript: bytes) -> tuple[bytes, bytes]:
        """The keys of I → R and R → I. Our ephemeral key is gone afterwards."""
        ours, self._ephemeral = self._fresh(), None
        try:
            shared = ours.exchange(X25519PublicKey.from_public_bytes(theirs))
        except ValueError:  # how cryptography says that the result is zero
            shared = b""
        if not any(shared):
            raise Refused("its ephemeral key makes no secret")
        keys = HKDF(SHA256(), 2 * KEY_BYTES, salt=transcript, info=_KEYS_INFO).derive(shared)
        return keys[:KEY_BYTES], keys[KEY_BYTES:]


class Initiator(_Side):
    """The side that dials: ``first``, then ``third``. With ``expects``, only that node will do."""

    def __init__(
        self,
        identity: Identity,
        network: str,
        *,
        expects: str | None = None,
        ephemeral: X25519PrivateKey | None = None,
    ) -> None:
        super().__init__(identity, network, ephemeral)
        self._expects = expects
        self._e_i = b""

    def first(self) -> bytes:
        """M1."""
        self._begin(0)
        self._e_i = self._fresh().public_key().public_bytes_raw()
        self._step = 1
        return self._head() + self._identity.public_key + self._e_i

    def third(self, m2: bytes) -> tuple[bytes, Session]:
        """M3, and the session with the node that sent M2; ``Refused`` if it proved nothing."""
        self._begin(1)
        if len(m2) != _M2.size:
            raise Refused(f"M2 has {len(m2)} bytes, not {_M2.size}")
        pk_r, e_r, sig_r = _M2.unpack(m2)
        node_id = self._claimed(pk_r)
        if self._expects is not None and node_id != self._expects:
            raise AnotherNode(node_id, self._expects)
        transcript = self._transcript(self._identity.public_key, pk_r, self._e_i, e_r)
        self._check(pk_r, _RESPONDER, transcript, sig_r)
        to_responder, to_initiator = self._keys(e_r, transcript)
        session = Session(node_id, pk_r, Sealer(to_responder), Opener(to_initiator))
        return self._sign(_INITIATOR, transcript), session


class Responder(_Side):
    """The side that is dialled: ``read``, then ``second``, then ``finish``."""

    def __init__(
        self, identity: Identity, network: str, *, ephemeral: X25519PrivateKey | None = None
    ) -> None:
        super().__init__(identity, network, ephemeral)
        self._node_id = ""
        self._pk_i = self._e_i = self._signed = b""

    def read(self, m1: bytes) -> str:
        """The node id that M1 claims. No key was used yet: the moment to refuse it for nothing."""
        self._begin(0)
        head = self._head()
        if m1[:1] != head[:1]:
            raise Refused("it speaks another version")
        if not m1.startswith(head):
            raise Refused("it is of another network")
        keys = m1[len(head) :]
        if len(keys) != _M1_KEYS.size:
            raise Refused(f"M1 has {len(m1)} bytes, not {len(head) + _M1_KEYS.size}")
        self._pk_i, self._e_i = _M1_KEYS.unpack(keys)
        self._node_id = self._claimed(self._pk_i)
        self._step = 1
        return self._node_id

    def second(self) -> bytes:
        """M2."""
        self._begin(1)
        pk_r, e_r = self._identity.public_key, self._fresh().public_key().public_bytes_raw()
        self._signed = self._transcript(self._pk_i, pk_r, self._e_i, e_r)
        self._step = 2
        return pk_r + e_r + self._sign(_RESPONDER, self._signed)

    def finish(self, m3: bytes) -> Session:
        """The session with the node that sent M1 and M3; ``Refused`` if it proved nothing."""
        self._begin(2)
        if len(m3) != SIGNATURE_BYTES:
            raise Refused(f"M3 has {len(m3)} bytes, not {SIGNATURE_BYTES}")
        self._check(self._pk_i, _INITIATOR, self._signed, m3)
        to_responder, to_initiator = self._keys(self._e_i, self._signed)
        return Session(self._node_id, self._pk_i, Sealer(to_initiator), Opener(to_responder))
