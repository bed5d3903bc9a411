"""The vectors of PROTOCOL.md, against the code and against the words of the page."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from aios_nb.identity import (
    TAG_HELLO,
    TAG_PEER,
    TAG_RECORD,
    Identity,
    answer_hello,
    check_hello,
    from_base64url,
    read_nonce,
    to_base64url,
)
from aios_nb.records import AgentRecord, NodeRecord, Record, check_time, parse, sign_record
from aios_nb.wire.peer.handshake import Initiator, Responder
from aios_nb.wire.peer.sealing import Opener

PAGE = (Path(__file__).parent.parent / "PROTOCOL.md").read_text(encoding="utf-8")
BLOCK = re.search(r"## Vectors\n.*?```json\n(.*?)```", PAGE, re.DOTALL)
assert BLOCK
VECTORS: dict[str, Any] = json.loads(BLOCK[1])
SEED = bytes.fromhex(VECTORS["seed"])
HELLO = VECTORS["hello"]
PEER = VECTORS["peer"]
RECORDS = ("agent", "withdrawn", "node")


def plain_msgpack(value: object) -> bytes:  # noqa: PLR0911 (one for each form)
    """The msgpack of the page's values, written from that format's own specification."""
    match value:
        case bool():
            return b"\xc3" if value else b"\xc2"
        case int() if value < 0x80:
            return value.to_bytes(1, "big")
        case int() if value <= 0xFFFF:
            return b"\xcd" + value.to_bytes(2, "big")
        case int():
            return b"\xcf" + value.to_bytes(8, "big")
        case str():
            text = value.encode()
            return (
                bytes([0xA0 | len(text)]) if len(text) < 32 else bytes([0xD9, len(text)])
            ) + text
        case bytes():
            return bytes([0xC4, len(value)]) + value
        case list():
            return bytes([0x90 | len(value)]) + b"".join(map(plain_msgpack, value))
        case dict():
            pairs = sorted(value.items())
            return bytes([0x80 | len(pairs)]) + b"".join(
                plain_msgpack(key) + plain_msgpack(field) for key, field in pairs
            )
    raise TypeError(value)


def fields(kind: str) -> dict[str, Any]:
    found = dict(VECTORS[kind]["fields"])
    if "card" in found:
        found["card"] = bytes.fromhex(found["card"])
    return found


def record(kind: str) -> Record:
    shape: type[Record] = NodeRecord if kind == "node" else AgentRecord
    return msgspec.convert(fields(kind), shape)


def test_the_key_and_the_node_id_are_those_of_the_page():
    identity = Identity.from_seed(SEED)
    assert identity.public_key.hex() == VECTORS["public_key"]
    assert identity.node_id == VECTORS["node_id"]
    digest = hashlib.sha256(bytes.fromhex(VECTORS["public_key"])).digest()[:20]
    assert base64.b32encode(digest).decode().lower() == VECTORS["node_id"]


@pytest.mark.parametrize("tag", [TAG_RECORD, TAG_PEER, TAG_HELLO])
def test_the_tags_are_those_of_the_page(tag: bytes):
    assert "`" + tag.decode().replace("\0", r"\0") + "`" in PAGE


def test_the_hello_is_that_of_the_page():
    nonce, port = read_nonce(HELLO["nonce"]), HELLO["port"]
    reply = answer_hello(Identity.from_seed(SEED), nonce, port)
    assert msgspec.to_builtins(reply) == HELLO["reply"]
    check_hello(HELLO["reply"], node_id=VECTORS["node_id"], nonce=nonce, port=port)


def test_the_hello_is_signed_as_the_page_says():
    signed = b"aios-hello-1\0" + from_base64url(HELLO["nonce"]) + HELLO["port"].to_bytes(2, "big")
    assert signed.hex() == HELLO["signed"]
    sig = Ed25519PrivateKey.from_private_bytes(SEED).sign(signed)
    assert to_base64url(sig) == HELLO["reply"]["sig"]


def secret(name: str) -> X25519PrivateKey:
    return X25519PrivateKey.from_private_bytes(bytes.fromhex(PEER[name]))


def test_the_handshake_is_that_of_the_page_byte_for_byte():
    dials = Identity.from_seed(SEED)
    dialled = Identity.from_seed(bytes.fromhex(PEER["responder_seed"]))
    assert dialled.node_id == PEER["responder"]
    initiator = Initiator(
        dials, PEER["net"], expects=PEER["responder"], ephemeral=secret("e_i_secret")
    )
    responder = Responder(dialled, PEER["net"], ephemeral=secret("e_r_secret"))
    m1 = initiator.first()
    assert m1.hex() == PEER["m1"]
    assert responder.read(m1) == VECTORS["node_id"]
    m2 = responder.second()
    assert m2.hex() == PEER["m2"]
    m3, at_dialler = initiator.third(m2)
    assert m3.hex() == PEER["m3"]
    at_dialled = responder.finish(m3)
    for session, way in ((at_dialler, "frames_i_r"), (at_dialled, "frames_r_i")):
        assert [
            [plain, session.sealer.seal(plain.encode()).hex()] for plain, _ in PEER[way]
        ] == PEER[way]
    for session, way in ((at_dialled, "frames_i_r"), (at_dialler, "frames_r_i")):
        assert [session.opener.open(bytes.fromhex(sealed)) for _, sealed in PEER[way]] == [
            plain.encode() for plain, _ in PEER[way]
        ]


def test_the_handshake_can_be_made_from_the_page_alone():
    key_i = Ed25519PrivateKey.from_private_bytes(SEED)
    key_r = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(PEER["responder_seed"]))
    pk_i, pk_r = (key.public_key().public_bytes_raw() for key in (key_i, key_r))
    e_i, e_r = (
        secret(name).public_key().public_bytes_raw() for name in ("e_i_secret", "e_r_secret")
    )
    net = PEER["net"].encode()
    parts = (b"\x01", net, pk_i, pk_r, e_i, e_r)
    t = hashlib.sha256(b"".join(len(part).to_bytes(4, "big") + part for part in parts)).digest()
    assert t.hex() == PEER["t"]
    assert (b"\x01" + bytes([len(net)]) + net + pk_i + e_i).hex() == PEER["m1"]
    assert (pk_r + e_r + key_r.sign(b"aios-peer-1\0r" + t)).hex() == PEER["m2"]
    assert key_i.sign(b"aios-peer-1\0i" + t).hex() == PEER["m3"]


def test_the_keys_of_a_link_can_be_made_from_the_page_alone():
    theirs = secret("e_r_secret").public_key().public_bytes_raw()
    shared = secret("e_i_secret").exchange(X25519PublicKey.from_public_bytes(theirs))
    assert shared.hex() == PEER["shared"]
    # HKDF, written from RFC 5869
    extracted = hmac.digest(bytes.fromhex(PEER["t"]), shared, "sha256")
    first = hmac.digest(extracted, b"aios-peer-1 keys\x01", "sha256")
    second = hmac.digest(extracted, first + b"aios-peer-1 keys\x02", "sha256")
    assert [first.hex(), second.hex()] == [PEER["key_i_r"], PEER["key_r_i"]]


@pytest.mark.parametrize("way", ["i_r", "r_i"])
def test_a_frame_is_sealed_as_the_page_says(way: str):
    key = bytes.fromhex(PEER[f"key_{way}"])
    opener = Opener(key)
    for count, (plain, sealed) in enumerate(PEER[f"frames_{way}"]):
        nonce = bytes(4) + count.to_bytes(8, "big")
        assert ChaCha20Poly1305(key).encrypt(nonce, plain.encode(), None).hex() == sealed
        assert opener.open(bytes.fromhex(sealed)) == plain.encode()


@pytest.mark.parametrize("kind", RECORDS)
def test_a_record_is_read_as_the_page_says(kind: str):
    signed = parse(from_base64url(VECTORS[kind]["record"]))
    assert signed.record == record(kind)
    check_time(signed.record, signed.record.seq)


@pytest.mark.parametrize("kind", RECORDS)
def test_a_record_is_written_byte_for_byte_as_on_the_page(kind: str):
    written = sign_record(Identity.from_seed(SEED), record(kind)).to_bytes()
    assert to_base64url(written) == VECTORS[kind]["record"]


@pytest.mark.parametrize("kind", RECORDS)
def test_a_record_can_be_made_from_the_page_alone(kind: str):
    payload = plain_msgpack(fields(kind))
    sig = Ed25519PrivateKey.from_private_bytes(SEED).sign(b"aios-record-1\0" + payload)
    made = bytes.fromhex(VECTORS["public_key"]) + sig + payload
    assert to_base64url(made) == VECTORS[kind]["record"]


def test_the_page_names_every_field_of_a_record():
    table = PAGE.partition("## Records")[2].partition("## Vectors")[0]
    for shape in (NodeRecord, AgentRecord):
        for field in msgspec.structs.fields(shape):
            assert re.search(rf"^\|[^|]*`{field.name}`", table, re.MULTILINE), field.name
