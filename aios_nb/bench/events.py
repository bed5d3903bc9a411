"""Reads server-sent events from bytes that arrive cut anywhere. No I/O."""

from __future__ import annotations

from collections.abc import Callable


class EventParser:
    """Calls ``on_event(data)`` for each event that carries data; comments are skipped."""

    __slots__ = ("_buffer", "_on_event")

    def __init__(self, on_event: Callable[[bytes], None]) -> None:
        self._on_event = on_event
        self._buffer = b""

    def feed(self, data: bytes) -> None:
        """Take bytes as they came; events completed by them are reported before this returns."""
        buffer = self._buffer + data if self._buffer else data
        if b"\r" in buffer:
            buffer = buffer.replace(b"\r\n", b"\n")
        *blocks, self._buffer = buffer.split(b"\n\n")
        for block in blocks:
            if block.startswith(b"data: ") and b"\n" not in block:
                self._on_event(block[6:])
                continue
            lines = [
                line[5:].removeprefix(b" ")
                for line in block.split(b"\n")
                if line.startswith(b"data:")
            ]
            if lines:
                self._on_event(b"\n".join(lines))
