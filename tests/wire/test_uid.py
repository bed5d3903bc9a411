"""Whose process is calling: another user of the machine is nobody here."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys

import pytest

from aios_nb.wire import uid

NOBODY = 65534
linux = pytest.mark.skipif(not uid.is_told(), reason="this system does not tell the user")
as_root = pytest.mark.skipif(
    not uid.is_told() or os.geteuid() != 0, reason="only root can become another user"
)

ASK = f"""
import os, socket, sys
os.setuid({NOBODY})
host, port = sys.argv[1], int(sys.argv[2])
family = socket.AF_INET6 if ":" in host else socket.AF_INET
with socket.socket(family, socket.SOCK_STREAM) as s:
    s.settimeout(30)
    s.connect((host, port))
    s.sendall(sys.stdin.buffer.read())
    while piece := s.recv(65536):
        sys.stdout.buffer.write(piece)
"""


@pytest.fixture(params=["127.0.0.1", "::1", "::ffff:127.0.0.1"])
def ends(request):
    """Both ends of a connection; the last is IPv4 through an IPv6 socket."""
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    server_family = socket.AF_INET6 if request.param == "::1" else socket.AF_INET
    bound = "::1" if request.param == "::1" else "127.0.0.1"
    with socket.socket(server_family) as listening, socket.socket(family) as there:
        try:
            listening.bind((bound, 0))
            listening.listen()
            there.connect((request.param, listening.getsockname()[1]))
        except OSError:
            pytest.skip(f"no {request.param} on this machine")
        here, _ = listening.accept()
        with here:
            yield there, here


@linux
@pytest.mark.parametrize("way", ["_by_netlink", "_by_tables", "both"])
def test_our_own_connection_is_ours(ends, way):
    _, here = ends
    peer, local = here.getpeername()[:2], here.getsockname()[:2]
    if way == "both":
        assert uid.uid_of(peer, local) == os.geteuid()
        return
    plain = [(uid._plain(host), port) for host, port in (peer, local)]
    try:
        assert getattr(uid, way)(*plain) == os.geteuid()
    except OSError:
        pytest.skip("netlink is not to be had here")


@linux
def test_a_closed_end_is_nobody_s_not_root_s(ends):
    there, here = ends
    peer, local = here.getpeername()[:2], here.getsockname()[:2]
    there.close()
    assert uid.uid_of(peer, local) is None


@linux
def test_an_unknown_connection_is_nobody_s(ends):
    _, here = ends
    _, port = here.getsockname()[:2]
    assert uid.uid_of(("127.0.0.1", 1), ("127.0.0.1", port)) is None


@linux
def test_the_tables_answer_where_netlink_does_not(ends, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(uid, "_by_netlink", refuse)
    uid._netlink_works.cache_clear()
    _, here = ends
    try:
        assert not uid._netlink_works()
        assert uid.uid_of(here.getpeername()[:2], here.getsockname()[:2]) == os.geteuid()
    finally:
        uid._netlink_works.cache_clear()


@linux
def test_where_netlink_works_the_tables_are_never_read(ends, monkeypatch):
    if not uid._netlink_works():
        pytest.skip("netlink is not to be had here")

    def read(*_: object) -> None:
        raise AssertionError("a stranger could make us read them")

    monkeypatch.setattr(uid, "_by_tables", read)
    there, here = ends
    peer, local = here.getpeername()[:2], here.getsockname()[:2]
    there.close()
    assert uid.uid_of(peer, local) is None


def as_another_user(port: int, request: bytes) -> bytes:
    run = [sys.executable, "-c", ASK, "127.0.0.1", str(port)]
    return subprocess.run(run, input=request, capture_output=True, check=True, timeout=60).stdout


CALL = b'{"jsonrpc":"2.0","method":"node.info","id":1}'


def request(
    site, method: str, path: str, *, token: bool, more: str = "", body: bytes = b""
) -> bytes:
    shown = f"Authorization: Bearer {site.token}\r\n" if token else ""
    head = f"{method} {path} HTTP/1.1\r\nHost: {site.host}\r\nConnection: close\r\n{shown}{more}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


UPGRADE = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: aios-rpc-1\r\n"
)


@as_root
def test_another_user_is_refused_everywhere_even_with_the_token(serving):
    async def main():
        async with serving() as site:
            blob = "/blobs/" + "0" * 64
            asked = {
                "rpc": request(site, "POST", "/rpc", token=True, body=CALL),
                "ws": request(site, "GET", "/ws", token=False, more=UPGRADE),
                "ws with token": request(site, "GET", "/ws", token=True, more=UPGRADE),
                "put": request(site, "PUT", blob, token=True, body=b"x"),
                "get": request(site, "GET", blob, token=True),
                "no token": request(site, "POST", "/rpc", token=False, body=CALL),
                "healthz": request(site, "GET", "/healthz", token=False),
                "record": request(site, "GET", "/.well-known/aios.json", token=True),
            }
            got = {
                name: await asyncio.to_thread(as_another_user, site.port, sent)
                for name, sent in asked.items()
            }
            return {name: int(answer.split(b" ", 2)[1]) for name, answer in got.items()}, site.calls

    codes, calls = asyncio.run(main())
    assert codes == {
        "rpc": 403,
        "ws": 403,
        "ws with token": 403,
        "put": 403,
        "get": 403,
        "no token": 401,
        "healthz": 200,
        "record": 200,
    }
    assert calls == []


@as_root
def test_a_node_that_others_may_reach_does_not_ask_for_the_user(serving):
    async def main():
        async with serving(allow_hosts=("box.lan",)) as site:
            sent = request(site, "POST", "/rpc", token=True, body=CALL)
            return await asyncio.to_thread(as_another_user, site.port, sent)

    assert asyncio.run(main()).startswith(b"HTTP/1.1 200")
