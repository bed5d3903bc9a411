"""A bridge behind a proxy, as the environment names it."""

from __future__ import annotations

import asyncio
import base64

import pytest

from aios_bots.adapters.telegram.line import Line, proxy_for
from aios_bots.core.secret import Secret

API = "http://api.example/bot"
TOKEN = "77:AAbbCCddEEffGGhhIIjjKKllMMnnOOppQQr"


@pytest.fixture(autouse=True)
def _no_proxy_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def test_calls_go_through_the_proxy_with_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    heads: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        body = b'{"ok":true,"result":true}'
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def story() -> bytes:
        server = await asyncio.start_server(proxy, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        monkeypatch.setenv("http_proxy", f"http://me:secret@127.0.0.1:{port}")
        line = Line(Secret(TOKEN), API, API)
        await line.open()
        try:
            async with server:
                return await line.ask("getMe")
        finally:
            await line.shut()

    assert asyncio.run(story()) == b"true"
    assert heads[0].startswith(b"POST http://api.example/bot")
    password = base64.b64encode(b"me:secret")
    assert b"Proxy-Authorization: Basic " + password in heads[0]


def test_an_address_that_needs_no_proxy_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:3128")
    monkeypatch.setenv("no_proxy", "api.example")
    assert proxy_for(API) is None
    assert proxy_for("http://other.example/bot") is not None
    for here in ("127.0.0.1:8081", "localhost:8081", "[::1]:8081"):
        assert proxy_for(f"http://{here}/bot") is None
    assert proxy_for("https://other.example/bot") is None
