"""The owner's conversations stay; what strangers and known nodes leave is bounded."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from aios_nb import params as p
from aios_nb.access import Caller, Principal, looks_strange
from aios_nb.chat import callers as callers_module
from aios_nb.chat import retention
from aios_nb.chat.callers import Callers
from aios_nb.chat.calls import CallNote
from aios_nb.chat.conversation import Conversation
from aios_nb.chat.log import Draft, Log
from aios_nb.chat.retention import Retention
from aios_nb.chat.strangers import Pool, weight
from aios_nb.config import Limits
from aios_nb.envelope import Kind, Sender, new_id
from aios_nb.errors import Busy, InvalidParams
from aios_nb.store import Store
from tests.sites import TestSite

MakeSite = Callable[..., TestSite]
STRANGER = Principal(Caller.NODE, "a" * 32)


async def shared(text: str) -> str:
    """Answers anyone of the network."""
    return text


def send_as(site: TestSite, principal: Principal, text: str) -> dict[str, Any]:
    chat = site.rooms.chat
    return site.node.run(lambda: chat.send(principal, p.Send("shared", text)))


def ids(site: TestSite) -> set[str]:
    return {row["conversation"] for row in site.call("chat.list", limit=1000)["conversations"]}


def tidy(site: TestSite) -> None:
    site.node.run(site.rooms.chat.tidy)


def test_strangers_logs_go_when_they_are_too_old(make_site: MakeSite, monkeypatch: Any) -> None:
    site = make_site(shared)
    mine = site.call("chat.send", agent="shared", text="y")["conversation"]
    theirs = send_as(site, STRANGER, "x")["conversation"]
    tidy(site)
    assert ids(site) == {mine, theirs}
    now = retention.time.time()
    monkeypatch.setattr(retention.time, "time", lambda: now + 8 * 86_400)
    tidy(site)
    assert ids(site) == {mine}


def test_a_stranger_sees_only_its_own(make_site: MakeSite) -> None:
    site = make_site(shared)
    mine = site.call("chat.send", agent="shared", text="y")["conversation"]
    theirs = send_as(site, STRANGER, "x")["conversation"]
    chat = site.rooms.chat
    listed = site.node.run(lambda: chat.list(STRANGER, p.List()))["conversations"]
    assert [row["conversation"] for row in listed] == [theirs]
    for conversation in (mine, "c-does-not-exist"):
        with pytest.raises(InvalidParams, match=f"no such conversation: {conversation}"):
            site.on_loop(lambda: chat.history(STRANGER, p.History(conversation)))  # noqa: B023


def test_ids_are_unique_per_caller(make_site: MakeSite) -> None:
    site = make_site(shared)
    chat = site.rooms.chat
    mine = site.call("chat.send", agent="shared", text="y", message_id="same")
    theirs = site.node.run(lambda: chat.send(STRANGER, p.Send("shared", "x", message_id="same")))
    assert mine["conversation"] != theirs["conversation"]
    assert theirs["text"] == "x"


# What strangers leave, without a node around it ---------------------------------------------

OWNER = f"owner@{'o' * 32}"
KNOWN = "k" * 32
NOW_MS = int(time.time() * 1000)
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


class Desk:
    """A real database with its log, its callers and the strangers' pool."""

    def __init__(self, store: Store, limits: Limits) -> None:
        def is_stranger(caller: str) -> bool:
            return looks_strange(caller) and caller != KNOWN

        self.store = store
        self.log = Log(store)
        self.callers = Callers(store, limits, is_stranger)
        self.pool = Pool(limits, time.monotonic)
        self.retention = Retention(self.log, limits, self.callers, self.pool, is_stranger)

    async def talk(
        self,
        opener: str,
        *texts: str,
        message_id: str | None = None,
        deadline_ms: int = NOW_MS,
    ) -> Conversation:
        """A conversation with these requests, each with a short answer."""
        conversation = self.log.new(opener, ["shared@" + "o" * 32])
        number = await self.callers.number(opener)
        note = CallNote((), deadline_ms, Caller.NODE, opener, (), 3).to_text()
        who = Sender(opener, "human")
        for text in texts:
            request = Draft(
                message_id or new_id("m"), Kind.MESSAGE, who, text, caller=number, call=note
            )
            await self.log.append(conversation, request)
            await self.log.append(conversation, Draft(new_id("r"), Kind.MESSAGE, who, "yes"))
        return conversation

    def left(self, *conversations: Conversation) -> list[bool]:
        rows = {row[0] for row in self.store.read("SELECT id FROM conversations")}
        return [conversation.id in rows for conversation in conversations]

    def ids(self) -> set[str]:
        """Of calls that are remembered."""
        return {row[0] for row in self.store.read("SELECT message_id FROM events WHERE caller > 0")}

    async def settle(self) -> None:
        """Until the tidy that was asked for is over."""
        while self.retention._asked is not None:
            await asyncio.wait([self.retention._asked])


