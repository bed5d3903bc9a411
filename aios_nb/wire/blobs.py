"""``/blobs/SHA256``: files go in if their hash is right, and come out as attachments only."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Protocol, cast

import msgspec
from aiohttp import web

from aios_nb.access import Principal
from aios_nb.config import MB, Limits
from aios_nb.errors import Busy, InvalidParams, TooLarge
from aios_nb.wire.connection import Connection, next_piece
from aios_nb.wire.guard import Refusal
from aios_nb.wire.replies import HEADERS, json_reply, refused

PREFIX = "/blobs/"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_HEADERS = {
    **HEADERS,
    "Cache-Control": "private",
    "Content-Type": "application/octet-stream",
    "Content-Disposition": "attachment",
    "Content-Security-Policy": "sandbox",
}
NO_SUCH_FILE = Refusal(404, "no such file on this node")


class Files(Protocol):
    """Where the bytes are kept."""

    async def put_stream(
        self, chunks: AsyncIterator[bytes], sha256: str, owner: str, limit: int
    ) -> int: ...
    def open_path(self, sha256: str) -> Path | None: ...
    def may_read(self, sha256: str, reader: Principal) -> bool: ...


class BlobRoute:
    """Answers ``PUT``, ``GET`` and ``HEAD`` for one file."""

    def __init__(self, files: Files, limits: Limits) -> None:
        self._files = files
        self._limits = limits
        most = f"a file may have {limits.file_bytes / MB:g} MB at most"
        self._too_large = Refusal(413, most)

    async def answer(self, request: web.BaseRequest, principal: Principal) -> web.StreamResponse:
        sha256 = request.path[len(PREFIX) :]
        if not _SHA256.fullmatch(sha256):
            hint = "a file is named by the lower-case hex SHA-256 of its bytes"
            return refused(Refusal(404, NO_SUCH_FILE.error, hint))
        if request.method == "PUT":
            return await self._put(request, principal, sha256)
        path = self._files.open_path(sha256) if self._files.may_read(sha256, principal) else None
        if path is None:
            return refused(NO_SUCH_FILE)
        return web.FileResponse(path, headers=_HEADERS)

    async def _put(
        self, request: web.BaseRequest, principal: Principal, sha256: str
    ) -> web.StreamResponse:
        if (request.content_length or 0) > self._limits.file_bytes:
            return refused(self._too_large)
        chunks = self._chunks(request)
        try:
            size = await self._files.put_stream(
                chunks, sha256, principal.id, self._limits.file_bytes
            )
        except TooLarge:
            return refused(self._too_large)
        except InvalidParams as problem:
            return refused(Refusal(400, problem.message, problem.hint))
        except Busy as problem:
            wait = (("Retry-After", str(int(problem.data["retry_after_s"]) or 1)),)
            return refused(Refusal(503, problem.message, problem.hint, wait))
        return json_reply(request, msgspec.json.encode({"sha256": sha256, "size": size}))

    async def _chunks(self, request: web.BaseRequest) -> AsyncIterator[bytes]:
        """The body as it comes; each piece must come in time."""
        connection = cast("Connection", request.protocol)
        while True:
            connection.expect(self._limits.body_wait_s)
            chunk = await next_piece(request)
            connection.due = None
            if not chunk:
                return
            yield chunk
