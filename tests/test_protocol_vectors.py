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

from aios_nb.hub.catalogue.digest import Digest
from aios_nb.hub.catalogue.entry import handle_of, version_of
from aios_nb.hub.dht import codec
from aios_nb.hub.dht.keys import key_of
from aios_nb.hub.gossip import packets
from aios_nb.hub.gossip.members import Life, Member, Members
from aios_nb.hub.post.datagram import Kind, head_of, mark_of, raw_of
from aios_nb.hub.presence import Presence, State, declare, peek
from aios_nb.identity import (
    TAG_ALIVE,
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
from aios_nb.records import (
    AgentRecord,
    NodeRecord,
    Record,
    Scope,
    check_time,
    parse,
    sign_record,
)
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
PRESENCE, DATAGRAMS = VECTORS["presence"], VECTORS["datagrams"]
GOSSIP, DIGEST, DHT = VECTORS["gossip"], VECTORS["digest"], VECTORS["dht"]
DIALS = Ed25519PrivateKey.from_private_bytes(SEED)
DIALLED = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(PEER["responder_seed"]))
BUCKETS = 128
INTEGERS = ((0xCC, 1), (0xCD, 2), (0xCE, 4), (0xCF, 8))


def plain_msgpack(value: object) -> bytes:  # noqa: PLR0911 (one for each form)
    """The msgpack of the page's values, written from that format's own specification."""
    match value:
        case None:
            return b"\xc0"
        case bool():
            return b"\xc3" if value else b"\xc2"
        case int() if value < 0x80:
            return value.to_bytes(1, "big")
        case int():
            head, size = next(form for form in INTEGERS if value < 1 << 8 * form[1])
            return bytes([head]) + value.to_bytes(size, "big")
        case str():
            text = value.encode()
            return (
                bytes([0xA0 | len(text)]) if len(text) < 32 else bytes([0xD9, len(text)])
            ) + text
        case bytes() if len(value) <= 0xFF:
            return bytes([0xC4, len(value)]) + value
        case bytes():
            return b"\xc5" + len(value).to_bytes(2, "big") + value
        case list() if len(value) < 16:
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


@pytest.mark.parametrize("tag", [TAG_RECORD, TAG_PEER, TAG_HELLO, TAG_ALIVE])
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


# The network -----------------------------------------------------------------------------


