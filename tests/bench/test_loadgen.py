from __future__ import annotations

import asyncio
import gc
import json
from typing import Any

import msgspec
import pytest

from aios_nb.bench.loadgen import session_for
from aios_nb.bench.spec import Broken, Load, Target, Window

KINDS: list[tuple[str, dict[str, Any]]] = [
    ("rpc", {}),
    ("rpc", {"wire": "ws"}),
    ("send", {}),
    ("send", {"wire": "ws"}),
    ("stream", {"chunks": 4}),
    ("stream", {"chunks": 4, "wire": "ws"}),
    ("rpc", {"wire": "peer"}),
    ("message", {"wire": "peer"}),
    ("message-stream", {"chunks": 4, "wire": "peer"}),
]
kinds = pytest.mark.parametrize(("work", "more"), KINDS)


async def driven(target: Target, load: Load) -> Window:
    session = session_for(target)
    try:
        return await session.drive(load)
    finally:
        session.close()


@kinds
def test_every_call_is_made_once_and_answered(desk, work, more) -> None:
    async def run() -> None:
        async with desk() as node:
            window = await driven(node.target(work, 3, **more), Load(count=20))
            assert (window.replies, window.wrong, window.first_wrong) == (20, 0, None)
            assert node.answered == 20
            assert (window.first_p50 is not None) == ("stream" in work)

    asyncio.run(run())


@kinds
def test_replies_that_come_byte_by_byte_are_right_all_the_same(desk, cut_apart, work, more) -> None:
    async def run() -> None:
        async with desk() as node, cut_apart(node.url) as url:
            target = msgspec.structs.replace(node.target(work, 2, **more), url=url)
            window = await driven(target, Load(count=4))
            assert (window.replies, window.first_wrong) == (4, None)

    asyncio.run(run())


def answered_with(**changes: Any) -> Any:
    def spoil(message: dict[str, Any]) -> dict[str, Any]:
        result = message.get("result", {})
        if "content" in result:
            content = {**result["content"], "result": changes.get("text"), **changes}
            return {**message, "result": {**result, "content": content}}
        return {**message, "result": {**result, **changes}}

    return spoil


def failed(message: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32005, "message": "busy"}}


def about_another_call(message: dict[str, Any]) -> dict[str, Any]:
    return {**message, "id": message["id"] + 1}


@kinds
@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (failed, "an error: {'code': -32005, 'message': 'busy'}"),
        (answered_with(text="something else"), "another text: 'something else'"),
        (about_another_call, "the reply to another call"),
        (lambda message: {"jsonrpc": "2.0", "id": message["id"]}, "neither a result nor an error"),
    ],
)
def test_a_wrong_reply_is_noticed_and_quoted(desk, work, more, spoil, said) -> None:
    async def run() -> None:
        async with desk() as node:
            node.spoil = spoil
            window = await driven(node.target(work, 1, **more), Load(count=3))
            assert (window.replies, window.wrong) == (0, 3)
            assert said in (window.first_wrong or "")

    asyncio.run(run())


@pytest.mark.parametrize(("work", "path"), [("rpc", "/rpc"), ("echo", "/echo"), ("stream", "/rpc")])
def test_a_status_other_than_200_is_wrong(desk, work, path) -> None:
    async def run() -> None:
        async with desk() as node:
            node.status = 500
            window = await driven(node.target(work, 2, path=path, chunks=3), Load(count=4))
            assert (window.replies, window.wrong) == (0, 4)
            assert "HTTP 500" in (window.first_wrong or "")

    asyncio.run(run())


@pytest.mark.parametrize(
    ("work", "wire"), [("stream", "http"), ("stream", "ws"), ("message-stream", "peer")]
)
def test_a_missing_piece_of_a_stream_is_noticed(desk, work, wire) -> None:
    async def run() -> None:
        async with desk() as node:
            node.drop_deltas = True
            target = node.target(work, 1, chunks=3, wire=wire)
            window = await driven(target, Load(count=1))
            assert (window.wrong, window.first_wrong) == (1, "a piece at 25, not at 0")

    asyncio.run(run())