def with_desk(tmp_path: Path, work: Callable[[Desk], Awaitable[None]], **limits: Any) -> None:
    async def main() -> None:
        store = Store.open(tmp_path / "a.db")
        try:
            desk = Desk(store, Limits(**limits))
            await work(desk)
            await desk.retention.close()
        finally:
            await store.close()

    asyncio.run(main())


def travel(monkeypatch: pytest.MonkeyPatch, ms: int) -> None:
    """Let the calendar say that so much time has passed."""
    now = (NOW_MS + ms) / 1000
    for module in (retention, callers_module):
        monkeypatch.setattr(module.time, "time", lambda: now)


def test_the_longest_unused_of_strangers_go_first_when_they_are_too_much(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        mine = await desk.talk(OWNER, "y" * 90_000)
        token = await desk.talk("token:tg1", "y" * 90_000)
        theirs = [await desk.talk(f"{n}" * 32, "x" * 20_000) for n in range(2, 8)]
        await desk.log.append(
            theirs[0], Draft("again", Kind.MESSAGE, Sender("2" * 32, "human"), "still here")
        )
        await desk.retention.apply()
        assert desk.left(mine, token) == [True, True]
        # 120,000 of 100,000: three go, until 80,000 are left
        assert desk.left(*theirs) == [True, False, False, False, True, True]
        assert desk.pool.bytes <= 80_000

    with_desk(tmp_path, work, stranger_log_bytes=100_000)


def test_what_is_within_its_limit_stays(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        theirs = [await desk.talk(STRANGER.id, "x" * 20_000) for _ in range(4)]
        assert await desk.retention.apply() == 0
        assert all(desk.left(*theirs))

    with_desk(tmp_path, work, stranger_log_bytes=100_000)


def test_what_is_in_use_stays_however_much_it_is(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        used, unused = [await desk.talk(STRANGER.id, "x" * 60_000) for _ in range(2)]
        used.holds += 1
        await desk.retention.apply()
        assert desk.left(used, unused) == [True, False]

    with_desk(tmp_path, work, stranger_log_bytes=100_000)


def test_nothing_begins_in_a_conversation_that_is_about_to_go(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        theirs = await desk.talk(STRANGER.id, "hi")
        deleting = asyncio.ensure_future(desk.retention._delete_unused([theirs.id]))
        await asyncio.sleep(0)
        assert theirs.gone
        assert await deleting == [theirs.id]

    with_desk(tmp_path, work)


def test_the_pool_knows_what_is_stored_also_after_a_restart(tmp_path: Path) -> None:
    seen = []

    async def first(desk: Desk) -> None:
        await desk.talk(OWNER, "mine")
        await desk.talk(KNOWN, "known")
        await desk.talk(STRANGER.id, "é" * 10_000, "x" * 5_000)
        gone = await desk.talk(STRANGER.id, "x" * 5_000)
        await desk.retention.delete(gone)
        await desk.retention.count()
        seen.append(desk.pool.bytes)

    async def second(desk: Desk) -> None:
        assert desk.pool.bytes == 0
        await desk.retention.count()
        seen.append(desk.pool.bytes)

    with_desk(tmp_path, first)
    with_desk(tmp_path, second)
    assert seen[0] == seen[1]
    assert 25_000 < seen[0] < 28_000


def test_what_the_exchange_adds_up_is_what_is_counted(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        note = CallNote((), NOW_MS, Caller.NODE, STRANGER.id, (), 3).to_text()
        await desk.talk(STRANGER.id, "é" * 1000)
        await desk.retention.count()
        added_up = weight("é" * 1000, None, len(note)) + weight("yes")
        assert desk.pool.bytes - added_up == retention.CONVERSATION_BYTES

    with_desk(tmp_path, work)


def test_a_full_pool_has_a_tidy_made_and_lets_strangers_in_again(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        theirs = [await desk.talk(STRANGER.id, "x" * 20_000) for _ in range(5)]
        await desk.retention.count()
        with pytest.raises(Busy):
            desk.pool.admit("z" * 32, 1000)
        await desk.settle()
        desk.pool.admit("z" * 32, 1000).done(0)
        assert desk.left(*theirs) == [False, False, True, True, True]

    with_desk(tmp_path, work, stranger_log_bytes=100_000)


def test_ids_outlive_their_conversation_and_fill_the_pool_when_they_must(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        for n in range(40):
            await desk.talk(STRANGER.id, "hi", message_id=f"id-{n}", deadline_ms=NOW_MS)
        await desk.retention.count()
        with pytest.raises(Busy):
            desk.pool.admit(STRANGER.id, 1000)
        await desk.settle()
        assert desk.store.read("SELECT count(*) FROM conversations") == [(0,)]
        assert desk.ids() == {f"id-{n}" for n in range(40)}
        with pytest.raises(Busy):
            desk.pool.admit(STRANGER.id, 1000)

    with_desk(tmp_path, work, stranger_log_bytes=12_000)


def test_ids_are_forgotten_an_hour_after_their_deadline_if_room_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(desk: Desk) -> None:
        for ours in (OWNER, KNOWN):
            await desk.retention.delete(await desk.talk(ours, "hi", message_id=ours[:5]))
        for n in range(20):
            await desk.talk(STRANGER.id, "hi", message_id=f"over-{n}", deadline_ms=NOW_MS)
            await desk.talk(STRANGER.id, "hi", message_id=f"due-{n}", deadline_ms=NOW_MS + DAY_MS)
        travel(monkeypatch, HOUR_MS - 60_000)
        await desk.retention.apply()
        assert len(desk.ids()) == 42  # the pool is full of them, and so it stays
        travel(monkeypatch, HOUR_MS + 60_000)
        await desk.retention.apply()
        left = desk.ids()
        assert {"owner", "kkkkk", *(f"due-{n}" for n in range(20))} <= left
        assert 9_600 - retention.ID_BYTES < desk.pool.bytes <= 9_600  # no more than it took

    with_desk(tmp_path, work, stranger_log_bytes=12_000)


def test_ids_are_kept_for_seven_days_while_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(desk: Desk) -> None:
        gone = await desk.talk(STRANGER.id, "hi", message_id="one")
        await desk.retention.delete(gone)
        travel(monkeypatch, 6 * DAY_MS)
        await desk.retention.apply()
        assert desk.ids() == {"one"}
        travel(monkeypatch, 8 * DAY_MS)
        await desk.retention.apply()
        assert desk.ids() == set()

    with_desk(tmp_path, work)


def test_of_a_deleted_call_only_its_id_and_deadline_stay(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        gone = await desk.talk("s" * 32, "secret", message_id="one", deadline_ms=NOW_MS)
        await desk.retention.delete(gone)
        [(row, deadline)] = desk.store.read(
            "SELECT text || data || files || sender || call, json_extract(call, '$[1]') FROM events"
        )
        assert "secret" not in row
        assert "s" * 32 not in row
        assert deadline == NOW_MS

    with_desk(tmp_path, work)


def test_known_nodes_have_a_month_and_a_room_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(desk: Desk) -> None:
        mine = await desk.talk(OWNER, "hi")
        token = await desk.talk("token:tg1", "hi")
        known = [await desk.talk(KNOWN, "x" * 20_000) for _ in range(4)]
        theirs = await desk.talk(STRANGER.id, "hi")
        await desk.retention.apply()
        assert desk.left(*known, theirs) == [True] * 5  # not the strangers' room
        more = [await desk.talk(KNOWN, "x" * 20_000) for _ in range(2)]
        await desk.retention.apply()
        assert desk.left(*known, *more) == [False] * 3 + [True] * 3
        travel(monkeypatch, 8 * DAY_MS)
        await desk.retention.apply()
        assert desk.left(known[3], theirs) == [True, False]
        travel(monkeypatch, 31 * DAY_MS)
        await desk.retention.apply()
        assert desk.left(known[3], *more, mine, token) == [False] * 3 + [True] * 2

    with_desk(tmp_path, work, stranger_log_bytes=10_000, known_log_bytes=100_000)


# Who is remembered ----------------------------------------------------------------------------


def key(n: int) -> str:
    return f"{n:032d}"


def test_so_many_strangers_are_remembered_and_no_more(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        for n in range(10):
            await desk.callers.number(key(n))
        for _ in range(3):
            with pytest.raises(Busy, match="as many strangers"):
                await desk.callers.number("new" + key(1))
        assert await desk.callers.number(key(3)) == desk.callers.known(key(3))
        for ours in (OWNER, "token:tg1", KNOWN):
            assert await desk.callers.number(ours)
        assert len(desk.callers._numbers) == 13
        assert desk.store.read("SELECT count(*) FROM callers") == [(13,)]

    with_desk(tmp_path, work, callers=10)


def test_many_at_the_same_moment_are_no_more_either(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        numbers = [desk.callers.number(key(n % 30)) for n in range(60)]
        got = await asyncio.gather(*numbers, return_exceptions=True)
        assert sum(isinstance(one, int) for one in got) == 20  # ten of them, twice each
        assert sum(isinstance(one, Busy) for one in got) == 40
        assert desk.store.read("SELECT count(*) FROM callers") == [(10,)]

    with_desk(tmp_path, work, callers=10)


def test_a_stranger_is_forgotten_when_it_is_silent_and_nothing_of_it_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(desk: Desk) -> None:
        await desk.talk(key(1), "hi")
        await desk.callers.number(key(2))
        desk.callers.count(OWNER, 1.0)
        for ours in (OWNER, "token:tg1", KNOWN):
            await desk.callers.number(ours)
        travel(monkeypatch, 6 * DAY_MS)
        await desk.retention.apply()
        assert desk.callers.known(key(2))
        travel(monkeypatch, 7 * DAY_MS + HOUR_MS)
        desk.callers.count(key(1), 1.0)  # has called a moment ago
        await desk.retention.apply()
        assert desk.callers.known(key(2)) is None
        assert desk.callers.known(key(1))
        travel(monkeypatch, 15 * DAY_MS)
        await desk.retention.apply()
        assert desk.callers.known(key(1)) is None
        rows = {row[0] for row in desk.store.read("SELECT id FROM callers")}
        assert rows == {OWNER, "token:tg1", KNOWN}

    with_desk(tmp_path, work)


def test_a_stranger_with_an_event_is_never_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(desk: Desk) -> None:
        used = await desk.talk(STRANGER.id, "hi")
        number = desk.callers.known(STRANGER.id)
        await desk.callers.number(key(1))
        used.holds += 1  # else it would be too old
        travel(monkeypatch, 30 * DAY_MS)
        await desk.retention.apply()
        assert desk.callers.known(STRANGER.id) == number

    with_desk(tmp_path, work)


def test_a_full_list_makes_room_for_new_strangers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(desk: Desk) -> None:
        for n in range(10):
            due = n >= 4
            talk = await desk.talk(key(n), "hi", deadline_ms=NOW_MS + (0 if due else DAY_MS))
            if not due:
                await desk.retention.delete(talk)  # its id stays
        travel(monkeypatch, 2 * HOUR_MS)
        with pytest.raises(Busy):
            await desk.callers.number(key(99))
        await desk.settle()
        assert await desk.callers.number(key(99))
        left = [n for n in range(10) if desk.callers.known(key(n))]
        assert left == [0, 1, 2, 3, 6, 7, 8, 9]  # the longest silent of those that may go

    with_desk(tmp_path, work, callers=10)


def test_a_number_is_never_given_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(desk: Desk) -> None:
        seen = set()
        for n in range(5):
            number = await desk.callers.number(key(n))
            assert number not in seen
            seen.add(number)
            travel(monkeypatch, (n + 1) * 8 * DAY_MS)
            await desk.callers.forget()
        assert desk.store.read("SELECT count(*) FROM callers") == [(1,)]

    with_desk(tmp_path, work)


def test_who_calls_while_it_is_forgotten_keeps_its_number_or_gets_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(desk: Desk) -> None:
        old = await desk.callers.number(key(1))
        await desk.callers.number(key(2))
        await desk.callers.number(key(3))
        travel(monkeypatch, 8 * DAY_MS)
        await desk.callers.save()
        who = Sender(key(1), "human")
        conversation = desk.log.new(key(1), [])
        request = Draft("m", Kind.MESSAGE, who, "hi", caller=old)
        said = desk.log.append(conversation, request)  # in line before the deletion
        dropping = asyncio.ensure_future(desk.callers._drop([key(1), key(2)], NOW_MS + DAY_MS))
        await asyncio.sleep(0)
        again = asyncio.ensure_future(desk.callers.number(key(2)))
        assert await dropping == 1
        await said
        assert desk.callers.known(key(1)) == old
        new = await again
        assert desk.callers.known(key(2)) == new
        rows = dict(desk.store.read("SELECT id, n FROM callers"))
        assert (rows[key(1)], rows[key(2)]) == (old, new)

    with_desk(tmp_path, work)
