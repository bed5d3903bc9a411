"""Files on their way from a page: in pieces, and then on the node."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from aios_nb.client import SiteClient, put_file
from aios_nb.errors import TooLarge, UsageError
from aios_nb.parts import FILE_LIMIT_BYTES

HELD_BYTES = 100 << 20
"""Of files that are not on the node yet, together."""
STALLED_S = 4 * 3600.0
"""A page that says nothing more of a file for so long is closed. A cell may keep one waiting."""


class Uploads:
    """To one node, by the ids that the page gave them. Lives on that node's loop."""

    def __init__(self, client: SiteClient, there: Mapping[str, dict[str, Any]]) -> None:
        self.client = client
        self.there = dict(there)
        """Files on the node, which has them still when it is started again."""
        self._pieces: dict[str, bytearray] = {}
        """Who was given a piece last is the last one."""
        self._files: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._heard_at: dict[str, float] = {}

    async def take(self, message: Mapping[str, Any], buffers: Sequence[bytes]) -> None:
        """The next piece of a file; the last one puts it on the node."""
        upload, offset = str(message["id"]), int(message["offset"])
        self._heard_at[upload] = asyncio.get_running_loop().time()
        if self._is_there(upload, offset):
            return
        if self._future(upload).done():  # refused, perhaps to make room
            await self.done(upload)
            return
        try:
            _check_readable(message)
            held = self._add(upload, offset, buffers)
            if message.get("last"):
                del self._pieces[upload]
                name, mime = str(message["name"]), str(message.get("mime") or "")
                file = await put_file(
                    self.client, bytes(held), name, mime or "application/octet-stream"
                )
                self.there[upload] = file
                self._settle(upload, file)
        except Exception as error:
            self._pieces.pop(upload, None)
            self._settle(upload, error)
            raise

    def _is_there(self, upload: str, offset: int) -> bool:
        """Whether it was taken before: a page says a piece again if what it heard had a gap."""
        if upload in self.there:
            return True
        if upload not in self._pieces:  # on its way to the node, or not begun
            return upload in self._files and not self._files[upload].done()
        return offset < len(self._pieces[upload])

    def _add(self, upload: str, offset: int, buffers: Sequence[bytes]) -> bytearray:
        held = self._pieces.pop(upload, bytearray())
        if offset != len(held):  # what came before went with another node
            raise UsageError("a file did not arrive whole", hint="attach it again")
        for piece in buffers:
            held += piece
        if len(held) > FILE_LIMIT_BYTES:
            raise TooLarge(f"a file may have {FILE_LIMIT_BYTES >> 20} MB at most")
        self._pieces[upload] = held
        while sum(map(len, self._pieces.values())) > HELD_BYTES:
            self._give_up(next(iter(self._pieces)))
        return held

    def _give_up(self, upload: str) -> None:
        """Make room. A page that was closed says nothing: who waits longest has likely gone."""
        del self._pieces[upload]
        self._settle(upload, TooLarge("too many files at once", hint="send some of them first"))

    async def done(self, upload: str) -> dict[str, Any]:
        """The file as a message refers to it, when it is on the node."""
        if upload in self.there:
            return self.there[upload]
        if upload not in self._files:
            raise UsageError("a file did not arrive", hint="attach it again")
        file = self._files[upload]
        while not file.done():
            silent_s = asyncio.get_running_loop().time() - self._heard_at[upload]
            if silent_s >= STALLED_S:
                self._pieces.pop(upload, None)
                self._settle(upload, UsageError("a file did not arrive", hint="attach it again"))
            await asyncio.wait([file], timeout=STALLED_S - silent_s)
        return await asyncio.shield(file)

    def _future(self, upload: str) -> asyncio.Future[dict[str, Any]]:
        if upload not in self._files:
            self._files[upload] = asyncio.get_running_loop().create_future()
        return self._files[upload]

    def _settle(self, upload: str, outcome: dict[str, Any] | Exception) -> None:
        future = self._future(upload)
        if future.done():
            return
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
            future.exception()  # told to the page; nobody need ask for it again
        else:
            future.set_result(outcome)


def _check_readable(message: Mapping[str, Any]) -> None:
    if message.get("unreadable"):  # the page has found out halfway, perhaps
        said = f"{message['name']} cannot be read"
        raise UsageError(said, hint="is it a folder, or was it changed?")
