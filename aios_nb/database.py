"""The file of a node's database: opened, made where there is none, brought up to date."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from aios_nb.errors import HomeError
from aios_nb.schema import STEPS

log = logging.getLogger("aios_nb.store")


CACHE_KIB = 16_384
"""Pages that each connection holds in memory."""


def open_database(
    path: Path, steps: Sequence[str] | None = None, cache_kib: int = CACHE_KIB
) -> tuple[sqlite3.Connection, sqlite3.Connection]:
    """The connection that writes, and one that only reads.

    ``steps``: the tables, as in ``schema.py``, if they are not a node's; one is ``meta``.
    """
    with contextlib.ExitStack() as opened:
        try:
            writer = opened.enter_context(contextlib.closing(_connect(path, cache_kib)))
            path.chmod(0o600)
            _choose_journal(writer, path)
            _migrate(writer, path, STEPS if steps is None else steps)
            reader = opened.enter_context(
                contextlib.closing(_connect(path, cache_kib, read_only=True))
            )
            reader.execute("SELECT count(*) FROM meta").fetchone()
        except sqlite3.DatabaseError as error:
            raise HomeError(
                f"cannot open {path}: {error}",
                hint="check the disk and the file's permissions, or move the file away",
            ) from error
        opened.pop_all()
    return writer, reader


def _connect(path: Path, cache_kib: int, *, read_only: bool = False) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,  # opened by the starter, used by the loop's thread
        timeout=5.0,
        cached_statements=256,
    )
    try:
        connection.execute("PRAGMA temp_store=MEMORY")
        connection.execute("PRAGMA mmap_size=0")
        connection.execute(f"PRAGMA cache_size=-{cache_kib}")
    except BaseException:
        connection.close()  # not a database at all
        raise
    return connection


def _choose_journal(connection: sqlite3.Connection, path: Path) -> None:
    """WAL if it really works here, else the rollback journal."""
    try:
        mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
        if mode == "wal":
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute("PRAGMA wal_autocheckpoint=0")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("COMMIT")
            return
    except sqlite3.DatabaseError as error:
        if connection.in_transaction:
            connection.rollback()
        mode = str(error)
    connection.execute("PRAGMA journal_mode=TRUNCATE")
    connection.execute("PRAGMA synchronous=FULL")
    log.warning("no WAL for %s (%s): using the rollback journal, which is slower", path, mode)


def _migrate(connection: sqlite3.Connection, path: Path, steps: Sequence[str]) -> None:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > len(steps):
        raise HomeError(
            f"{path.name} was made by a newer version of aios_nb",
            hint="upgrade aios_nb, or start under another --name",
        )
    if version == len(steps):
        return
    if version:
        copy = path.with_name(f"{path.name}.v{version}")
        with contextlib.closing(sqlite3.connect(copy)) as target:
            connection.backup(target)
        copy.chmod(0o600)
        log.info("copied %s to %s before the change of version", path.name, copy.name)
    for step in range(version, len(steps)):
        connection.executescript(
            f"BEGIN IMMEDIATE;\n{steps[step]}\nPRAGMA user_version={step + 1};\nCOMMIT;"
        )
