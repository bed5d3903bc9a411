"""The load generator: its own process, so that its work is not counted as the server's.

``python -m aios_nb.bench.loadgen`` reads commands (``spec.Command``) as JSON lines and answers
each with one ``spec.Answer``. Protocol callbacks only, no coroutine per call, and no garbage
collection inside a window: a call costs the generator 10 to 30 µs, less than any server.
"""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import Callable

import msgspec

from aios_nb.bench.lanes import HttpSession
from aios_nb.bench.mcplanes import McpSession
from aios_nb.bench.peers import Aside, IdleLinks, PeerSession
from aios_nb.bench.session import Session
from aios_nb.bench.sockets import WsSession
from aios_nb.bench.spec import Answer, Broken, Command, Drive, Open, Target


def session_for(target: Target) -> Session:
    """Connections of the kind this target asks for; not opened yet."""
    if target.wire == "peer":
        if target.side == "idle":
            return IdleLinks(target)
        return PeerSession(target) if target.side is None else Aside(target)
    if target.wire == "mcp-session":
        return McpSession(target)
    return WsSession(target) if target.wire == "ws" else HttpSession(target)


class _Desk:
    """Does what the commands say, one after the other."""

    def __init__(self) -> None:
        self._sessions: dict[int, Session] = {}
        self._last = 0

    async def do(self, command: Command) -> Answer:
        try:
            if isinstance(command, Open):
                session = session_for(command.target)
                await session.open()
                self._last += 1
                self._sessions[self._last] = session
                return Answer(session=self._last)
            if isinstance(command, Drive):
                return Answer(window=await self._sessions[command.session].drive(command.load))
            self._sessions.pop(command.session).close()
            return Answer(session=command.session)
        except (Broken, OSError, TimeoutError) as error:
            return Answer(error=str(error) or type(error).__name__)


async def serve() -> None:
    """Answer commands from standard input until it ends."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    desk = _Desk()
    commands: msgspec.json.Decoder[Command] = msgspec.json.Decoder(Command)
    while line := await reader.readline():
        answer = await desk.do(commands.decode(line))
        sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
        sys.stdout.buffer.flush()


def main() -> None:
    """Run on uvloop where it is installed: the generator should not be what is measured."""
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    if importlib.util.find_spec("uvloop"):
        factory = importlib.import_module("uvloop").new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(serve())


if __name__ == "__main__":
    main()
