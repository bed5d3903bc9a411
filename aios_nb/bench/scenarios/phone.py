"""Telegram at our node: how soon a message is there, and how well the pace is kept."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from aios_bots.core.pacing import Rates
from aios_nb.bench.botserver import ACCOUNT, NAME, BotServer, Call, now
from aios_nb.bench.phones import GROUP, RESTED_S, Phones, chats, node_at
from aios_nb.bench.ratios import order
from aios_nb.bench.results import Bench, Result, Row, Scenario, figure
from aios_nb.bench.spec import Missing, percentile
from aios_nb.loop import LoopThread

CHATS = 50
PER_S = 20.0
"""Messages a second over all chats: what Telegram lets a bot answer, and a little less."""
POSTS_PER_S = 8.0
WINDOW_S, QUICK_S = 3.0, 1.0
BACKLOG, QUICK_BACKLOG = 1000, 200
BACKLOG_CHATS = 20
BACKLOG_ROUNDS = 3
PACED_S, QUICK_PACED_S = 75, 8
PACED_CHATS = 60
SHUT_S = 5.0
FLOOD_S, QUICK_FLOOD_S = 6.0, 1.5
INBOX_ROWS = 10_000
RESTARTS = 3

RELAY_MS, ECHO_MS, OTHERS_MS = 30.0, 100.0, 100.0
BACKLOG_PER_S = 100.0
PACE = Rates().all_per_s
PACED_PER_S = 25.0
ALL_IN_1_S, CHAT_IN_10_S, GROUP_IN_60_S = 30, 13, 20
"""What Telegram allows; of a private chat one a second, after a burst of three."""
RESTART_S = 2.0

_NOTE = (
    "Server, node and bot are processes on loopback, the people are in the server's. From the"
    " answer to getUpdates to the event at a client that watches the node; from the request of"
    " chat.post to the call at the server; and from the message to the answer's call, with the"
    " agent in between. The bare bot is a page of aiohttp: no node, nothing on disk, no pace."
)
T = TypeVar("T")


class Times(msgspec.Struct):
    """Milliseconds."""

    values: list[float] = []

    def at(self, share: float) -> float:
        return percentile(sorted(self.values), share)

    def columns(self) -> dict[str, str]:
        return {"p50 ms": figure(self.at(0.5), 1), "p95 ms": figure(self.at(0.95), 1)}


class Measuring:
    """The phones, and the loop that their server is on."""

    def __init__(self, bench: Bench, phones: Phones, loop: LoopThread) -> None:
        self.bench, self.phones, self._loop = bench, phones, loop
        self.raw: dict[str, Any] = {}

    def on_loop(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return self._loop.sync(make)

    def window(self, full: float, quick: float) -> float:
        return quick if self.bench.quick else full

    # Latency ------------------------------------------------------------------------------------

    def latency(self) -> list[Row]:
        """Windows of both bots, in turns."""
        people = chats(CHATS)
        relay_in, relay_out, ours, bare = Times(), Times(), Times(), Times()
        seconds = self.window(WINDOW_S, QUICK_S)

        async def bridged() -> None:
            async with self.phones.watched():
                await self.phones.warmed_up(people)
                server = self.phones.server
                for _, number, said, heard in await self.phones.echo_at(people, PER_S, seconds):
                    event = self.phones.seen[f"tg:{ACCOUNT}:{number}"]
                    relay_in.values.append((event - server.handed[number]) * 1e3)
                    ours.values.append((heard - said) * 1e3)
                await asyncio.sleep(RESTED_S)
                for said, heard in await self.phones.post_at(people, POSTS_PER_S, seconds):
                    relay_out.values.append((heard - said) * 1e3)

        async def bare_bot() -> None:
            await self.phones.warmed_up(people)
            for _, _, said, heard in await self.phones.echo_at(people, PER_S, seconds):
                bare.values.append((heard - said) * 1e3)

        def with_bridge() -> None:
            with self.phones.bridge():
                self.on_loop(bridged)

        def with_bare() -> None:
            with self.phones.bot("bare"):
                self.on_loop(bare_bot)

        for turn in range(self.bench.rounds):
            for place in order(turn, 2):
                (with_bridge, with_bare)[place]()
        self.raw |= {"in": relay_in, "out": relay_out, "echo": ours, "bare": bare}
        rows = [
            _within("update to conversation", relay_in, RELAY_MS),
            _within("conversation to call", relay_out, RELAY_MS),
            _within(f"echo, {PER_S:g}/s over {CHATS} chats", ours, ECHO_MS),
            Row(line="the same: bare aiohttp bot", figures=bare.columns()),
        ]
        rows[2].figures["x bare"] = figure(ours.at(0.5) / bare.at(0.5), 1)
        return rows

    # Many at once -------------------------------------------------------------------------------

    def backlog(self) -> list[Row]:
        """Updates that waited for a bot that was away."""
        count = QUICK_BACKLOG if self.bench.quick else BACKLOG
        people = chats(BACKLOG_CHATS)
        found: dict[str, list[float]] = {"fast": [], "bare": []}
        for turn in range(min(self.bench.rounds, BACKLOG_ROUNDS)):
            for place in order(turn, 2):
                kind = ("fast", "bare")[place]
                found[kind].append(self._drained(kind, people, count))
        self.raw["backlog"] = found
        ours, bare = (statistics.median(found[kind]) for kind in ("fast", "bare"))
        figures = {"per s": figure(ours), "x bare": figure(ours / bare, 2)}
        return [
            Row(
                line=f"backlog of {count:,}, no pace",
                figures=figures,
                target=f"≥ {BACKLOG_PER_S:g}/s",
                met=ours >= BACKLOG_PER_S,
            ),
            Row(line="the same: bare aiohttp bot", figures={"per s": figure(bare)}),
        ]

    def _drained(self, kind: str, people: Sequence[str], count: int) -> float:
        server = self.phones.server

        async def say() -> tuple[list[str], int]:
            words = [server.word() for _ in range(count)]
            server.expects(words)
            said = [
                server.says(people[turn % len(people)], word) for turn, word in enumerate(words)
            ]
            return words, said[0][0]

        words, first = self.on_loop(say)

        async def hear() -> float:
            ends = [await server.heard(word) for word in words]
            return count / (max(ends) - server.handed[first])

        with self.phones.bot(kind):
            return self.on_loop(hear)

    def paced(self) -> list[Row]:
        """More answers than Telegram takes: whether its limits are kept, and used."""
        seconds = int(self.window(PACED_S, QUICK_PACED_S))
        people = chats(PACED_CHATS)
        server = self.phones.server
        total = PACE * seconds

        async def flood() -> list[Call]:
            words: list[str] = []

            def say(chat: str, group: str = "") -> None:
                words.append(server.word())
                server.expects(words[-1:])
                server.says(chat, f"@{NAME} {words[-1]}" if group else words[-1], group)

            server.calls.clear()
            for turn in range(seconds):
                say(people[0])
                if turn % 3 == 0:
                    say(people[1], GROUP)
            for turn in range(total - len(words)):
                say(people[2 + turn % (len(people) - 2)])
            for word in words:
                await server.heard(word)
            return list(server.calls)

        with self.phones.bridge():
            calls = self.on_loop(flood)
        times = [call.at for call in calls]
        # The last ones are those of single chats, which may have one a second.
        whole = [at for at in times if at <= times[0] + 0.9 * seconds]
        rate = (len(whole) - PACE) / (whole[-1] - whole[0])  # the first ones go at once
        chat = max(most([call.at for call in calls if call.chat == one], 10.0) for one in people)
        group = most([call.at for call in calls if call.chat == GROUP], 60.0)
        everywhere = most(times, 1.0)
        kept = everywhere <= ALL_IN_1_S and chat <= CHAT_IN_10_S and group <= GROUP_IN_60_S
        self.raw["paced"] = [(call.at - times[0], call.chat) for call in calls]
        return [
            Row(
                line=f"{total:,} answers at Telegram's pace",
                figures={
                    "per s": figure(rate, 1),
                    "most in 1 s": str(everywhere),
                    "a chat in 10 s": str(chat),
                    "a group in 60 s": str(group),
                },
                target=(f"≥ {PACED_PER_S:g}/s; ≤ {ALL_IN_1_S}, {CHAT_IN_10_S}, {GROUP_IN_60_S}"),
                met=kept and rate >= PACED_PER_S,
            )
        ]

    def flooded(self) -> list[Row]:
        """What the others feel while one chat is told to wait."""
        people = chats(CHATS)
        seconds = self.window(FLOOD_S, QUICK_FLOOD_S)
        shut = people[0]
        server = self.phones.server
        before, during = Times(), Times()
        tries: list[float] = []

        async def measure() -> None:
            await self.phones.warmed_up(people)
            for _, _, said, heard in await self.phones.echo_at(people[1:], PER_S / 2, seconds):
                before.values.append((heard - said) * 1e3)
            await asyncio.sleep(RESTED_S)
            until = server.shut[shut] = now() + min(SHUT_S, seconds)
            server.calls.clear()
            server.says(shut, "while it is shut")
            for _, _, said, heard in await self.phones.echo_at(people[1:], PER_S / 2, seconds):
                if said < until:
                    during.values.append((heard - said) * 1e3)
            tries.extend(call.at for call in server.calls if call.chat == shut and not call.taken)
            await self.phones.echoes([shut])
            del server.shut[shut]

        with self.phones.bridge():
            self.on_loop(measure)
        delay = during.at(0.95) - before.at(0.95)
        self.raw["429"] = {"before": before, "during": during, "tries": len(tries)}
        return [
            Row(line="others, before a 429 in one chat", figures=before.columns()),
            Row(
                line="others, while that chat waits",
                figures={**during.columns(), "delay ms": figure(delay, 1)}
                | {"calls too soon": str(max(0, len(tries) - 1))},
                target=f"≤ {OTHERS_MS:g} ms later, no call too soon",
                met=delay <= OTHERS_MS and len(tries) <= 1,
            ),
        ]

    def restart(self) -> list[Row]:
        """From the start of the process to its ready line, with much that it remembers."""
        times: dict[str, list[float]] = {"as it is": [], "with rows": []}
        rounds = 1 if self.bench.quick else RESTARTS
        for name, values in times.items():
            if name == "with rows":
                _fill(self.phones.home / f"telegram-{ACCOUNT}.db", INBOX_ROWS)
            for _ in range(rounds):
                with self.phones.bridge() as bridge:
                    values.append(bridge.start_s)
        self.raw["restart"] = times
        plain, full = (statistics.median(values) for values in times.values())
        return [
            Row(
                line=f"spawn to ready, {INBOX_ROWS:,} updates kept",
                figures={"p50 ms": figure(full * 1e3), "x without": figure(full / plain, 2)},
                target=f"≤ {RESTART_S:g} s",
                met=full <= RESTART_S,
            )
        ]


def most(times: Sequence[float], window: float) -> int:
    """How many there are in the fullest stretch of so many seconds."""
    first, found = 0, 0
    for last, at in enumerate(times):
        while times[first] <= at - window:
            first += 1
        found = max(found, last - first + 1)
    return found


def _within(line: str, times: Times, most_ms: float) -> Row:
    met = times.at(0.95) <= most_ms
    return Row(line=line, figures=times.columns(), target=f"p95 ≤ {most_ms:g} ms", met=met)


def _fill(path: Path, rows: int) -> None:
    """Updates that were dealt with in the last days."""
    at = int(time.time() * 1000)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.executemany(
            "INSERT OR IGNORE INTO inbox (account, update_id, at, raw, state)"
            " VALUES (?, ?, ?, '', 'done')",
            [(ACCOUNT, 10_000_000 + number, at) for number in range(rows)],
        )


@contextlib.contextmanager
def _serving(loop: LoopThread) -> Iterator[BotServer]:
    async def begin() -> BotServer:
        server = BotServer()
        await server.start()
        return server

    server = loop.sync(begin)
    try:
        yield server
    finally:
        loop.sync(server.stop)


def run(bench: Bench) -> Result:
    if not importlib.util.find_spec("telegram"):
        raise Missing("telegram is not installed: pip install 'aios-nb[telegram]'")
    loop = LoopThread("aios-bench-phones")
    loop.start()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="aios-bench-", ignore_cleanup_errors=True) as home,
            node_at(Path(home)) as node,
            _serving(loop) as server,
        ):
            phones = Phones(Path(home), node, server)
            measuring = Measuring(bench, phones, loop)
            with phones.bot("fast"):
                people = chats(max(CHATS, PACED_CHATS, BACKLOG_CHATS))
                loop.sync(lambda: phones.come_in(people, group=True))
            parts = (
                measuring.latency,
                measuring.backlog,
                measuring.paced,
                measuring.flooded,
                measuring.restart,
            )
            rows = [row for part in parts for row in part()]
    finally:
        loop.stop()
    return Result(rows=rows, raw=measuring.raw, notes=[_NOTE])


PHONE = Scenario(
    name="phone",
    title="Telegram",
    target=(
        f"each way p95 ≤ {RELAY_MS:g} ms, echo ≤ {ECHO_MS:g} ms; backlog ≥ {BACKLOG_PER_S:g}/s;"
        f" 25/s within Telegram's limits; a 429 delays others ≤ {OTHERS_MS:g} ms"
    ),
    why="A message from a phone should be there at once, and the bot must not be shut out.",
    run=run,
)
