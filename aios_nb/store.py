"""The one writer of a node's SQLite database.

Writes are small functions that run inside a shared transaction: everything asked for in the same
moment is committed together, and a caller hears back only after its commit. The writer works on
the node's loop, not in a thread of its own: a thread costs two hand-overs per call and, beside a
busy notebook cell, two waits for the interpreter lock (``aios-nb bench --only store`` measures
both). The price: a stalled disk stalls the node. The file is ours alone (the name's lock), so
there is no foreign lock to wait for.

Only one connection ever writes or checkpoints. SQLite before 3.51.3 can damage a database when two
connections do so at the same instant, so a checkpoint borrows the writing connection in a short
thread while new writes wait in line and reads go on over a second, read-only connection. Most of a
checkpoint is waiting for the disk to have the WAL; that is done before, while writes go on, and
they wait a third as long (8 ms instead of 26 for 8,000 pages).

WAL with ``synchronous=NORMAL``: what was acknowledged survives the death of the process, not
necessarily a power cut. What must survive that as well (who is let in, and who no more) is written
with ``write_through``. Where WAL does not work (some network drives) the rollback journal is used
with ``synchronous=FULL``: slower, as safe.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from aios_nb.database import CACHE_KIB, open_database
from aios_nb.errors import Busy

log = logging.getLogger("aios_nb.store")

T = TypeVar("T")

CHECKPOINT_PAGES = 4_000
"""Pages in the WAL (16 MB) after which it is folded back into the database: writes wait for 3 to
7 ms then, with three times as many for 6 to 9."""
PAGES_PER_COMMIT = 5
"""Roughly, besides one per row: rows of many conversations touch many pages of their index."""
BATCH_WRITES = 512
ROWS_PER_STATEMENT = 50
"""More values than SQLite took in one statement for long (999) must not come of it. Every number
of rows up to this is a statement of its own, prepared once and kept: ten rows in one statement
cost a tenth less than in two."""
DISK_RETRY_S = 5.0

_DISK = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
}
_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


class Insert:
    """A table and its columns, to add rows to, many with one statement."""

    def __init__(self, table: str, columns: Sequence[str]) -> None:
        marks = f"({','.join('?' * len(columns))})"
        head = f"INSERT INTO {table} ({','.join(columns)}) VALUES "
        sizes = range(1, ROWS_PER_STATEMENT + 1)
        self._sql = {size: head + ",".join([marks] * size) for size in sizes}

    def sql(self, rows: int) -> str:
        """The statement for so many rows, at most ``ROWS_PER_STATEMENT``."""
        return self._sql[rows]


class Tx:
    """A transaction in progress. ``scratch`` is shared by its writes and dropped with it.

    Every statement gives up the interpreter lock and, beside a busy cell, waits to get it back.
    So rows are collected and added many to a statement, and a transaction that is one statement
    needs no other.
    """

    __slots__ = ("_begun", "_cursor", "_rows", "scratch")

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self._cursor = cursor
        self._begun = False
        self._rows: dict[Insert, list[tuple[Any, ...]]] = {}
        self.scratch: dict[Any, Any] = {}

    def insert(self, into: Insert, row: tuple[Any, ...]) -> None:
        """Add a row, at the latest with the commit. A conflict then fails the transaction."""
        rows = self._rows.get(into)
        if rows is None:
            self._rows[into] = [row]
        else:
            rows.append(row)

    def execute(self, sql: str, params: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Run a statement now, after the rows added before it."""
        self._begin()
        self._flush()
        return self._cursor.execute(sql, params)

    def commit(self) -> None:
        rows = next(iter(self._rows.values()), ())
        if len(self._rows) != 1 or len(rows) > ROWS_PER_STATEMENT:
            self._begin()  # more than one statement
        self._flush()
        if self._begun:
            self._cursor.execute("COMMIT")

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._cursor.execute("BEGIN IMMEDIATE")

    def _flush(self) -> None:
        for into, rows in self._rows.items():
            for start in range(0, len(rows), ROWS_PER_STATEMENT):
                chunk = rows[start : start + ROWS_PER_STATEMENT]
                self._cursor.execute(into.sql(len(chunk)), [*chain.from_iterable(chunk)])
        self._rows.clear()


