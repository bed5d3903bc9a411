"""How many sessions there may be, and whose go first."""

from __future__ import annotations

from aios_nb.access import ANYONE, Caller, Principal
from aios_nb.wire.mcp.sessions import IDLE_S, Sessions
from tests.clock import Clock

OWNER = Principal(Caller.OWNER, "owner@node")


def test_strangers_push_out_strangers_and_nobody_else(clock: Clock):
    sessions = Sessions(most=2, clock=clock)
    assert sessions.opened("mine", OWNER) == []
    gone = [sessions.opened(f"s{n}", ANYONE) for n in range(4)]
    assert [[session.id for session in group] for group in gone] == [[], [], ["s0"], ["s1"]]
    assert sessions.get("mine") is not None
    assert sessions.get("s0") is None
    assert len(sessions) == 3


def test_idle_ones_are_forgotten_and_busy_ones_are_not(clock: Clock):
    sessions = Sessions(clock=clock)
    for name in ("idle", "busy"):
        sessions.opened(name, OWNER)
    busy = sessions.get("busy")
    assert busy is not None
    sessions.begin(busy)
    clock.now += IDLE_S + 1
    sessions.forget_idle()
    assert sessions.get("idle") is None
    sessions.end(busy)
    clock.now += IDLE_S - 1
    sessions.forget_idle()
    assert sessions.get("busy") is busy
    clock.now += 2
    assert list(sessions.listening()) == []
    assert len(sessions) == 0


def test_who_is_shut_out_has_none_left(clock: Clock):
    sessions = Sessions(clock=clock)
    sessions.opened("mine", OWNER)
    sessions.opened("theirs", ANYONE)
    assert [session.id for session in sessions.shut_out(ANYONE.id)] == ["theirs"]
    assert sessions.shut_out(ANYONE.id) == []
    assert len(sessions) == 1
