"""Ten thousand inputs that nobody meant: the node lives, tells no secrets, and answers."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import random
import re
import socket
import struct
import sys
from collections import Counter

import aiohttp
import pytest

from tests.hostile import noise
from tests.hostile.nodes import WAIT_S, NodeProcess, until

SEED = 20_250_417
PLAIN, FRAMES = 5000, 2600
"""With the wrong params, more than 10,000 inputs."""
WARM_UP = 1500
AT_ONCE = 32
PATIENCE_S = 0.3
"""How long an answer is listened for, beside other tests; many inputs deserve none."""
GROWTH_BYTES = 64 << 20
READ_BYTES = 1 << 16
RESET = struct.pack("ii", 1, 0)
LIMITS = {"refused_per_s": 1e6, "header_wait_s": 2.0, "body_wait_s": 2.0, "hello_wait_s": 2.0}
"""Nobody is told to come back later: every input gets as far as it can."""
LEAKS = re.compile(
    rb'Traceback|File "|\.py\b|aios_nb/|aiohttp|msgspec|sqlite|[A-Z][a-z]+Error\b|Exception|'
    rb"object at 0x"
)
INTERNAL = b"-32603"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def check_reply(node: NodeProcess, sent: bytes, reply: bytes) -> None:
    shown = f"{sent[:600]!r} was answered with {reply[:600]!r}"
    assert not LEAKS.search(reply), shown
    assert INTERNAL not in reply, shown
    assert b"internal error" not in reply, shown
    assert node.token.encode() not in reply, shown
    assert str(node.home).encode() not in reply, shown


async def say(node: NodeProcess, data: bytes) -> bytes:
    """What comes back for these bytes, until the node has nothing more to say."""
    reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
    # Reset, not closed: ten thousand sockets in TIME_WAIT would slow the whole machine down.
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    got = b""
    with contextlib.suppress(ConnectionError):
        writer.write(data)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                while piece := await reader.read(READ_BYTES):
                    got += piece
        if not got:
            # Not even a refusal: perhaps it waits for more. Then it learns that none will come.
            writer.write_eof()
            async with asyncio.timeout(WAIT_S):
                while piece := await reader.read(READ_BYTES):
                    got += piece
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
    return got


async def say_all(node: NodeProcess, inputs: list[bytes]) -> Counter[int]:
    """How often each HTTP status came first."""
    statuses: Counter[int] = Counter()
    waiting = iter(inputs)

    async def some() -> None:
        for data in waiting:
            reply = await say(node, data)
            check_reply(node, data, reply)
            statuses[int(reply[9:12]) if re.match(rb"HTTP/1\.[01] \d{3}", reply) else 0] += 1

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(some())
    return statuses


async def call_all(node: NodeProcess, calls: list[bytes]) -> Counter[int]:
    """Each call over a socket; how often each error code came, 0 for a result."""
    codes: Counter[int] = Counter()
    headers = {"Authorization": f"Bearer {node.token}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.ws_connect(f"{node.url}/ws", protocols=("aios-rpc-1",)) as link,
    ):
        for sent in calls:
            await link.send_str(sent.decode())
            while True:
                frame = await link.receive()
                assert frame.type is aiohttp.WSMsgType.TEXT, sent
                check_reply(node, sent, frame.data.encode())
                answer = json.loads(frame.data)
                if "method" not in answer:  # a notification of some watch
                    break
            codes[answer.get("error", {}).get("code", 0)] += 1
            if "watch" in (answer.get("result") or {}):
                end = noise.call("chat.unwatch", [answer["result"]["watch"]])
                await link.send_str(end.decode())
                while "method" in json.loads((await link.receive()).data):
                    pass
    return codes


def check_still_well(node: NodeProcess) -> None:
    assert node.alive
    assert node.call("node.info")["node_id"] == node.said["node_id"]
    assert node.call("chat.send", agent="counter", text="2")["text"] == "counted 2"
    assert node.complaints() == [], node.log()[-6000:]


KEPT_OPEN = 4
"""Files of the search, which opens its model when it is first asked."""


@pytest.mark.timeout(300)
def test_ten_thousand_broken_inputs_leave_the_node_as_it_was(start):
    node = start(limits=LIMITS)
    dice = random.Random(SEED)
    requests = noise.Requests(node.port, node.token)
    plain = [requests.broken(dice) for _ in range(PLAIN)]
    frames = []
    for _ in range(FRAMES):
        token, data = noise.broken_frames(node.token, dice)
        frames.append(requests.upgrade(token=token) + data)
    talk = node.call("chat.send", agent="clock", text="")
    file = base64.b64encode(b"kept").decode()
    sha256 = hashlib.sha256(b"kept").hexdigest()
    node.call("blobs.put", sha256=sha256, offset=0, chunk=file, last=True)
    calls = list(noise.wrong_params(talk["conversation"], talk["message_id"], sha256))
    assert len(plain) + len(frames) + len(calls) >= 10_000

    files = node.open_files()
    inputs = plain + frames
    dice.shuffle(inputs)
    statuses = asyncio.run(say_all(node, inputs[:WARM_UP]))
    memory = node.memory_bytes()
    statuses += asyncio.run(say_all(node, inputs[WARM_UP:]))
    codes = asyncio.run(call_all(node, calls))

    # They were not all turned away at the door.
    assert min(statuses[101], statuses[200], statuses[400]) > 500, statuses
    assert codes[0] > 300, codes
    assert codes[-32602] > 1000, codes
    assert 500 not in statuses
    check_still_well(node)
    assert node.memory_bytes() - memory < GROWTH_BYTES
    until(lambda: node.open_files() <= files + KEPT_OPEN, "all connections are closed")


def test_a_request_hidden_in_another_is_never_taken(start):
    node = start(limits=LIMITS)
    requests = noise.Requests(node.port, node.token)
    for number, data in enumerate(
        requests.ambiguous(
            noise.call("chat.send", {"agent": "echo", "text": "x", "message_id": "in"})
        )
    ):
        reply = asyncio.run(say(node, data))
        assert reply == b"" or re.match(rb"HTTP/1\.[01] 400", reply), (number, data, reply)
        assert node.answer("chat.cancel", message_id="in")["error"]["code"] == -32602, data
    check_still_well(node)