class Store:
    """A node's database: ``write`` and ``read`` on the loop, ``now`` before it runs."""

    def __init__(self, path: Path, writer: sqlite3.Connection, reader: sqlite3.Connection) -> None:
        self.path = path
        self.mode: str = writer.execute("PRAGMA journal_mode").fetchone()[0]
        self._writer = writer
        self._cursor = writer.cursor()
        """One for all: making one per statement costs as much as the statement."""
        self._reader = reader.cursor()
        self._waiting: list[_Write] = []
        self._scheduled = False
        self._crowded = False
        """The last commit was shared: wait for others before the next one too."""
        self._pages = 0
        self._syncing = False
        """The WAL is on its way to the disk, before a checkpoint."""
        self._checkpoint: asyncio.Future[None] | None = None
        self._closed = False

    @classmethod
    def open(
        cls, path: Path, steps: Sequence[str] | None = None, cache_kib: int = CACHE_KIB
    ) -> Store:
        """The database at ``path``, made or brought up to date; ``steps``: with other tables."""
        return cls(path, *open_database(path, steps, cache_kib))

    # Writing -------------------------------------------------------------------------

    def submit(
        self, apply: Callable[[Tx], T], done: Callable[[T | None, Exception | None], None]
    ) -> None:
        """Run ``apply`` in the next shared transaction, then ``done(value, None)``.

        ``done`` is called right after the commit, before anyone else hears of it; or, when nothing
        was stored, as ``done(None, error)``: ``Busy`` for a full or failing disk, else what
        ``apply`` raised. ``apply`` may run more than once (when a neighbour in the batch fails,
        everything is rolled back and tried one by one): it must change nothing but the database
        and ``tx.scratch``.
        """
        if self._closed:
            done(None, Busy("the node is stopping"))
            return
        self._waiting.append((apply, done))
        if not self._scheduled:
            self._scheduled = True
            loop = asyncio.get_running_loop()
            if self._crowded:
                # Some turns of the loop later, so that callers of the same moment share a commit:
                # at ten in flight three turns instead of one save a third of the CPU per call.
                loop.call_soon(loop.call_soon, loop.call_soon, self._flush)
            else:
                loop.call_soon(self._flush)

    def write(
        self, apply: Callable[[Tx], T], committed: Callable[[T], None] | None = None
    ) -> asyncio.Future[T]:
        """The same to be awaited: the future holds what ``apply`` returned, or raises.

        ``committed`` is called in the moment of the commit, also when nobody waits any more.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def done(value: T | None, error: Exception | None) -> None:
            if error is None and committed is not None:
                committed(value)  # type: ignore[arg-type] # None only if T is
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(value)  # type: ignore[arg-type] # None only if T is

        self.submit(apply, done)
        return future

    async def write_through(
        self, apply: Callable[[Tx], T], committed: Callable[[T], None] | None = None
    ) -> T:
        """The same for what must outlive a power cut: alone, and on the disk when this returns.

        It makes the node wait for its disk, so it is for what people do now and then.
        """
        while self._checkpoint is not None:  # it has the writing connection
            await asyncio.shield(self._checkpoint)
        if self._closed:
            raise Busy("the node is stopping")
        value = self._synced(apply)
        self._pages += PAGES_PER_COMMIT
        if committed is not None:
            committed(value)
        return value

    def _synced(self, apply: Callable[[Tx], T]) -> T:
        if self.mode != "wal":
            return self.now(apply)  # always synced
        self._writer.execute("PRAGMA synchronous=FULL")
        try:
            return self.now(apply)
        finally:
            self._writer.execute("PRAGMA synchronous=NORMAL")

    def now(self, apply: Callable[[Tx], T]) -> T:
        """Run ``apply`` in a transaction of its own, at once. For start and stop."""
        try:
            value: T = self._transact([(apply, _nobody)])[0]
        except sqlite3.Error as error:
            raise _translated(error) from error
        return value

    def _flush(self) -> None:
        self._scheduled = False
        if self._checkpoint is not None:
            return  # the checkpoint's end flushes
        self._crowded = len(self._waiting) > 1
        while self._waiting:
            batch, self._waiting = self._waiting[:BATCH_WRITES], self._waiting[BATCH_WRITES:]
            self._commit(batch)
        if self._pages >= CHECKPOINT_PAGES and self.mode == "wal" and not self._syncing:
            self._start_sync()

    def _commit(self, batch: Sequence[_Write]) -> None:
        try:
            results = self._transact(batch)
        except Exception as raised:  # noqa: BLE001 - each caller gets its own
            error = _translated(raised)
            if len(batch) > 1 and not isinstance(error, Busy):
                for one in batch:
                    self._commit([one])
            else:  # a full disk is full for everyone
                for _, done in batch:
                    _tell(done, None, error)
            return
        self._pages += PAGES_PER_COMMIT + len(batch)
        for (_, done), value in zip(batch, results, strict=True):
            try:
                done(value, None)
            except Exception:
                log.exception("after a write")

    def _transact(self, batch: Sequence[_Write]) -> list[Any]:
        tx = Tx(self._cursor)
        try:
            results = [apply(tx) for apply, _ in batch]
            tx.commit()
        except BaseException:
            if self._writer.in_transaction:
                self._writer.rollback()
            raise
        return results

    # Reading -------------------------------------------------------------------------

    def read(self, sql: str, params: Sequence[Any] = ()) -> list[Any]:
        """Rows of committed data. Short queries only: this runs on the loop."""
        return self._reader.execute(sql, params).fetchall()

    # Upkeep --------------------------------------------------------------------------

    def _start_sync(self) -> None:
        """Have the disk take the WAL, and then fold it back."""
        self._syncing = True

        def work() -> None:
            try:
                _sync(self.path.with_name(f"{self.path.name}-wal"))
            except FileNotFoundError:
                log.debug("the log of the database is gone: it was closed meanwhile")
            except OSError as error:  # the checkpoint will say so again, and does no harm
                log.warning("the log of the database was not synced: %s", error)

        def finish() -> None:
            self._syncing = False
            if not self._closed and self._checkpoint is None:
                self._start_checkpoint()

        _beside("aios-sync", work, finish)

    def _start_checkpoint(self) -> None:
        self._pages = 0
        done = self._checkpoint = asyncio.get_running_loop().create_future()

        def work() -> None:
            try:
                self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            except sqlite3.Error as error:
                log.warning("checkpoint failed: %s", error)

        def finish() -> None:
            self._checkpoint = None
            if not done.done():
                done.set_result(None)
            self._flush()

        _beside("aios-checkpoint", work, finish)

    async def close(self) -> None:
        """Commit what waits, fold the WAL back and let go of the file."""
        while self._checkpoint is not None or self._waiting:
            if self._checkpoint is not None:
                await asyncio.shield(self._checkpoint)
            self._flush()
        self.close_now()

    def close_now(self) -> None:
        """The same when no loop runs; writes still waiting are refused."""
        self._closed = True
        waiting, self._waiting = self._waiting, []
        for _, done in waiting:
            _tell(done, None, Busy("the node is stopping"))
        self._reader.connection.close()
        self._writer.close()


_Done = Callable[[Any, Exception | None], None]
_Write = tuple[Callable[[Tx], Any], _Done]


def _beside(name: str, work: Callable[[], None], finish: Callable[[], None]) -> None:
    """Do ``work`` in a short thread, then ``finish`` on the loop, however the work went."""
    loop = asyncio.get_running_loop()

    def run() -> None:
        try:
            work()
        finally:
            with contextlib.suppress(RuntimeError):  # the loop may be gone at exit
                loop.call_soon_threadsafe(finish)

    threading.Thread(target=run, name=name, daemon=True).start()


def _sync(file: Path) -> None:
    """Wait until the disk has this file. No lock of SQLite is on it that closing could drop."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        getattr(os, "fdatasync", os.fsync)(descriptor)
    finally:
        os.close(descriptor)


def _nobody(_value: Any, _error: Exception | None) -> None:
    """For ``now``, which hands its result over itself."""


def _tell(done: _Done, value: Any, error: Exception | None) -> None:
    try:
        done(value, error)
    except Exception:
        log.exception("after a write")


def _translated(error: Exception) -> Exception:
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return error
    primary = code & 0xFF
    if primary in _DISK:
        log.error("the disk refuses writes: %s", error)
        return Busy(
            "the node cannot write to its disk",
            hint="free some space, then try again",
            retry_after_s=DISK_RETRY_S,
        )
    if primary in _LOCKED:
        return Busy("the node's database is locked by another program")
    return error
