"""Post offices on real sockets, and strangers who write to them."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from aios_nb.hub.post import Kind, Post
from aios_nb.hub.presence import Presence, State, declare, peek
from aios_nb.identity import Identity
from aios_nb.records import Scope

HERE = "127.0.0.1"
CEILING_S = 30.0
WRITE_AGAIN_AFTER = 50
"""Looks in vain."""
Address = tuple[str, int]


async def until(condition: Callable[[], Any]) -> None:
    """Return when it holds; a ceiling for what never will, not a measure of speed."""
    async with asyncio.timeout(CEILING_S):
        while not condition():  # noqa: ASYNC110 (of others' sockets, which ring no bell)
            await asyncio.sleep(0.002)


def word(
    identity: Identity,
    address: Address | None,
    *,
    net: str = "main",
    epoch: int = 1,
    incarnation: int = 0,
    scope: Scope = Scope.LOOPBACK,
    state: State = State.ALIVE,
) -> Presence:
    return declare(
        identity,
        net,
        epoch=epoch,
        incarnation=incarnation,
        scope=scope,
        address=address,
        state=state,
    )


class Office:
    """A node's post, with what it was brought."""

    def __init__(
        self,
        identity: Identity | None = None,
        *,
        net: str = "main",
        epoch: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.identity = identity or Identity.generate()
        self.node_id = self.identity.node_id
        self.net = net
        self.epoch = epoch
        self.address: Address | None = None
        self.letters: list[tuple[str, Kind, bytes]] = []
        self.met: list[Presence] = []
        self.post = Post(self.identity, net, lambda: self.said, clock=clock)
        self.post.on(Kind.GOSSIP, lambda who, body: self.letters.append((who, Kind.GOSSIP, body)))
        self.post.on(Kind.DHT, lambda who, body: self.letters.append((who, Kind.DHT, body)))
        self.post.on_met = self.met.append

    async def open(self, host: str = HERE, port: int = 0, *, named: str = "") -> Office:
        bound = await self.post.open(host, port)
        self.address = (named or host, bound)
        self.said = word(self.identity, self.address, net=self.net, epoch=self.epoch)
        return self

    @property
    def port(self) -> int:
        assert self.address is not None
        return self.address[1]

    def write(self, to: Office, body: bytes, kind: Kind = Kind.GOSSIP) -> bool:
        return self.post.send(to.node_id, kind, body)

    async def reaches(self, other: Office, body: bytes = b"are you there") -> None:
        """Write to it until that arrives, which is once or more: a letter may be lost."""
        patience = itertools.count()

        def arrived() -> bool:
            if (self.node_id, Kind.GOSSIP, body) in other.letters:
                return True
            if next(patience) % WRITE_AGAIN_AFTER == 0:
                self.write(other, body)
            return False

        await until(arrived)

    def bodies(self) -> list[bytes]:
        return [body for _, _, body in self.letters]


class Stranger:
    """A plain socket: sends any bytes, and keeps what comes back."""

    def __init__(self, host: str = HERE, port: int = 0) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_DGRAM)
        self.socket.settimeout(0)
        self.socket.bind((host, port))
        self.address: Address = (host, self.socket.getsockname()[1])
        self.sent_bytes = 0
        self.answers: list[bytes] = []

    def send(self, data: bytes, to: Office) -> None:
        assert to.address is not None
        self.socket.sendto(data, to.address)
        self.sent_bytes += len(data)

    def read(self) -> list[bytes]:
        """All that came so far."""
        with contextlib.suppress(BlockingIOError):
            while True:
                self.answers.append(self.socket.recv(65536))
        return self.answers

    async def told(self, data: bytes, to: Office) -> None:
        """Send it, and wait until it was read there, and answered if it ever will be."""
        self.send(data, to)
        before = to.post.counts["size"]
        self.socket.sendto(b".", to.address)
        await until(lambda: to.post.counts["size"] > before)
        self.read()

    async def answer(self) -> bytes:
        """The next answer that was not taken yet."""
        await until(self.read)
        return self.answers.pop(0)


@contextlib.asynccontextmanager
async def town() -> AsyncIterator[contextlib.AsyncExitStack]:
    """Where offices and strangers are put, so that their sockets are closed; fails on an error
    that reached the loop."""
    errors: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
    async with contextlib.AsyncExitStack() as stack:
        yield stack
    await asyncio.sleep(0)
    assert errors == []


async def office(stack: contextlib.AsyncExitStack, *where: Any, **how: Any) -> Office:
    """An open office."""
    named = how.pop("named", "")
    made = Office(**how)
    await made.open(*where, named=named)
    stack.push_async_callback(made.post.close)
    return made


def stranger(stack: contextlib.AsyncExitStack, *where: Any) -> Stranger:
    made = Stranger(*where)
    stack.callback(made.socket.close)
    return made


def run(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scene())


def forged(
    identity: Identity, at: Stranger, *, epoch: int = 1, state: State = State.ALIVE
) -> Presence:
    """The word of that key on a stranger's address, signed by nobody."""
    true = word(identity, at.address, epoch=epoch, state=state)
    return peek(true.pk + os.urandom(64) + true.payload)