def public(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes_raw()


def id_of(key: Ed25519PrivateKey) -> bytes:
    """The 20 bytes of a node id."""
    return hashlib.sha256(public(key)).digest()[:20]


def spoken(key: Ed25519PrivateKey, said: list[Any]) -> bytes:
    """A presence, made from the page."""
    payload = plain_msgpack(said)
    return public(key) + key.sign(b"aios-alive-1\0" + payload) + payload


def first_says() -> bytes:
    return spoken(DIALS, PRESENCE["fields"])


def second_says() -> bytes:
    return spoken(DIALLED, PRESENCE["responder_fields"])


def declared(identity: Identity, said: list[Any], state: State = State.ALIVE) -> Presence:
    _, net, epoch, incarnation, _, scope, host, port = said
    return declare(
        identity,
        net,
        epoch=epoch,
        incarnation=incarnation,
        scope=Scope(scope),
        address=(host, port),
        state=state,
    )


def test_a_presence_can_be_made_from_the_page_alone():
    left = [*PRESENCE["fields"]]
    left[4] = "left"
    assert first_says().hex() == PRESENCE["alive"]
    assert spoken(DIALS, left).hex() == PRESENCE["left"]


@pytest.mark.parametrize("state", State)
def test_a_presence_is_written_and_read_as_on_the_page(state: State):
    made = declared(Identity.from_seed(SEED), PRESENCE["fields"], state)
    read = peek(bytes.fromhex(PRESENCE[state]))
    assert made.to_bytes().hex() == PRESENCE[state]
    assert read == made
    assert read.is_genuine()


def test_the_last_word_counts_more_as_the_page_says():
    alive, left = (peek(bytes.fromhex(PRESENCE[state])) for state in ("alive", "left"))
    assert left.rank > alive.rank


def datagram(kind: int, sender: bytes, token: str, body: bytes = b"") -> str:
    """A datagram in hex, made from the page."""
    mark = hashlib.sha256(b"aios-net\0main").digest()[:4]
    return (bytes([kind]) + mark + sender + bytes.fromhex(token) + body).hex()


def test_a_greeting_can_be_made_from_the_page_alone():
    nonce, token, back = (DATAGRAMS[name] for name in ("nonce", "token", "token_back"))
    first, second = id_of(DIALS), id_of(DIALLED)
    given, given_back = bytes.fromhex(token), bytes.fromhex(back)
    assert DATAGRAMS["hello"] == datagram(0, first, nonce, first_says())
    assert DATAGRAMS["welcome"] == datagram(1, second, nonce, given + second_says())
    assert DATAGRAMS["proof"] == datagram(5, first, token, given_back + first_says())
    assert DATAGRAMS["again"] == datagram(4, second, token)


def test_datagrams_begin_as_on_the_page():
    assert mark_of(PEER["net"]).hex() == DATAGRAMS["mark"]
    for name, sender, token in (
        ("hello", VECTORS["node_id"], "nonce"),
        ("welcome", PEER["responder"], "nonce"),
        ("again", PEER["responder"], "token"),
        ("proof", VECTORS["node_id"], "token"),
    ):
        kind, raw = Kind[name.upper()], raw_of(sender)
        head = head_of(kind, mark_of(PEER["net"]), raw, bytes.fromhex(DATAGRAMS[token]))
        assert DATAGRAMS[name].startswith(head.hex())


def in_bytes(value: Any) -> Any:
    """A message as the page shows it, with bytes for hex."""
    if isinstance(value, list):
        return [in_bytes(each) for each in value]
    return bytes.fromhex(value) if isinstance(value, str) else value


def test_a_packet_can_be_made_from_the_page_alone():
    assert plain_msgpack(in_bytes(GOSSIP["messages"])).hex() == GOSSIP["packet"]


def test_a_packet_says_what_the_page_says():
    read = packets.unpack(bytes.fromhex(GOSSIP["packet"]))
    assert read is not None
    assert packets.pack(read).hex() == GOSSIP["packet"]
    ping, ack, alive, suspect, have, roots = read
    other = (PRESENCE["responder_fields"][2], PRESENCE["responder_fields"][3])
    assert ping == packets.Ping(7, other)
    assert ack == packets.Ack(200, None)
    assert alive == packets.Alive(bytes.fromhex(PRESENCE["alive"]))
    assert suspect == packets.Suspect(id_of(DIALLED), other, 1500)
    assert have == packets.Have((tuple(map(bytes.fromhex, known_by("agent"))),))
    assert roots == packets.Roots(sum_of_all("member_sums"), sum_of_all("record_sums"))


def known_by(kind: str) -> tuple[str, str]:
    return DIGEST[kind]["handle"], DIGEST[kind]["version"]


def sums(name: str) -> bytes:
    """A digest whole."""
    named = {int(bucket): bytes.fromhex(value) for bucket, value in DIGEST[name].items()}
    return b"".join(named.get(bucket, bytes(8)) for bucket in range(BUCKETS))


def sum_of_all(name: str) -> bytes:
    total = 0
    for value in DIGEST[name].values():
        total ^= int(value, 16)
    return total.to_bytes(8, "big")


def short_hash(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=8).digest()


def test_the_digests_can_be_made_from_the_page_alone():
    records = {}
    for kind, own in (("agent", "adder"), ("node", "loopback")):
        key = f"{kind}/main/{VECTORS['node_id']}/{own}"
        payload = from_base64url(VECTORS[kind]["record"])[96:]
        handle, version = short_hash(key.encode()), short_hash(payload)
        assert DIGEST[kind] == {"key": key, "handle": handle.hex(), "version": version.hex()}
        records[str(handle[0] >> 1)] = version.hex()
    members = {}
    for key, said in ((DIALS, PRESENCE["fields"]), (DIALLED, PRESENCE["responder_fields"])):
        life = said[2].to_bytes(8, "big") + said[3].to_bytes(4, "big")
        members[str(id_of(key)[0] >> 1)] = short_hash(id_of(key) + life).hex()
    assert records == DIGEST["record_sums"]
    assert members == DIGEST["member_sums"]


def test_the_digests_are_those_of_the_page():
    digest = Digest()
    for kind in ("agent", "node"):
        signed = parse(from_base64url(VECTORS[kind]["record"]))
        handle, version = handle_of(signed.key), version_of(signed.payload)
        assert (handle.hex(), version.hex()) == known_by(kind)
        digest.toggle(handle, version, Scope.LOOPBACK)
    assert digest.to_bytes(Scope.LOOPBACK) == sums("record_sums")
    assert digest.to_bytes(Scope.PRIVATE) == bytes(8 * BUCKETS)
    members = Members()
    members.toggle(declared(Identity.from_seed(SEED), PRESENCE["fields"]))
    other = peek(second_says())
    members.put(Member(other.node_id, Life.ALIVE, other, 0.0))
    assert members.sums(Scope.LOOPBACK) == sums("member_sums")


def asked_and_answered() -> dict[str, list[Any]]:
    """The messages of the DHT, made from the page."""
    key = hashlib.sha256(b"node:" + VECTORS["node_id"].encode()).digest()[:20]
    number, token = DHT["number"], bytes.fromhex(DHT["token"])
    node = from_base64url(VECTORS["node"]["record"])
    return {
        "get": [1, number, key, b""],
        "found": [3, number, token, False, node, [second_says()]],
        "put": [2, number + 1, key, token, node],
        "kept": [4, number + 1, True],
    }


def test_the_key_of_a_node_in_the_dht_is_that_of_the_page():
    assert asked_and_answered()["get"][2].hex() == DHT["key"]
    assert key_of(VECTORS["node_id"]).hex() == DHT["key"]


@pytest.mark.parametrize("name", ["get", "found", "put", "kept"])
def test_a_message_of_the_dht_can_be_made_from_the_page_alone(name: str):
    assert plain_msgpack(asked_and_answered()[name]).hex() == DHT[name]


@pytest.mark.parametrize(
    ("name", "shape"),
    [("get", codec.Get), ("found", codec.Found), ("put", codec.Put), ("kept", codec.Kept)],
)
def test_a_message_of_the_dht_is_read_and_written_as_on_the_page(name: str, shape: type):
    read = codec.read(bytes.fromhex(DHT[name]))
    assert type(read) is shape
    assert list(msgspec.structs.astuple(read)) == asked_and_answered()[name][1:]
    assert codec.write(read).hex() == DHT[name]
