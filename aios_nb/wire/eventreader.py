"""Server-sent events, read as they come."""

from __future__ import annotations

import re

import msgspec

_ENDS = re.compile(rb"\r\n|\n|\r")


class TooLong(Exception):
    """An event that does not end."""


class Event(msgspec.Struct, frozen=True):
    """One event. ``data`` may be empty: then it only says where to go on."""

    data: bytes
    id: str | None
    retry_ms: int | None


class EventReader:
    """Takes bytes in any pieces, gives whole events. One may have ``limit_bytes``."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._line = bytearray()
        """Of which the end has not come yet."""
        self._half_end = False
        """The last piece ended in the first half of what may be a line end of two bytes."""
        self._clear()

    def _clear(self) -> None:
        self._data: list[bytes] = []
        self._size = 0
        self._id: str | None = None
        self._retry: int | None = None

    def feed(self, piece: bytes) -> list[Event]:
        """The events that are whole now. Raises ``TooLong``."""
        if self._half_end and piece:
            piece = piece.removeprefix(b"\n")
        self._half_end = piece.endswith(b"\r")
        *ended, rest = _ENDS.split(piece)
        found: list[Event] = []
        for part in ended:
            self._line += part
            if self._line:
                self._take(bytes(self._line))
                self._line.clear()
            elif self._data or self._id is not None or self._retry is not None:
                found.append(Event(b"\n".join(self._data), self._id, self._retry))
                self._clear()
        self._line += rest
        if self._size + len(self._line) > self._limit_bytes:
            raise TooLong
        return found

    def _take(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._size += len(line)
        elif name == b"id":
            self._id = value.decode(errors="replace")
        elif name == b"retry" and value.isdigit():
            self._retry = int(value)
