from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from aios_nb import private
from aios_nb.errors import HomeError, Impostor, UsageError
from aios_nb.identity import (
    TAG_HELLO,
    TAG_PEER,
    TAG_RECORD,
    Identity,
    answer_hello,
    check_hello,
    from_base64url,
    node_id_of,
    read_nonce,
    sign_hello,
    to_base64url,
    verify,
)

ROOT = Path(__file__).parent.parent
NONCE = bytes(range(32))
PORT = 8765


@pytest.fixture
def key_path(tmp_path: Path) -> Path:
    return tmp_path / "alice.key"


# Key files


def test_an_identity_is_the_same_at_every_start(key_path: Path):
    first = Identity.load_or_create(key_path)
    assert Identity.load_or_create(key_path).node_id == first.node_id
    assert Identity.load_or_create(key_path).public_key == first.public_key


def test_an_identity_is_the_same_in_another_process(key_path: Path):
    mine = Identity.load_or_create(key_path)
    code = (
        "import sys, pathlib; from aios_nb.identity import Identity;"
        "print(Identity.load_or_create(pathlib.Path(sys.argv[1])).node_id)"
    )
    theirs = subprocess.check_output([sys.executable, "-c", code, key_path], text=True, cwd=ROOT)
    assert theirs.strip() == mine.node_id


def test_a_key_file_is_plain_pkcs8_and_only_for_its_owner(key_path: Path):
    old = os.umask(0)
    try:
        identity = Identity.load_or_create(key_path)
    finally:
        os.umask(old)
    assert key_path.stat().st_mode & 0o777 == 0o600
    key = serialization.load_pem_private_key(key_path.read_bytes(), password=None)
    raw = key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    assert raw == identity.public_key
    assert [entry.name for entry in key_path.parent.iterdir()] == ["alice.key"]


def test_starters_that_race_agree_on_one_key(key_path: Path):
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: Identity.load_or_create(key_path).node_id, range(32)))
    assert len(set(made)) == 1


def test_a_key_is_made_also_where_hard_links_are_missing(
    key_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def no_links(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(private.os, "link", no_links)
    made = Identity.load_or_create(key_path)
    assert Identity.load_or_create(key_path).node_id == made.node_id
    assert private.create_private(key_path, b"other") is False


def test_the_way_to_mend_it_can_be_copied(tmp_path: Path):
    path = tmp_path / "a path with spaces.key"
    path.touch()
    path.chmod(0o644)
    with pytest.raises(HomeError) as caught:
        Identity.load_or_create(path)
    assert caught.value.hint == f"chmod 600 '{path}'"


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620])
def test_a_key_that_others_may_read_is_refused(key_path: Path, mode: int):
    Identity.load_or_create(key_path)
    before = key_path.read_bytes()
    key_path.chmod(mode)
    with pytest.raises(HomeError, match="other users") as caught:
        Identity.load_or_create(key_path)
    assert caught.value.hint == f"chmod 600 {key_path}"
    assert key_path.read_bytes() == before


def _x25519_pem() -> bytes:
    return X25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _encrypted_pem() -> bytes:
    return Identity.generate()._key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 100,
        b"-----BEGIN PRIVATE KEY-----\n",
        _x25519_pem(),
        _encrypted_pem(),
        b"x" * 9000,
    ],
    ids=["empty", "zeros", "cut", "other kind", "encrypted", "long"],
)
def test_a_damaged_key_is_refused_in_one_line_and_stays_as_it_is(key_path: Path, content: bytes):
    key_path.write_bytes(content)
    key_path.chmod(0o600)
    with pytest.raises(HomeError) as caught:
        Identity.load_or_create(key_path)
    assert caught.value.hint
    assert "\n" not in str(caught.value)
    assert key_path.read_bytes() == content


