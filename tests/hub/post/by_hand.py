"""The datagrams written out from their description, without the code that is tested."""

from __future__ import annotations

import hashlib
import os

from aios_nb.hub.presence import Presence
from aios_nb.identity import Identity
from tests.hub.post.offices import Office, Stranger

HELLO, WELCOME, GOSSIP, DHT, AGAIN, PROOF = range(6)
NONCE = b"\x01\x02\x03\x04\x05\x06\x07\x08"


def mark(net: str = "main") -> bytes:
    return hashlib.sha256(b"aios-net\x00" + net.encode()).digest()[:4]


def raw(identity: Identity) -> bytes:
    return hashlib.sha256(identity.public_key).digest()[:20]


def datagram(kind: int, sender: bytes, token: bytes, body: bytes = b"", net: str = "main") -> bytes:
    return bytes([kind]) + mark(net) + sender + token + body


def hello(identity: Identity, presence: Presence, nonce: bytes = NONCE) -> bytes:
    return datagram(HELLO, raw(identity), nonce, presence.to_bytes())


async def token_for(who: Stranger, identity: Identity, presence: Presence, at: Office) -> bytes:
    """The token that an office gives to someone who is really at that address."""
    who.send(hello(identity, presence), at)
    return (await who.answer())[33:41]


async def introduced(who: Stranger, identity: Identity, presence: Presence, at: Office) -> bytes:
    """The same, and then the proof."""
    token = await token_for(who, identity, presence, at)
    proof = datagram(PROOF, raw(identity), token, os.urandom(8) + presence.to_bytes())
    await who.told(proof, at)
    return token
