"""A program that took over the port of a dead node never gets to see the token."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import fcntl
import hashlib
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import aiohttp
import msgspec
import pytest

from aios_nb.client import RemoteClient, remote
from aios_nb.errors import AiosError, Impostor
from aios_nb.home import RunInfo
from tests.hostile import noise
from tests.hostile.nodes import WAIT_S, NodeProcess, environment

MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
READ_BYTES = 1 << 16
Serve = Callable[[socket.socket, "Recorder"], None]


class Recorder:
    """Listens where a node was, behaves as it is told, and keeps every byte that arrives."""

    def __init__(self, port: int, serve: Serve) -> None:
        self.got = b""
        self.connections = 0
        self._serve = serve
        self._open: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", port), reuse_port=False)
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # shut down
            while True:
                connection, _ = self._listening.accept()
                self.connections += 1
                connection.settimeout(WAIT_S)
                self._open.append(connection)
                self._threads.append(threading.Thread(target=self._answer, args=(connection,)))
                self._threads[-1].start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            self._serve(connection, self)

    def read(self, connection: socket.socket) -> bytes:
        piece = connection.recv(READ_BYTES)
        self.got += piece
        return piece

    def rest(self, connection: socket.socket) -> None:
        """Everything until the client gives up."""
        while self.read(connection):
            pass

    def head(self, connection: socket.socket) -> bytes:
        """Up to the end of the request's headers."""
        head = b""
        while b"\r\n\r\n" not in head:
            piece = self.read(connection)
            if not piece:
                raise ConnectionError
            head += piece
        return head

    def close(self) -> None:
        for opened in (self._listening, *self._open):
            with contextlib.suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(WAIT_S)
        self._listening.close()


@contextmanager
def impostor(port: int, serve: Serve) -> Iterator[Recorder]:
    recorder = Recorder(port, serve)
    try:
        yield recorder
    finally:
        recorder.close()


# What an impostor may try ----------------------------------------------------------------------


def says(answer: bytes) -> Serve:
    def serve(connection: socket.socket, recorder: Recorder) -> None:
        recorder.head(connection)
        connection.sendall(answer)
        connection.shutdown(socket.SHUT_WR)
        recorder.rest(connection)

    return serve


def upgraded(*texts: str, protocol: bool = True) -> Serve:
    """Accepts the websocket and sends these, whatever it is asked."""

    def serve(connection: socket.socket, recorder: Recorder) -> None:
        head = recorder.head(connection)
        key = next(
            line.partition(b":")[2].strip()
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"sec-websocket-key:")
        )
        accept = base64.b64encode(hashlib.sha1(key + MAGIC).digest())
        named = b"Sec-WebSocket-Protocol: aios-rpc-1\r\n" if protocol else b""
        connection.sendall(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: %b\r\n%b\r\n" % (accept, named)
        )
        recorder.read(connection)
        for text in texts:
            connection.sendall(noise.frame(text.encode(), mask=False))
        recorder.rest(connection)

    return serve


def passes_on(dead: int, living: int) -> Serve:
    """Sends everything to another port and back, under the name that is right there."""

    def serve(connection: socket.socket, recorder: Recorder) -> None:
        with socket.create_connection(("127.0.0.1", living)) as there:

            def back() -> None:
                with contextlib.suppress(OSError):
                    while piece := there.recv(READ_BYTES):
                        connection.sendall(piece)
                    connection.shutdown(socket.SHUT_WR)

            answering = threading.Thread(target=back)
            answering.start()
            with contextlib.suppress(OSError):
                while piece := recorder.read(connection):
                    there.sendall(piece.replace(b":%d" % dead, b":%d" % living))
                there.shutdown(socket.SHUT_WR)
            answering.join()

    return serve


def recorded_hello(node: NodeProcess) -> str:
    """A true hello of this node, from an earlier conversation."""

    async def listen() -> str:
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{node.url}/ws", protocols=("aios-rpc-1",)) as link,
        ):
            await link.send_str(noise.NONCE.decode())
            heard: str = (await link.receive()).data
            return heard

    return asyncio.run(listen())


# The clients --------------------------------------------------------------------------------


def stale(node: NodeProcess) -> RunInfo:
    """What the killed node left in its home."""
    return msgspec.json.decode(node.run_path.read_bytes(), type=RunInfo)


async def _dial(run: RunInfo) -> None:
    async with await RemoteClient.connect(run):
        pass


def ask(node: NodeProcess, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "aios_nb", *command],
        env=environment(node.home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )


def check_kept(recorder: Recorder, *tokens: str) -> None:
    """The token came in no form; but the client was there, so the test means something."""
    assert recorder.connections > 0
    assert b"GET /ws" in recorder.got
    plain = unmasked(recorder.got)
    for token in tokens:
        for form in (token.encode(), base64.b64encode(token.encode()).rstrip(b"=")):
            assert form not in recorder.got
            assert form not in plain
    assert b"Authorization" not in recorder.got


