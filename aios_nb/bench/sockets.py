"""Load over a WebSocket: one connection that all slots share."""

from __future__ import annotations

import asyncio
import base64
import secrets
from typing import Any

import msgspec

from aios_nb.bench import frames
from aios_nb.bench.calls import ChatStream, decode, quoted
from aios_nb.bench.session import CONNECT_WAIT_S, Shared, SharedSession
from aios_nb.bench.spec import Broken, Target
from aios_nb.bench.upgraded import Upgraded

PROTOCOL = "aios-rpc-1"


class WsSession(SharedSession):
    """One socket, whose calls are told apart by their ids."""

    over = "a WebSocket"

    async def connect(self) -> Shared:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(CONNECT_WAIT_S):
            _, socket = await loop.create_connection(lambda: _Socket(self), self.host, self.port)
            try:
                await socket.introduce(self.target)
            except BaseException:
                socket.transport.close()
                raise
        return socket


class _Socket(Upgraded):
    def __init__(self, session: WsSession) -> None:
        super().__init__(session.slots)
        self._session = session
        self._busy: set[int] = set()

    async def introduce(self, target: Target) -> None:
        """Upgrade, hear the node's hello, give the token."""
        await self.upgrade(f"{self._session.host}:{self._session.port}", PROTOCOL)
        nonce = base64.urlsafe_b64encode(secrets.token_bytes(32)).rstrip(b"=").decode()
        self._say({"nonce": nonce})
        hello = msgspec.json.decode(await self.heard("the hello"))
        if target.node_id not in (None, hello.get("node_id")):
            raise Broken("another node answered the hello")
        self._say({"token": target.token})
        welcome = msgspec.json.decode(await self.heard("the welcome"))
        if welcome.get("ok") is not True:
            raise Broken(f"the token was not taken: {welcome}")
        self.introduced = True

    def _say(self, message: dict[str, Any]) -> None:
        self.transport.write(frames.frame(msgspec.json.encode(message)))

    def ask(self, slot: int, body: bytes) -> None:
        self._busy.add(slot)
        self.put(frames.frame(body))

    def got(self, payload: bytes) -> None:
        session = self._session
        incoming = decode(payload)
        slot = session.rpc.slot_of(incoming) if incoming is not None else None
        if incoming is None or slot is None or slot not in self._busy:
            self.fail(f"a message that belongs to no call: {quoted(payload)}")
            return
        rpc = session.rpc
        if isinstance(rpc, ChatStream):
            if rpc.take(slot, incoming):
                session.began(slot)
            if incoming.method is not None:
                return
            problem = rpc.end(slot)
        else:
            problem = rpc.answer(slot, incoming)
        self._busy.discard(slot)
        session.finished(slot, problem)

    def fail(self, problem: str) -> None:
        self.transport.close()
        busy, self._busy = self._busy, set()
        for slot in busy:
            self._session.lost(slot, problem)
