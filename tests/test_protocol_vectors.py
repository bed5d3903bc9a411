"""The vectors of PROTOCOL.md, against the code and against the words of the page."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

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

PAGE = (Path(__file__).parent.parent / "PROTOCOL.md").read_text(encoding="utf-8")
BLOCK = re.search(r"## Vectors\n.*?```json\n(.*?)```", PAGE, re.DOTALL)
assert BLOCK
VECTORS: dict[str, Any] = json.loads(BLOCK[1])
SEED = bytes.fromhex(VECTORS["seed"])
HELLO = VECTORS["hello"]
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
