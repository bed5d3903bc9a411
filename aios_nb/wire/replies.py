"""The HTTP answers of a node: small, with the same few headers, written in one go."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from aiohttp import HttpVersion11, web
from aiohttp.helpers import rfc822_formatted_time

from aios_nb.wire.guard import Refusal

if TYPE_CHECKING:
    from aiohttp.abc import AbstractStreamWriter

    from aios_nb.wire.connection import Connection

HEADERS = {"Server": "aios-nb", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
"""On every answer. No versions: they help only who looks for an old one."""
JSON_HEADERS = {**HEADERS, "Content-Type": "application/json"}
_LINES = "".join(f"{name}: {value}\r\n" for name, value in JSON_HEADERS.items())


class _Head:
    """The head of a JSON answer up to its length; made anew when the Date changes."""

    second = 0
    text = b""

    def now(self) -> bytes:
        second = int(time.time())
        if second != self.second:
            self.second = second
            date = rfc822_formatted_time()
            self.text = f"HTTP/1.1 200 OK\r\n{_LINES}Date: {date}\r\nContent-Length: ".encode()
        return self.text


_head = _Head()


class JsonReply(web.StreamResponse):
    """A 200 with JSON, written straight to the transport.

    ``web.Response`` copies and serialises its headers for each answer, which costs a fifth of a
    small request. This is for keep-alive HTTP/1.1 only; ``json_reply`` chooses.
    """

    def __init__(self, body: bytes) -> None:  # not super(): that would build what we avoid
        self._json = body
        self._keep_alive = True

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        transport = request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client has gone")
        body = self._json
        transport.write(b"%b%d\r\n\r\n%b" % (_head.now(), len(body), body))
        connection: Connection = request.protocol  # type: ignore[assignment]
        if connection.writing_paused:
            await connection.drained()
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        """All is written."""


def json_reply(request: web.BaseRequest, body: bytes) -> web.StreamResponse:
    """A 200 with this JSON."""
    if request.version == HttpVersion11 and request.keep_alive:
        return JsonReply(body)
    return web.Response(body=body, headers=JSON_HEADERS)


def head_reply(body: bytes) -> web.Response:
    """What HEAD gets: the headers of the answer, with its length."""
    return web.Response(headers={**JSON_HEADERS, "Content-Length": str(len(body))})


def nothing() -> web.Response:
    """A 204: a notification was taken."""
    return web.Response(status=204, headers=HEADERS)


def refused(refusal: Refusal) -> web.Response:
    """The refusal as an HTTP answer."""
    headers = {**JSON_HEADERS, **dict(refusal.headers)}
    return web.Response(status=refusal.status, body=refusal.body() + b"\n", headers=headers)