def test_a_pipe_in_the_place_of_a_key_is_refused_not_waited_for(key_path: Path):
    os.mkfifo(key_path, 0o600)
    with pytest.raises(HomeError, match="not a plain file"):
        Identity.load_or_create(key_path)


def test_a_key_that_cannot_be_written_is_one_clear_line(tmp_path: Path):
    with pytest.raises(HomeError, match="cannot be written"):
        Identity.load_or_create(tmp_path / "missing" / "alice.key")


def test_an_identity_shows_its_id_and_not_its_key():
    identity = Identity.generate()
    assert repr(identity) == f"Identity({identity.node_id})"


# Ids and signatures


def test_s02_a_node_id_is_the_hash_of_the_public_key():
    identity = Identity.generate()
    digest = hashlib.sha256(identity.public_key).digest()
    padded = identity.node_id.upper().encode()
    assert len(identity.node_id) == 32
    assert base64.b32decode(padded) == digest[:20]


def test_a_node_id_needs_a_whole_public_key():
    with pytest.raises(ValueError, match="32 bytes"):
        node_id_of(b"short")


def test_a_signature_counts_for_its_key_its_tag_and_its_message_only():
    alice, bob = Identity.generate(), Identity.generate()
    sig = alice.sign(TAG_RECORD, b"hello")
    assert verify(alice.public_key, TAG_RECORD, b"hello", sig)
    assert not verify(bob.public_key, TAG_RECORD, b"hello", sig)
    assert not verify(alice.public_key, TAG_PEER, b"hello", sig)
    assert not verify(alice.public_key, TAG_RECORD, b"hellO", sig)
    assert not verify(alice.public_key, TAG_RECORD, b"hello", sig[:-1])
    assert not verify(alice.public_key[:-1], TAG_RECORD, b"hello", sig)


@pytest.mark.parametrize("tag", [b"", b"aios-record-1", b"aios-other-1\0"])
def test_nothing_is_signed_or_checked_under_an_unknown_tag(tag: bytes):
    identity = Identity.generate()
    with pytest.raises(ValueError, match="unknown tag"):
        identity.sign(tag, b"hello")
    with pytest.raises(ValueError, match="unknown tag"):
        verify(identity.public_key, tag, b"hello", bytes(64))


def test_no_tag_begins_another():
    tags = [TAG_RECORD, TAG_PEER, TAG_HELLO]
    assert not any(a != b and a.startswith(b) for a in tags for b in tags)


SMALL_ORDER_Y = (
    *(0, 1, 2**255 - 20, 2**255 - 19, 2**255 - 18),
    *(Y8 := 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826, 2**255 - 19 - Y8),
)


@pytest.mark.parametrize("sign", [0, 1 << 255])
@pytest.mark.parametrize("y", SMALL_ORDER_Y)
def test_a_key_that_anyone_can_sign_for_has_signed_nothing(y: int, sign: int):
    key = (y | sign).to_bytes(32, "little")
    forged = (1).to_bytes(32, "little") + bytes(32)
    messages = [number.to_bytes(2, "big") for number in range(400)]
    fooled = 0
    for message in messages:
        assert not verify(key, TAG_PEER, message, forged)
        try:
            Ed25519PublicKey.from_public_bytes(key).verify(forged, TAG_PEER + message)
            fooled += 1
        except InvalidSignature:
            pass
    assert fooled  # the library alone takes it: at least for one message in eight


# base64url


@given(st.binary(max_size=100))
def test_base64url_round_trips(content: bytes):
    text = to_base64url(content)
    assert from_base64url(text) == content
    assert "=" not in text


@pytest.mark.parametrize("text", ["A", "AA==", "AB", "A+/A", "AA\n", "ÄÄ", "AA AA"])
def test_other_spellings_of_base64url_are_refused(text: str):
    with pytest.raises(ValueError, match="base64url"):
        from_base64url(text)


# Hello


