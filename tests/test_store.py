"""The store commits together, fails alone, and never acknowledges what it did not keep."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aios_nb import database, schema, store
from aios_nb.errors import Busy, HomeError
from aios_nb.store import Insert, Store, Tx


def put(key: str, value: object = 1) -> Callable[[Tx], str]:
    def apply(tx: Tx) -> str:
        tx.execute("INSERT INTO meta VALUES (?, ?)", (key, value))
        return key

    return apply


META = Insert("meta", ("key", "value"))


def row(key: str) -> Callable[[Tx], str]:
    def apply(tx: Tx) -> str:
        tx.insert(META, (key, 1))
        return key

    return apply


def keys(opened: Store) -> set[str]:
    return {row[0] for row in opened.read("SELECT key FROM meta")}


def test_a_write_is_readable_when_its_caller_hears_of_it(tmp_path: Path) -> None:
    async def main() -> None:
        opened = Store.open(tmp_path / "a.db")
        assert await opened.write(put("x")) == "x"
        assert keys(opened) == {"x"}
        await opened.close()

    asyncio.run(main())


def test_writes_of_one_moment_share_a_commit(tmp_path: Path) -> None:
    async def main() -> None:
        opened = Store.open(tmp_path / "a.db")
        commits: list[str] = []
        opened._writer.set_trace_callback(lambda sql: sql == "COMMIT" and commits.append(sql))
        await asyncio.gather(*(opened.write(put(f"k{n}")) for n in range(50)))
        assert len(commits) == 1
        assert len(keys(opened)) == 50
        await opened.close()

    asyncio.run(main())


def test_a_failing_write_fails_alone(tmp_path: Path) -> None:
    async def main() -> None:
        opened = Store.open(tmp_path / "a.db")
        await opened.write(put("taken"))
        done = await asyncio.gather(
            opened.write(put("a")),
            opened.write(put("taken")),
            opened.write(put("b")),
            return_exceptions=True,
        )
        assert done[0] == "a"
        assert isinstance(done[1], sqlite3.IntegrityError)
        assert done[2] == "b"
        assert keys(opened) == {"taken", "a", "b"}
        await opened.close()

    asyncio.run(main())


@pytest.mark.parametrize("count", [2, store.ROWS_PER_STATEMENT, store.ROWS_PER_STATEMENT + 1])
def test_a_row_that_conflicts_fails_alone(tmp_path: Path, count: int) -> None:
    async def main() -> None:
        opened = Store.open(tmp_path / "a.db")
        wanted = [f"k{n}" for n in range(count - 1)]
        told = await asyncio.gather(
            *(opened.write(row(key)) for key in (*wanted, "k0")), return_exceptions=True
        )
        assert told[:-1] == wanted
        assert isinstance(told[-1], sqlite3.IntegrityError)
        assert keys(opened) == set(wanted)
        await opened.close()

    asyncio.run(main())


def test_rows_of_one_moment_are_one_statement(tmp_path: Path) -> None:
    async def main() -> None:
        opened = Store.open(tmp_path / "a.db")
        said: list[str] = []
        opened._writer.set_trace_callback(said.append)
        await asyncio.gather(*(opened.write(row(f"k{n}")) for n in range(10)))
        assert [sql.split()[0] for sql in said] == ["INSERT"]
        assert len(keys(opened)) == 10
        await opened.close()

    asyncio.run(main())


def test_done_is_told_right_after_the_commit_or_with_the_error(tmp_path: Path) -> None:
    async def main() -> None:
        opened = Store.open(tmp_path / "a.db")
        told: list[tuple[str | None, Exception | None, set[str]]] = []
        opened.submit(put("x"), lambda value, error: told.append((value, error, keys(opened))))
        opened.submit(put("x"), lambda value, error: told.append((value, error, keys(opened))))
        await opened.close()
        assert told[0] == ("x", None, {"x"})
        assert told[1][0] is None
        assert isinstance(told[1][1], sqlite3.IntegrityError)

    asyncio.run(main())


def test_a_listener_that_raises_harms_nobody_else(tmp_path: Path) -> None:
    async def main() -> None:
        opened = Store.open(tmp_path / "a.db")

        def broken(value: object, error: object) -> None:
            raise RuntimeError("listener")

        opened.submit(put("a"), broken)
        assert await opened.write(put("b")) == "b"
        assert keys(opened) == {"a", "b"}
        await opened.close()

    asyncio.run(main())


def test_writes_go_on_while_a_checkpoint_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "CHECKPOINT_PAGES", 10)

    async def main() -> None:
        opened = Store.open(tmp_path / "a.db")
        started = written = 0
        enough = asyncio.Event()
        original = opened._start_checkpoint

        def counted() -> None:
            nonlocal started
            started += 1
            original()
            if started == 10:
                enough.set()

        monkeypatch.setattr(opened, "_start_checkpoint", counted)
        async with asyncio.timeout(60):
            while not enough.is_set():
                await asyncio.gather(*(opened.write(put(f"{written}.{n}")) for n in range(10)))
                written += 1
        assert len(keys(opened)) == written * 10
        await opened.close()

    asyncio.run(main())
    assert not (tmp_path / "a.db-wal").exists()


def checkpoints(opened: Store, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set when one begins."""
    begun = asyncio.Event()
    original = opened._start_checkpoint

    def told() -> None:
        original()
        begun.set()

    monkeypatch.setattr(opened, "_start_checkpoint", told)
    return begun


