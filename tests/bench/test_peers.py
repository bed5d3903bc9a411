from __future__ import annotations

import asyncio

import msgspec
import pytest

from aios_nb.bench import contestants, peers, upgraded
from aios_nb.bench.generator import Generator
from aios_nb.bench.keys import identity
from aios_nb.bench.loadgen import session_for
from aios_nb.bench.scenarios.peer import peer_target
from aios_nb.bench.spec import Broken, Load
from aios_nb.wire.peer import frames


def test_the_client_of_a_seed_is_the_same_node_everywhere(desk) -> None:
    async def run() -> None:
        async with desk() as node:
            session = session_for(node.target("rpc", wire="peer"))
            await session.open()
            session.close()
            assert node.callers == [identity("test").node_id]

    asyncio.run(run())


def test_another_node_than_the_expected_is_refused(desk) -> None:
    async def run() -> None:
        async with desk() as node:
            target = msgspec.structs.replace(node.target("rpc", wire="peer"), node_id="b" * 32)
            with pytest.raises(Broken, match="another node answers there"):
                await session_for(target).open()

    asyncio.run(run())


def test_a_ping_is_answered_with_its_stamp(desk) -> None:
    async def run() -> None:
        async with desk() as node:
            session = session_for(node.target("rpc", wire="peer"))
            await session.drive(Load(count=3))
            session.close()
            assert node.controls == [frames.head(0, frames.PONG) + b"are here"]

    asyncio.run(run())


def test_a_long_stream_is_given_credit_as_it_is_read(desk) -> None:
    async def run() -> None:
        async with desk() as node:
            target = node.target("message-stream", wire="peer", chunks=1000)
            session = session_for(target)
            assert (await session.drive(Load(count=1))).wrong == 0
            session.close()
            given = [
                frames.read_credit(frame)
                for frame in node.controls
                if frames.split(frame)[1] == frames.CREDIT
            ]
            assert len(given) > 1
            assert min(given) >= frames.CREDIT_BYTES // 4

    asyncio.run(run())


def test_a_fresh_message_has_a_conversation_of_its_own_and_a_kept_one_its_slots(desk) -> None:
    async def run() -> None:
        async with desk() as node:
            for keep, conversations in ((False, 6), (True, 2)):
                node.conversations.clear()
                target = node.target("message", 2, wire="peer", keep_conversation=keep)
                session = session_for(target)
                await session.drive(Load(count=6))
                session.close()
                assert len(set(node.conversations)) == conversations

    asyncio.run(run())


def test_idle_links_are_links_of_different_nodes(desk) -> None:
    async def run() -> None:
        async with desk() as node:
            session = session_for(node.target("rpc", 20, wire="peer", side="idle"))
            await session.open()
            session.close()
            assert len(set(node.callers)) == 20

    asyncio.run(run())


def test_an_idle_link_that_was_closed_meanwhile_is_noticed(desk) -> None:
    async def run() -> None:
        async with desk() as node:
            session = session_for(node.target("rpc", 2, wire="peer", side="idle"))
            await session.open()
            session._links[0].transport.close()
            with pytest.raises(Broken, match="1 of 2 idle links"):
                session.close()

    asyncio.run(run())


def test_streams_beside_must_have_come_whole_by_the_end(desk) -> None:
    async def run() -> None:
        async with desk() as node:
            target = node.target("message-stream", 2, wire="peer", chunks=3, side="read")
            session = session_for(target)
            await session.open()
            with pytest.raises(Broken, match="2 streams beside"):
                session.close()
            session = session_for(target)
            await session.open()
            while len(session._latencies) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0)
            session.close()

    asyncio.run(run())


@pytest.fixture(scope="module", name="node")
def node_fixture():
    with contestants.node() as node:
        yield node


@pytest.mark.parametrize("keep", [False, True])
def test_a_real_node_answers_envelopes_over_a_link(node, keep) -> None:
    target = peer_target(node, "message", 3, f"send {keep}", keep_conversation=keep)
    with Generator() as generator, generator.open(target) as session:
        assert session.drive(Load(count=30)).replies == 30


def test_a_real_node_streams_more_than_its_first_credit(node) -> None:
    target = peer_target(node, "message-stream", 1, "long", agent="bench_stream", chunks=20_000)
    with Generator() as generator, generator.open(target) as session:
        assert session.drive(Load(count=1)).replies == 1


def test_a_real_node_takes_many_calls_in_one_write_with_the_ready(node, monkeypatch) -> None:
    monkeypatch.setattr(upgraded, "AT_ONCE_MIN", 1000)

    class Eager(peers._CallLink):
        def tell(self, frame: bytes) -> None:
            self._reading = True
            super().tell(frame)
            for slot in range(session.slots if self._next == 1 else 0):
                self.ask(slot, session.rpc.request(slot))
            self._reading = False
            self._flush()

    monkeypatch.setattr(peers, "_CallLink", Eager)
    session = session_for(peer_target(node, "rpc", 100, "eager"))

    async def run() -> None:
        await session.open()
        while len(session._latencies) + session._wrong < session.slots:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert session._first_wrong is None
        session.close()

    asyncio.run(run())


def test_a_real_node_lets_in_the_same_node_again_and_again(node) -> None:
    async def run() -> None:
        for _ in range(5):
            session = session_for(peer_target(node, "rpc", 2, "again"))
            assert (await session.drive(Load(count=4))).first_wrong is None
            session.close()

    asyncio.run(run())
