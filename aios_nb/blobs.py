"""Files by their hash: bytes in ``blobs/NAME/``, who may read them in the database.

A file that is missing and a file that is not yours look the same from outside.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import mimetypes
import os
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

from aios_nb.access import Principal, looks_strange
from aios_nb.config import Limits
from aios_nb.envelope import FileRef
from aios_nb.errors import Busy, InvalidParams, TooLarge
from aios_nb.private import own_folder
from aios_nb.store import Store, Tx

SHA256 = re.compile(r"[0-9a-f]{64}")
LOOSE_S = 3600
"""A stranger's file that no message refers to is dropped after this long."""
_THREAD_BYTES = 256 * 1024
"""Larger files are written off the loop."""


class BlobStore:
    """The files of one node."""

    def __init__(
        self,
        folder: Path,
        store: Store,
        limits: Limits,
        is_stranger: Callable[[str], bool] = looks_strange,
    ) -> None:
        self._folder = folder
        self._store = store
        self._limits = limits
        own_folder(folder)
        for left_over in folder.glob(".part-*"):
            left_over.unlink(missing_ok=True)
        self._is_stranger = is_stranger
        self._bytes: int = store.read("SELECT coalesce(sum(size), 0) FROM blobs")[0][0]
        self._quota = _Quota(limits.stranger_blob_bytes)
        self._quota.kept = sum(self._of_strangers().values())

    async def put(
        self, content: bytes, name: str, mime: str, owner: str, *, stranger: bool = False
    ) -> FileRef:
        """Keep these bytes; the reference goes into a message.

        ``stranger``: a stranger brings them, or an agent made them for one. They must fit into
        what strangers' files may take together.
        """
        sha256 = hashlib.sha256(content).hexdigest()

        async def once() -> AsyncIterator[bytes]:
            yield content

        limit = self._limits.file_bytes
        await self.put_stream(once(), sha256, owner, limit, stranger=stranger)
        return FileRef(safe_name(name), mime or guess_mime(name), len(content), sha256)

    async def put_stream(
        self,
        chunks: AsyncIterator[bytes],
        sha256: str,
        owner: str,
        limit: int,
        *,
        stranger: bool = False,
    ) -> int:
        """Keep what arrives if its hash is ``sha256``; returns the size. ``stranger`` as above."""
        if not SHA256.fullmatch(sha256):
            raise InvalidParams("a file is named by the lower-case hex SHA-256 of its bytes")
        part = self._folder / f".part-{secrets.token_hex(8)}"
        takes_room = stranger and self.size(sha256) is None  # what is here already takes none
        arrival = _Arrival(self._quota) if takes_room else None
        try:
            size = await self._receive(part, chunks, sha256, limit, arrival)
        except BaseException:
            part.unlink(missing_ok=True)
            if arrival is not None:
                arrival.over(kept=False)
            raise
        await self._keep(part, sha256, size, owner, arrival)
        return size

    async def _receive(
        self,
        part: Path,
        chunks: AsyncIterator[bytes],
        sha256: str,
        limit: int,
        arrival: _Arrival | None,
    ) -> int:
        digest = hashlib.sha256()
        size = 0
        with _disk(), part.open("xb") as out:
            os.fchmod(out.fileno(), 0o600)
        async for chunk in chunks:
            size += len(chunk)
            if size > limit:
                raise TooLarge(f"a file may have {limit // (1 << 20)} MB at most")
            if self._bytes + size > self._limits.blobs_bytes:
                raise Busy("this node's file store is full", retry_after_s=3600)
            if arrival is not None:
                arrival.add(len(chunk))
            digest.update(chunk)
            with _disk():
                if len(chunk) > _THREAD_BYTES:
                    await asyncio.to_thread(_add, part, chunk)
                else:
                    _add(part, chunk)
        if digest.hexdigest() != sha256:
            raise InvalidParams("the bytes do not match the hash in the address")
        return size

    async def _keep(
        self, part: Path, sha256: str, size: int, owner: str, arrival: _Arrival | None
    ) -> None:
        """Write the row, and give the file its name in the moment of the commit.

        In this order: a sweep can then never drop the bytes under a row that is new.
        """

        def apply(tx: Tx) -> bool:
            new = not tx.execute("SELECT 1 FROM blobs WHERE sha256 = ?", (sha256,)).fetchone()
            tx.execute(
                "INSERT INTO blobs VALUES (?, ?, ?)"
                " ON CONFLICT (sha256) DO UPDATE SET at = excluded.at",
                (sha256, size, int(time.time())),
            )
            tx.execute("INSERT OR IGNORE INTO blob_readers VALUES (?, ?)", (sha256, owner))
            return new

        def committed(new: bool) -> None:  # noqa: FBT001 - what apply gave
            part.replace(self._folder / sha256)
            self._bytes += size if new else 0
            if arrival is not None:
                arrival.over(kept=new)

        def done(_: object) -> None:
            part.unlink(missing_ok=True)
            if arrival is not None:
                arrival.over(kept=False)

        writing = self._store.write(apply, committed)
        writing.add_done_callback(done)
        await asyncio.shield(writing)

    def size(self, sha256: str) -> int | None:
        rows = self._store.read("SELECT size FROM blobs WHERE sha256 = ?", (sha256,))
        return rows[0][0] if rows else None

    def may_read(self, sha256: str, reader: Principal) -> bool:
        """Whether it exists and this caller uploaded it or was shown it."""
        if reader.is_owner:
            return self.size(sha256) is not None
        return bool(
            self._store.read(
                "SELECT 1 FROM blob_readers WHERE sha256 = ? AND reader = ?", (sha256, reader.id)
            )
        ) or self._shown_behind(sha256, reader)

    def _shown_behind(self, sha256: str, bridge: Principal) -> bool:
        """Whether one of the people a bridge speaks for was shown it."""
        if not bridge.prefix:
            return False
        rows = self._store.read("SELECT reader FROM blob_readers WHERE sha256 = ?", (sha256,))
        return any(bridge.speaks_for(person) for (person,) in rows)

    def open_path(self, sha256: str) -> Path | None:
        if not SHA256.fullmatch(sha256):
            return None
        path = self._folder / sha256
        return path if path.is_file() else None

    def read(self, sha256: str) -> bytes:
        path = self.open_path(sha256)
        if path is None:
            raise InvalidParams("no such file on this node")
        return path.read_bytes()

    def check(self, files: list[FileRef], sender: Principal) -> tuple[FileRef, ...]:
        """The references of a message, if its sender may use them; sizes are ours, not theirs."""
        checked = []
        for ref in files:
            size = self.size(ref.sha256) if self.may_read(ref.sha256, sender) else None
            if size is None:
                raise InvalidParams(
                    f"no such file: {ref.name[:80]}", hint="upload it first (PUT /blobs/SHA256)"
                )
            checked.append(FileRef(safe_name(ref.name), ref.mime[:100], size, ref.sha256))
        return tuple(checked)

    async def sweep(self, referenced: set[str]) -> int:
        """Drop files older than the limit that no message refers to; returns how many.

        Strangers' files go when their messages have gone.
        """
        theirs = self._of_strangers()
        now = int(time.time())
        before = int(now - self._limits.blob_days * 86_400)
        loose_before = now - LOOSE_S
        rows = self._store.read("SELECT sha256, at FROM blobs WHERE at < ?", (loose_before,))
        stale = [
            (sha256, at)
            for sha256, at in rows
            if sha256 not in referenced and (at < before or sha256 in theirs)
        ]

        def apply(tx: Tx) -> list[tuple[str, int]]:
            gone = []
            for sha256, at in stale:  # unless it was sent again meanwhile
                row = tx.execute(
                    "SELECT size FROM blobs WHERE sha256 = ? AND at = ?", (sha256, at)
                ).fetchone()
                if row is not None:
                    tx.execute("DELETE FROM blobs WHERE sha256 = ?", (sha256,))
                    tx.execute("DELETE FROM blob_readers WHERE sha256 = ?", (sha256,))
                    gone.append((sha256, row[0]))
            return gone

        def committed(gone: list[tuple[str, int]]) -> None:
            for sha256, size in gone:
                self._bytes -= size
                with contextlib.suppress(OSError):
                    (self._folder / sha256).unlink(missing_ok=True)

        gone = await self._store.write(apply, committed) if stale else []
        self._quota.kept = sum(self._of_strangers().values())
        return len(gone)

    def _of_strangers(self) -> dict[str, int]:
        """Files that only strangers may read, and agents, which may have made them for one."""
        ours = set()
        sizes = {}
        strange: dict[str, bool] = {}
        for sha256, size, reader in self._store.read(
            "SELECT b.sha256, b.size, r.reader FROM blobs b JOIN blob_readers r USING (sha256)"
        ):
            sizes[sha256] = size
            if reader not in strange:
                is_agent = "@" in reader and not reader.startswith("owner@")
                strange[reader] = is_agent or self._is_stranger(reader)
            if not strange[reader]:
                ours.add(sha256)
        return {sha256: size for sha256, size in sizes.items() if sha256 not in ours}


