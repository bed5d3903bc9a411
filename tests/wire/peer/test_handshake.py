from __future__ import annotations

from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from aios_nb.errors import Impostor
from aios_nb.identity import TAG_HELLO, TAG_PEER, TAG_RECORD, Identity
from aios_nb.wire.peer.handshake import AnotherNode, Initiator, Refused, Responder, Session
from aios_nb.wire.peer.sealing import Tampered

ALICE = Identity.from_seed(b"a" * 32)
BOB = Identity.from_seed(b"b" * 32)
MALLORY = Identity.from_seed(b"m" * 32)
NET = "main"
HEAD = b"\x01\x04main"
M1_BYTES, M2_BYTES, M3_BYTES = len(HEAD) + 64, 128, 64

P = 2**255 - 19
SMALL_U = [
    0,
    1,
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
    P - 1,
    P,
    P + 1,
]
"""The u of every X25519 point of small order, in every spelling."""
SMALL_Y = [
    0,
    1,
    2707385501144840649318225287225658788936804267575313519463743609750303402022,
    P - 2707385501144840649318225287225658788936804267575313519463743609750303402022,
    P - 1,
    P,
    P + 1,
]
"""The y of every Ed25519 point of small order, in every spelling."""
HIGH_BIT = 1 << 255


def small(points: list[int]) -> list[bytes]:
    """Each point with and without the highest bit."""
    return [(point | high).to_bytes(32, "little") for point in points for high in (0, HIGH_BIT)]


def ephemeral(letter: bytes) -> X25519PrivateKey:
    return X25519PrivateKey.from_private_bytes(letter * 32)


def flip(message: bytes, bit: int) -> bytes:
    changed = bytearray(message)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def meet(
    initiator: Initiator | None = None, responder: Responder | None = None
) -> tuple[Session, Session]:
    """Both ends of a handshake that nobody disturbs; Alice dials Bob unless said."""
    initiator = initiator or Initiator(ALICE, NET)
    responder = responder or Responder(BOB, NET)
    responder.read(initiator.first())
    m3, ours = initiator.third(responder.second())
    return ours, responder.finish(m3)


def m2_of(identity: Identity, m1: bytes) -> bytes:
    responder = Responder(identity, NET)
    responder.read(m1)
    return responder.second()


def unable_to_talk(one: Session, other: Session) -> bool:
    """Whether the first frame fails, in both directions."""
    for sealer, opener in ((one.sealer, other.opener), (other.sealer, one.opener)):
        try:
            opener.open(sealer.seal(b"words"))
        except Tampered:
            continue
        return False
    return True


class Untouched:
    """Bob's keys, the ephemeral one too; the test fails when one is used."""

    node_id = BOB.node_id
    public_key = BOB.public_key

    def sign(self, tag: bytes, message: bytes) -> bytes:
        pytest.fail("signed")


class Unused:
    """An ephemeral key that is shown; the test fails when a secret is made with it."""

    def public_key(self) -> X25519PublicKey:
        return ephemeral(b"1").public_key()

    def exchange(self, theirs: X25519PublicKey) -> bytes:
        pytest.fail("made a secret")


def untouched() -> Responder:
    return Responder(Untouched(), NET, ephemeral=Untouched())  # type: ignore[arg-type]


# Meeting ------------------------------------------------------------------------------------


def test_two_nodes_meet_and_each_knows_the_other():
    at_alice, at_bob = meet()
    assert (at_alice.node_id, at_alice.public_key) == (BOB.node_id, BOB.public_key)
    assert (at_bob.node_id, at_bob.public_key) == (ALICE.node_id, ALICE.public_key)


def test_they_read_each_other_in_both_directions():
    at_alice, at_bob = meet()
    for word in (b"one", b"two"):
        assert at_bob.opener.open(at_alice.sealer.seal(word)) == word
        assert at_alice.opener.open(at_bob.sealer.seal(word)) == word


