"""Files between nodes: fetched piece by piece over the link, checked by their hash."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence

import msgspec

from aios_nb.access import Principal
from aios_nb.blobs import SHA256, BlobStore, safe_name
from aios_nb.chat.outbox import Attempts
from aios_nb.envelope import FILES_PER_MESSAGE, FileRef, Task
from aios_nb.errors import (
    AgentFailed,
    Busy,
    ConnectionLost,
    InvalidParams,
    RpcError,
    TooLarge,
    Unreachable,
)
from aios_nb.ports import Link, Links

MIME_CHARS = 100


class _Piece(msgspec.Struct):
    """What ``blobs.get`` answers, as far as it is read."""

    chunk: bytes
    size: int


class Couriers:
    """Brings files that are at another node."""

    def __init__(self, links: Links, blobs: BlobStore, file_bytes: int) -> None:
        self._links = links
        self._blobs = blobs
        self.file_bytes = file_bytes

    async def bring(self, task: Task, caller: Principal) -> None:
        """Before a run for a remote home: the files of its request, from whoever sent it.

        Also those we happen to have: who names a hash must show that they have the file.
        """
        if caller.is_node:
            missing = [f for f in task.files if not self._blobs.may_read(f.sha256, caller)]
            await self.fetch(
                caller.id,
                task.message_id,
                missing,
                caller.id,
                ran="no",
                stranger=caller.is_stranger,
            )

    async def fetch(
        self,
        node_id: str,
        message_id: str,
        files: Iterable[FileRef],
        owner: str,
        *,
        ran: str,
        stranger: bool = False,
    ) -> None:
        """Bring these files of a message; ``owner`` may read them here. Raises ``AgentFailed``.

        A node that is away is tried again and again: whoever waits for this has a deadline.
        """
        for file in files:
            try:
                await self._blobs.put_stream(
                    self._pieces(node_id, message_id, file),
                    file.sha256,
                    owner,
                    self.file_bytes,
                    stranger=stranger,
                )
            except RpcError as error:
                raise AgentFailed(
                    f"the file {file.name} could not be fetched: {error.message}", ran=ran
                ) from error

    async def _pieces(self, node_id: str, message_id: str, file: FileRef) -> AsyncIterator[bytes]:
        offset = 0
        while True:
            piece = await self._piece(node_id, message_id, file.sha256, offset)
            offset += len(piece.chunk)
            wrong = piece.size != file.size or offset > file.size
            if wrong or (not piece.chunk and offset < file.size):
                raise InvalidParams("it has another size than was said")
            yield piece.chunk
            if offset == file.size:
                return

    async def _piece(self, node_id: str, message_id: str, sha256: str, offset: int) -> _Piece:
        asked = {"message_id": message_id, "sha256": sha256, "offset": offset}
        attempts = Attempts()
        while True:
            try:
                link: Link = await self._links.reach(node_id)
                return msgspec.convert(await link.call("blobs.get", asked), _Piece)
            except (ConnectionLost, Unreachable):
                await self._links.news(node_id, attempts.pause_s())
            except Busy:
                await asyncio.sleep(attempts.pause_s())
            except msgspec.ValidationError:
                raise InvalidParams("its node does not give it in the agreed form") from None


def checked(files: Sequence[FileRef], file_bytes: int) -> tuple[FileRef, ...]:
    """References to files that are still at another node, as it names them, fit to be kept."""
    if len(files) > FILES_PER_MESSAGE:
        raise TooLarge(f"a message may carry {FILES_PER_MESSAGE} files at most")
    for file in files:
        if not SHA256.fullmatch(file.sha256):
            raise InvalidParams("a file is named by the lower-case hex SHA-256 of its bytes")
        if not 0 <= file.size <= file_bytes:
            raise TooLarge(f"a file may have {file_bytes >> 20} MB at most")
    return tuple(FileRef(safe_name(f.name), f.mime[:MIME_CHARS], f.size, f.sha256) for f in files)
