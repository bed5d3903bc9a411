"""``$AIOS_HOME``: where nodes keep their keys and data, which names are taken, which nodes run.

A name is held by an OS lock on ``run/NAME.lock``, which ends with its process however that dies.
``run/NAME.json`` tells the programs of this user how to reach the node; without the lock it is
stale. Lock files are never deleted: two starters could then hold two files of one name.
"""

from __future__ import annotations

import base64
import contextlib
import difflib
import errno
import functools
import hashlib
import os
import re
import secrets
import subprocess
import sys
import threading
import time
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Self

import msgspec

from aios_nb.config import home_dir
from aios_nb.envelope import NAME, now_iso
from aios_nb.errors import HomeError, NameTaken, NotRunning, UsageError
from aios_nb.private import is_open_to_others, own_folder, read_private, replace_private
from aios_nb.tilde import expanded

if sys.platform != "win32":
    import fcntl

NAME_MAX = 48
NOTEBOOK_PATH = "JPY_SESSION_NAME"
"""The variable in which Jupyter tells a kernel whose it is."""
FALLBACK_NAME = "node"
CLAIM_WAIT_S = 5.0
"""How long a taken name is waited for: a kernel that restarts is gone by then."""
SIBLINGS_MAX = 999
_RETRY_S = 0.05
_READERS_WAIT_S = 1.0
"""How long a name that only readers are looking at is tried again. They look for microseconds."""
_SLUG_MAX = 32
_HASH_CHARS = 6
_RUN_FILE_LIMIT_BYTES = 16_384
_FOLDERS = ("keys", "run", "blobs")
_BRIDGE_NAME = re.compile(r"telegram-[0-9]{5,}")
"""``telegram-BOTID.db`` is the bridge's file, so no node has such a name."""


@functools.cache
def boot_id() -> str:
    """What tells this run of this machine from others; empty where the system does not say."""
    if sys.platform == "darwin":
        return _sysctl("kern.bootsessionuuid")
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""


def _sysctl(name: str) -> str:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        found = subprocess.run(  # noqa: S603 (a fixed program, a fixed name)
            ["/usr/sbin/sysctl", "-n", name], capture_output=True, text=True, timeout=5, check=True
        )
        return found.stdout.strip().lower()
    return ""


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """How this user's programs reach a running node. Its ``repr`` keeps the token to itself."""

    name: str
    node_id: str
    url: str
    token: str
    network: str = "main"
    pid: int = msgspec.field(default_factory=os.getpid)
    boot_id: str = msgspec.field(default_factory=boot_id)
    started_at: str = msgspec.field(default_factory=now_iso)

    def __repr__(self) -> str:
        return f"RunInfo({self.name!r}, {self.url!r}, node_id={self.node_id!r}, pid={self.pid})"


class Claim:
    """A name that is ours until ``release`` or the end of this process."""

    def __init__(self, home: Home, name: str, fd: int, *, sibling_of: str | None) -> None:
        self.home = home
        self.name = name
        self.sibling_of = sibling_of
        """The name that was wanted, if it stayed taken and a numbered one is used."""
        self._fd: int | None = fd

    @property
    def held(self) -> bool:
        """False after ``release``, and in a forked child."""
        return self._fd is not None

    def publish(self, info: RunInfo) -> None:
        """Tell this user's programs how to reach the node."""
        if not self.held:
            raise HomeError(f"the name {self.name} is not held any more")
        if info.name != self.name:
            raise ValueError(f"this claim is for {self.name}, not for {info.name}")
        replace_private(self.home.run_path(self.name), msgspec.json.encode(info))

    def release(self) -> None:
        """Take the run file away and let others have the name. A second call does nothing."""
        with _gate:
            fd, self._fd = self._fd, None
            if fd is None:
                return
            _held.pop(_key(self.home.lock_path(self.name)), None)
            with contextlib.suppress(OSError):  # without the lock it is stale, which is enough
                self.home.run_path(self.name).unlink(missing_ok=True)
            _unlock(fd)

    def _forget(self) -> None:
        # In a forked child: close our copy, do not unlock. The lock is still the parent's.
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"Claim({self.name!r}{'' if self.held else ', released'})"


