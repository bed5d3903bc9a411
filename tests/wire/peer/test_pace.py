"""Strangers have half of the loop, all of them together, and short work is not measured."""

from __future__ import annotations

import pytest

from aios_nb.wire.peer.pace import BURST_S, STRANGERS_SHARE, Pace


def test_short_work_needs_no_rest(clock):
    pace = Pace(clock)
    for _ in range(1000):
        clock.now += 0.1
        assert pace.rest_s(0.01) == 0


@pytest.mark.parametrize("links", [1, 50])
def test_work_without_end_gets_its_share_and_no_more(clock, links):
    pace = Pace(clock)
    began, worked = clock.now, 0.0
    rests = dict.fromkeys(range(links), clock.now)
    for _ in range(5000):
        link = min(rests, key=rests.__getitem__)
        clock.now = max(clock.now, rests[link]) + 0.005
        worked += 0.005
        rests[link] = clock.now + pace.rest_s(0.005)

    assert worked / (clock.now - began) < STRANGERS_SHARE + 0.05


def test_who_comes_while_others_are_at_work_waits_for_their_rest_only(clock):
    pace = Pace(clock)
    clock.now += 1.0
    rest = pace.rest_s(1.0)
    assert rest == pytest.approx(1.0 / STRANGERS_SHARE - 1.0)
    clock.now += rest - 2 * BURST_S
    assert pace.rest_s(0.0) == pytest.approx(2 * BURST_S)
    clock.now += 2 * BURST_S
    assert pace.rest_s(0.0) == 0