def test_the_messages_have_the_lengths_of_the_page():
    initiator, responder = Initiator(ALICE, NET), Responder(BOB, NET)
    m1 = initiator.first()
    responder.read(m1)
    m2 = responder.second()
    m3, _ = initiator.third(m2)
    assert m1.startswith(HEAD + ALICE.public_key)
    assert m2.startswith(BOB.public_key)
    assert (len(m1), len(m2), len(m3)) == (M1_BYTES, M2_BYTES, M3_BYTES)


def test_the_claimed_id_is_known_before_any_key_is_used():
    assert untouched().read(Initiator(ALICE, NET).first()) == ALICE.node_id


def test_every_meeting_has_other_keys():
    sessions = [meet()[0] for _ in range(3)]
    assert len({session.sealer.seal(b"words") for session in sessions}) == 3


def test_the_two_directions_have_different_keys():
    at_alice, at_bob = meet()
    assert at_alice.sealer.seal(b"words") != at_bob.sealer.seal(b"words")


def test_a_dialler_that_expects_the_right_node_meets_it():
    assert meet(Initiator(ALICE, NET, expects=BOB.node_id))[0].node_id == BOB.node_id


@pytest.mark.parametrize("network", ["a", "a" * 48, "my-net_2"])
def test_any_name_can_be_a_network(network: str):
    at_alice, at_bob = meet(Initiator(ALICE, network), Responder(BOB, network))
    assert at_bob.opener.open(at_alice.sealer.seal(b"words")) == b"words"


@pytest.mark.parametrize("network", ["", "Main", "a" * 49, "ä", "a b", "main\n"])
def test_what_is_no_name_cannot_be_a_network(network: str):
    for side in (Initiator, Responder):
        with pytest.raises(ValueError, match="network"):
            side(ALICE, network)


# M1 refused: before anything is signed ------------------------------------------------------

M1 = Initiator(ALICE, NET, ephemeral=ephemeral(b"1")).first()
BAD_M1 = {
    "empty": b"",
    "only a version": b"\x01",
    "version 0": b"\x00" + M1[1:],
    "version 2": b"\x02" + M1[1:],
    "one byte short": M1[:-1],
    "one byte long": M1 + b"\0",
    "twice": M1 + M1,
    "other network": b"\x01\x04beta" + M1[6:],
    "longer network": b"\x01\x05mainx" + M1[6:],
    "shorter network": b"\x01\x03mai" + M1[6:],
    "network of no letters": b"\x01\x00" + M1[6:],
    "network in capitals": b"\x01\x04Main" + M1[6:],
    "network not UTF-8": b"\x01\x04\xff\xfe\xfd\xfc" + M1[6:],
    "network of 255 bytes": b"\x01\xff" + b"m" * 255 + M1[6:],
    "network length beyond the end": b"\x01\xffmain" + M1[6:],
    "our own key": HEAD + BOB.public_key + M1[-32:],
} | {f"weak key {key.hex()}": HEAD + key + M1[-32:] for key in small(SMALL_Y)}


@pytest.mark.parametrize("m1", BAD_M1.values(), ids=BAD_M1.keys())
def test_a_bad_m1_is_refused_before_any_key_is_used(m1: bytes):
    responder = untouched()
    with pytest.raises(Refused):
        responder.read(m1)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("version 2", "version"),
        ("other network", "network"),
        ("one byte long", "bytes"),
        ("our own key", "own key"),
    ],
)
def test_our_own_log_can_say_why(name: str, why: str):
    with pytest.raises(Refused, match=why):
        Responder(BOB, NET).read(BAD_M1[name])


def test_the_m1_that_the_bad_ones_are_made_of_is_good():
    assert Responder(BOB, NET).read(M1) == ALICE.node_id


@given(st.binary(max_size=300))
def test_noise_is_refused_as_m1(noise: bytes):
    with pytest.raises(Refused):
        Responder(BOB, NET).read(noise)


