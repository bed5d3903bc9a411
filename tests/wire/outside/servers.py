"""Real MCP servers for tests, of both eras: over HTTP on loopback, and behind a command."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import uvicorn
from mcp.server.mcpserver import Context, MCPServer

from aios_nb.envelope import FileRef, Outcome, Seen, Sender, Task
from aios_nb.wire.outside.mcp import McpServer

WAIT_S = 30.0
"""A ceiling for what comes at once."""
ME = "calculator@" + "a" * 32


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a test's own coroutine, within the ceiling."""

    async def bounded() -> None:
        async with asyncio.timeout(WAIT_S):
            await main()

    asyncio.run(bounded())


@contextlib.contextmanager
def serving(app: Any, port: int = 0) -> Iterator[str]:
    """An ASGI program on a port of loopback, in a thread; gives its origin."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        port = listener.getsockname()[1]
        config = uvicorn.Config(app, log_level="critical", lifespan="on", ws="none")
        config.timeout_graceful_shutdown = 1
        server = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: server.run(sockets=[listener]))
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            thread.join(WAIT_S)


def old(app: Any) -> Any:
    """The same program as a server of the old era: it does not know how the new one begins."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if (b"mcp-method", b"server/discover") in scope.get("headers", ()):
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        await app(scope, receive, send)

    return answer


def plain_app(answer: Callable[[Any, bytes, Any], Any]) -> Any:
    """An ASGI program from ``answer(scope, body, send)``, for servers no library would make."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while (message := await receive())["type"] != "lifespan.shutdown":
                await send({"type": message["type"] + ".complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        await answer(scope, body, send)

    return app


class Odd:
    """A server written by hand, of the old era: it answers what the test wants it to."""

    def __init__(self, **answers: Any) -> None:
        self.answers = {"tools/list": {"tools": []}, **answers}
        """A result by method, or a function of the message that gives one."""
        self.heard: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.release = threading.Event()

    async def __call__(self, scope: Any, body: bytes, send: Any) -> None:
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.headers.append(headers)
        if scope["method"] != "POST":
            self.heard.append(scope["method"])
            if scope["method"] == "GET" and "GET" in self.answers:
                await stream(send)
                await send({"type": "http.response.body", "body": self.answers["GET"]})
            else:
                await reply(send, 405 if scope["method"] == "GET" else 200)
            return
        message = json.loads(body)
        method = message.get("method", "an answer")
        self.heard.append(method)
        if "id" not in message or "method" not in message:
            await reply(send, 202)
            return
        answer, more = self.answers.get(method), {}
        if method == "initialize":
            answer = answer or HELLO
            more = {"mcp-session-id": "one"}
        if callable(answer):
            answer = await answer(message, send)
            if answer is None:
                return  # it has answered by itself
        error = {"code": -32601, "message": "what?"}
        told = {"error": error} if answer is None else {"result": answer}
        await reply(send, 200, {"jsonrpc": "2.0", "id": message["id"], **told}, **more)


HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "odd", "version": "1"},
}
TOOL = {"name": "go", "description": "Goes", "inputSchema": {"type": "object"}}


async def reply(send: Any, status: int, body: Any = None, **headers: str) -> None:
    """An HTTP answer, all at once."""
    content = b"" if body is None else json.dumps(body).encode()
    named = {"content-type": "application/json", **headers}
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in named.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": content})


async def stream(send: Any) -> None:
    """The head of a stream of events; the rest is up to the test."""
    head = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": head})


class Calculator:
    """An MCP server with a few tools, and what happened to it."""

    def __init__(self) -> None:
        self.called: list[Any] = []
        self.waiting = threading.Event()
        self.cancelled = threading.Event()
        server = self.server = MCPServer(
            "calculator", title="A calculator", version="1.2", log_level="CRITICAL"
        )

        @server.tool(description="Add two numbers")
        def add(a: int, b: int) -> int:
            self.called.append(("add", a, b))
            return a + b

        @server.tool()
        async def wait(ctx: Context) -> str:
            """Wait for ever."""
            self.waiting.set()
            try:
                await asyncio.sleep(3600)
            except BaseException:
                self.cancelled.set()
                raise
            return "never"

    def app(self) -> Any:
        return self.server.streamable_http_app()


class Talk:
    """A run: what the tool's caller sees, and what a person answers. Is a ``ports.Run``."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.questions: list[str] = []
        self.notes: list[tuple[str, float | None]] = []
        self.begun = False
        self.stranger = False
        self.was_asked = asyncio.Event()
        self.is_free = asyncio.Event()
        """The person is not kept waiting by a question."""
        self._noted = asyncio.Event()

    def begin(self) -> None:
        self.begun = True

    def progress(self, note: str, fraction: float | None) -> None:
        self.notes.append((note, fraction))
        self._noted.set()

    async def told(self, count: int) -> None:
        while len(self.notes) < count:
            self._noted.clear()
            await self._noted.wait()

    async def ask_user(self, question: str, question_id: str | None = None) -> str:
        self.questions.append(question)
        self.was_asked.set()
        try:
            if not self.answers:
                await asyncio.sleep(3600)
        finally:
            self.is_free.set()
        return self.answers.pop(0)


class Shelf:
    """Files in memory. Is a ``ports.Blobs``, as far as it is used."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    async def put(
        self, content: bytes, name: str, mime: str, owner: str, *, stranger: bool = False
    ) -> FileRef:
        self.kept[name] = content
        return FileRef(name, mime, len(content), "0" * 64)


class Guest:
    """A server met from here, and calls to it."""

    def __init__(self, address: str | Sequence[str], **how: Any) -> None:
        self.shelf = Shelf()
        self.server = McpServer(address, self.shelf, **{"local": True, **how})
        self.seen: Seen | None = None

    async def __aenter__(self) -> Self:
        try:
            self.seen = await self.server.look()
        except BaseException:
            await self.server.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.close()

    async def say(
        self, text: str, data: Any = None, run: Talk | None = None, caller: str = "owner"
    ) -> Outcome:
        assert self.seen is not None
        carrier = self.server.carrier(self.seen, None)
        task = Task(ME, text, "m1", "r1", "c1", Sender("me", "human"), caller, data)
        return await carrier.carry(task, run or Talk())


def script(tmp_path: Path, body: str) -> list[str]:
    """A command that runs this program."""
    path = tmp_path / "server.py"
    path.write_text(body)
    return [sys.executable, str(path)]