class Home:
    """The folder of this user's nodes. Reading makes nothing; ``claim`` makes what is missing."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = (home_dir() if path is None else expanded(path)).absolute()

    def key_path(self, name: str) -> Path:
        return self.path / "keys" / f"{check_name(name)}.key"

    def db_path(self, name: str) -> Path:
        return self.path / f"{check_name(name)}.db"

    def blobs_path(self, name: str) -> Path:
        return self.path / "blobs" / check_name(name)

    def library_path(self, name: str) -> Path:
        """Where a node remembers which folder its librarian looks in."""
        return self.path / f"{check_name(name)}.library"

    def run_path(self, name: str) -> Path:
        return self.path / "run" / f"{check_name(name)}.json"

    def lock_path(self, name: str) -> Path:
        return self.path / "run" / f"{check_name(name)}.lock"

    def prepare(self) -> None:
        """Make the folders, for their owner only; ``HomeError`` if that cannot be."""
        if is_open_to_others(self.path) and not self._is_ours_or_empty():
            # Somebody's $HOME or /tmp: closing it to others is not for us to do.
            raise HomeError(
                f"{self.path} is open to other users and holds other things",
                hint="set AIOS_HOME to a new or empty folder",
            )
        own_folder(self.path)
        for folder in _FOLDERS:
            own_folder(self.path / folder)

    def _is_ours_or_empty(self) -> bool:
        try:
            entries = {entry.name for entry in self.path.iterdir()}
        except OSError as error:
            raise HomeError(
                f"{self.path} cannot be used: {error.strerror}",
                hint="move it away, or set AIOS_HOME to a folder of your own",
            ) from error
        return not entries or entries.issuperset(_FOLDERS)

    def claim(
        self,
        name: str | None = None,
        wait_s: float = CLAIM_WAIT_S,
        environ: Mapping[str, str] | None = None,
    ) -> Claim:
        """Hold ``name``, else the notebook's, else ``node``; a numbered one if it stays taken."""
        if sys.platform == "win32":
            raise HomeError("Windows is not supported", hint="use WSL, Linux or macOS")
        chosen = name is not None
        if name is None:
            name, chosen = default_name(os.environ if environ is None else environ)
        check_name(name)
        self.prepare()
        claim = self._claim_within(name, wait_s if chosen else 0.0)
        if claim is not None:
            return claim
        for sibling in _siblings(name):
            claim = self._claim_within(sibling, 0.0, sibling_of=name if chosen else None)
            if claim is not None:
                return claim
        raise NameTaken(
            f"the name {name} and {SIBLINGS_MAX} like it are taken", hint="choose another --name"
        )

    def _claim_within(
        self, name: str, wait_s: float, *, sibling_of: str | None = None
    ) -> Claim | None:
        start = time.monotonic()
        while True:
            got = self._try_claim(name, sibling_of)
            if isinstance(got, Claim):
                return got
            patience = wait_s if got is _TAKEN else max(wait_s, _READERS_WAIT_S)
            if time.monotonic() - start >= patience:
                return None
            # Uneven steps, so that two starters do not keep disturbing each other.
            _pause(_RETRY_S * (0.5 + secrets.randbelow(1000) / 1000))

    def _try_claim(self, name: str, sibling_of: str | None) -> Claim | object:
        """The claim, or ``_TAKEN``, or ``_DISTURBED`` if only readers were in the way."""
        path = self.lock_path(name)
        with _gate:
            if _key(path) in _held:
                return _TAKEN
            try:
                fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise HomeError(f"{path} cannot be opened: {error.strerror}") from error
            state = _TAKEN
            try:
                state = _own(fd, path)
            finally:
                if state is not _OWNED:
                    _unlock(fd)
            if state is not _OWNED:
                return state
            claim = Claim(self, name, fd, sibling_of=sibling_of)
            _held[_key(path)] = claim
        try:
            self.run_path(name).unlink(missing_ok=True)  # left by a killed node
        except OSError as error:
            claim.release()
            raise HomeError(f"{self.run_path(name)} cannot be removed: {error.strerror}") from error
        return claim

    def running(self) -> list[RunInfo]:
        """The nodes of this home that run on this machine, by name. Leaves stale files alone."""
        return [info for name in self.run_names() if (info := self._running(name)) is not None]

    def run_names(self) -> list[str]:
        """The nodes that have a run file, running or not."""
        try:
            entries = [entry.name for entry in (self.path / "run").iterdir()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise HomeError(f"{self.path} cannot be read: {error.strerror}") from error
        names = (entry.removesuffix(".json") for entry in entries if entry.endswith(".json"))
        return sorted(name for name in names if _is_name(name))

    def _running(self, name: str) -> RunInfo | None:
        if not self.is_held(name):
            return None
        try:
            content = read_private(self.run_path(name), limit_bytes=_RUN_FILE_LIMIT_BYTES)
            info = msgspec.json.decode(content, type=RunInfo)
        except (FileNotFoundError, HomeError, msgspec.DecodeError, UnicodeDecodeError):
            return None
        here = boot_id()
        # A home on a network disk is seen by several machines; their loopback is not ours.
        elsewhere = bool(here and info.boot_id and info.boot_id != here)
        return None if elsewhere or info.name != name else info

    def is_held(self, name: str) -> bool:
        """Whether a process holds this name; a starting one counts."""
        path = self.lock_path(name)
        if sys.platform == "win32":
            return False
        with _gate:
            # Also keeps us from opening our own lock: on network disks closing it would end it.
            if _key(path) in _held:
                return True
            try:
                fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                return False
            free = False
            try:
                free = _lock(fd, path, shared=True)
            finally:
                _unlock(fd)
        return not free

    def find(self, name: str | None = None, environ: Mapping[str, str] | None = None) -> RunInfo:
        """The node meant by ``--node``, else by ``AIOS_NODE``, else the only one that runs."""
        name = name or (os.environ if environ is None else environ).get("AIOS_NODE") or None
        running = self.running()
        names = [info.name for info in running]
        if name is not None:
            for info in running:
                if info.name == name:
                    return info
            raise self._not_running(name, names)
        if len(running) == 1:
            return running[0]
        if running:
            raise NotRunning(
                f"several nodes are running: {', '.join(names)}",
                hint="say which with --node NAME or AIOS_NODE",
            )
        raise NotRunning("no node is running", hint="start one: aios-nb up")

    def _not_running(self, name: str, names: list[str]) -> NotRunning:
        if _is_name(name) and self.is_held(name):
            return NotRunning(f"the node {name} is still starting", hint="try again in a moment")
        if near := difflib.get_close_matches(name, names, n=3, cutoff=0.5):
            hint = f"did you mean {' or '.join(near)}?"
        elif names:
            hint = f"running: {', '.join(names)}"
        else:
            hint = f"start it: aios-nb up --name {name if _is_name(name) else _slug(name)}"
        return NotRunning(f"no node called {name} is running", hint=hint)


# Names -----------------------------------------------------------------------------------


def check_name(name: str) -> str:
    """``name`` itself, if a node may be called so."""
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not a name for a node",
            hint=f"use a-z, 0-9, - and _, at most {NAME_MAX}; for example {_slug(name)}",
        )
    if _BRIDGE_NAME.fullmatch(name):
        raise UsageError(f"{name} is kept for the Telegram bridge", hint="choose another --name")
    return name