def test_writes_are_committed_while_the_disk_takes_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "CHECKPOINT_PAGES", 10)
    begun, go_on = threading.Event(), threading.Event()
    synced: list[Path] = []

    def slow_disk(file: Path) -> None:
        synced.append(file)
        begun.set()
        assert go_on.wait(60)

    monkeypatch.setattr(store, "_sync", slow_disk)

    async def main() -> None:
        opened = Store.open(tmp_path / "a.db")
        folded = checkpoints(opened, monkeypatch)
        await asyncio.gather(*(opened.write(put(f"before {n}")) for n in range(10)))
        assert await asyncio.to_thread(begun.wait, 60)
        async with asyncio.timeout(60):
            await asyncio.gather(*(opened.write(put(f"during {n}")) for n in range(20)))
        assert len(keys(opened)) == 30
        assert not folded.is_set()
        go_on.set()
        async with asyncio.timeout(60):
            await folded.wait()
        await opened.close()

    asyncio.run(main())
    assert synced == [tmp_path / "a.db-wal"]


def test_a_store_closes_while_the_disk_takes_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "CHECKPOINT_PAGES", 10)
    begun, go_on = threading.Event(), threading.Event()

    def slow_disk(_: Path) -> None:
        begun.set()
        assert go_on.wait(60)

    monkeypatch.setattr(store, "_sync", slow_disk)

    async def main() -> None:
        opened = Store.open(tmp_path / "a.db")
        folded = checkpoints(opened, monkeypatch)
        await asyncio.gather(*(opened.write(put(f"{n}")) for n in range(10)))
        assert await asyncio.to_thread(begun.wait, 60)
        await opened.close()
        [syncing] = [each for each in threading.enumerate() if each.name == "aios-sync"]
        go_on.set()
        await asyncio.to_thread(syncing.join, 60)
        await asyncio.sleep(0)
        assert not folded.is_set()

    asyncio.run(main())
    assert len(keys(Store.open(tmp_path / "a.db"))) == 10


