"""Load from older MCP clients: each connection has a session, opened by a handshake."""

from __future__ import annotations

import asyncio
import re

from aios_nb.bench.http1 import ResponseParser
from aios_nb.bench.lanes import HttpSession
from aios_nb.bench.mcpcalls import BEGIN, BEGUN, SESSION
from aios_nb.bench.session import CONNECT_WAIT_S
from aios_nb.bench.spec import Broken, Target

READ_BYTES = 1 << 16
_ID = re.compile(rb"\r\n" + SESSION.encode() + rb": *([!-~]+)\r\n", re.IGNORECASE)


class McpSession(HttpSession):
    """As over plain HTTP, with the id of the slot's session in each head."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._open: set[int] = set()

    async def open(self) -> None:
        for slot in range(self.slots):
            if slot not in self._open:
                async with asyncio.timeout(CONNECT_WAIT_S):
                    self.heads[slot] = self.head((SESSION, await self._begun()))
                self._open.add(slot)
        await super().open()

    async def _begun(self) -> str:
        """The id of a new session; it is not bound to the connection it was opened on."""
        reader, writer = await asyncio.open_connection(self.host, self.port)
        try:
            status, head = await _asked(reader, writer, self.head() % len(BEGIN) + BEGIN)
            found = _ID.search(head)
            if status != 200 or found is None:
                raise Broken(f"no MCP session was opened: HTTP {status}")
            id_ = found[1].decode()
            more = self.head((SESSION, id_)) % len(BEGUN) + BEGUN
            status, _ = await _asked(reader, writer, more)
            if status != 202:
                raise Broken(f"an MCP session did not begin: HTTP {status}")
            return id_
        finally:
            writer.close()


async def _asked(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
) -> tuple[int, bytes]:
    """Status and head of the reply, once it is here whole."""
    statuses: list[int] = []
    parser = ResponseParser(lambda status, _: statuses.append(status))
    got = b""
    writer.write(request)
    while not statuses:
        data = await reader.read(READ_BYTES)
        if not data:
            raise Broken("the connection was closed by the server")
        got += data
        parser.feed(data)
    return statuses[0], got.partition(b"\r\n\r\n")[0] + b"\r\n"
