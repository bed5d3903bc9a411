"""The door: few at a time, not for long, and who misbehaves is put out."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator

import aiohttp
import msgspec
import pytest

from aios_nb.config import Limits
from aios_nb.errors import ConnectionLost, Unreachable
from aios_nb.identity import Identity
from aios_nb.wire.peer.dial import TRY_LATER
from aios_nb.wire.peer.frames import (
    FRAME_BYTES,
    MESSAGE,
    PING,
    READY,
    SUBPROTOCOL,
    Ready,
    head,
    say,
)
from aios_nb.wire.peer.handshake import Initiator, Session
from tests.wire.peer.conftest import NodeUnderTest, Relay, until

READY_NOW = Ready(credit=1 << 18, frame=FRAME_BYTES, message=1 << 22, streams=1000, epoch=1)


@contextlib.asynccontextmanager
async def knock(
    node: NodeUnderTest, **headers: str
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{node.url}/ws", protocols=(SUBPROTOCOL,), headers=headers) as ws,
    ):
        yield ws


async def prove(ws: aiohttp.ClientWebSocketResponse) -> Session:
    """Up to the point where the node says ready."""
    initiator = Initiator(Identity.generate(), "main")
    await ws.send_bytes(initiator.first())
    m3, session = initiator.third(await ws.receive_bytes())
    await ws.send_bytes(m3)
    session.opener.open(await ws.receive_bytes())
    return session


async def closed(ws: aiohttp.ClientWebSocketResponse) -> int | None:
    """Reads until the node has hung up; its close code."""
    while not ws.closed:
        await ws.receive()
    return ws.close_code


def test_three_hundred_that_stand_in_the_door_keep_nobody_out(pair):
    async def run():
        async with pair() as (a, b):
            async with contextlib.AsyncExitStack() as stack:
                standing = [await stack.enter_async_context(knock(b)) for _ in range(300)]
                assert len(b.links._door._half_open) <= b.limits.links_half_open
                there = await a.links.reach(b.node_id)
                assert await there.call("test.echo", {"text": "in"}) == {"text": "in"}
                assert await closed(standing[0]) is not None
            await until(lambda: not b.links._door._half_open)

    asyncio.run(run())


@pytest.mark.parametrize("upto", ["nothing", "M1", "M3"])
def test_who_is_slow_in_the_door_is_put_out(pair, upto):
    async def run():
        async with pair(limits=Limits(hello_wait_s=0.2, refused_per_s=1e6)) as (_, b):
            async with knock(b) as ws:
                if upto == "M1":
                    await ws.send_bytes(Initiator(Identity.generate(), "main").first())
                elif upto == "M3":
                    await prove(ws)
                assert await closed(ws) is not None
            assert not b.links._all

    asyncio.run(run())


def test_a_page_is_not_a_node(pair):
    async def run():
        async with pair() as (_, b):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                async with knock(b, Origin=b.url):
                    pass
            assert refused.value.status == 403

    asyncio.run(run())


@pytest.mark.parametrize("first", [b"", b"x", b"\x01\x04main", b"x" * 5000, b"x" * 70_000])
def test_garbage_in_the_door_is_not_answered(pair, first):
    async def run():
        async with pair() as (_, b):
            async with knock(b) as ws:
                await ws.send_bytes(first)
                kinds = [(await ws.receive()).type]
                assert aiohttp.WSMsgType.BINARY not in kinds
                await closed(ws)
            assert not b.links._all

    asyncio.run(run())


def test_more_than_a_handshake_needs_is_cut_off(pair):
    async def run():
        async with pair() as (_, b), knock(b) as ws:
            with contextlib.suppress(ConnectionError):
                for _ in range(10):
                    await ws.ping(b"x" * 125)
                    await ws.send_bytes(b"x" * 4000)
            assert await closed(ws) is not None

    asyncio.run(run())


def test_strangers_get_few_handshakes_and_known_nodes_their_own(pair):
    async def run():
        limits = Limits(stranger_handshakes_per_s=1.0, refused_per_s=1e6)
        async with pair(limits=limits, known=False) as (a, b):
            codes = []
            for _ in range(5):
                async with knock(b) as ws:
                    await ws.send_bytes(Initiator(Identity.generate(), "main").first())
                    answer = await ws.receive()
                    codes.append(TRY_LATER if answer.type is not aiohttp.WSMsgType.BINARY else 0)
                    if codes[-1]:
                        assert await closed(ws) == TRY_LATER
            assert codes.count(0) in (2, 3)
            with pytest.raises(Unreachable) as problem:
                await a.links.reach(b.node_id)
            assert problem.value.data["reason"] == "no answer"
            b.known = True
            assert (await a.links.reach(b.node_id)).is_open

    asyncio.run(run())


def test_the_stranger_that_was_idle_longest_makes_room(pair):
    async def run():
        limits = Limits(stranger_links=2, stranger_handshakes_per_s=1e6, refused_per_s=1e6)
        async with pair(limits=limits, known=False) as (_, b):
            strangers = [NodeUnderTest(limits=limits) for _ in range(4)]
            links = []
            for stranger in strangers[:2]:
                stranger.knows(b)
                links.append(await stranger.links.reach(b.node_id))
            await until(lambda: len(b.links._links) == 2)
            busy = asyncio.ensure_future(links[0].call("test.gate", {}))
            await b.entered.wait()
            strangers[2].knows(b)
            links.append(await strangers[2].links.reach(b.node_id))
            await links[1].over
            assert links[1].why == "idle"
            second = asyncio.ensure_future(links[2].call("test.gate", {}))
            await until(lambda: b.links.link(strangers[2].node_id))
            await until(lambda: not b.links.link(strangers[2].node_id).quiet)
            strangers[3].knows(b)
            with pytest.raises(Unreachable):
                await strangers[3].links.reach(b.node_id)
            b.gate.set()
            await asyncio.gather(busy, second)
            for stranger in strangers:
                await stranger.stop()

    asyncio.run(run())


def test_all_links_are_bounded(pair):
    async def run():
        async with pair(limits=Limits(links=1, refused_per_s=1e6)) as (a, b):
            await a.links.reach(b.node_id)
            await until(lambda: b.links.link(a.node_id))
            third = NodeUnderTest()
            third.knows(b)
            with pytest.raises(Unreachable):
                await third.links.reach(b.node_id)
            await third.stop()

    asyncio.run(run())


# After the handshake -------------------------------------------------------------------

CALL = b'{"jsonrpc":"2.0","id":1,"method":"test.echo","params":{"text":"x"}}'


@pytest.mark.parametrize(
    "frames",
    [
        [head(1, MESSAGE) + CALL],
        [say(READY, READY_NOW), say(READY, READY_NOW)],
        [say(READY, READY_NOW), head(2, MESSAGE) + CALL],
        [say(READY, READY_NOW), head(0, MESSAGE) + CALL],
        [say(READY, READY_NOW), b"\0\0"],
        [say(READY, READY_NOW), b""],
        [say(READY, READY_NOW), head(0, PING) + b"short"],
        [say(READY, READY_NOW), head(0, 7) + b"not json"],
        [head(0, READY) + b"{}"],
        [head(0, READY) + b'{"credit":0,"frame":65535,"message":9999,"streams":1}'],
        [head(0, READY) + msgspec.json.encode({"credit": -1})],
    ],
)
def test_who_breaks_the_rules_is_hung_up_on(pair, frames):
    async def run():
        async with pair() as (_, b):
            async with knock(b) as ws:
                session = await prove(ws)
                for frame in frames:
                    await ws.send_bytes(session.sealer.seal(frame))
                await closed(ws)
            await until(lambda: not b.links._all)

    asyncio.run(run())


def test_a_node_that_keeps_the_rules_is_answered_and_unknown_types_are_ignored(pair):
    async def run():
        async with pair() as (_, b), knock(b) as ws:
            session = await prove(ws)
            told = [
                say(READY, READY_NOW),
                head(0, 99) + b"of a later version",
                head(1, 99) + b"of a later version",
                head(1, MESSAGE) + CALL,
            ]
            for frame in told:
                await ws.send_bytes(session.sealer.seal(frame))
            while True:
                frame = session.opener.open(await ws.receive_bytes())
                if struct.unpack_from(">IB", frame) == (1, MESSAGE):
                    break
            assert msgspec.json.decode(frame[5:])["result"] == {"text": "x"}

    asyncio.run(run())


@pytest.mark.parametrize("bytes_", [FRAME_BYTES + 1, 1 << 20])
def test_a_frame_that_is_too_long_ends_the_link(pair, bytes_):
    async def run():
        async with pair() as (_, b):
            async with knock(b) as ws:
                session = await prove(ws)
                await ws.send_bytes(session.sealer.seal(say(READY, READY_NOW)))
                await until(lambda: b.links._all)
                with contextlib.suppress(ConnectionError):
                    await ws.send_bytes(b"x" * bytes_)
                await closed(ws)
            await until(lambda: not b.links._all)

    asyncio.run(run())


# In the middle -------------------------------------------------------------------------


def unmasked(frame: bytes) -> bytes:
    at = 4 if frame[1] & 0x7F == 126 else 2
    mask, data = frame[at : at + 4], frame[at + 4 :]
    return bytes(byte ^ mask[n % 4] for n, byte in enumerate(data))


@pytest.mark.parametrize("how", ["not", "repeats", "swaps", "drops", "flips a bit"])
def test_nobody_in_the_middle_reads_changes_repeats_or_reorders(pair, how):
    secret = "a sentence for one pair of eyes"

    async def run():
        async with pair() as (a, b), Relay(b.port) as relay:
            a.addresses[b.node_id] = [f"http://127.0.0.1:{relay.port}"]
            there = await a.links.reach(b.node_id)
            assert await there.call("test.echo", {"text": secret}) == {"text": secret}
            kept: list[bytes] = []

            def meddle(frame: bytes) -> list[bytes]:
                kept.append(frame)
                match how:
                    case "repeats":
                        return [frame, frame]
                    case "swaps":
                        return [kept[1], kept[0]] if len(kept) == 2 else []
                    case "drops":
                        return [frame] if len(kept) > 1 else []
                    case "flips a bit":
                        return [frame[:-1] + bytes((frame[-1] ^ 1,))]
                return [frame]

            relay.meddle = meddle
            first = asyncio.ensure_future(there.call("test.gate", {"text": secret}))
            await asyncio.sleep(0.01)
            second = asyncio.ensure_future(there.call("test.echo", {"text": secret}))
            if how == "not":
                assert await second == {"text": secret}
                b.gate.set()
                assert await first == {"text": secret}
            else:
                for call in (first, second):
                    with pytest.raises(ConnectionLost):
                        await call
            assert secret.encode() not in relay.heard
            assert all(secret.encode() not in unmasked(frame) for frame in kept)

    asyncio.run(run())
