"""An MCP server behind a command: its lines in and out, and nothing left of it at the end.

It runs in a process group of its own, with an environment that has nothing of ours. What it writes
to stderr goes to the node's log, cleaned and bounded. If the node is killed, a guard that waits
for just that ends the group.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from aios_nb.config import MB
from aios_nb.errors import TooLarge, Unreachable
from aios_nb.richtext import one_line
from aios_nb.wire.outside.tempo import Tempo

log = logging.getLogger("aios_nb.outside")

LINE_LIMIT_BYTES = 16 * MB
"""One message."""
ODD_LINES_MAX = 100
"""Lines on stdout that are no messages; some programs greet or complain there."""
LOGGED_LINES = 200
"""Of stderr, for one process."""
LOGGED_CHARS = 300
_PIECE_BYTES = 4096
LEAVE_S = 1.5
"""To end by itself when its input ends, and again when it is asked to."""
PASSED_ON = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER")
_GUARD = 'read -r _; kill -s TERM -- "-$1"; sleep 2; kill -s KILL -- "-$1"'
"""Its input is a pipe that only this process holds, and never writes to."""

Streams = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]


class Program:
    """A command as it runs. ``trouble`` says why it cannot be talked to any more."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        self._command = list(command)
        self._env = {name: os.environ[name] for name in PASSED_ON if name in os.environ} | dict(env)
        self._name = one_line(os.path.basename(self._command[0]), 60)  # noqa: PTH119 - not a path yet
        self.pid = 0
        self.trouble: TooLarge | Unreachable | None = None

    @contextlib.asynccontextmanager
    async def streams(self) -> AsyncIterator[Streams]:
        """Start it; what it says and what it is told. At the end it is gone."""
        child = await self._start()
        self.pid = child.pid
        guard = None
        heard_in, heard = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        told, told_out = anyio.create_memory_object_stream[SessionMessage](0)
        try:
            with contextlib.suppress(OSError):  # a system without a shell
                guard = await _guard(child.pid)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._hear, child, heard_in)
                tasks.start_soon(self._tell, child, told_out, heard_in)
                tasks.start_soon(self._log, child)
                try:
                    yield heard, told
                finally:
                    with anyio.CancelScope(shield=True):
                        await child.end()
                    tasks.cancel_scope.cancel()
        finally:
            for stream in (heard_in, heard, told, told_out):
                stream.close()
            with anyio.CancelScope(shield=True):
                await child.end()
                if guard is not None:
                    guard.kill()
                    await guard.wait()

    async def _start(self) -> _Child:
        loop = asyncio.get_running_loop()
        try:
            transport, protocol = await loop.subprocess_exec(
                lambda: _Pipes(LINE_LIMIT_BYTES, loop),
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self._env,
                start_new_session=True,
            )
        except (OSError, ValueError) as problem:
            why = problem.strerror if isinstance(problem, OSError) else "not a command"
            raise Unreachable(
                f"{self._name} could not be started: {str(why).lower()}",
                hint="check the command",
                reason="no answer",
                ran="no",
            ) from None
        return _Child(transport, protocol)

    async def _hear(
        self, child: _Child, heard: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> None:
        odd, tempo = 0, Tempo()
        with heard, contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            while True:
                try:
                    line = await child.stdout.readline()
                except ValueError:  # how the reader says that a line has no end
                    self.trouble = TooLarge(
                        f"{self._name} answers with more than {LINE_LIMIT_BYTES // MB} MB"
                    )
                    return
                if not line:
                    break
                await tempo.hold()
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    odd += bool(line.strip())
                    if odd > ODD_LINES_MAX:
                        self.trouble = Unreachable(
                            f"{self._name} does not speak MCP", reason="no answer"
                        )
                        return
                    continue
                await heard.send(SessionMessage(message))
            self.trouble = self.trouble or Unreachable(
                f"{self._name} has ended",
                hint="the node's log has what it said: %aios log",
                reason="no answer",
            )

    async def _tell(
        self,
        child: _Child,
        told: MemoryObjectReceiveStream[SessionMessage],
        heard: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        try:
            async for message in told:
                line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                child.stdin.write(line.encode() + b"\n")
                await child.stdin.drain()
        except OSError:
            heard.close()  # else who waits for an answer waits for ever

    async def _log(self, child: _Child) -> None:
        lines, rest = 0, b""
        while piece := await child.stderr.read(_PIECE_BYTES):
            *whole, rest = (rest + piece).split(b"\n")
            if len(rest) > _PIECE_BYTES:
                whole, rest = [*whole, rest], b""
            for line in whole:
                lines += 1
                said = one_line(line.decode(errors="replace"), LOGGED_CHARS)
                if lines < LOGGED_LINES and said:
                    log.info("%s: %s", self._name, said)
                elif lines == LOGGED_LINES:
                    log.info("%s says more than is kept here", self._name)


class _Pipes(asyncio.subprocess.SubprocessStreamProtocol):
    """Its pipes; and says when the process has ended, whoever else may hold them."""

    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit, loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


class _Child:
    """The process, its group and its pipes."""

    def __init__(self, transport: asyncio.SubprocessTransport, pipes: _Pipes) -> None:
        self._transport = transport
        self._exited = pipes.exited
        self.pid: int = transport.get_pid() or 0
        self.stdin: Any = pipes.stdin
        self.stdout: Any = pipes.stdout
        self.stderr: Any = pipes.stderr
        self._ended = False

    async def end(self) -> None:
        """Let it end, then make it end, with all it has started. Again does nothing."""
        if self._ended:
            return
        self._ended = True
        self.stdin.close()
        try:
            if not await self._gone():
                self._signal(signal.SIGTERM)
                await self._gone()
        finally:
            self._signal(signal.SIGKILL)  # what it started, if it left something
            await self._gone()
            self._transport.close()  # else a pipe that somebody holds keeps it open

    async def _gone(self) -> bool:
        try:
            async with asyncio.timeout(LEAVE_S):
                await self._exited.wait()
        except TimeoutError:
            return False
        return True

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


async def _guard(group: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        "/bin/sh",
        "-c",
        _GUARD,
        "guard",
        str(group),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env={"PATH": "/usr/bin:/bin"},
        start_new_session=True,
    )
