"""Only who has the owner's code is let in, once, in time, and not by guessing."""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aios_bots.core.model import ChatKind
from aios_bots.core.pairing import (
    CODE_BYTES,
    CODE_S,
    FAILURES_PER_BOT,
    FAILURES_PER_PERSON,
    FAILURES_S,
    Answer,
    Offer,
    Pairing,
    Role,
    code_of,
    new_code,
)
from tests.clock import Clock

PRIVATE = ChatKind.PRIVATE


@pytest.fixture
def pairing(clock: Clock) -> Pairing:
    return Pairing(clock, random.Random(1).randbytes)


def offered(pairing: Pairing, role: Role = Role.MEMBER) -> tuple[str, Offer]:
    return pairing.offer("77", role, agents=["echo"])


@given(st.binary(min_size=CODE_BYTES, max_size=CODE_BYTES))
def test_every_code_is_read_back_however_it_is_typed(data: bytes) -> None:
    code = new_code(lambda _: data)
    assert len(code) == 8
    assert not set(code) & set("OILU")
    typed = code.lower().replace("0", "o").replace("1", "l")
    assert code_of(f" {typed[:4]}-{typed[4:]} ") == code


def test_different_chance_gives_different_codes() -> None:
    assert len({new_code(os.urandom) for _ in range(100)}) == 100


@pytest.mark.parametrize(
    "text", ["", "ABC", "ABCDEFGHJ", "ABCDEFG!", "ÄBCDEFGH", "A" * 10_000, "U" * 8]
)
def test_what_is_no_code_is_none(text: str) -> None:
    assert code_of(text) is None


def test_the_right_code_gives_what_the_owner_offered(pairing: Pairing, clock: Clock) -> None:
    code, offer = offered(pairing)
    assert offer.role is Role.MEMBER
    assert offer.agents == ("echo",)
    assert offer.expires == clock.now + CODE_S
    assert pairing.redeem("77", "5", PRIVATE, code, [offer]) == (Answer.PAIRED, offer)


def test_the_code_itself_is_not_kept(pairing: Pairing) -> None:
    code, offer = offered(pairing)
    assert code not in repr(offer)
    assert code.encode() not in offer.digest


def test_a_code_is_good_once(pairing: Pairing) -> None:
    code, offer = offered(pairing)
    used = Offer(offer.digest, "77", offer.role, expires=offer.expires, used_by="5")
    assert pairing.redeem("77", "6", PRIVATE, code, [used]) == (Answer.WRONG, None)


def test_a_code_is_good_for_ten_minutes(pairing: Pairing, clock: Clock) -> None:
    code, offer = offered(pairing)
    clock.now += CODE_S
    assert pairing.redeem("77", "5", PRIVATE, code, [offer])[0] is Answer.WRONG


def test_a_code_is_good_for_one_bot(pairing: Pairing) -> None:
    code, offer = offered(pairing)
    assert pairing.redeem("78", "5", PRIVATE, code, [offer])[0] is Answer.WRONG


@pytest.mark.parametrize("chat", [ChatKind.GROUP, ChatKind.CHANNEL])
def test_a_code_said_in_public_is_not_answered(pairing: Pairing, chat: ChatKind) -> None:
    code, offer = offered(pairing)
    assert pairing.redeem("77", "5", chat, code, [offer]) == (Answer.SILENT, None)


def test_who_guesses_is_not_listened_to_for_an_hour(pairing: Pairing, clock: Clock) -> None:
    _, offer = offered(pairing)
    for _ in range(FAILURES_PER_PERSON):
        assert pairing.redeem("77", "5", PRIVATE, "00000000", [offer])[0] is Answer.WRONG
    code, fresh = offered(pairing)
    assert pairing.redeem("77", "5", PRIVATE, code, [fresh]) == (Answer.SILENT, None)
    assert pairing.redeem("77", "6", PRIVATE, code, [fresh])[0] is Answer.PAIRED
    clock.now += FAILURES_S
    code, fresh = offered(pairing)
    assert pairing.redeem("77", "5", PRIVATE, code, [fresh])[0] is Answer.PAIRED


def test_many_who_guess_together_are_stopped_together(pairing: Pairing) -> None:
    code, offer = offered(pairing)
    answers = [pairing.redeem("77", str(n), PRIVATE, "not one", [offer])[0] for n in range(80)]
    assert answers.count(Answer.WRONG) == FAILURES_PER_BOT
    assert pairing.redeem("77", "new", PRIVATE, code, [offer])[0] is Answer.SILENT
    assert pairing.redeem("78", "new", PRIVATE, code, [offer])[0] is Answer.WRONG


def test_guesses_from_before_a_restart_count(clock: Clock) -> None:
    pairing = Pairing(clock, os.urandom)
    for _ in range(FAILURES_PER_PERSON):
        pairing.failed("77", "5", clock.now - 60)
    code, offer = offered(pairing)
    assert pairing.redeem("77", "5", PRIVATE, code, [offer])[0] is Answer.SILENT


def test_old_guesses_are_forgotten(pairing: Pairing, clock: Clock) -> None:
    for number in range(1000):
        clock.now += FAILURES_S / 10
        pairing.redeem("77", str(number), PRIVATE, "wrong", [])
    assert len(pairing._wrong) < 150
