"""What the bridge keeps is there after a crash, once, and in order."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Coroutine, Iterator
from pathlib import Path

import pytest

from aios_bots.core.inbox import TRIES_MAX
from aios_bots.core.model import Op, Outgoing, Place, Span, SpanKind
from aios_bots.core.outbox import CRASHES_MAX, KEPT_MS
from aios_bots.core.pairing import CODE_S, Offer, Pairing, Role
from aios_bots.core.store import Binding, BotStore, Mode, Shown
from tests.clock import Clock

HERE = Place("77", "5")
THERE = Place("77", "6", "t1")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "telegram-77.db"


@pytest.fixture
def bot(path: Path, clock: Clock) -> Iterator[BotStore]:
    opened = BotStore.open(path, "77", clock)
    yield opened
    opened.close_now()


def run(work: Coroutine) -> None:
    async def main() -> None:
        async with asyncio.timeout(30):
            await work

    asyncio.run(main())


def send(key: str, place: Place = HERE, **more) -> Outgoing:
    return Outgoing(**{"key": key, "place": place, "op": Op.SEND, "text": f"text of {key}", **more})


def heads(bot: BotStore) -> list[Outgoing]:
    """The first call of each place that waits, the oldest first."""
    found = [bot.outbox.head(place) for place in bot.outbox.places()]
    return [row.out for row in sorted(filter(None, found), key=lambda row: row.seq)]


def keys(bot: BotStore) -> list[str]:
    return [out.key for out in heads(bot)]


# What comes in -----------------------------------------------------------------------------


def test_an_update_is_kept_once_and_in_the_order_of_the_app(bot: BotStore) -> None:
    async def story() -> None:
        assert await bot.inbox.add([(7, "seven"), (5, "five")]) == [7, 5]
        assert await bot.inbox.add([(5, "again"), (9, "nine")]) == [9]
        assert [(one.update_id, one.raw) for one in bot.inbox.waiting()] == [
            (5, "five"),
            (7, "seven"),
            (9, "nine"),
        ]
        await bot.inbox.done(7)
        assert [one.update_id for one in bot.inbox.waiting()] == [5, 9]
        assert await bot.inbox.add([(7, "once more")]) == []
        assert [one.update_id for one in bot.inbox.waiting(limit=1, after=5)] == [9]

    run(story())


def test_an_update_that_keeps_failing_is_put_aside(bot: BotStore) -> None:
    async def story() -> None:
        await bot.inbox.add([(1, "bad"), (2, "good")])
        tries = [await bot.inbox.failed(1) for _ in range(TRIES_MAX)]
        assert tries == [False] * (TRIES_MAX - 1) + [True]
        assert [one.update_id for one in bot.inbox.waiting()] == [2]
        assert [one.raw for one in bot.inbox.aside()] == ["bad"]
        assert await bot.inbox.add([(1, "bad")]) == []

    run(story())


def test_done_updates_are_forgotten_after_a_week_and_open_ones_never(
    bot: BotStore, clock: Clock
) -> None:
    async def story() -> None:
        await bot.inbox.add([(1, "a"), (2, "b")])
        await bot.inbox.done(1)
        assert await bot.inbox.forget() == 0
        clock.now += KEPT_MS / 1000 + 1
        assert await bot.inbox.forget() == 1
        assert [one.update_id for one in bot.inbox.waiting()] == [2]

    run(story())


def test_what_was_said_does_not_stay_in_the_file(bot: BotStore) -> None:
    async def story() -> None:
        await bot.inbox.add([(1, "very private")])
        await bot.inbox.done(1)
        await bot.outbox.put([send("a")])
        await bot.outbox.sent(send("a"), "100")
        rows = bot._store.read("SELECT raw FROM inbox UNION ALL SELECT payload FROM outbox")
        assert not any(row[0] for row in rows)

    run(story())


# What goes out -----------------------------------------------------------------------------


def test_a_call_comes_back_as_it_was(bot: BotStore) -> None:
    out = send("a", THERE, spans=(Span(SpanKind.LINK, 0, 4, "https://a.example/"),), reply_to="9")

    async def story() -> None:
        assert await bot.outbox.put([out]) == 1
        assert heads(bot) == [out]

    run(story())


def test_a_chat_or_topic_gets_one_call_after_the_other_beside_all_others(bot: BotStore) -> None:
    async def story() -> None:
        await bot.outbox.put([send("a1"), send("b1", THERE), send("a2")])
        assert keys(bot) == ["a1", "b1"]
        await bot.outbox.take("a1")
        assert keys(bot) == ["b1"]
        await bot.outbox.sent(send("a1"), "100")
        assert keys(bot) == ["b1", "a2"]

    run(story())


def test_the_same_key_is_the_same_call(bot: BotStore) -> None:
    async def story() -> None:
        assert await bot.outbox.put([send("a"), send("a")]) == 1
        await bot.outbox.sent(send("a"), "100")
        assert await bot.outbox.put([send("a")]) == 0
        assert keys(bot) == []

    run(story())


def test_an_edit_finds_the_message_that_was_sent_before_it(bot: BotStore) -> None:
    async def story() -> None:
        edit = Outgoing(key="e", place=HERE, op=Op.EDIT, text="new", target_key="a")
        await bot.outbox.put([send("a"), edit])
        await bot.outbox.sent(send("a"), "100")
        assert [out.target for out in heads(bot)] == ["100"]

    run(story())


def test_a_send_of_unknown_fate_goes_once_more_and_is_counted(bot: BotStore) -> None:
    async def story() -> None:
        await bot.outbox.put([send("a"), send("b")])
        await bot.outbox.take("a")
        assert await bot.outbox.uncertain("a")
        assert keys(bot) == ["a"]
        await bot.outbox.take("a")
        assert not await bot.outbox.uncertain("a")
        assert keys(bot) == ["b"]
        assert bot.outbox.odd() == {"dead": 0, "uncertain": 1, "repeated": 1}

    run(story())


def test_an_edit_of_unknown_fate_goes_as_often_as_it_takes(bot: BotStore) -> None:
    async def story() -> None:
        await bot.outbox.put([Outgoing(key="e", place=HERE, op=Op.EDIT, target="1")])
        for _ in range(5):
            await bot.outbox.take("e")
            assert await bot.outbox.uncertain("e")
        assert keys(bot) == ["e"]

    run(story())


def test_what_was_on_its_way_at_a_crash_goes_again_before_what_comes_after(
    bot: BotStore, path: Path, clock: Clock
) -> None:
    async def story() -> None:
        await bot.outbox.put([send("a"), send("b")])
        await bot.outbox.take("a")

    run(story())
    again = BotStore.open(path, "77", clock)
    assert keys(again) == []
    assert again.outbox.recover() == 1
    assert keys(again) == ["a"]
    again.close_now()


def test_a_send_goes_again_after_each_crash_until_it_must_be_their_reason(
    bot: BotStore, path: Path, clock: Clock
) -> None:
    async def begun(store: BotStore) -> None:
        await store.outbox.put([send("a")])
        await store.outbox.take("a")

    run(begun(bot))
    for crashes in range(1, CRASHES_MAX + 1):
        again = BotStore.open(path, "77", clock)
        assert again.outbox.recover() == 1
        assert again.outbox.odd()["repeated"] == crashes
        run(begun(again))
        again.close_now()
    last = BotStore.open(path, "77", clock)
    assert last.outbox.recover() == 0
    assert last.outbox.odd() == {"dead": 0, "uncertain": 1, "repeated": CRASHES_MAX}
    last.close_now()


def test_a_dead_call_lets_the_next_one_go(bot: BotStore) -> None:
    async def story() -> None:
        await bot.outbox.put([send("a"), send("b")])
        await bot.outbox.dead("a", "blocked")
        assert keys(bot) == ["b"]

    run(story())


def test_sent_calls_are_forgotten_after_a_week_and_waiting_ones_never(
    bot: BotStore, clock: Clock
) -> None:
    async def story() -> None:
        await bot.outbox.put([send("a"), send("b")])
        await bot.outbox.sent(send("a"), "100")
        clock.now += KEPT_MS / 1000 + 1
        assert await bot.outbox.forget() == 1
        assert keys(bot) == ["b"]

    run(story())


def test_events_count_as_shown_only_together_with_their_calls(bot: BotStore) -> None:
    async def story() -> None:
        await bot.bind(Binding(HERE, "c1", "echo", last_seq=3))
        await bot.outbox.put([send("a")], shown=(HERE, "c1", 5))
        await bot.outbox.put([], shown=(HERE, "c1", 4))
        await bot.outbox.put([], shown=(HERE, "another", 9))
        found = bot.binding(HERE)
        assert found is not None
        assert found.last_seq == 5
        with pytest.raises(OverflowError):
            # Not a number that SQLite takes.
            await bot.outbox.put([send("b")], shown=(HERE, "c1", 1 << 70))
        assert keys(bot) == ["a"]
        assert await bot.outbox.put([send("b")]) == 1

    run(story())


def test_a_group_that_moved_gets_what_waited_for_it(bot: BotStore) -> None:
    async def story() -> None:
        await bot.bind(Binding(HERE, "c1"))
        await bot.outbox.put([send("a")])
        await bot.show(HERE, "9", Shown("c1", "e1"))
        await bot.outbox.move("5", "-1005")
        assert [out.place for out in heads(bot)] == [Place("77", "-1005")]
        assert bot.binding(Place("77", "-1005")) is not None
        assert bot.event_of("-1005", "9") == Shown("c1", "e1")

    run(story())


# What is shown where -----------------------------------------------------------------------


def test_a_place_shows_one_conversation_and_a_conversation_is_shown_in_many(bot: BotStore) -> None:
    async def story() -> None:
        await bot.bind(Binding(HERE, "c1", "echo"))
        await bot.bind(Binding(THERE, "c1", mode=Mode.WATCH))
        assert [one.place for one in bot.bindings("c1")] == [HERE, THERE]
        await bot.bind(Binding(HERE, "c2"))
        assert bot.bindings("c1") == [Binding(THERE, "c1", mode=Mode.WATCH)]
        await bot.park("6", "blocked")
        assert [one.parked for one in bot.bindings()] == ["", "blocked"]
        await bot.unbind(HERE)
        assert bot.binding(HERE) is None

    run(story())


def test_a_sent_event_is_found_by_its_message_and_its_message_by_it(bot: BotStore) -> None:
    async def story() -> None:
        for part in (1, 0):
            out = send(f"e1/{part}", conversation="c1", event_id="e1", part=part)
            await bot.outbox.put([out])
            await bot.outbox.sent(out, f"10{part}")
        assert bot.event_of("5", "101") == Shown("c1", "e1", 1)
        assert bot.messages_of("c1", "e1", HERE) == {0: "100", 1: "101"}
        assert bot.messages_of("c1", "e1", THERE) == {}
        assert bot.event_of("6", "101") is None

    run(story())


def test_a_shut_chat_stays_shut_over_a_restart(bot: BotStore, path: Path, clock: Clock) -> None:
    async def story() -> None:
        await bot.shut("5", 60)
        await bot.shut("5", 10)

    run(story())
    again = BotStore.open(path, "77", clock)
    assert again.gates() == {"5": pytest.approx(60, abs=0.01)}
    clock.now += 61
    assert again.gates() == {}
    again.close_now()


# Who is in ---------------------------------------------------------------------------------


def offer(clock: Clock, digest: bytes = b"d", role: Role = Role.MEMBER) -> Offer:
    return Offer(digest, "77", role, ("echo",), "c1", clock.now + CODE_S)


def test_of_two_with_one_code_one_is_let_in(bot: BotStore, clock: Clock) -> None:
    async def story() -> None:
        await bot.people.keep(offer(clock))
        assert bot.people.offers() == [offer(clock)]
        let_in = await asyncio.gather(*(bot.people.admit(offer(clock), who) for who in "56"))
        assert let_in == [True, False]
        assert bot.people.offers() == []
        assert bot.people.get("6") is None
        found = bot.people.get("5")
        assert found is not None
        assert (found.role, found.agents) == (Role.MEMBER, ("echo",))

    run(story())


def test_a_code_that_is_too_old_lets_nobody_in(bot: BotStore, clock: Clock) -> None:
    async def story() -> None:
        kept = offer(clock)
        await bot.people.keep(kept)
        clock.now += CODE_S
        assert bot.people.offers() == []
        assert not await bot.people.admit(kept, "5")
        assert bot.people.all() == []

    run(story())


def test_who_is_put_out_is_a_stranger_and_can_come_back(bot: BotStore, clock: Clock) -> None:
    async def story() -> None:
        await bot.people.keep(offer(clock))
        await bot.people.admit(offer(clock), "5", "Ann\u202e\nSmith" + "x" * 99)
        assert [len(one.name) for one in bot.people.all()] == [64]
        assert bot.people.all()[0].name.startswith("Ann Smith")
        assert await bot.people.revoke("5")
        assert not await bot.people.revoke("5")
        assert bot.people.get("5") is None
        await bot.people.keep(offer(clock, b"e", Role.GUEST))
        await bot.people.admit(offer(clock, b"e"), "5")
        assert bot.people.get("5") is not None

    run(story())


def test_a_lesser_code_does_not_lower_the_owner(bot: BotStore, clock: Clock) -> None:
    async def story() -> None:
        for digest, role in ((b"1", Role.OWNER), (b"2", Role.GUEST)):
            await bot.people.keep(offer(clock, digest, role))
            await bot.people.admit(offer(clock, digest, role), "5")
        found = bot.people.get("5")
        assert found is not None
        assert found.role is Role.OWNER

    run(story())


def test_people_are_known_to_one_bot_only(bot: BotStore, clock: Clock) -> None:
    other = BotStore(bot._store, "78", clock)

    async def story() -> None:
        await bot.people.keep(offer(clock))
        assert not await other.people.admit(offer(clock), "5")
        await bot.people.admit(offer(clock), "5")
        assert other.people.get("5") is None
        assert await other.inbox.add([(1, "x")]) == [1]
        assert bot.inbox.waiting() == []

    run(story())


def test_the_audit_keeps_what_was_tried_without_tokens_and_not_for_ever(
    bot: BotStore, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aios_bots.core.people.AUDIT_ROWS", 10)
    monkeypatch.setattr("aios_bots.core.people.AUDIT_SPARE_ROWS", 5)

    async def story() -> None:
        await bot.people.note(
            "tg:77:5", "stranger", "123456:" + "a" * 35 + "\nline two" + "x" * 999
        )
        line = bot.people.audit()[0]
        assert line.detail.startswith("TOKEN line two")
        assert len(line.detail) == 200
        for number in range(40):
            clock.now += 1
            await bot.people.note("tg:77:6", "wrong code" if number % 2 else "stranger")
        assert len(bot.people.audit(100)) <= 15
        assert {one.what for one in bot.people.audit(100, "wrong code")} == {"wrong code"}
        assert len(bot.people.audit(100, since=clock.now - 3)) == 4

    run(story())


# Crash -------------------------------------------------------------------------------------


def test_what_was_promised_is_there_after_a_kill(path: Path) -> None:
    """A program says each id after its commit and is killed in the middle."""
    program = textwrap.dedent(
        """
        import asyncio, sys
        from pathlib import Path
        from aios_bots.core.store import BotStore

        async def main():
            bot = BotStore.open(Path(sys.argv[1]), "77")
            for update in range(1_000_000):
                await bot.inbox.add([(update, "x" * 50)])
                print(update, flush=True)

        asyncio.run(main())
        """
    )
    places = os.pathsep.join(path for path in sys.path if path)
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": places},
    ) as running:
        assert running.stdout is not None
        said = [int(running.stdout.readline()) for _ in range(200)]
        running.send_signal(signal.SIGKILL)
        said += [int(line) for line in running.stdout if line.endswith("\n")]
    again = BotStore.open(path, "77")
    kept = {one.update_id for one in again.inbox.waiting(limit=10**6)}
    again.close_now()
    assert set(said) <= kept
    assert path.stat().st_mode & 0o777 == 0o600


def test_of_two_first_codes_one_makes_an_owner(bot: BotStore, clock: Clock) -> None:
    async def story() -> None:
        pairing = Pairing(clock, os.urandom)
        for _ in range(2):
            await bot.people.keep(pairing.offer("77", Role.OWNER, first=True)[1])
        one, other = bot.people.offers()
        assert await bot.people.admit(one, "5", "Ada")
        assert await bot.people.admit(other, "6", "Bob")
        roles = {who.name: who.role for who in bot.people.all()}
        assert roles == {"Ada": Role.OWNER, "Bob": Role.MEMBER}

    run(story())
