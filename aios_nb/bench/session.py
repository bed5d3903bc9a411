"""Connections to one target, and the count of what came back over them."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Sequence
from typing import ClassVar, Protocol
from urllib.parse import urlsplit

from aios_nb.bench import usage
from aios_nb.bench.calls import Call, Rpc, call_for
from aios_nb.bench.pacing import Pace, pace_for
from aios_nb.bench.spec import Broken, Load, Target, Window, percentile

CONNECT_WAIT_S = 10.0
REPLY_WAIT_S = 120.0
"""How long after its end a window waits for what is still in flight."""

now = time.perf_counter


class Session:
    """Connections to one target, kept between windows."""

    def __init__(self, target: Target) -> None:
        parts = urlsplit(target.url)
        self.target = target
        self.host = parts.hostname or "127.0.0.1"
        self.port = parts.port or 80
        self.call: Call = call_for(target)
        self.slots = target.concurrency
        self._since = [0.0] * self.slots
        self._first: list[float | None] = [None] * self.slots
        self._pace: Pace | None = None
        self._latencies: list[float] = []
        self._firsts: list[float] = []
        self._wrong = 0
        self._first_wrong: str | None = None

    async def open(self) -> None:
        """Connect whatever is not connected."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def send(self, slot: int) -> None:
        """Put the slot's next request on the wire."""
        raise NotImplementedError

    async def drive(self, load: Load) -> Window:
        """What this load shows. Wrong replies are counted, and the first one is quoted."""
        await self.open()
        self._latencies, self._firsts = [], []
        self._wrong, self._first_wrong = 0, None
        pace = pace_for(self, load)
        self._pace = pace
        pids = (self.target.pid, self.target.other_pid)
        gc.collect()
        gc.disable()
        try:
            before = [usage.process_ns(pid) if pid else None for pid in pids]
            own = time.process_time()
            started = now()
            pace.start(started)
            try:
                await asyncio.wait_for(pace.over, (load.seconds or 0) + REPLY_WAIT_S)
            except TimeoutError:
                raise Broken(f"replies that never came from {self.target.url}") from None
            ended = now()
            own = time.process_time() - own
            after = [usage.process_ns(pid) if pid else None for pid in pids]
        finally:
            gc.enable()
            self._pace = None
        used = list(map(usage.used_ns, before, after))
        return self._window(load, ended - started, used, own, pace.lags)

    def _window(
        self,
        load: Load,
        seconds: float,
        used_ns: Sequence[int | None],
        own_s: float,
        lags: list[float],
    ) -> Window:
        ordered = sorted(self._latencies)
        count = len(ordered)
        used = [ns / 1e3 / count if ns is not None and count else None for ns in used_ns]
        return Window(
            replies=count,
            wrong=self._wrong,
            first_wrong=self._first_wrong,
            seconds=seconds,
            p50=percentile(ordered, 0.5) * 1e3,
            p99=percentile(ordered, 0.99) * 1e3,
            mean=sum(ordered) / count * 1e3 if count else 0.0,
            low=ordered[0] * 1e3 if count else 0.0,
            high=ordered[-1] * 1e3 if count else 0.0,
            first_p50=percentile(sorted(self._firsts), 0.5) * 1e3 if self._firsts else None,
            cpu_us=used[0],
            other_us=used[1],
            client_us=own_s * 1e6 / count if count else 0.0,
            lag_p99=percentile(sorted(lags), 0.99) * 1e3,
            samples=[value * 1e3 for value in self._latencies] if load.keep else [],
        )

    # Called from the hot path --------------------------------------------------------

    def fire(self, slot: int, since: float) -> None:
        self._since[slot] = since
        self._first[slot] = None
        self.send(slot)

    def began(self, slot: int) -> None:
        """The first piece of a streamed reply is here."""
        if self._first[slot] is None:
            self._first[slot] = now()

    def finished(self, slot: int, problem: str | None) -> None:
        """A reply is here, right or wrong."""
        at = now()
        pace = self._pace
        if problem is None:
            self._latencies.append(at - self._since[slot])
            first = self._first[slot]
            if first is not None:
                self._firsts.append(first - self._since[slot])
        else:
            self._count_wrong(problem)
        if pace is not None:
            pace.free(slot, at)

    def lost(self, slot: int, problem: str) -> None:
        """The connection under a call is gone; the slot is out for this window."""
        self._count_wrong(problem)
        if self._pace is not None:
            self._pace.drop(slot)

    def _count_wrong(self, problem: str) -> None:
        self._wrong += 1
        self._first_wrong = self._first_wrong or problem


class Shared(Protocol):
    """A connection that carries the calls of all slots."""

    transport: asyncio.Transport

    def ask(self, slot: int, body: bytes) -> None:
        """Send this request of the slot."""


class SharedSession(Session):
    """One connection with ``concurrency`` calls in flight. Subclasses ``connect``."""

    over: ClassVar[str]
    """What the calls go over."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        if not isinstance(self.call, Rpc):
            raise Broken(f"{target.work} does not go over {self.over}")
        self.rpc: Rpc = self.call
        self.shared: Shared | None = None

    async def connect(self) -> Shared:
        """A connection that is ready for calls; none is left open if that fails."""
        raise NotImplementedError

    async def open(self) -> None:
        if self.shared is None or self.shared.transport.is_closing():
            self.shared = await self.connect()

    def send(self, slot: int) -> None:
        if self.shared is None:
            raise Broken(f"sending before {self.over} is open")
        self.shared.ask(slot, self.rpc.request(slot))

    def close(self) -> None:
        if self.shared is not None:
            self.shared.transport.close()