def unmasked(stream: bytes) -> bytes:
    """What masked frames behind any request head in this stream say."""
    said = b""
    for part in stream.split(b"\r\n\r\n")[1:]:
        at = 0
        while at + 6 <= len(part) and part[at + 1] & 0x80:
            size, start = part[at + 1] & 0x7F, at + 2
            if size == 126:
                size, start = int.from_bytes(part[start : start + 2], "big"), start + 2
            mask, data = part[start : start + 4], part[start + 4 : start + 4 + size]
            said += bytes(byte ^ mask[i % 4] for i, byte in enumerate(data)) + b"\n"
            at = start + 4 + size
    return said


@pytest.fixture(autouse=True)
def _hasty(monkeypatch):
    monkeypatch.setattr(remote, "HELLO_WAIT_S", 1.0)
    monkeypatch.setattr(remote, "CLOSE_WAIT_S", 0.1)


def test_no_impostor_on_the_port_of_a_dead_node_gets_its_token(start, tmp_path):
    node = start("--name", "alice")
    hello = recorded_hello(node)
    other = start("--name", "bob", home=tmp_path / "other")
    node.kill()
    run = stale(node)
    assert run.token == node.token
    forged = json.dumps({**json.loads(hello), "node_id": other.said["node_id"]})
    redirect = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: %b/ws\r\nContent-Length: 0\r\n\r\n"
    challenge = (
        b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 0\r\n\r\n"
    )
    tries: dict[str, Serve] = {
        "is silent": lambda connection, recorder: recorder.rest(connection),
        "is a web server": says(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"),
        "asks for the token": says(challenge),
        "is no web server": says(b"220 smtp ready\r\n"),
        "sends elsewhere": says(redirect % other.url.encode()),
        "asks by websocket": upgraded('{"error":"send the token first"}', '{"ok":true}'),
        "takes it as read": upgraded('{"ok":true,"principal":"owner"}'),
        "replays an old hello": upgraded(hello, '{"ok":true}'),
        "replays it without the protocol": upgraded(hello, '{"ok":true}', protocol=False),
        "replays it in another name": upgraded(forged, '{"ok":true}'),
        "passes it on to another node": passes_on(node.port, other.port),
    }
    for what, serve in tries.items():
        with impostor(node.port, serve) as recorder, pytest.raises(AiosError):
            asyncio.run(_dial(run))
        check_kept(recorder, run.token)
        assert b"token" not in unmasked(recorder.got), what
    assert other.call("node.info")["node_id"] == other.said["node_id"]


def test_an_impostor_that_passes_on_to_the_node_where_it_lives_now_gets_no_token(start):
    node = start("--name", "alice")
    node.kill()
    run = stale(node)
    again = start("--name", "alice")
    assert again.said["node_id"] == run.node_id
    assert again.port != node.port
    with impostor(node.port, passes_on(node.port, again.port)) as recorder:
        for known in (run, msgspec.structs.replace(run, token=again.token)):
            with pytest.raises(Impostor):
                asyncio.run(_dial(known))
    check_kept(recorder, run.token, again.token)
    assert b"nonce" in unmasked(recorder.got)


def test_a_client_that_was_connected_gives_an_impostor_no_token(start):
    node = start("--name", "alice")
    hello = recorded_hello(node)

    async def outlive(run: RunInfo) -> Recorder:
        async with await RemoteClient.connect(run, locate=lambda: run) as client:
            assert (await client.call("node.info"))["node_id"] == run.node_id
            node.kill()
            with impostor(node.port, upgraded(hello, '{"ok":true}')) as recorder:
                for _ in range(2):
                    with pytest.raises(AiosError):
                        await client.call("chat.send", agent="echo", text="hi")
                assert recorder.connections > 0
            return recorder

    check_kept(asyncio.run(outlive(stale(node))), node.token)


def test_the_command_line_gives_an_impostor_no_token(start):
    node = start("--name", "alice")
    hello = recorded_hello(node)
    node.kill()
    with impostor(node.port, upgraded(hello, '{"ok":true}')) as recorder:
        # Nobody holds the name: the run file is stale, and nobody is even asked.
        for command in (("ask", "echo", "hi"), ("ask", "--node", "alice", "echo", "hi")):
            done = ask(node, *command)
            assert done.returncode != 0
            assert "Traceback" not in done.stderr
        assert recorder.connections == 0
        # Somebody holds it, as a node that is just starting would: then the hello must decide.
        with (node.home / "run" / "alice.lock").open("r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            done = ask(node, "ask", "echo", "hi")
            assert f"is not node {node.said['node_id']}" in done.stderr
            for command in (("status",), ("doctor",)):
                done = ask(node, *command)
                assert "Traceback" not in done.stderr
                assert node.token not in done.stdout + done.stderr
                assert done.returncode != 0, (command, done.stdout)
    check_kept(recorder, node.token)
