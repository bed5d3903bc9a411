"""The strangers' pool: so much for all together, a quarter for one, everything given back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    rule,
)

from aios_nb import params as p
from aios_nb.access import Caller, Principal
from aios_nb.agents.definition import describe
from aios_nb.chat.strangers import (
    BURST_S,
    FAIR_PART,
    REPLY_BYTES,
    ROW_BYTES,
    TIDY_PAUSE_S,
    WINDOW_S,
    Pool,
    Ticket,
    weight,
)
from aios_nb.config import MB, Limits
from aios_nb.errors import Busy
from tests.clock import Clock
from tests.sites import Gate, TestSite, limits


def a_pool(**limits: Any) -> tuple[Pool, Clock]:
    clock = Clock()
    return Pool(Limits(**limits), clock), clock


def admitted(pool: Pool, callers: Callable[[int], str], tries: int) -> list[Ticket]:
    """The tickets of those who got one."""
    tickets = []
    for n in range(tries):
        try:
            tickets.append(pool.admit(callers(n), 0))
        except Busy:
            continue
    return tickets


def fresh(n: int) -> str:
    return f"key-{n}"


def test_all_strangers_together_get_so_many_runs() -> None:
    pool, _ = a_pool(stranger_runs=64)
    tickets = admitted(pool, fresh, 100)
    assert len(tickets) == pool.runs == 64
    with pytest.raises(Busy) as refused:
        pool.admit("another", 0)
    assert refused.value.data["retry_after_s"] > 0
    assert "allow" in (refused.value.hint or "")
    tickets[0].done(0)
    pool.admit("another", 0)


def test_one_stranger_gets_a_quarter_of_the_runs_and_leaves_the_rest() -> None:
    pool, _ = a_pool(stranger_runs=64)
    assert len(admitted(pool, lambda _: "greedy", 100)) == 16
    pool.admit("modest", 0)


def test_a_small_pool_still_lets_one_in() -> None:
    pool, _ = a_pool(stranger_runs=1, stranger_calls_per_s=0.1)
    pool.admit("a", 0)
    with pytest.raises(Busy):
        pool.admit("b", 0)


def test_calls_come_at_a_rate_after_a_burst() -> None:
    pool, clock = a_pool(stranger_calls_per_s=50.0)

    def burst() -> int:
        tickets = []
        for n in range(500):
            try:
                tickets.append(pool.admit(fresh(n), 0))
            except Busy:
                break
            tickets[-1].done(0)
        return len(tickets)

    assert burst() == 200
    with pytest.raises(Busy) as refused:
        pool.admit("another", 0)
    assert 0 < refused.value.data["retry_after_s"] <= BURST_S
    clock.now += 1.0
    assert burst() == 50
    clock.now += 3600
    assert burst() == 200


def test_one_stranger_gets_a_quarter_of_the_rate() -> None:
    pool, clock = a_pool(stranger_calls_per_s=40.0)

    def calls_of(caller: str) -> int:
        got = 0
        for _ in range(500):
            try:
                pool.admit(caller, 0).done(0)
                got += 1
            except Busy:
                break
        return got

    assert calls_of("greedy") == 40
    assert calls_of("modest") == 40
    clock.now += 1.0
    assert calls_of("greedy") == 10


def test_work_is_counted_over_the_last_minute() -> None:
    pool, clock = a_pool(stranger_seconds_per_min=600.0)
    for n in range(10):
        pool.admit(fresh(n), 0).done(60.0)
        clock.now += 1.0
    with pytest.raises(Busy, match="worked enough") as refused:
        pool.admit("another", 0)
    assert refused.value.data["retry_after_s"] == pytest.approx(WINDOW_S - 10)
    clock.now += WINDOW_S - 10
    pool.admit("another", 0)


def test_one_stranger_gets_a_quarter_of_the_work() -> None:
    pool, _ = a_pool(stranger_seconds_per_min=600.0)
    for _ in range(3):
        pool.admit("greedy", 0).done(50.0)
    with pytest.raises(Busy, match="worked enough"):
        pool.admit("greedy", 0)
    pool.admit("modest", 0)


def test_a_run_that_waited_for_a_person_counts_as_a_minute_at_most() -> None:
    pool, _ = a_pool(stranger_seconds_per_min=600.0)
    pool.admit("a", 0).done(86_400.0)
    pool.admit("a", 0)
    pool.admit("b", 0)


def test_a_full_log_refuses_and_asks_for_a_tidy_now_and_then() -> None:
    pool, clock = a_pool(stranger_log_bytes=1 * MB)
    asked = []
    pool.ask_for_tidy = lambda: asked.append(clock.now)
    pool.stored(1 * MB)
    for _ in range(50):
        with pytest.raises(Busy, match="keeps nothing more"):
            pool.admit("a", 400)
        clock.now += TIDY_PAUSE_S / 25
    assert len(asked) == 2
    pool.stored(-MB // 2)
    pool.admit("a", 400)


def test_there_is_always_room_for_the_replies_of_what_was_taken() -> None:
    limit = 8 * MB
    pool, _ = a_pool(stranger_log_bytes=limit, stranger_runs=8)
    tickets = []
    while True:
        try:
            tickets.append(pool.admit(fresh(len(tickets)), 1000 * 1000))
        except Busy:
            break
    assert tickets
    for ticket in tickets:
        pool.stored(REPLY_BYTES)
        ticket.done(1.0)
    assert pool.bytes <= limit


def test_a_reply_is_never_refused() -> None:
    pool, _ = a_pool(stranger_log_bytes=1 * MB)
    ticket = pool.admit("a", 1000)
    pool.stored(2 * MB)
    ticket.done(1.0)
    assert pool.bytes == 2 * MB + 1000


def test_what_was_not_stored_takes_no_room() -> None:
    pool, _ = a_pool()
    pool.stored(5000)
    pool.admit("a", 1000).refuse()
    assert (pool.bytes, pool.runs) == (5000, 0)


def test_a_ticket_counts_once() -> None:
    pool, _ = a_pool()
    ticket, other = pool.admit("a", 1000), pool.admit("a", 0)
    for _ in range(3):
        ticket.done(1.0)
        ticket.refuse()
    assert (pool.bytes, pool.runs) == (1000, 1)
    other.done(0)


def test_what_was_taken_before_a_restart_is_never_refused() -> None:
    pool, _ = a_pool(stranger_runs=2, stranger_log_bytes=1000)
    pool.stored(5000)
    tickets = [pool.readmit("a") for _ in range(5)]
    with pytest.raises(Busy):
        pool.admit("b", 0)
    for ticket in tickets:
        ticket.done(0)
    assert pool.runs == 0


def test_nothing_for_strangers_is_a_choice() -> None:
    for closed in ("stranger_runs", "stranger_seconds_per_min", "stranger_log_bytes"):
        pool, _ = a_pool(**{closed: 0})
        with pytest.raises(Busy):
            pool.admit("a", 1)


def test_a_check_takes_nothing_and_says_the_same() -> None:
    pool, _ = a_pool(stranger_runs=4)
    for _ in range(1000):
        pool.check("a")
    ticket = pool.admit("a", 0)
    with pytest.raises(Busy):
        pool.check("a")
    ticket.done(0)
    pool.check("a")


def test_a_refusal_takes_nothing() -> None:
    pool, _ = a_pool(stranger_runs=1, stranger_log_bytes=10_000)
    for stored_bytes in (20_000, 20_000):
        with pytest.raises(Busy):
            pool.admit("a", stored_bytes)
    assert (pool.bytes, pool.runs) == (0, 0)
    pool.admit("a", 0)


@pytest.mark.parametrize(
    ("text", "data", "note_bytes", "more"),
    [("", None, 0, 0), ("abc", None, 0, 3), ("é", None, 1, 3), ("", {"a": 1}, 0, 7)],
)
def test_an_event_weighs_its_bytes(text: str, data: Any, note_bytes: int, more: int) -> None:
    assert weight(text, data, note_bytes) == ROW_BYTES + more


@given(st.lists(st.floats(0, 2), min_size=1, max_size=60))
def test_nobody_is_remembered_who_has_been_silent(pauses: list[float]) -> None:
    pool, clock = a_pool()
    for n, pause in enumerate(pauses):
        pool.admit(fresh(n), 0).done(1.0)
        clock.now += pause
    clock.now += WINDOW_S + 1
    pool.admit("last", 0).done(0)
    assert list(pool._buckets) == ["last"]
    assert not pool._spent
    assert not pool._work._by
    assert not pool._runs._by


LIMITS = Limits(
    stranger_runs=6,
    stranger_calls_per_s=2.0,
    stranger_seconds_per_min=30.0,
    stranger_log_bytes=20_000,
)


class AnyOrder(RuleBasedStateMachine):
    """Whatever strangers do: no bound is passed, and what they took comes back."""

    tickets = Bundle("tickets")

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.pool = Pool(LIMITS, self.clock)
        self.asked: list[float] = []
        self.pool.ask_for_tidy = lambda: self.asked.append(self.clock.now)
        self.open: dict[Ticket, tuple[str, int]] = {}
        self.calls: list[tuple[float, str]] = []
        self.work: list[tuple[float, str, float]] = []
        self.expected = 0
        self.refusals: list[Busy] = []

    @rule(target=tickets, caller=st.sampled_from("abcdef"), size=st.integers(0, 9000))
    def ask(self, caller: str, size: int) -> Any:
        spent = [w for w in self.work if w[0] > self.clock.now - WINDOW_S]
        try:
            ticket = self.pool.admit(caller, size)
        except Busy as busy:
            self.refusals.append(busy)
            return None
        assert sum(w for _, _, w in spent) < LIMITS.stranger_seconds_per_min + 1e-6
        mine = sum(w for _, who, w in spent if who == caller)
        assert mine < LIMITS.stranger_seconds_per_min / FAIR_PART + 1e-6
        self.expected += size
        assert self.expected <= LIMITS.stranger_log_bytes
        self.calls.append((self.clock.now, caller))
        self.open[ticket] = caller, size
        return ticket

    @rule(ticket=consumes(tickets), seconds=st.floats(0, 200), reply=st.integers(0, 3000))
    def end(self, ticket: Ticket | None, seconds: float, reply: int) -> None:
        if ticket is not None and ticket in self.open:
            caller, _ = self.open.pop(ticket)
            self.pool.stored(reply)
            self.expected += reply
            ticket.done(seconds)
            self.work.append((self.clock.now, caller, min(seconds, 60.0)))

    @rule(ticket=consumes(tickets))
    def not_stored(self, ticket: Ticket | None) -> None:
        if ticket is not None and ticket in self.open:
            _, size = self.open.pop(ticket)
            self.expected -= size
            ticket.refuse()

    @rule(seconds=st.floats(0, 90))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule(part=st.floats(0, 1))
    def tidy(self, part: float) -> None:
        settled = self.expected - sum(size for _, size in self.open.values())
        freed = int(settled * part)
        self.expected -= freed
        self.pool.stored(-freed)

    @invariant()
    def runs_are_within_bounds(self) -> None:
        assert self.pool.runs == len(self.open) <= LIMITS.stranger_runs
        for caller in "abcdef":
            mine = sum(who == caller for who, _ in self.open.values())
            assert mine <= max(1, LIMITS.stranger_runs / FAIR_PART + 1)

    @invariant()
    def bytes_are_what_was_stored(self) -> None:
        assert self.pool.bytes == self.expected

    @invariant()
    def calls_keep_to_their_rate(self) -> None:
        for rate, calls in [
            (LIMITS.stranger_calls_per_s, [at for at, _ in self.calls]),
            *(
                (
                    LIMITS.stranger_calls_per_s / FAIR_PART,
                    [at for at, who in self.calls if who == c],
                )
                for c in "abcdef"
            ),
        ]:
            for first in range(len(calls)):
                count = len(calls) - first
                assert count <= rate * (BURST_S + calls[-1] - calls[first]) + 1e-6

    @invariant()
    def a_tidy_is_asked_for_at_most_now_and_then(self) -> None:
        for one, next_one in zip(self.asked, self.asked[1:], strict=False):
            assert next_one - one >= TIDY_PAUSE_S

    @invariant()
    def a_refusal_says_when_to_come_again(self) -> None:
        for busy in self.refusals:
            assert busy.data["retry_after_s"] > 0
            assert busy.hint
        self.refusals.clear()

    def teardown(self) -> None:
        for ticket in self.open:
            ticket.done(0)
        assert self.pool.runs == 0
        self.clock.now += 10 * WINDOW_S
        self.pool.stored(-self.pool.bytes)
        self.pool.admit("a", 0).done(0)


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


# In a node ----------------------------------------------------------------------------------


def stranger(n: int) -> Principal:
    return Principal(Caller.NODE, chr(ord("a") + n) * 32)


def test_strangers_are_refused_beyond_their_part_and_the_owner_is_not(
    make_site: Callable[..., TestSite],
) -> None:
    gate = Gate()

    async def busy(text: str) -> str:
        """Works until it is let go."""
        await gate.pass_through(text)
        return text

    site = make_site(busy, limits=limits(stranger_runs=2))
    chat = site.rooms.chat

    async def scene() -> list[str]:
        theirs = [
            asyncio.create_task(chat.send(stranger(n), p.Send("busy", f"stranger {n}")))
            for n in range(2)
        ]
        await gate.arrived(2)
        for n in (0, 2):
            with pytest.raises(Busy, match="for strangers"):
                await chat.send(stranger(n), p.Send("busy", "one more"))
        assert chat.callers.known(stranger(2).id) is None  # refused before it was written down
        mine = site.start("chat.send", agent="busy", text="owner")
        await gate.arrived(3)
        gate.open()
        answers = [await asyncio.wrap_future(mine), *await asyncio.gather(*theirs)]
        again = await chat.send(stranger(2), p.Send("busy", "now"))
        return [answer["text"] for answer in [*answers, again]]

    assert site.node.run(scene) == ["owner", "stranger 0", "stranger 1", "now"]
    assert chat.strangers.runs == 0


def test_fresh_keys_cannot_fill_the_database(make_site: Callable[..., TestSite]) -> None:
    async def shared(text: str) -> str:
        """Answers anyone of the network."""
        return text

    site = make_site(shared, limits=limits(stranger_log_bytes=40_000, stranger_calls_per_s=1e6))
    chat = site.rooms.chat

    async def flood() -> int:
        taken = 0
        for n in range(300):
            who = Principal(Caller.NODE, f"{n:032d}")
            try:
                await chat.send(who, p.Send("shared", "x" * 1000))
                taken += 1
            except Busy:
                continue
        await chat.retention.apply()
        return taken

    assert 5 < site.node.run(flood) < 300
    [(stored,)] = site.rooms.chat.log.store.read(
        "SELECT sum(length(text) + length(call)) FROM events"
    )
    assert stored < 40_000
    assert site.call("chat.send", agent="shared", text="mine")["text"] == "mine"


def test_a_stranger_does_not_take_the_owners_slot(make_site: Callable[..., TestSite]) -> None:
    gate = Gate()

    async def two(text: str) -> str:
        """Has two slots."""
        await gate.pass_through(text)
        return text

    site = make_site(describe(two, concurrency=2))
    chat = site.rooms.chat

    async def scene() -> None:
        theirs = [
            asyncio.create_task(chat.send(stranger(n), p.Send("two", "stranger"))) for n in range(3)
        ]
        await gate.arrived(1)
        mine = site.start("chat.send", agent="two", text="owner")
        await gate.arrived(2)
        assert gate.entered == ["stranger", "owner"]
        gate.open()
        await asyncio.gather(asyncio.wrap_future(mine), *theirs)

    site.node.run(scene)


def test_a_node_knows_after_a_restart_what_strangers_have(
    make_site: Callable[..., TestSite],
) -> None:
    async def shared(text: str) -> str:
        """Answers anyone of the network."""
        return text

    site = make_site(shared)
    chat = site.rooms.chat
    site.node.run(lambda: chat.send(stranger(0), p.Send("shared", "x" * 5000)))
    site.stop()
    chat = make_site(shared).rooms.chat
    assert 10_000 < chat.strangers.bytes < 12_000