def test_a_node_that_dials_itself_is_refused():
    with pytest.raises(Refused, match="own key"):
        Responder(ALICE, NET).read(Initiator(ALICE, NET).first())


# M2 refused: before anything is signed ------------------------------------------------------


def changed_m2(change: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    return lambda m1: change(m2_of(BOB, m1))


BAD_M2: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "one byte short": changed_m2(lambda m2: m2[:-1]),
    "one byte long": changed_m2(lambda m2: m2 + b"\0"),
    "zeros": lambda _: bytes(M2_BYTES),
    "M1 sent back": lambda m1: m1,
    "M1 sent back at its length": lambda m1: m1[len(HEAD) :] + bytes(64),
    "another key before the signature": changed_m2(lambda m2: MALLORY.public_key + m2[32:]),
    "another ephemeral key": changed_m2(lambda m2: m2[:32] + bytes(31) + b"\x09" + m2[64:]),
    "M2 for another M1": lambda _: m2_of(BOB, Initiator(ALICE, NET).first()),
    "M2 for another dialler": lambda m1: m2_of(BOB, HEAD + MALLORY.public_key + m1[-32:]),
    "our own key": lambda m1: m2_of(BOB, HEAD + MALLORY.public_key + m1[-32:]).replace(
        BOB.public_key, ALICE.public_key
    ),
}


@pytest.mark.parametrize("answer", BAD_M2.values(), ids=BAD_M2.keys())
@pytest.mark.parametrize("expects", [None, BOB.node_id])
def test_a_bad_m2_is_refused(answer: Callable[[bytes], bytes], expects: str | None):
    initiator = Initiator(ALICE, NET, expects=expects)
    m1 = initiator.first()
    with pytest.raises(Refused):
        initiator.third(answer(m1))


def signed_m2(m1: bytes, role: bytes, tag: bytes, e_r: bytes) -> bytes:
    """An M2 that Bob's key really signed, under another letter, tag or ephemeral key."""
    pk_i, e_i = m1[len(HEAD) : -32], m1[-32:]
    transcript = Responder(BOB, NET)._transcript(pk_i, BOB.public_key, e_i, e_r)
    return BOB.public_key + e_r + BOB.sign(tag, role + transcript)


@pytest.mark.parametrize(
    ("role", "tag"), [(b"i", TAG_PEER), (b"", TAG_PEER), (b"r", TAG_HELLO), (b"r", TAG_RECORD)]
)
def test_a_responder_that_signs_in_another_role_or_for_another_purpose_is_refused(
    role: bytes, tag: bytes
):
    e_r = ephemeral(b"2").public_key().public_bytes_raw()
    for said, by in ((b"r", TAG_PEER), (role, tag)):
        initiator = Initiator(ALICE, NET)
        m2 = signed_m2(initiator.first(), said, by, e_r)
        if (said, by) == (b"r", TAG_PEER):
            assert initiator.third(m2)[1].node_id == BOB.node_id
        else:
            with pytest.raises(Refused, match="did not sign"):
                initiator.third(m2)


@pytest.mark.parametrize("e_r", small(SMALL_U), ids=bytes.hex)
def test_a_responder_whose_ephemeral_key_has_small_order_is_refused(e_r: bytes):
    initiator = Initiator(ALICE, NET)
    m2 = signed_m2(initiator.first(), b"r", TAG_PEER, e_r)
    with pytest.raises(Refused, match="no secret"):
        initiator.third(m2)


@pytest.mark.parametrize("key", small(SMALL_Y), ids=bytes.hex)
def test_a_responder_with_a_key_that_anyone_can_sign_for_is_refused(key: bytes):
    identity_point = (1).to_bytes(32, "little")
    initiator = Initiator(ALICE, NET)
    initiator.first()
    e_r = ephemeral(b"2").public_key().public_bytes_raw()
    with pytest.raises(Refused, match="anyone can sign"):
        initiator.third(key + e_r + identity_point + bytes(32))