def test_a_node_proves_itself_to_a_client_that_knows_its_id():
    node = Identity.generate()
    over_the_wire = json.loads(msgspec.json.encode(answer_hello(node, NONCE, PORT)))
    check_hello(over_the_wire, node_id=node.node_id, nonce=NONCE, port=PORT)
    over_the_wire["added_later"] = 1
    check_hello(over_the_wire, node_id=node.node_id, nonce=NONCE, port=PORT)


def test_the_hello_covers_tag_nonce_and_port():
    node = Identity.generate()
    signed = NONCE + b"\x22\x3d"
    assert verify(node.public_key, TAG_HELLO, signed, sign_hello(node, NONCE, PORT))


def test_another_key_does_not_pass_for_the_node():
    node, other = Identity.generate(), Identity.generate()
    honest = msgspec.to_builtins(answer_hello(other, NONCE, PORT))
    for claim in ({}, {"node_id": node.node_id}, {"public_key": to_base64url(node.public_key)}):
        with pytest.raises(Impostor) as caught:
            check_hello(honest | claim, node_id=node.node_id, nonce=NONCE, port=PORT)
        assert "no token was sent" in str(caught.value)


def test_a_hello_passed_on_from_another_port_is_refused():
    node = Identity.generate()
    elsewhere = msgspec.to_builtins(answer_hello(node, NONCE, PORT + 1))
    for reply in (elsewhere, elsewhere | {"port": PORT}):
        with pytest.raises(Impostor):
            check_hello(reply, node_id=node.node_id, nonce=NONCE, port=PORT)


def test_a_hello_that_names_another_id_or_port_than_it_signs_is_refused():
    node = Identity.generate()
    honest = msgspec.to_builtins(answer_hello(node, NONCE, PORT))
    for claim in ({"port": PORT + 1}, {"node_id": Identity.generate().node_id}):
        with pytest.raises(Impostor):
            check_hello(honest | claim, node_id=node.node_id, nonce=NONCE, port=PORT)


def test_an_old_hello_does_not_answer_a_new_nonce():
    node = Identity.generate()
    old = answer_hello(node, NONCE, PORT)
    with pytest.raises(Impostor):
        check_hello(old, node_id=node.node_id, nonce=bytes(32), port=PORT)


@pytest.mark.parametrize(
    "change",
    [
        {"sig": ""},
        {"sig": "???"},
        {"sig": None},
        {"public_key": "AA"},
        {"public_key": 5},
        {"port": "8765"},
        {"port": 0},
        {"node_id": None},
    ],
)
def test_a_malformed_hello_is_an_impostor_and_nothing_else(change: dict[str, object]):
    node = Identity.generate()
    reply = msgspec.to_builtins(answer_hello(node, NONCE, PORT)) | change
    with pytest.raises(Impostor):
        check_hello(reply, node_id=node.node_id, nonce=NONCE, port=PORT)


@pytest.mark.parametrize("reply", [None, [], "hello", {}, 5])
def test_any_json_may_come_as_a_hello(reply: object):
    with pytest.raises(Impostor):
        check_hello(reply, node_id=Identity.generate().node_id, nonce=NONCE, port=PORT)


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_nonce_has_exactly_32_bytes(size: int):
    node = Identity.generate()
    with pytest.raises(ValueError, match="32 bytes"):
        sign_hello(node, bytes(size), PORT)
    with pytest.raises(UsageError, match="32 bytes"):
        read_nonce(to_base64url(bytes(size)))
    assert read_nonce(to_base64url(NONCE)) == NONCE


@pytest.mark.parametrize("text", ["", "x" * 44, "=" * 43, "ä" * 43])
def test_a_nonce_that_is_not_base64url_is_refused(text: str):
    with pytest.raises(UsageError):
        read_nonce(text)


@pytest.mark.parametrize("port", [-1, 0, 65536])
def test_a_hello_names_a_real_port(port: int):
    with pytest.raises(ValueError, match="not a port"):
        sign_hello(Identity.generate(), NONCE, port)
