"""Strangers are turned away before anything is built for them, and nobody else notices."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import socket
import subprocess
import sys
import textwrap

import pytest
from aiohttp import web

from aios_nb.config import Limits
from aios_nb.errors import Unreachable
from aios_nb.wire.guard import Refusal
from aios_nb.wire.peer.frames import SUBPROTOCOL
from aios_nb.wire.porch import LOOK_BYTES, Porch, is_held_back, knocked_at
from aios_nb.wire.replies import refused
from tests.wire.conftest import parse
from tests.wire.peer.conftest import NodeUnderTest, until

pytestmark = pytest.mark.skipif(not is_held_back(), reason="this system has no porch")

LATER = Refusal(429, "too many nodes knock at once", "try again later", (("Retry-After", "1"),))
HELLO = {"jsonrpc": "2.0", "method": "node.info", "id": 1}
TIGHT = Limits(stranger_handshakes_per_s=0.001, refused_per_s=1e6)
"""One stranger, and then none for a long time."""


class ShutDoor:
    """A link that has no room, and counts who came as far as to be told so."""

    def __init__(self) -> None:
        self.is_shut = True
        self.reached = 0

    def turns_away(self) -> Refusal | None:
        return LATER if self.is_shut else None

    async def __call__(self, *_: object) -> web.StreamResponse:
        self.reached += 1
        answer = refused(LATER)
        answer.force_close()
        return answer


def knock(host: str, *more: str) -> bytes:
    """As our nodes knock."""
    lines = (
        "GET /ws HTTP/1.1",
        f"Host: {host}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        f"Sec-WebSocket-Protocol: {SUBPROTOCOL}",
        "Accept: */*",
        *more,
    )
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def undated(answer: bytes) -> bytes:
    return re.sub(rb"Date: [^\r]*", b"Date: some day", answer)


def porch_of(site) -> Porch:
    assert isinstance(site.server._accepting, Porch)
    return site.server._accepting


def test_a_knock_is_refused_as_the_door_would_and_nothing_is_built_for_it(serving):
    async def run():
        door = ShutDoor()
        async with serving(links={SUBPROTOCOL: door}) as site:
            here = await site.raw(knock(site.host))
            assert porch_of(site).turned_away == 1
            assert (door.reached, site.server._listener.requests_count) == (0, 0)
            there = await site.raw(knock(site.host).replace(b"Upgrade: w", b"Upgrade:w"))
            assert (door.reached, porch_of(site).turned_away) == (1, 1)
            assert undated(here) == undated(there)
            assert here.count(b"Date: ") == 1
            answer = parse(here)
            assert (answer.status, answer.headers["retry-after"]) == (429, "1")
            assert answer.json["error"] == LATER.error

    asyncio.run(run())


def test_a_door_with_room_sees_every_knock(serving):
    async def run():
        door = ShutDoor()
        door.is_shut = False
        async with serving(links={SUBPROTOCOL: door}) as site:
            assert parse(await site.raw(knock(site.host))).status == 429
            assert (door.reached, porch_of(site).turned_away) == (1, 0)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda k: k.replace(b"Accept", b"Origin: http://elsewhere.example\r\nAccept"), 403),
        (lambda k: k.replace(b"Accept", b"Authorization: Bearer wrong\r\nAccept"), 401),
        (lambda k: k.replace(b"Host: 127", b"Host: 128"), 421),
        (lambda k: k.replace(b"aios-peer-1", b"aios-peer-2"), 400),
        (lambda k: k.replace(b"Version: 13", b"Version: 12"), 400),
        (lambda k: k.replace(b"GET", b"PUT", 1), 405),
        (lambda k: k.replace(b"/ws", b"/no", 1), 404),
        (lambda k: k.replace(b"Sec-WebSocket-Key", b"X-Key"), 400),
        (lambda k: k.replace(b"*/*", b"x" * LOOK_BYTES), 429),
        (lambda k: k.replace(b"/ws", b"/ws?from=elsewhere", 1), 429),
        (lambda k: k.replace(b"Accept", b"Content-Length: 0\r\nAccept"), 429),
    ],
)
def test_what_is_not_clearly_a_knock_is_answered_behind(serving, change, status):
    async def run():
        async with serving(links={SUBPROTOCOL: ShutDoor()}) as site:
            assert parse(await site.raw(change(knock(site.host)))).status == status
            assert porch_of(site).turned_away == 0

    asyncio.run(run())


def test_only_a_whole_knock_that_is_alone_is_one():
    whole = knock("Node.Example:80")
    assert knocked_at(whole, b"aios-peer-1") == "node.example:80"
    assert knocked_at(whole.upper().replace(b"/WS", b"/ws"), b"aios-peer-1") == "node.example:80"
    for size in range(len(whole)):
        assert knocked_at(whole[:size], b"aios-peer-1") is None
    assert knocked_at(whole * 2, b"aios-peer-1") is None
    assert knocked_at(whole + b"more", b"aios-peer-1") is None


def test_a_knock_without_a_host_is_for_nobody(serving):
    async def run():
        async with serving(links={SUBPROTOCOL: ShutDoor()}) as site:
            bare = knock(site.host).replace(f"Host: {site.host}\r\n".encode(), b"")
            assert parse(await site.raw(bare)).status == 400
            assert porch_of(site).turned_away == 0

    asyncio.run(run())


@pytest.mark.parametrize("first", [1, 20, 100, -1])
def test_half_a_header_is_handed_over_and_none_of_it_is_lost(serving, first):
    async def run():
        door = ShutDoor()
        async with serving(links={SUBPROTOCOL: door}) as site:
            reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
            whole = knock(site.host)
            writer.write(whole[:first])
            await until(lambda: site.server._listener.connections)
            writer.write(whole[first:])
            assert parse(await reader.read()).status == 429
            assert (door.reached, porch_of(site).turned_away) == (1, 0)
            writer.close()

    asyncio.run(run())


def test_who_says_nothing_is_let_through_and_cut_off_behind(serving):
    async def run():
        limits = Limits(header_wait_s=0.2)
        async with serving(limits=limits, links={SUBPROTOCOL: ShutDoor()}) as site:
            assert await site.raw(b"") == b""
            assert porch_of(site).turned_away == 0

    asyncio.run(run())


def test_many_at_once_are_all_answered_each_as_it_should_be(serving):
    async def run():
        async with serving(links={SUBPROTOCOL: ShutDoor()}) as site:
            answers = await asyncio.gather(
                *(site.raw(knock(site.host)) for _ in range(300)),
                *(site.rpc(HELLO) for _ in range(100)),
            )
            assert {parse(answer).status for answer in answers[:300]} == {429}
            assert {answer.status for answer in answers[300:]} == {200}
            assert porch_of(site).turned_away == 300
            assert site.server._listener.requests_count == 100

    asyncio.run(run())


def test_the_owner_is_served_beside_a_flood(serving):
    async def run():
        async with serving(links={SUBPROTOCOL: ShutDoor()}) as site:
            over = asyncio.Event()

            async def flood() -> None:
                while not over.is_set():
                    assert parse(await site.raw(knock(site.host))).status == 429

            crowd = [asyncio.create_task(flood()) for _ in range(20)]
            async with site.ws() as link:
                for number in range(50):
                    await link.send_json({**HELLO, "id": number})
                    assert (await link.receive_json())["id"] == number
                    assert (await site.rpc(HELLO)).status == 200
            over.set()
            await asyncio.gather(*crowd)
            assert porch_of(site).turned_away >= 20

    asyncio.run(run())


def test_a_known_node_gets_in_where_strangers_are_turned_away():
    async def run():
        home, *others = (NodeUnderTest(limits=TIGHT, known=False) for _ in range(4))
        expected: set[str] = set()
        home.links._known = lambda: expected
        for node in (home, *others):
            await node.start()
        porch = porch_of(home)
        first, late, friend = others
        for node in others:
            node.knows(home)
        await first.links.reach(home.node_id)
        with pytest.raises(Unreachable) as problem:
            await late.links.reach(home.node_id)
        assert problem.value.data["reason"] == "no answer"
        assert porch.turned_away == 1
        expected.add(friend.node_id)
        home.known = True
        assert (await friend.links.reach(home.node_id)).is_open
        await until(lambda: home.links.link(friend.node_id))
        home.known = False
        with pytest.raises(Unreachable):
            await late.links.reach(home.node_id)
        assert porch.turned_away == 2
        for node in (*others, home):
            await node.stop()

    asyncio.run(run())


def test_a_node_on_the_newer_internet_turns_away_too(serving):
    async def run():
        async with serving(links={SUBPROTOCOL: ShutDoor()}) as site:
            await site.server.stop()
            try:
                _, port = await site.server.start("::1", 0)
            except Exception as problem:  # noqa: BLE001 - whatever says that there is none
                pytest.skip(f"no IPv6 here: {problem}")
            reader, writer = await asyncio.open_connection("::1", port)
            writer.write(knock(f"[::1]:{port}"))
            assert parse(await reader.read()).status == 429
            assert porch_of(site).turned_away == 1
            writer.close()

    asyncio.run(run())


def test_a_public_node_turns_away_under_its_public_name_only(serving):
    async def run():
        links = {SUBPROTOCOL: ShutDoor()}
        async with serving(links=links, public_url="https://node.example.org") as site:
            assert parse(await site.raw(knock("node.example.org"))).status == 429
            assert porch_of(site).turned_away == 1
            assert parse(await site.raw(knock("other.example.org"))).status == 421
            assert porch_of(site).turned_away == 1

    asyncio.run(run())


# Closing -------------------------------------------------------------------------------


def test_closing_leaves_no_task_and_no_socket(serving):
    async def run():
        async with serving(links={SUBPROTOCOL: ShutDoor()}) as site:
            porch = porch_of(site)
            assert parse(await site.raw(knock(site.host))).status == 429
            await site.server.stop()
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", site.port)
            porch.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 4])
def test_who_comes_while_the_node_closes_is_closed_too(serving, turns):
    async def run():
        async with serving(links={SUBPROTOCOL: ShutDoor()}) as site:
            client = socket.create_connection(("127.0.0.1", site.port))
            client.sendall(b"GET /healthz HTTP/1.1\r\n")
            porch_of(site)._accept()
            for _ in range(turns):
                await asyncio.sleep(0)
            await site.server.stop()
            client.setblocking(False)
            with contextlib.suppress(ConnectionError):
                assert await asyncio.get_running_loop().sock_recv(client, 100) == b""
            client.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())


def bare_porch() -> tuple[Porch, socket.socket]:
    """A porch with nothing behind it."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setblocking(False)
    porch = Porch(
        listening,
        asyncio.Protocol,
        subprotocol=SUBPROTOCOL,
        turns_away=lambda: None,
        answers_to=bool,
    )
    return porch, listening