def test_a_node_that_answers_itself_is_refused():
    initiator = Initiator(ALICE, NET)
    initiator.first()
    m2 = m2_of(ALICE, Initiator(BOB, NET).first())
    with pytest.raises(Refused, match="own key"):
        initiator.third(m2)


def test_another_node_than_the_expected_one_is_told_apart_and_gets_no_signature():
    initiator = Initiator(ALICE, NET, expects=BOB.node_id)
    m2 = m2_of(MALLORY, initiator.first())
    with pytest.raises(AnotherNode) as caught:
        initiator.third(m2)
    assert isinstance(caught.value, Impostor)
    assert (caught.value.node_id, caught.value.expected) == (MALLORY.node_id, BOB.node_id)
    assert MALLORY.node_id in str(caught.value)


@pytest.mark.parametrize("sig_r", [bytes(64), MALLORY.sign(TAG_PEER, b"r")])
def test_who_cannot_sign_as_responder_costs_no_key_exchange_and_no_signature(sig_r: bytes):
    class Dialling(Untouched):
        node_id = ALICE.node_id
        public_key = ALICE.public_key

    initiator = Initiator(Dialling(), NET, ephemeral=Unused())  # type: ignore[arg-type]
    initiator.first()
    e_r = ephemeral(b"2").public_key().public_bytes_raw()
    with pytest.raises(Refused):
        initiator.third(BOB.public_key + e_r + sig_r)


@given(st.binary(max_size=300) | st.binary(min_size=M2_BYTES, max_size=M2_BYTES))
def test_noise_is_refused_as_m2(noise: bytes):
    initiator = Initiator(ALICE, NET)
    initiator.first()
    with pytest.raises(Refused):
        initiator.third(noise)


# M3 refused ---------------------------------------------------------------------------------


def half_open(pk_i: bytes = ALICE.public_key, e_i: bytes | None = None) -> tuple[Responder, bytes]:
    """A responder that waits for M3, and the hash that is to be signed."""
    e_i = e_i or ephemeral(b"1").public_key().public_bytes_raw()
    responder = Responder(BOB, NET)
    responder.read(HEAD + pk_i + e_i)
    e_r = responder.second()[32:64]
    return responder, responder._transcript(pk_i, BOB.public_key, e_i, e_r)


def test_the_signature_that_the_bad_ones_differ_from_is_good():
    responder, transcript = half_open()
    assert responder.finish(ALICE.sign(TAG_PEER, b"i" + transcript)).node_id == ALICE.node_id


BAD_M3: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "zeros": lambda _: bytes(64),
    "one byte short": lambda t: ALICE.sign(TAG_PEER, b"i" + t)[:-1],
    "one byte long": lambda t: ALICE.sign(TAG_PEER, b"i" + t) + b"\0",
    "signed as responder": lambda t: ALICE.sign(TAG_PEER, b"r" + t),
    "signed in no role": lambda t: ALICE.sign(TAG_PEER, t),
    "signed for a hello": lambda t: ALICE.sign(TAG_HELLO, b"i" + t),
    "signed for a record": lambda t: ALICE.sign(TAG_RECORD, b"i" + t),
    "signed by another key": lambda t: MALLORY.sign(TAG_PEER, b"i" + t),
    "signed by the responder itself": lambda t: BOB.sign(TAG_PEER, b"i" + t),
    "signed for another handshake": lambda t: ALICE.sign(TAG_PEER, b"i" + bytes(32)),
}


@pytest.mark.parametrize("m3", BAD_M3.values(), ids=BAD_M3.keys())
def test_a_bad_m3_is_refused(m3: Callable[[bytes], bytes]):
    responder, transcript = half_open()
    with pytest.raises(Refused):
        responder.finish(m3(transcript))