@pytest.mark.parametrize("wire", ["http", "ws"])
def test_a_call_that_is_not_done_is_wrong(desk, wire) -> None:
    async def run() -> None:
        async with desk() as node:
            node.spoil = answered_with(status="accepted")
            window = await driven(node.target("send", 1, wire=wire), Load(count=1))
            assert window.first_wrong == "status 'accepted', not done"

    asyncio.run(run())


@pytest.mark.parametrize("wire", ["http", "ws", "peer"])
def test_a_connection_that_breaks_is_counted_and_ends_its_slot(desk, wire) -> None:
    async def run() -> None:
        async with desk() as node:
            node.close_after = 5
            window = await driven(node.target("rpc", 1, wire=wire), Load(count=100))
            assert (window.replies, window.wrong) == (5, 1)
            assert "closed" in (window.first_wrong or "")

    asyncio.run(run())


def test_a_fresh_call_opens_a_conversation_and_a_kept_one_goes_on(desk) -> None:
    async def run() -> None:
        async with desk() as node:
            await driven(node.target("send", 1), Load(count=3))
            assert node.conversations == [None, None, None]
            node.conversations.clear()
            await driven(node.target("send", 1, keep_conversation=True), Load(count=3))
            assert node.conversations == [None, "c1", "c1"]

    asyncio.run(run())


def test_another_conversation_than_the_kept_one_is_wrong(desk) -> None:
    async def run() -> None:
        async with desk() as node:
            target = node.target("send", 1, keep_conversation=True)
            session = session_for(target)
            assert (await session.drive(Load(count=1))).wrong == 0
            node.spoil = answered_with(conversation="elsewhere")
            assert (await session.drive(Load(count=1))).wrong == 1
            session.close()

    asyncio.run(run())


def test_an_open_loop_counts_from_when_a_call_was_due(desk) -> None:
    calls, rate = 20, 1000

    async def run() -> None:
        async with desk() as node:
            node.hold = asyncio.Event()
            session = session_for(node.target("rpc", 1))
            load = Load(seconds=calls / rate, rate=rate, keep=True)
            driving = asyncio.ensure_future(session.drive(load))
            while session._pace is None or len(session._pace.lags) < calls:  # noqa: ASYNC110
                await asyncio.sleep(0)
            node.hold.set()  # every call is due by now, and only one was sent
            window = await driving
            assert (window.replies, window.wrong) == (calls, 0)
            least = [(calls - 1 - number) / rate * 1e3 for number in range(calls)]
            assert all(have >= want for have, want in zip(window.samples, least, strict=True))

    asyncio.run(run())


def test_an_open_loop_ends_when_its_only_connection_breaks(desk) -> None:
    async def run() -> None:
        async with desk() as node:
            node.close_after = 0
            window = await driven(node.target("rpc", 1), Load(seconds=0.05, rate=200))
            assert window.replies == 0
            assert window.wrong >= 1

    asyncio.run(run())


def test_a_window_by_time_ends_with_nothing_in_flight(desk) -> None:
    async def run() -> None:
        async with desk() as node:
            window = await driven(node.target("rpc", 4), Load(seconds=0.05))
            assert window.replies == node.answered > 0
            assert gc.isenabled()

    asyncio.run(run())


def test_a_wrong_token_is_said(desk) -> None:
    async def run() -> None:
        async with desk() as node:
            target = msgspec.structs.replace(node.target("rpc", 1, wire="ws"), token="wrong")
            with pytest.raises(Broken, match="closed during the welcome"):
                await driven(target, Load(count=1))

    asyncio.run(run())


def test_another_node_on_the_port_is_refused(desk) -> None:
    async def run() -> None:
        async with desk() as node:
            target = msgspec.structs.replace(node.target("rpc", 1, wire="ws"), node_id="b" * 32)
            with pytest.raises(Broken, match="another node"):
                await driven(target, Load(count=1))

    asyncio.run(run())


def test_bodies_are_the_sizes_that_the_method_names(desk) -> None:
    async def run() -> None:
        async with desk() as node:
            session = session_for(node.target("rpc", 1))
            body = session.call.request(0)
            assert len(json.loads(body)["params"]["task"]) == 200
            assert len(session_for(node.target("echo", 1)).call.request(0)) == 200

    asyncio.run(run())
