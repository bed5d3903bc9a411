"""The servers we compare with: ``python -m aios_nb.bench.baselines KIND``.

``echo`` is the unit of everything: the shortest aiohttp server that gives back what it got.
``events`` is its streaming twin. ``spawn-bare`` and ``spawn-stack`` do what the reference
implementation of the paper does: a new Python process for every task.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from aios_nb.bench.tokens import event

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

STACK = ("json", "asyncio", "httpx", "pydantic", "fastapi", "numpy")
"""What an agent of the reference imports, roughly; what is not installed is left out."""
_ANSWER = "import sys; sys.stdout.write(sys.argv[1])"


async def echo(request: web.Request) -> web.StreamResponse:
    return web.Response(body=await request.read())


async def events(request: web.Request) -> web.StreamResponse:
    count, salt = (await request.text()).split()
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for number in range(int(count)):
        await response.write(event(salt, number))
        await asyncio.sleep(0)
    await response.write_eof()
    return response


def spawning(modules: tuple[str, ...]) -> Handler:
    """A handler that starts a Python which imports these modules, for each task."""
    code = f"import {', '.join(modules)}; {_ANSWER}" if modules else _ANSWER

    async def spawn(request: web.Request) -> web.StreamResponse:
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, await request.text(), stdout=asyncio.subprocess.PIPE
        )
        answer, _ = await child.communicate()
        return web.Response(body=answer)

    return spawn


def handler_for(kind: str) -> tuple[Handler, tuple[str, ...]]:
    """The handler, and the modules each task imports."""
    if kind == "echo":
        return echo, ()
    if kind == "events":
        return events, ()
    if kind == "spawn-bare":
        return spawning(()), ()
    if kind == "spawn-stack":
        modules = tuple(name for name in STACK if importlib.util.find_spec(name))
        return spawning(modules), modules
    sys.exit(f"no such baseline: {kind}")


async def serve(kind: str) -> None:
    handler, modules = handler_for(kind)
    app = web.Application()
    app.router.add_post("/rpc", handler)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    # proto: with 0 asyncio leaves Nagle's algorithm on
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    await web.SockSite(runner, listener, backlog=512).start()
    port = listener.getsockname()[1]
    ready: dict[str, Any] = {"url": f"http://127.0.0.1:{port}", "imports": modules}
    ready["missing"] = [name for name in STACK if modules and name not in modules]
    print(json.dumps(ready), flush=True)
    await _parent_gone()
    await runner.cleanup()


async def _parent_gone() -> None:
    """Wait until the other end of our standard input is closed."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
