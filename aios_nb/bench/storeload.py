"""Fifty producers against one SQLite file, written to in different ways.

``python -m aios_nb.bench.storeload`` prints one JSON line: the windows of every way, taken in
turns. With ``--busy`` another thread computes in pure Python all the while, as a cell does. All
ways write the same row under WAL and NORMAL; a producer goes on when its row is committed. Every
acknowledged row is counted in the file afterwards.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import queue
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Protocol

import msgspec

from aios_nb.bench.cell import Cell
from aios_nb.bench.ratios import order
from aios_nb.bench.spec import Broken, Window, percentile
from aios_nb.loop import SWITCH_INTERVAL_S
from aios_nb.store import Store, Tx

PRODUCERS = 50
BATCH_ROWS = 100
GROUP_ROWS = 512
BODY_CHARS = 380

Row = tuple[str, str, str, float]

CREATE = (
    "CREATE TABLE bench_rows (id INTEGER PRIMARY KEY, room TEXT, author TEXT, body TEXT, ts REAL)"
)
INDEX = "CREATE INDEX bench_rows_room ON bench_rows (room, id)"
INSERT = "INSERT INTO bench_rows (room, author, body, ts) VALUES (?, ?, ?, ?)"


class Way(Protocol):
    """A way to write rows."""

    def write(self, row: Row) -> Awaitable[object]:
        """Done when the row is committed."""

    async def close(self) -> None: ...


def connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute(CREATE)
    connection.execute(INDEX)
    return connection


class OneByOne:
    """A transaction per row, on the loop."""

    def __init__(self, path: Path) -> None:
        self._connection = connect(path)

    async def write(self, row: Row) -> None:
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        execute(INSERT, row)
        execute("COMMIT")
        await asyncio.sleep(0)  # the other producers' turn

    async def close(self) -> None:
        self._connection.close()


class Batches:
    """A transaction per 100 rows, none of them waited for alone: the ceiling."""

    def __init__(self, path: Path) -> None:
        self._connection = connect(path)

    async def write(self, row: Row) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(INSERT, [row] * BATCH_ROWS)
        self._connection.execute("COMMIT")
        await asyncio.sleep(0)

    async def close(self) -> None:
        self._connection.close()


class WriterThread:
    """A thread that commits whatever waits, in one transaction."""

    def __init__(self, path: Path) -> None:
        self._connection = connect(path)
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[tuple[Row, asyncio.Future[None]] | None]
        self._queue = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="bench-writer")
        self._thread.start()

    def write(self, row: Row) -> Awaitable[None]:
        future = self._loop.create_future()
        self._queue.put((row, future))
        return future

    def _run(self) -> None:
        execute = self._connection.execute
        while (item := self._queue.get()) is not None:
            group = [item]
            with contextlib.suppress(queue.Empty):
                while len(group) < GROUP_ROWS:
                    more = self._queue.get_nowait()
                    if more is None:
                        self._queue.put(None)
                        break
                    group.append(more)
            execute("BEGIN IMMEDIATE")
            for row, _ in group:
                execute(INSERT, row)
            execute("COMMIT")
            self._loop.call_soon_threadsafe(_resolve, [future for _, future in group])

    async def close(self) -> None:
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)
        self._connection.close()


def _resolve(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)


class OurStore:
    """The node's own store."""

    def __init__(self, path: Path) -> None:
        self._store = Store.open(path)
        self._store.now(_make_table)

    def write(self, row: Row) -> Awaitable[object]:
        def apply(tx: Tx) -> None:
            tx.execute(INSERT, row)

        return self._store.write(apply)

    async def close(self) -> None:
        await self._store.close()


def _make_table(tx: Tx) -> None:
    tx.execute(CREATE)
    tx.execute(INDEX)


WAYS: dict[str, tuple[Callable[[Path], Way], int, int]] = {
    "one": (OneByOne, PRODUCERS, 1),
    "thread": (WriterThread, PRODUCERS, 1),
    "store": (OurStore, PRODUCERS, 1),
    "batch": (Batches, 1, BATCH_ROWS),
}
"""Name: how it is made, how many producers write to it, rows per write."""


async def window(way: Way, producers: int, rows: int, seconds: float) -> Window:
    """What this many producers get done in this time."""
    latencies: list[float] = []
    clock = time.perf_counter

    async def produce(number: int) -> None:
        row = (f"room-{number}", f"author-{number}", "x" * BODY_CHARS, 0.0)
        begun = clock()
        while begun < until:
            await way.write(row)
            ended = clock()
            latencies.append(ended - begun)
            begun = ended

    gc.collect()
    gc.disable()
    try:
        cpu, started = time.process_time(), clock()
        until = started + seconds
        await asyncio.gather(*map(produce, range(producers)))
        took, cpu = clock() - started, time.process_time() - cpu
    finally:
        gc.enable()
    ordered = sorted(latencies)
    count = len(ordered) * rows
    return Window(
        replies=count,
        wrong=0,
        first_wrong=None,
        seconds=took,
        p50=percentile(ordered, 0.5) * 1e3,
        p99=percentile(ordered, 0.99) * 1e3,
        mean=sum(ordered) / len(ordered) * 1e3,
        low=ordered[0] * 1e3,
        high=ordered[-1] * 1e3,
        cpu_us=cpu * 1e6 / count,
    )


@contextlib.contextmanager
def busy_thread() -> Iterator[None]:
    """Another thread that computes in pure Python, under the node's switch interval."""
    cell = Cell()
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    thread = threading.Thread(target=cell.run, name="bench-cell")
    cell.ask("pyloop")
    thread.start()
    try:
        yield
    finally:
        cell.end()
        thread.join()
        sys.setswitchinterval(before)


async def compare(folder: Path, rounds: int, seconds: float) -> dict[str, list[Window]]:
    """The windows of every way. Each has one file, which grows from round to round."""
    paths = {name: folder / f"{name}.db" for name in WAYS}
    ways = {name: make(paths[name]) for name, (make, _, _) in WAYS.items()}
    names = list(WAYS)
    taken: dict[str, list[Window]] = {name: [] for name in names}
    written = dict.fromkeys(names, 0)
    try:
        for turn in range(-1, rounds):  # the first round warms up
            for place in order(turn, len(names)):
                name = names[place]
                _, producers, rows = WAYS[name]
                result = await window(ways[name], producers, rows, seconds)
                written[name] += result.replies
                if turn >= 0:
                    taken[name].append(result)
    finally:
        for way in ways.values():
            await way.close()
    for name in names:
        with contextlib.closing(sqlite3.connect(paths[name])) as connection:
            stored: int = connection.execute("SELECT count(*) FROM bench_rows").fetchone()[0]
        if stored != written[name]:
            raise Broken(f"{name}: {written[name]} rows acknowledged, {stored} stored")
    return taken


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--busy", action="store_true")
    options = parser.parse_args()
    beside = busy_thread() if options.busy else contextlib.nullcontext()
    with tempfile.TemporaryDirectory(prefix="aios-bench-") as folder, beside:
        taken = asyncio.run(compare(Path(folder), options.rounds, options.seconds))
    sys.stdout.buffer.write(msgspec.json.encode(taken) + b"\n")


if __name__ == "__main__":
    main()