def default_name(environ: Mapping[str, str]) -> tuple[str, bool]:
    """A node's name when none was given, and whether it comes from the notebook's path."""
    path = environ.get(NOTEBOOK_PATH, "")
    if not path:
        return FALLBACK_NAME, False
    # Some file systems store accents apart from their letter: one notebook, one name.
    same = unicodedata.normalize("NFC", path).encode("utf-8", "surrogateescape")
    short = base64.b32encode(hashlib.sha256(same).digest()).decode().lower()[:_HASH_CHARS]
    stem = PurePosixPath(path.replace("\\", "/")).name.removesuffix(".ipynb")
    return f"{_slug(stem)}-{short}", True


def _slug(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:_SLUG_MAX].rstrip("-") or "notebook"


def _siblings(name: str) -> Iterator[str]:
    for number in range(2, SIBLINGS_MAX + 2):
        suffix = f"-{number}"
        yield name[: NAME_MAX - len(suffix)] + suffix


def _is_name(name: str) -> bool:
    return NAME.fullmatch(name) is not None and not _BRIDGE_NAME.fullmatch(name)


# Locks -----------------------------------------------------------------------------------

_OWNED = object()
_TAKEN = object()
_DISTURBED = object()
_gate = threading.RLock()
"""Held while lock files are opened, so that no fork copies one that is not in ``_held`` yet."""
_held: dict[str, Claim] = {}
"""The claims of this process, by lock file."""


def _pause(seconds: float) -> None:
    time.sleep(seconds)


def _key(path: Path) -> str:
    return os.path.realpath(path)


def _lock(fd: int, path: Path, *, shared: bool) -> bool:
    try:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES}:
            return False
        raise HomeError(
            f"{path} cannot be locked: {error.strerror}",
            hint="set AIOS_HOME to a folder on a local disk",
        ) from error
    return True


def _own(fd: int, path: Path) -> object:
    """``_OWNED`` if the lock is ours now, ``_TAKEN``, or ``_DISTURBED`` if it is worth a retry."""
    if _lock(fd, path, shared=False):
        # Not the same file if the folder was cleared by hand after we opened it.
        return _OWNED if _is_file_at(fd, path) else _DISTURBED
    # A reader's shared lock keeps us out too. If we can share it, nobody owns the name.
    return _DISTURBED if _lock(fd, path, shared=True) else _TAKEN


def _unlock(fd: int) -> None:
    # Closing alone would not end a lock of which a forked child has a copy.
    with contextlib.suppress(OSError):  # a disk that cannot lock; closing is what is left
        fcntl.flock(fd, fcntl.LOCK_UN)
    os.close(fd)


def _is_file_at(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except FileNotFoundError:
        return False


def _in_forked_child() -> None:
    # Without this a child that outlives a killed node would keep the node's name.
    for claim in _held.values():
        claim._forget()  # noqa: SLF001 (same module)
    _held.clear()
    _gate.release()


if sys.platform != "win32":
    os.register_at_fork(
        before=_gate.acquire, after_in_parent=_gate.release, after_in_child=_in_forked_child
    )
