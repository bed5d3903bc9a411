"""Programs for ASGI behind our server: what they are told, and what of them goes out."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web

from aios_nb.config import Limits
from aios_nb.wire import asgi
from aios_nb.wire.connection import Connection, Listener
from tests.wire.conftest import parse


class Served:
    """A server whose every request goes to one program."""

    def __init__(self, app: Any, *, patient: bool) -> None:
        self._app = app
        self._patient = patient

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.content.read()
        work = asgi.answered(self._app, request, body, {"who": "ada"}, patient=self._patient)
        connection: Connection = request.protocol  # type: ignore[assignment]
        return await connection.while_there(asyncio.ensure_future(work))


@contextlib.asynccontextmanager
async def serving(app: Any, *, patient: bool = True) -> AsyncIterator[Callable[..., Any]]:
    listener = Listener(Served(app, patient=patient).answer, Limits(), by_uid=False)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(listener, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    async def sent(head: str, body: bytes = b"") -> Any:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"{head}\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        return reader, writer

    yield sent
    server.close()
    await listener.finish(1)
    await server.wait_closed()


def say(status: int, body: bytes, kind: str = "application/json", *more: Any) -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-type", kind.encode()), *more]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return app


async def whole(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Any:
    data = await reader.read()
    writer.close()
    return parse(data)


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize(("status", "body"), [(200, b"{}"), (404, b"{}"), (202, b"")])
def test_an_answer_in_one_piece_has_our_headers(version, status, body):
    async def main():
        app = say(status, body, "application/json", (b"server", b"other"), (b"mcp-x", b"1"))
        async with serving(app) as sent:
            return await whole(*await sent(f"GET /a HTTP/{version}\r\nConnection: close"))

    answer = asyncio.run(main())
    assert (answer.status, answer.body) == (status, body)
    headers = {name.lower(): value for name, value in answer.headers.items()}
    assert headers["server"] == "aios-nb"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert headers["mcp-x"] == "1"


def test_the_program_is_told_of_the_request_and_not_of_its_secrets():
    async def main():
        told: asyncio.Queue[Any] = asyncio.Queue()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await told.put((scope, await receive()))
            await say(200, b"{}")(scope, receive, send)

        async with serving(app) as sent:
            head = "POST /a%20b?c=d HTTP/1.1\r\nAuthorization: Bearer x\r\nCOOKIE: y\r\nX-Big: Z"
            _, writer = await sent(head, b"hello")
            got = await told.get()
            writer.close()
            return got

    scope, message = asyncio.run(main())
    assert message == {"type": "http.request", "body": b"hello", "more_body": False}
    assert (scope["method"], scope["path"], scope["query_string"]) == ("POST", "/a b", b"c=d")
    assert scope["raw_path"] == b"/a%20b"
    assert scope["who"] == "ada"
    names = dict(scope["headers"])
    assert names[b"x-big"] == b"Z"
    assert not {b"authorization", b"cookie"} & set(names)


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_pieces_go_out_as_they_come(version):
    async def main():
        next_one = asyncio.Event()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await next_one.wait()
            await send({"type": "http.response.body", "body": b"one\n", "more_body": True})
            next_one.clear()
            await next_one.wait()
            await send({"type": "http.response.body", "body": b"two\n", "more_body": False})

        async with serving(app) as sent:
            reader, writer = await sent(f"GET /a HTTP/{version}")
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()  # before any piece
            next_one.set()
            one = await reader.readuntil(b"one\n")
            next_one.set()
            two = await reader.readuntil(b"two\n")
            if version == "1.1":
                await reader.readuntil(b"0\r\n\r\n")
                next_one.set()
                writer.write(b"GET /b HTTP/1.1\r\nHost: x\r\n\r\n")  # the connection is kept
                await reader.readuntil(b"one\n")
            writer.close()
            return head, one, two

    head, one, two = asyncio.run(main())
    assert "cache-control: no-cache" in head
    assert "server: aios-nb" in head
    assert one.endswith(b"one\n")
    assert two.endswith(b"two\n")


def test_a_program_that_fails_before_it_answers_is_an_internal_error():
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise ValueError("secret")

    async def main():
        async with serving(app) as sent:
            return await whole(*await sent("GET /a HTTP/1.1"))

    answer = asyncio.run(main())
    assert answer.status == 500
    assert b"internal error" in answer.body
    assert b"secret" not in answer.body


def test_a_program_that_breaks_off_leaves_an_answer_without_end():
    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"one", "more_body": True})
        raise ValueError("secret")

    async def main():
        async with serving(app) as sent:
            reader, writer = await sent("GET /a HTTP/1.1")
            data = await reader.read()
            writer.close()
            return data

    data = asyncio.run(main())
    assert data.startswith(b"HTTP/1.1 200 OK\r\n")
    assert data.endswith(b"3\r\none\r\n")


def test_a_client_that_leaves_is_told_to_the_program_which_may_finish():
    async def main():
        steps: asyncio.Queue[str] = asyncio.Queue()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await receive()
            await steps.put("begun")
            assert (await receive())["type"] == "http.disconnect"
            await asyncio.sleep(0)
            await steps.put("in order")

        async with serving(app) as sent:
            _, writer = await sent("GET /a HTTP/1.1")
            begun = await steps.get()
            writer.transport.abort()
            return begun, await steps.get()

    assert asyncio.run(main()) == ("begun", "in order")


@pytest.mark.parametrize("patient", [True, False])
def test_a_program_that_does_not_listen_is_cancelled(patient, monkeypatch):
    monkeypatch.setattr(asgi, "LEAVE_S", 0.01)

    async def main():
        steps: asyncio.Queue[str] = asyncio.Queue()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await steps.put("begun")
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await steps.put("cancelled")
                raise

        async with serving(app, patient=patient) as sent:
            _, writer = await sent("GET /a HTTP/1.1")
            await steps.get()
            writer.transport.abort()
            return await steps.get()

    assert asyncio.run(main()) == "cancelled"


def test_a_residence_is_left_by_the_task_that_entered_it():
    async def main():
        tasks: list[Any] = []

        @contextlib.asynccontextmanager
        async def context() -> AsyncIterator[None]:
            tasks.append(asyncio.current_task())
            yield
            tasks.append(asyncio.current_task())

        residence = asgi.Residence(context())
        await residence.entered()
        assert len(tasks) == 1
        await residence.close()
        return tasks, asyncio.current_task()

    (entered, left), own = asyncio.run(main())
    assert entered is left
    assert entered is not own


def test_a_residence_that_cannot_be_entered_says_why():
    @contextlib.asynccontextmanager
    async def context() -> AsyncIterator[None]:
        raise ValueError("no")
        yield

    async def main():
        residence = asgi.Residence(context())
        with pytest.raises(ValueError, match="no"):
            await residence.entered()
        await residence.close()

    asyncio.run(main())
