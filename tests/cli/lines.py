"""``aios-nb stdio`` as an MCP client starts it: lines in, lines out."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.cli.conftest import WAIT_S, environment

LEGACY, MODERN = "2025-11-25", "2026-07-28"
KEY = "io.modelcontextprotocol"


class Relayed:
    """The process. Every line that it writes must be one message."""

    def __init__(self, home: Path, *args: str, **env: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "aios_nb", "stdio", *args],
            env=environment(home, **env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.others: list[dict[str, Any]] = []
        """What came while something else was waited for."""
        self._read: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self._reading, daemon=True).start()

    def _reading(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._read.put(line)
        self._read.put(None)

    def send(self, *lines: Any) -> None:
        assert self.process.stdin is not None
        for line in lines:
            raw = line if isinstance(line, bytes) else json.dumps(line).encode()
            self.process.stdin.write(raw + b"\n")
        self.process.stdin.flush()

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next message like that, also if it came before."""
        for message in self.others:
            if wanted(message):
                self.others.remove(message)
                return message
        while True:
            message = self._next()
            assert message is not None, "it has ended"
            if wanted(message):
                return message
            self.others.append(message)

    def _next(self) -> dict[str, Any] | None:
        line = self._read.get(timeout=WAIT_S)
        if line is None:
            return None
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    def answer(self, number: Any) -> dict[str, Any]:
        return self.until(lambda said: "method" not in said and said["id"] == number)

    def notice(self, method: str) -> dict[str, Any]:
        return self.until(lambda said: said.get("method") == method)

    def begin(self) -> None:
        """Open a session of the earlier era."""
        start = {"protocolVersion": LEGACY, "capabilities": {}}
        start["clientInfo"] = {"name": "test", "version": "1"}
        self.send(request(0, "initialize", **start))
        assert self.answer(0)["result"]["protocolVersion"] == LEGACY
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def end(self) -> tuple[int, list[dict[str, Any]], str]:
        """Close its input; the exit code, what it still said, and its standard error."""
        assert self.process.stdin is not None
        assert self.process.stderr is not None
        self.process.stdin.close()
        while (message := self._next()) is not None:
            self.others.append(message)
        complaint = self.process.stderr.read().decode()
        return self.process.wait(WAIT_S), self.others, complaint

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
        self.process.wait(WAIT_S)


def request(number: Any, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def modern(number: Any, method: str, **params: Any) -> dict[str, Any]:
    """A request of the later era, which says with each what it is."""
    meta = {
        f"{KEY}/protocolVersion": MODERN,
        f"{KEY}/clientCapabilities": {"elicitation": {}},
        **params.pop("_meta", {}),
    }
    return request(number, method, **params, _meta=meta)


def asking(agent: str, text: str = "hello") -> dict[str, Any]:
    """The params of a tool call that asks an agent."""
    return {"name": "agent_send", "arguments": {"agent": agent, "text": text}}
