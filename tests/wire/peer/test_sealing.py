from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from hypothesis import given
from hypothesis import strategies as st

from aios_nb.wire.peer.sealing import OVERHEAD_BYTES, Exhausted, Opener, Sealer, Tampered

KEY = bytes(range(32))
OTHER_KEY = bytes(range(32, 64))
WORDS = [b"zero", b"one", b"two", b"three"]


def sealed(key: bytes = KEY) -> list[bytes]:
    sealer = Sealer(key)
    return [sealer.seal(word) for word in WORDS]


@given(st.lists(st.binary(max_size=300), max_size=20))
def test_what_is_sealed_opens_in_the_same_order(plaintexts: list[bytes]):
    sealer, opener = Sealer(KEY), Opener(KEY)
    assert [opener.open(sealer.seal(plaintext)) for plaintext in plaintexts] == plaintexts


def test_a_frame_of_64_kb_and_an_empty_one_pass():
    sealer, opener = Sealer(KEY), Opener(KEY)
    for plaintext in (b"", b"x" * (64 << 10)):
        frame = sealer.seal(plaintext)
        assert len(frame) == len(plaintext) + OVERHEAD_BYTES
        assert opener.open(frame) == plaintext


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_kind_of_bytes_can_be_sealed_and_opened(kind: type):
    assert Opener(KEY).open(kind(Sealer(KEY).seal(kind(b"words")))) == b"words"


def test_the_nonce_is_the_number_of_the_frame():
    cipher = ChaCha20Poly1305(KEY)
    for number, (frame, word) in enumerate(zip(sealed(), WORDS, strict=True)):
        assert frame == cipher.encrypt(bytes(4) + number.to_bytes(8, "big"), word, None)


def test_the_same_words_never_look_the_same():
    sealer = Sealer(KEY)
    assert len({sealer.seal(b"words") for _ in range(300)}) == 300


@given(st.data())
def test_a_frame_with_one_bit_changed_does_not_open(data: st.DataObject):
    frame = bytearray(Sealer(KEY).seal(b"some words"))
    bit = data.draw(st.integers(0, 8 * len(frame) - 1))
    frame[bit // 8] ^= 1 << bit % 8
    with pytest.raises(Tampered):
        Opener(KEY).open(frame)


@given(st.integers(0, OVERHEAD_BYTES + len(b"some words") - 1))
def test_a_frame_cut_short_does_not_open(kept: int):
    with pytest.raises(Tampered):
        Opener(KEY).open(Sealer(KEY).seal(b"some words")[:kept])


@given(st.binary(min_size=1, max_size=40))
def test_a_frame_with_something_behind_it_does_not_open(more: bytes):
    with pytest.raises(Tampered):
        Opener(KEY).open(Sealer(KEY).seal(b"some words") + more)


def test_a_repeated_frame_does_not_open():
    frames, opener = sealed(), Opener(KEY)
    opener.open(frames[0])
    with pytest.raises(Tampered):
        opener.open(frames[0])


def test_a_frame_after_a_lost_one_does_not_open():
    frames, opener = sealed(), Opener(KEY)
    opener.open(frames[0])
    with pytest.raises(Tampered):
        opener.open(frames[2])


@given(st.permutations(range(len(WORDS))))
def test_frames_open_only_up_to_the_first_one_out_of_order(order: list[int]):
    frames, opener = sealed(), Opener(KEY)
    for due, number in enumerate(order):
        if number != due:
            with pytest.raises(Tampered):
                opener.open(frames[number])
            return
        assert opener.open(frames[number]) == WORDS[number]


def test_a_frame_sent_back_to_its_sender_does_not_open():
    # Each direction has its own key; the first frame of the other one has the same number.
    with pytest.raises(Tampered):
        Opener(OTHER_KEY).open(sealed(KEY)[0])


def test_after_one_bad_frame_nothing_opens_any_more():
    frames, opener = sealed(), Opener(KEY)
    opener.open(frames[0])
    with pytest.raises(Tampered):
        opener.open(b"not one of theirs")
    for frame in frames:
        with pytest.raises(Tampered):
            opener.open(frame)


def test_what_cannot_be_sealed_still_spends_its_nonce():
    sealer = Sealer(KEY)
    with pytest.raises(TypeError):
        sealer.seal("text")  # type: ignore[arg-type]
    with pytest.raises(Tampered):
        Opener(KEY).open(sealer.seal(b"words"))


def test_the_last_nonce_is_never_used_and_the_count_never_begins_again():
    sealer, opener = Sealer(KEY), Opener(KEY)
    sealer._count = opener._count = 2**64 - 2
    assert opener.open(sealer.seal(b"the last one")) == b"the last one"
    frame = ChaCha20Poly1305(KEY).encrypt(bytes(4) + b"\xff" * 8, b"one more", None)
    for _ in range(2):
        with pytest.raises(Exhausted):
            sealer.seal(b"one more")
        with pytest.raises(Tampered):
            opener.open(frame)


@pytest.mark.parametrize("size", [0, 16, 31, 33, 64])
def test_a_key_has_32_bytes(size: int):
    for side in (Sealer, Opener):
        with pytest.raises(ValueError, match="32 bytes"):
            side(bytes(size))