@pytest.mark.parametrize(("m3", "why"), [(bytes(63), "63 bytes"), (bytes(64), "did not sign")])
def test_who_cannot_sign_as_initiator_costs_no_key_exchange(m3: bytes, why: str):
    responder = Responder(BOB, NET, ephemeral=Unused())  # type: ignore[arg-type]
    responder.read(Initiator(ALICE, NET).first())
    responder.second()
    with pytest.raises(Refused, match=why):
        responder.finish(m3)


@pytest.mark.parametrize("e_i", small(SMALL_U), ids=bytes.hex)
def test_an_initiator_whose_ephemeral_key_has_small_order_is_refused(e_i: bytes):
    responder, transcript = half_open(e_i=e_i)
    with pytest.raises(Refused, match="no secret"):
        responder.finish(ALICE.sign(TAG_PEER, b"i" + transcript))


def test_a_secret_of_zeros_is_refused_even_if_the_library_gives_it_out():
    class Careless:
        """A key of a library that does not look at the result."""

        def public_key(self) -> X25519PublicKey:
            return ephemeral(b"1").public_key()

        def exchange(self, theirs: X25519PublicKey) -> bytes:
            return bytes(32)

    initiator = Initiator(ALICE, NET, ephemeral=Careless())  # type: ignore[arg-type]
    m2 = m2_of(BOB, initiator.first())
    with pytest.raises(Refused, match="no secret"):
        initiator.third(m2)


def test_the_responders_own_signature_sent_back_is_refused():
    responder = Responder(BOB, NET)
    responder.read(M1)
    m2 = responder.second()
    with pytest.raises(Refused):
        responder.finish(m2[64:])


def test_a_recorded_handshake_cannot_be_played_again():
    initiator, first_time = Initiator(ALICE, NET), Responder(BOB, NET)
    m1 = initiator.first()
    first_time.read(m1)
    m3, _ = initiator.third(first_time.second())
    first_time.finish(m3)
    again = Responder(BOB, NET)
    again.read(m1)
    again.second()
    with pytest.raises(Refused):
        again.finish(m3)


def test_an_m3_for_one_node_is_refused_by_another():
    # Mallory is dialled by Alice and passes M1 and M3 on to Bob, to be Alice there.
    initiator, bob, mallory = Initiator(ALICE, NET), Responder(BOB, NET), Responder(MALLORY, NET)
    m1 = initiator.first()
    bob.read(m1)
    mallory.read(m1)
    bob.second()
    m3, _ = initiator.third(mallory.second())
    with pytest.raises(Refused):
        bob.finish(m3)


def test_who_answers_with_the_ephemeral_key_of_another_cannot_bring_the_two_together():
    # Else Bob would hold a session with Alice, who believes to talk to Mallory.
    initiator, bob = Initiator(ALICE, NET), Responder(BOB, NET)
    m1 = initiator.first()
    bob.read(m1)
    e_r, e_i = bob.second()[32:64], m1[-32:]
    transcript = bob._transcript(ALICE.public_key, MALLORY.public_key, e_i, e_r)
    m3, _ = initiator.third(MALLORY.public_key + e_r + MALLORY.sign(TAG_PEER, b"r" + transcript))
    with pytest.raises(Refused):
        bob.finish(m3)


def test_who_changes_the_network_on_the_way_does_not_bring_two_networks_together():
    initiator, bob = Initiator(ALICE, NET), Responder(BOB, "beta")
    bob.read(initiator.first().replace(b"main", b"beta"))
    with pytest.raises(Refused):
        initiator.third(bob.second())


def test_who_puts_an_own_ephemeral_key_between_two_nodes_is_refused_by_both():
    initiator, bob = Initiator(ALICE, NET), Responder(BOB, NET)
    m1, between = initiator.first(), ephemeral(b"9").public_key().public_bytes_raw()
    bob.read(m1[:-32] + between)
    m2 = bob.second()
    for answer in (m2, m2[:32] + between + m2[64:]):
        dialler = Initiator(ALICE, NET)
        dialler.first()
        with pytest.raises(Refused):
            dialler.third(answer)
    with pytest.raises(Refused):
        initiator.third(m2)