@pytest.mark.parametrize("turns", [0, 1])
def test_who_stands_in_the_porch_when_it_closes_is_sent_away_by_it(turns):
    async def run():
        porch, listening = bare_porch()
        client = socket.create_connection(listening.getsockname())
        client.sendall(b"GET")
        porch._accept()
        assert porch._passing
        for _ in range(turns):
            await asyncio.sleep(0)
        porch.close()
        await porch.wait_closed()
        assert not porch._passing
        client.setblocking(False)
        with contextlib.suppress(ConnectionError):
            assert await asyncio.get_running_loop().sock_recv(client, 100) == b""
        client.close()

    asyncio.run(run())


OUT_OF_FILES = """
    import asyncio, os, resource, socket
    from aios_nb.wire import porch
    from aios_nb.wire.guard import Refusal

    porch.RETRY_S = 0.05

    class Says(asyncio.Protocol):
        def connection_made(self, transport):
            transport.write(b"in")
            transport.close()

    async def main():
        listening = socket.create_server(("127.0.0.1", 0))
        listening.setblocking(False)
        door = porch.Porch(
            listening, Says, subprotocol="x", turns_away=porch.never, answers_to=bool
        )
        client = socket.create_connection(listening.getsockname())
        client.setblocking(False)
        taken = []
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, most))
        try:
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            pass
        client.send(b"hello")
        while door._retry is None:
            await asyncio.sleep(0.001)
        print("rests", flush=True)
        for file in taken:
            os.close(file)
        print((await asyncio.get_running_loop().sock_recv(client, 10)).decode(), flush=True)
        client.close()
        door.close()
        await door.wait_closed()

    asyncio.run(main())
"""


def test_a_process_out_of_files_rests_and_then_goes_on():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(OUT_OF_FILES)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.split() == ["rests", "in"], done.stderr
    assert "Too many open files" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_porch_that_rests_can_be_closed(caplog):
    async def run():
        porch, listening = bare_porch()
        porch._rest(OSError(24, "Too many open files"))
        again = porch._retry
        assert again is not None
        porch.close()
        await porch.wait_closed()
        assert again.cancelled()
        assert listening.fileno() < 0

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert [record.getMessage() for record in caplog.records] == [
        "no new connections for 1 s: Too many open files"
    ]
