"""The other side's silence is counted, our own is not."""

from __future__ import annotations

import pytest

from aios_nb.wire.peer.pulse import PING_AFTER_S, SILENCE_S, TICK_S, Pulse, Verdict
from tests.clock import Clock


def after(clock: Clock, pulse: Pulse, seconds: float, *, heard: bool = False) -> list[Verdict]:
    """The verdicts of so many seconds of punctual ticks."""
    verdicts = []
    for _ in range(round(seconds / TICK_S)):
        clock.now += TICK_S
        verdicts.append(pulse.tick(heard=heard))
    return verdicts


def test_a_node_that_talks_is_left_alone(clock):
    assert set(after(clock, Pulse(clock), 100, heard=True)) == {Verdict.FINE}


def test_a_silent_node_is_asked_once_and_then_given_up(clock):
    pulse = Pulse(clock)
    verdicts = after(clock, pulse, SILENCE_S + 2 * TICK_S)

    assert verdicts.index(Verdict.PING) == PING_AFTER_S / TICK_S - 1
    assert verdicts.count(Verdict.PING) == 1
    assert verdicts.index(Verdict.DEAD) == SILENCE_S / TICK_S


def test_what_waited_in_the_socket_is_read_before_the_verdict(clock):
    pulse = Pulse(clock)
    assert Verdict.DEAD not in after(clock, pulse, SILENCE_S)
    after(clock, pulse, TICK_S, heard=True)

    assert Verdict.DEAD not in after(clock, pulse, SILENCE_S)


@pytest.mark.parametrize("held_up_s", [3.0, 39.0, 41.0, 600.0])
def test_a_busy_kernel_does_not_lose_its_links(clock, held_up_s):
    pulse = Pulse(clock)
    after(clock, pulse, SILENCE_S - TICK_S)
    clock.now += held_up_s

    assert pulse.tick(heard=False) is Verdict.FINE
    verdicts = after(clock, pulse, SILENCE_S - TICK_S)
    assert Verdict.DEAD not in verdicts
    assert Verdict.PING in verdicts


def test_a_kernel_that_is_busy_again_and_again_keeps_its_links(clock):
    pulse = Pulse(clock)
    for _ in range(50):
        clock.now += 5.0
        assert pulse.tick(heard=False) is Verdict.FINE
        assert Verdict.DEAD not in after(clock, pulse, 5.0)


def test_the_round_trip_is_smoothed(clock):
    pulse = Pulse(clock)
    assert pulse.latency_ms is None
    for took_s in (0.010, 0.110):
        pulse.pinged()
        clock.now += took_s
        pulse.ponged()

    assert pulse.latency_ms == pytest.approx(30.0)