def test_a_log_that_cannot_be_synced_is_folded_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(store, "CHECKPOINT_PAGES", 10)

    def broken_disk(_: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(store, "_sync", broken_disk)

    async def main() -> None:
        opened = Store.open(tmp_path / "a.db")
        folded = checkpoints(opened, monkeypatch)
        await asyncio.gather(*(opened.write(put(f"{n}")) for n in range(10)))
        async with asyncio.timeout(60):
            await folded.wait()
        await opened.close()

    asyncio.run(main())
    assert "was not synced" in caplog.text


def test_closing_commits_what_waits_and_refuses_what_comes_later(tmp_path: Path) -> None:
    async def main() -> None:
        opened = Store.open(tmp_path / "a.db")
        waiting = opened.write(put("last"))
        await opened.close()
        assert await waiting == "last"
        with pytest.raises(Busy):
            await opened.write(put("late"))

    asyncio.run(main())
    assert keys(Store.open(tmp_path / "a.db")) == {"last"}


def test_the_database_is_for_its_owner_only(tmp_path: Path) -> None:
    Store.open(tmp_path / "a.db").close_now()
    assert (tmp_path / "a.db").stat().st_mode & 0o777 == 0o600


def test_a_newer_database_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    Store.open(path).close_now()
    with sqlite3.connect(path) as raw:
        raw.execute(f"PRAGMA user_version={len(schema.STEPS) + 1}")
    with pytest.raises(HomeError, match="newer version") as refused:
        Store.open(path)
    assert "\n" not in str(refused.value)


def test_a_change_of_version_copies_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.db"
    opened = Store.open(path)
    opened.now(put("old"))
    opened.close_now()
    monkeypatch.setattr(
        database, "STEPS", (*schema.STEPS, "CREATE TABLE extra (x INTEGER PRIMARY KEY) STRICT;")
    )
    opened = Store.open(path)
    assert opened.read("SELECT * FROM extra") == []
    assert keys(opened) == {"old"}
    opened.close_now()
    copy = sqlite3.connect(tmp_path / f"a.db.v{len(schema.STEPS)}")
    assert copy.execute("SELECT key FROM meta").fetchall() == [("old",)]
    assert copy.execute("PRAGMA user_version").fetchone()[0] == len(schema.STEPS)
    copy.close()


def test_a_failed_change_of_version_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.db"
    Store.open(path).close_now()
    monkeypatch.setattr(
        database, "STEPS", (*schema.STEPS, "CREATE TABLE extra (x INTEGER); CREATE TABLE oops (;")
    )
    with pytest.raises(HomeError):
        Store.open(path)
    monkeypatch.undo()
    opened = Store.open(path)
    tables = {row[0] for row in opened.read("SELECT name FROM sqlite_master")}
    assert "extra" not in tables
    opened.close_now()


def test_something_else_under_that_name_is_an_error_of_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(b"this is not a database, and long enough to be read as one" * 20)
    with pytest.raises(HomeError, match="cannot open"):
        Store.open(path)


def test_without_wal_the_rollback_journal_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    connect = database._connect

    def without_wal(path: Path, cache_kib: int, *, read_only: bool = False) -> Any:
        connection = connect(path, cache_kib, read_only=read_only)

        def deny(action: int, first: str | None, second: str | None, *_: object) -> int:
            wants_wal = action == sqlite3.SQLITE_PRAGMA and first == "journal_mode"
            return sqlite3.SQLITE_DENY if wants_wal and second == "WAL" else sqlite3.SQLITE_OK

        connection.set_authorizer(deny)
        return connection

    monkeypatch.setattr(database, "_connect", without_wal)

    async def main() -> None:
        opened = Store.open(tmp_path / "a.db")
        assert opened.mode == "truncate"
        assert opened._writer.execute("PRAGMA synchronous").fetchone()[0] == 2  # FULL
        await opened.write(put("x"))
        assert keys(opened) == {"x"}
        await opened.close()

    asyncio.run(main())
    assert "rollback journal" in caplog.text


FULL_DISK = """
    import asyncio, resource, sys
    from pathlib import Path
    from aios_nb.errors import Busy
    from aios_nb.store import Store

    def put(key):
        return lambda tx: tx.execute("INSERT INTO meta VALUES (?, ?)", (key, "x" * 4000)).rowcount

    async def main():
        opened = Store.open(Path(sys.argv[1]))
        kept = []
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
        for n in range(1000):
            try:
                await opened.write(put(f"k{n}"))
            except Busy as busy:
                assert busy.data["retry_after_s"] > 0
                break
            kept.append(f"k{n}")
        else:
            raise SystemExit("the disk was never full")
        stored = {row[0] for row in opened.read("SELECT key FROM meta")}
        assert stored == set(kept), (len(stored), len(kept))
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        await opened.write(put("again"))
        print(len(kept))
        await opened.close()

    asyncio.run(main())
"""


def run_script(script: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *args],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )


def test_on_a_full_disk_it_is_busy_and_nothing_is_acknowledged(tmp_path: Path) -> None:
    done = run_script(FULL_DISK, str(tmp_path / "a.db"))
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10
    assert hasattr(resource, "RLIMIT_FSIZE")


KILLED = """
    import asyncio, sys
    from pathlib import Path
    from aios_nb.store import Store

    async def producer(opened, who):
        n = 0
        while True:
            key = f"{who}.{n}"
            await opened.write(
                lambda tx: tx.execute("INSERT INTO meta VALUES (?, 1)", (key,)).rowcount
            )
            print(key, flush=True)
            n += 1

    async def main():
        opened = Store.open(Path(sys.argv[1]))
        await asyncio.gather(*(producer(opened, who) for who in range(20)))

    asyncio.run(main())
"""


def test_what_was_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(KILLED), str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    assert process.stdout is not None
    acknowledged = [process.stdout.readline().strip() for _ in range(2000)]
    process.send_signal(signal.SIGKILL)
    acknowledged += [line.strip() for line in process.stdout.read().splitlines(keepends=True)
                     if line.endswith("\n")]  # fmt: skip
    process.stdout.close()
    process.wait()
    opened = Store.open(path)
    assert set(acknowledged) <= keys(opened)
    assert opened.read("PRAGMA integrity_check") == [("ok",)]
    opened.close_now()


# Through to the disk ----------------------------------------------------------------------

NORMAL, FULL = 1, 2
"""Of ``PRAGMA synchronous``."""


def sync_level(tx: Tx) -> int:
    return int(tx.execute("PRAGMA synchronous").fetchone()[0])


def test_what_must_outlive_a_power_cut_is_synced_and_nothing_else(tmp_path: Path):
    async def main() -> list[int]:
        opened = Store.open(tmp_path / "node.db")
        try:
            return [
                await opened.write(sync_level),
                await opened.write_through(sync_level),
                await opened.write(sync_level),
            ]
        finally:
            await opened.close()

    assert asyncio.run(main()) == [NORMAL, FULL, NORMAL]


def test_a_synced_write_that_fails_leaves_nothing_and_the_usual_level(tmp_path: Path):
    told: list[None] = []

    def fails(tx: Tx) -> None:
        tx.execute("INSERT INTO meta VALUES ('half', 1)")
        raise ValueError("no")

    async def main() -> tuple[list[Any], int]:
        opened = Store.open(tmp_path / "node.db")
        try:
            with pytest.raises(ValueError, match="no"):
                await opened.write_through(fails, told.append)
            rows = opened.read("SELECT * FROM meta WHERE key = 'half'")
            return rows, await opened.write(sync_level)
        finally:
            await opened.close()

    assert asyncio.run(main()) == ([], NORMAL)
    assert told == []


def test_a_synced_write_waits_for_the_checkpoint_that_has_the_connection(tmp_path: Path):
    async def main() -> bool:
        opened = Store.open(tmp_path / "node.db")
        try:
            opened._start_checkpoint()
            assert opened._checkpoint is not None
            return await opened.write_through(lambda _: opened._checkpoint is None)
        finally:
            await opened.close()

    assert asyncio.run(main())