# Any change at all --------------------------------------------------------------------------


@given(st.integers(0, 8 * M1_BYTES - 1))
def test_one_bit_changed_in_m1_never_makes_a_session(bit: int):
    initiator, responder = Initiator(ALICE, NET), Responder(BOB, NET)
    with pytest.raises(Refused):  # noqa: PT012 (either side may be the one that refuses)
        responder.read(flip(initiator.first(), bit))
        initiator.third(responder.second())


@given(st.integers(0, 8 * M2_BYTES - 1))
def test_one_bit_changed_in_m2_never_makes_a_session(bit: int):
    initiator = Initiator(ALICE, NET)
    m2 = m2_of(BOB, initiator.first())
    with pytest.raises(Refused):
        initiator.third(flip(m2, bit))


@given(st.integers(0, 8 * M3_BYTES - 1))
def test_one_bit_changed_in_m3_never_makes_a_session(bit: int):
    responder, transcript = half_open()
    with pytest.raises(Refused):
        responder.finish(flip(ALICE.sign(TAG_PEER, b"i" + transcript), bit))


def test_sessions_of_different_meetings_cannot_read_each_other():
    (alice_1, bob_1), (alice_2, bob_2) = meet(), meet()
    assert unable_to_talk(alice_1, bob_2)
    assert unable_to_talk(alice_2, bob_1)


def test_a_frame_sent_back_to_its_sender_does_not_open():
    for session in meet():
        with pytest.raises(Tampered):
            session.opener.open(session.sealer.seal(b"words"))


# Once, and in order -------------------------------------------------------------------------


def test_an_initiator_is_used_once_and_in_order():
    initiator = Initiator(ALICE, NET)
    with pytest.raises(RuntimeError):
        initiator.third(bytes(M2_BYTES))
    m2 = m2_of(BOB, initiator.first())
    with pytest.raises(RuntimeError):
        initiator.first()
    initiator.third(m2)
    for step in (initiator.first, lambda: initiator.third(m2)):
        with pytest.raises(RuntimeError):
            step()


def test_a_responder_is_used_once_and_in_order():
    initiator, responder = Initiator(ALICE, NET), Responder(BOB, NET)
    m1 = initiator.first()
    for step in (responder.second, lambda: responder.finish(bytes(64))):
        with pytest.raises(RuntimeError):
            step()
    responder.read(m1)
    for step in (lambda: responder.read(m1), lambda: responder.finish(bytes(64))):
        with pytest.raises(RuntimeError):
            step()
    m3, _ = initiator.third(responder.second())
    for step in (lambda: responder.read(m1), responder.second):
        with pytest.raises(RuntimeError):
            step()
    responder.finish(m3)
    for step in (lambda: responder.read(m1), responder.second, lambda: responder.finish(m3)):
        with pytest.raises(RuntimeError):
            step()


def test_after_a_refusal_there_is_no_second_try():
    initiator = Initiator(ALICE, NET)
    good = m2_of(BOB, initiator.first())
    with pytest.raises(Refused):
        initiator.third(flip(good, 900))
    with pytest.raises(RuntimeError):
        initiator.third(good)

    reader = Responder(BOB, NET)
    with pytest.raises(Refused):
        reader.read(b"\x02" + M1[1:])
    for step in (lambda: reader.read(M1), reader.second):
        with pytest.raises(RuntimeError):
            step()

    responder, transcript = half_open()
    with pytest.raises(Refused):
        responder.finish(bytes(64))
    with pytest.raises(RuntimeError):
        responder.finish(ALICE.sign(TAG_PEER, b"i" + transcript))


def test_the_ephemeral_keys_are_gone_when_the_session_is_there():
    initiator, responder = Initiator(ALICE, NET), Responder(BOB, NET)
    meet(initiator, responder)
    assert initiator._ephemeral is None
    assert responder._ephemeral is None
