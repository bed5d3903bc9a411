"""Slow clients and floods: cut off or turned away, while the owner is answered."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.hostile import noise
from tests.hostile.nodes import WAIT_S, NodeProcess, until

SLOW = 300
FLOOD, FLOOD_CONNECTIONS = 4000, 20
GONE = 1000
LIMITS = {"header_wait_s": 2.0, "body_wait_s": 3.0, "hello_wait_s": 2.0, "refused_per_s": 1e6}
BYTE_EVERY_S = 1.0
RESET = struct.pack("ii", 1, 0)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


class Owner:
    """Calls the node all the time, each call on a connection of its own."""

    def __init__(self, node: NodeProcess) -> None:
        self.answers: Counter[int] = Counter()
        self._node = node
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._call)

    def _call(self) -> None:
        call = noise.call("chat.send", {"agent": "echo", "text": "still there?"})
        while not self._enough.is_set():
            try:
                status, body = self._node.post(call)
            except OSError:
                status, body = 0, b""
            self.answers[status if b'"still there?"' in body else 0] += 1

    def end(self) -> None:
        self._enough.set()
        self._thread.join(WAIT_S)

    @classmethod
    @contextmanager
    def calling(cls, node: NodeProcess) -> Iterator[Owner]:
        owner = cls(node)
        owner._thread.start()
        try:
            yield owner
        finally:
            owner.end()


def test_hundreds_of_slow_clients_are_cut_off_and_the_owner_is_answered(start):
    node = start(limits=LIMITS)
    made = noise.Requests(node.port, node.token)
    body = noise.call("node.info", [])
    split = len(made.post(body)) - len(body)
    upgrade = made.upgrade(token=False)
    starts = {
        "head": (b"", made.post(body)),
        "body": (made.post(body)[:split], body),
        "chunks": (
            made.chunked(body)[: made.chunked(body).index(b"\r\n\r\n") + 4],
            b"1\r\nx\r\n" * 99,
        ),
        "upgrade": (b"", upgrade),
        "hello": (upgrade, noise.frame(noise.NONCE)),
        "silence": (upgrade, b""),
    }

    async def drip(at_once: bytes, slowly: bytes) -> None:
        """Until the node has had enough of it."""
        reader, writer = await asyncio.open_connection("127.0.0.1", node.port)

        async def send() -> None:
            for byte in slowly:
                writer.write(bytes([byte]))
                await asyncio.sleep(BYTE_EVERY_S)  # what slow means

        writer.write(at_once)
        sending = asyncio.create_task(send())
        try:
            async with asyncio.timeout(WAIT_S):
                with contextlib.suppress(ConnectionError):
                    while await reader.read(65_536):
                        pass
        finally:
            sending.cancel()
            await asyncio.wait([sending])
            with contextlib.suppress(ConnectionError):
                sending.cancelled() or sending.exception()
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def crowd() -> None:
        kinds = list(starts.values())
        async with asyncio.TaskGroup() as group:
            for number in range(SLOW):
                group.create_task(drip(*kinds[number % len(kinds)]))

    files = node.open_files()
    with Owner.calling(node) as owner:
        asyncio.run(crowd())
    assert owner.answers.keys() == {200}
    assert owner.answers[200] > 10
    until(lambda: node.open_files() <= files, "all connections are closed")
    assert node.complaints() == []


def test_a_flood_without_a_token_is_turned_away_and_the_owner_is_answered(start):
    node = start()
    made = noise.Requests(node.port, "not-the-token")
    body = noise.call("chat.send", ["echo", "boo"])
    kinds = [
        made.post(body, token=False),
        made.post(body),
        made.head(b"GET", b"/healthz", token=False),
        made.head(b"GET", b"/nothing", token=False),
        made.head(b"GET", b"/blobs/" + b"0" * 64),
    ]

    async def flood(share: int) -> Counter[int]:
        """Requests one behind the other, as fast as they are answered."""
        statuses: Counter[int] = Counter()
        reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
        for number in range(share):
            writer.write(kinds[number % len(kinds)])
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            await reader.readexactly(length)
            statuses[int(head[9:12])] += 1
        writer.close()
        await writer.wait_closed()
        return statuses

    async def everybody() -> Counter[int]:
        shares = [flood(FLOOD // FLOOD_CONNECTIONS) for _ in range(FLOOD_CONNECTIONS)]
        return sum(await asyncio.gather(*shares), Counter())

    with Owner.calling(node) as owner:
        statuses = asyncio.run(everybody())
    assert statuses.keys() <= {200, 401, 404, 429}
    assert statuses[429] > FLOOD // 2
    assert owner.answers.keys() == {200}
    until(lambda: node.request("GET", "/healthz")[0] == 200, "strangers are heard again")
    assert node.complaints() == []


def test_clients_that_have_gone_before_they_are_seen_harm_nobody(start):
    node = start()
    with Owner.calling(node) as owner:
        for _ in range(GONE):
            with socket.create_connection(("127.0.0.1", node.port)) as connection:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        node.call("node.info")  # behind all of them
    assert owner.answers.keys() == {200}
    assert node.complaints() == []
