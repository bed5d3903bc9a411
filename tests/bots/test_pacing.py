"""One gate per chat: never over an app's limits, and one chat's wait is its own."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aios_bots.core import pacing
from aios_bots.core.pacing import Call, Pacer, Rank, Rates
from tests.clock import Clock

HAIR = 1e-6


def final(key: str, chat: str = "a", *, group: bool = False) -> Call:
    return Call(key, chat, Rank.FINAL, group)


def preview(key: str, chat: str = "a", *, group: bool = False) -> Call:
    return Call(key, chat, Rank.PREVIEW, group)


def drained(pacer: Pacer, clock: Clock, until: float = float("inf")) -> list[tuple[float, Call]]:
    """Everything that goes, when it goes; the clock jumps from one to the next."""
    gone: list[tuple[float, Call]] = []
    while True:
        while (call := pacer.take()) is not None:
            gone.append((clock.now, call))
        wait = pacer.wait()
        if wait is None or clock.now + wait > until:
            return gone
        assert clock.now + wait > clock.now, "a wait that never ends"
        clock.now += wait


def most_in(times: list[float], seconds: float) -> int:
    """The largest number in any stretch that long, its end not counted."""
    return max(
        (bisect_left(times, at + seconds - HAIR) - n for n, at in enumerate(times)), default=0
    )


TRAFFIC = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.0, 0.01, 0.3, 1.0, 7.0]),
        st.sampled_from(["a", "b", "c", "G", "H"]),
        st.sampled_from(Rank),
        st.integers(0, 3),
        st.sampled_from([None] * 9 + [0.5, 20.0]),
    ),
    max_size=150,
)


@settings(max_examples=60)
@given(TRAFFIC)
def test_no_traffic_is_ever_over_the_limits(traffic) -> None:
    clock = Clock()
    pacer = Pacer(clock)
    gone: list[tuple[float, Call]] = []
    closed: list[tuple[str, float, float]] = []
    asked: dict[str, list[str]] = defaultdict(list)
    for number, (pause, chat, rank, key, shut) in enumerate(traffic):
        until = clock.now + pause
        gone += drained(pacer, clock, until)
        clock.now = until
        name = f"{number}" if rank is Rank.FINAL else f"k{key}"
        if rank is Rank.FINAL:
            asked[chat].append(name)
        pacer.put(Call(name, chat, rank, chat.isupper()))
        if shut is not None:
            pacer.close(chat, shut, group=chat.isupper())
            closed.append((chat, clock.now, clock.now + shut))
    gone += drained(pacer, clock)

    assert most_in([at for at, _ in gone], 1.0) <= 26
    for chat in "abcGH":
        times = [at for at, call in gone if call.chat == chat]
        if chat.isupper():
            assert most_in(times, 60.0) <= 18
        else:
            assert most_in(times, 1.0) <= 4
            assert most_in(times, 60.0) <= 63
        finals = [call.key for _, call in gone if call.chat == chat and call.rank is Rank.FINAL]
        assert finals == asked[chat]
    for chat, start, end in closed:
        assert not [at for at, call in gone if call.chat == chat and start < at < end - HAIR]


def test_a_private_chat_gets_three_at_once_and_then_one_a_second(clock: Clock) -> None:
    pacer = Pacer(clock)
    for number in range(6):
        pacer.put(final(str(number)))
    times = [round(at - 1000, 3) for at, _ in drained(pacer, clock)]
    assert times == [0, 0, 0, 1, 2, 3]


def test_a_group_gets_eighteen_a_minute(clock: Clock) -> None:
    pacer = Pacer(clock)
    for number in range(19):
        pacer.put(final(str(number), "G", group=True))
    times = [at - 1000 for at, _ in drained(pacer, clock)]
    assert times == [0] * 18 + [60]


def test_all_chats_together_get_twenty_five_a_second(clock: Clock) -> None:
    pacer = Pacer(clock)
    for number in range(60):
        pacer.put(final("x", f"chat{number}"))
    times = [at - 1000 for at, _ in drained(pacer, clock)]
    assert times == [0] * 26 + [1] * 26 + [2] * 8


def test_a_chat_that_has_to_wait_stops_no_other(clock: Clock) -> None:
    pacer = Pacer(clock)
    pacer.put(final("1", "a"))
    pacer.close("a", 60)
    pacer.put(final("2", "b"))
    assert pacer.take() == final("2", "b")
    assert pacer.take() is None
    assert pacer.wait() == pytest.approx(60)
    assert pacer.closed() == {"a": pytest.approx(60)}


def test_a_wait_drops_previews_and_typing_and_keeps_finals(clock: Clock) -> None:
    pacer = Pacer(clock)
    typing = Call("t", "a", Rank.TYPING)
    for call in (preview("p"), typing, final("f")):
        assert pacer.put(call)
    assert pacer.close("a", 5) == [preview("p"), typing]
    assert not pacer.put(preview("p"))
    assert not pacer.put(typing)
    clock.now += 5
    assert pacer.take() == final("f")
    assert pacer.take() is None


def test_a_shorter_wait_does_not_shorten_a_longer_one(clock: Clock) -> None:
    pacer = Pacer(clock)
    pacer.close("a", 60)
    pacer.close("a", 1)
    pacer.put(final("f"))
    assert pacer.wait() == pytest.approx(60)


def test_finals_go_before_previews_of_any_chat(clock: Clock) -> None:
    pacer = Pacer(clock)
    pacer.put(preview("p", "a"))
    pacer.put(Call("t", "b", Rank.TYPING))
    pacer.put(final("f", "c"))
    taken = [pacer.take() for _ in range(3)]
    assert [call.rank for call in taken if call] == [Rank.FINAL, Rank.PREVIEW, Rank.TYPING]


def test_a_newer_preview_replaces_the_older_and_a_final_ends_it(clock: Clock) -> None:
    pacer = Pacer(clock)
    pacer.put(preview("m"))
    pacer.put(preview("m"))
    assert pacer.take() == preview("m")
    assert pacer.take() is None
    pacer.put(preview("m"))
    pacer.put(final("m"))
    assert not pacer.put(preview("m"))
    assert pacer.take() == final("m")
    clock.now += 10
    assert pacer.take() is None


@pytest.mark.parametrize("group", [False, True])
def test_previews_leave_room_for_a_final(clock: Clock, group: bool) -> None:
    pacer = Pacer(clock)
    for number in range(30):
        pacer.put(preview(str(number), group=group))
    while pacer.take() is not None:
        pass
    pacer.put(final("f", group=group))
    assert pacer.take() == final("f", group=group)


def test_what_failed_goes_first_when_it_goes_again(clock: Clock) -> None:
    pacer = Pacer(clock)
    pacer.put(final("1"))
    pacer.put(final("2"))
    taken = pacer.take()
    assert taken is not None
    pacer.close("a", 2)
    pacer.again(taken)
    assert [call.key for _, call in drained(pacer, clock)] == ["1", "2"]


def test_a_chat_is_busy_while_its_calls_have_to_wait(clock: Clock) -> None:
    pacer = Pacer(clock)
    assert not pacer.busy("a")
    for number in range(3):
        pacer.put(final(str(number)))
    drained(pacer, clock)
    assert pacer.busy("a")
    assert not pacer.busy("b")
    clock.now += 10
    assert not pacer.busy("a")


def test_idle_chats_are_forgotten(clock: Clock) -> None:
    pacer = Pacer(clock, Rates(all_per_s=10**6))
    pacer.close("shut", 10**6)
    for number in range(5 * pacing.FORGET_ABOVE_CHATS):
        clock.now += 1
        pacer.put(final("x", f"chat{number}"))
        assert pacer.take() is not None
    assert len(pacer._chats) <= pacing.FORGET_ABOVE_CHATS + 1
    assert "shut" in pacer.closed()