class _Quota:
    """How much strangers' files take together, and may take."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.kept = 0
        self.arriving = 0


class _Arrival:
    """A stranger's file on its way in: its bytes count from the first one on."""

    def __init__(self, quota: _Quota) -> None:
        self._quota = quota
        self._size = 0

    def add(self, count: int) -> None:
        quota = self._quota
        if quota.kept + quota.arriving + count > quota.most:
            raise Busy("this node keeps no more files for strangers", retry_after_s=3600)
        quota.arriving += count
        self._size += count

    def over(self, *, kept: bool) -> None:
        """It is here, or given up; only the first word counts."""
        self._quota.arriving -= self._size
        self._quota.kept += self._size if kept else 0
        self._size = 0


def _add(part: Path, chunk: bytes) -> None:
    with part.open("r+b") as out:  # never made anew: it may have been given up meanwhile
        out.seek(0, os.SEEK_END)
        out.write(chunk)


@contextlib.contextmanager
def _disk() -> Iterator[None]:
    """Around work on the disk alone: a client that leaves is not a full disk."""
    try:
        yield
    except OSError as error:
        raise Busy("the node cannot write to its disk", hint=error.strerror) from error


def safe_name(name: str) -> str:
    """A bare file name: no folders, no control characters, never hidden, at most 200 bytes."""
    bare = re.split(r"[\\/]", name)[-1]
    bare = "".join(char for char in bare if char.isprintable()).lstrip(". ")
    return bare.encode()[:200].decode(errors="ignore") or "file"


def guess_mime(name: str) -> str:
    return mimetypes.guess_type(name)[0] or "application/octet-stream"
