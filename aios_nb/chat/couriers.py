"""Files between nodes: fetched piece by piece over the link, checked by their hash."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterable
from typing import Any

from aios_nb.access import Principal
from aios_nb.blobs import BlobStore
from aios_nb.envelope import FileRef, Task
from aios_nb.errors import AgentFailed, ConnectionLost, RpcError, Unreachable
from aios_nb.ports import Link, Links

TRIES = 5
PAUSE_S = 0.2


class Couriers:
    """Brings files that are at another node."""

    def __init__(self, links: Links, blobs: BlobStore, file_bytes: int) -> None:
        self._links = links
        self._blobs = blobs
        self._file_bytes = file_bytes

    async def bring(self, task: Task, caller: Principal) -> None:
        """Before a run for a remote home: the files of its request, from whoever sent it.

        Also those we happen to have: who names a hash must show that they have the file.
        """
        if caller.is_node:
            missing = [f for f in task.files if not self._blobs.may_read(f.sha256, caller)]
            await self.fetch(
                caller.id, task.message_id, missing, caller.id, stranger=caller.is_stranger
            )

    async def fetch(
        self,
        node_id: str,
        message_id: str,
        files: Iterable[FileRef],
        owner: str,
        *,
        stranger: bool = False,
    ) -> None:
        """Bring these files of a message; ``owner`` may read them here. Raises ``AgentFailed``."""
        for file in files:
            try:
                await self._blobs.put_stream(
                    self._pieces(node_id, message_id, file),
                    file.sha256,
                    owner,
                    self._file_bytes,
                    stranger=stranger,
                )
            except RpcError as error:
                raise AgentFailed(
                    f"the file {file.name} could not be fetched: {error.message}", ran="no"
                ) from error

    async def _pieces(self, node_id: str, message_id: str, file: FileRef) -> AsyncIterator[bytes]:
        offset = 0
        while True:
            piece = await self._piece(node_id, message_id, file.sha256, offset)
            chunk = base64.b64decode(piece["chunk"])
            offset += len(chunk)
            if chunk:
                yield chunk
            if not chunk or offset >= piece["size"]:
                return

    async def _piece(self, node_id: str, message_id: str, sha256: str, offset: int) -> Any:
        asked = {"message_id": message_id, "sha256": sha256, "offset": offset}
        for left in reversed(range(TRIES)):
            try:
                link: Link = await self._links.reach(node_id)
                return await link.call("blobs.get", asked)
            except (ConnectionLost, Unreachable) as error:
                if not left:
                    raise Unreachable("its node has gone", reason="no answer") from error
                await self._links.news(node_id, PAUSE_S)
        raise AssertionError  # the last try returns or raises
