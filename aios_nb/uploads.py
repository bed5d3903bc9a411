"""Files in pieces over a connection that carries JSON: ``blobs.put`` and ``blobs.get``."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from aios_nb import params as p
from aios_nb.access import Principal
from aios_nb.blobs import BlobStore
from aios_nb.config import Limits
from aios_nb.errors import Busy, InvalidParams, TooLarge

CHUNK_BYTES = 512 * 1024
UPLOADS = 32
"""Uploads under way at once; each holds its bytes in memory until the last piece."""
STALE_S = 60.0


Shared = Callable[[Principal, str, str], bool]
"""Whether a node was shown a file (by its hash) with a message (by its id)."""


class Uploads:
    """The two methods by which our own clients move files."""

    def __init__(self, blobs: BlobStore, limits: Limits, shared: Shared) -> None:
        self._blobs = blobs
        self._limits = limits
        self._shared = shared
        self._parts: dict[tuple[str, str], tuple[bytearray, float]] = {}

    async def put(self, principal: Principal, params: p.BlobPut) -> dict[str, Any]:
        key = (principal.id, params.sha256)
        if params.offset == 0:
            self._parts.pop(key, None)
            self._make_room()
            self._parts[key] = (bytearray(), time.monotonic())
        part, _ = self._parts.get(key, (None, 0.0))
        if part is None or params.offset != len(part):
            raise InvalidParams("a piece is missing before this one", hint="start again at 0")
        if len(part) + len(params.chunk) > self._limits.file_bytes:
            del self._parts[key]
            raise TooLarge(f"a file may have {self._limits.file_bytes >> 20} MB at most")
        part += params.chunk
        self._parts[key] = (part, time.monotonic())
        if not params.last:
            return {"sha256": params.sha256, "size": len(part), "stored": False}
        del self._parts[key]

        async def whole() -> AsyncIterator[bytes]:
            yield bytes(part)

        size = await self._blobs.put_stream(
            whole(), params.sha256, principal.id, self._limits.file_bytes
        )
        return {"sha256": params.sha256, "size": size, "stored": True}

    def _make_room(self) -> None:
        long_ago = time.monotonic() - STALE_S
        self._parts = {key: part for key, part in self._parts.items() if part[1] > long_ago}
        if len(self._parts) >= UPLOADS:
            raise Busy("too many uploads at once")

    def get(self, principal: Principal, params: p.BlobGet) -> dict[str, Any]:
        path = self._blobs.open_path(params.sha256)
        if path is None or not self._may_read(principal, params):
            raise InvalidParams("no such file")
        with path.open("rb") as source:
            source.seek(min(params.offset, self._limits.file_bytes))  # some disks refuse more
            return {
                "sha256": params.sha256,
                "offset": params.offset,
                "size": path.stat().st_size,
                "chunk": source.read(CHUNK_BYTES),
            }

    def _may_read(self, principal: Principal, params: p.BlobGet) -> bool:
        """A node reads what came with a message between the two of us; others what is theirs."""
        if not principal.is_node:
            return self._blobs.may_read(params.sha256, principal)
        return params.message_id is not None and self._shared(
            principal, params.message_id, params.sha256
        )
