"""The home folder: whose it is, who can look in, whether its disk can do what we need."""

from __future__ import annotations

import os
import shlex
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from aios_nb.errors import HomeError
from aios_nb.home import Home
from aios_nb.identity import Identity
from aios_nb.people.checks import Check, fail, ok, warn
from aios_nb.people.layout import size
from aios_nb.schema import STEPS

DISK_FAIL_BYTES = 50 << 20
DISK_WARN_BYTES = 1 << 30
CHECKED_BYTES = 64 << 20
"""A larger database is opened but not read through: that would take seconds."""
_OTHERS = 0o077
_WAL_RESET_FIXED = (3, 51, 3)


def storage(home: Home) -> Iterator[Check]:
    """Every check of the home folder and its disk."""
    yield sqlite()
    if not home.path.exists():
        yield ok("home", f"{home.path} will be made at the first start")
        yield disk(_existing(home.path))
        return
    folder = owner(home.path)
    yield folder
    yield from keys(home)
    yield from databases(home)
    yield disk(home.path)
    if os.access(home.path, os.W_OK):
        yield locks(home.path)
        yield wal(home.path)


def sqlite() -> Check:
    version = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < _WAL_RESET_FIXED:
        # The bug needs two writers on one database; a node has exactly one.
        return ok("sqlite", f"{version}; its WAL-reset bug (fixed in 3.51.3) needs two writers, "
                            "we have one")  # fmt: skip
    return ok("sqlite", version)


def owner(path: Path) -> Check:
    try:
        found = path.stat()
    except OSError as error:
        return fail("home", f"{path}: {error.strerror}", "set AIOS_HOME to a folder of your own")
    if not stat.S_ISDIR(found.st_mode):
        return fail("home", f"{path} is not a folder", "move it away, or set AIOS_HOME")
    if found.st_uid != os.geteuid():
        return fail(
            "home",
            f"{path} belongs to user {found.st_uid}",
            "run as that user, or set AIOS_HOME to a folder of your own",
        )
    if found.st_mode & _OTHERS:
        return fail("home", f"{path} is open to other users", f"chmod 700 {path}")
    return ok("home", f"{path}, for you alone")


def keys(home: Home) -> Iterator[Check]:
    """Keys and run files that others could read."""
    try:
        private = [*(home.path / "keys").glob("*.key"), *(home.path / "run").glob("*.json")]
    except OSError as error:
        yield fail(
            "keys",
            f"{error.filename}: {error.strerror}",
            f"chmod -R u+rwX {_typed(home.path)}",
        )
        return
    exposed = [path for path in private if _is_exposed(path)]
    for path in exposed:
        yield fail(
            "keys",
            f"{path} is not for you alone",
            f"chmod 600 {_typed(path)}, and own it",
        )
    damaged = [check for path in private if path not in exposed and (check := _key(path))]
    yield from damaged
    if not exposed and not damaged:
        yield ok("keys", f"{len(private)} key and run files, for you alone")


def _typed(path: Path) -> str:
    """As it is typed in a shell."""
    return shlex.quote(str(path))


def _key(path: Path) -> Check | None:
    """What is wrong with a key file."""
    if path.suffix != ".key":
        return None
    try:
        Identity.load(path)
    except FileNotFoundError:
        return None
    except HomeError as error:
        return fail("keys", error.message, error.hint or f"move {path} away")
    return None


def databases(home: Home) -> Iterator[Check]:
    """Whether what each node has stored can be read, by this version."""
    try:
        paths = sorted(home.path.glob("*.db"))
    except OSError:
        return  # said about the home already
    found = [check for path in paths if (check := database(path))]
    yield from found
    if paths and not found:
        yield ok("databases", f"{len(paths)} can be read")


def database(path: Path) -> Check | None:
    """What is wrong with a node's database. It is only read, also when its node runs."""
    away = f"put back a copy of it, or move {path.name}, {path.name}-wal and -shm away to start new"
    try:
        # Without a log beside it nobody has it open: then not even lock files are made.
        how = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "immutable=1"
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True)) as opened:
            version = opened.execute("PRAGMA user_version").fetchone()[0]
            if version > len(STEPS):
                said = f"{path} was made by a newer version of aios-nb"
                return fail("databases", said, "pip install --upgrade aios-nb")
            opened.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            if path.stat().st_size <= CHECKED_BYTES:
                said = opened.execute("PRAGMA quick_check(1)").fetchone()[0]
                if said != "ok":
                    return fail("databases", f"{path} is damaged: {said}", away)
    except (sqlite3.Error, OSError) as error:
        return fail("databases", f"{path} cannot be read: {error}", away)
    return None


def _is_exposed(path: Path) -> bool:
    try:
        found = path.stat()
    except OSError:
        return False  # gone meanwhile: a node has stopped
    return bool(found.st_mode & _OTHERS) or found.st_uid != os.geteuid()


def disk(path: Path) -> Check:
    free = shutil.disk_usage(path).free
    if free < DISK_FAIL_BYTES:
        return fail("disk", f"{size(free)} free", "make room: a full disk takes no messages")
    if free < DISK_WARN_BYTES:
        return warn("disk", f"{size(free)} free", "make room before it is full")
    return ok("disk", f"{size(free)} free")


def locks(path: Path) -> Check:
    """Whether a lock on this disk keeps a second holder out."""
    import fcntl

    try:
        with tempfile.NamedTemporaryFile(dir=path, prefix=".doctor-") as first:
            fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with Path(first.name).open("rb") as second:
                try:
                    fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return ok("locks", "file locks work on this disk")
    except OSError as error:
        return fail("locks", f"no file locks on this disk: {error.strerror}", _OTHER_DISK)
    return fail("locks", "a file lock on this disk keeps nobody out", _OTHER_DISK)


def wal(path: Path) -> Check:
    """Whether SQLite can keep its write-ahead log on this disk."""
    try:
        with (
            tempfile.TemporaryDirectory(dir=path, prefix=".doctor-") as folder,
            closing(sqlite3.connect(Path(folder) / "probe.db")) as database,
        ):
            mode = database.execute("PRAGMA journal_mode=WAL").fetchone()[0]
            database.execute("CREATE TABLE probe (x)")
            database.commit()
    except (sqlite3.Error, OSError) as error:
        return fail("wal", f"SQLite cannot write on this disk: {error}", _OTHER_DISK)
    if mode != "wal":
        return warn("wal", f"this disk gives no WAL, only {mode}: slower", _OTHER_DISK)
    return ok("wal", "SQLite's write-ahead log works on this disk")


_OTHER_DISK = "set AIOS_HOME to a folder on a local disk"


def _existing(path: Path) -> Path:
    while not path.exists() and path != path.parent:
        path = path.parent
    return path
