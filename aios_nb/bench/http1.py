"""Reads HTTP/1.1 replies from bytes that arrive cut anywhere. No I/O.

Written for a load generator: no objects per reply beyond the body, and no tolerance. A reply that
cannot be framed raises ``BadReply``, because a benchmark must not guess.
"""

from __future__ import annotations

from collections.abc import Callable

HEAD_LIMIT_BYTES = 64 * 1024
_SWITCHING = 101
_OK = 200
_NO_BODY = frozenset({204, 304})

_HEAD, _LENGTH, _SIZE, _CHUNK, _CHUNK_END, _TRAILER = range(6)


class BadReply(ValueError):
    """Bytes that are not the reply they should be."""


class ResponseParser:
    """Calls ``on_reply(status, body)`` per reply; with ``on_piece`` the body goes there instead."""

    __slots__ = (
        "_buffer",
        "_left",
        "_on_piece",
        "_on_reply",
        "_parts",
        "_state",
        "head",
        "status",
    )

    def __init__(
        self,
        on_reply: Callable[[int, bytes], None],
        on_piece: Callable[[bytes], None] | None = None,
    ) -> None:
        self._on_reply = on_reply
        self._on_piece = on_piece
        self._buffer = b""
        self._parts: list[bytes] = []
        self._state = _HEAD
        self._left = 0
        self.status = 0
        self.head = b""
        """The head of the current reply, in lower case."""

    def feed(self, data: bytes) -> None:
        """Take bytes as they came; replies completed by them are reported before this returns."""
        self._buffer = self._buffer + data if self._buffer else data
        while self._buffer:
            if self._state == _HEAD:
                if not self._read_head():
                    return
            elif self._state in (_LENGTH, _CHUNK):
                self._read_body()
            elif not self._read_line():
                return

    def _read_head(self) -> bool:
        buffer = self._buffer
        end = buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(buffer) > HEAD_LIMIT_BYTES:
                raise BadReply("a reply head without an end")
            return False
        head = buffer[:end].lower()
        if not head.startswith(b"http/1.1 ") or not head[9:12].isdigit():
            raise BadReply(f"not an HTTP/1.1 reply: {buffer[:60]!r}")
        self.head = head
        self.status = status = int(head[9:12])
        if status == _SWITCHING:
            raise BadReply("the server changed protocols unasked")
        self._buffer = buffer[end + 4 :]
        if status >= _OK:
            self._begin_body(head, status)
        return True

    def _begin_body(self, head: bytes, status: int) -> None:
        at = head.find(b"\r\ncontent-length:")
        if at >= 0:
            length = head[at + 17 :].partition(b"\r\n")[0].strip()
            if not length.isdigit():
                raise BadReply(f"Content-Length is {length!r}")
            self._left = int(length)
            self._state = _LENGTH
            if not self._left:
                self._finish()
        elif b"\r\ntransfer-encoding: chunked" in head:
            self._state = _SIZE
        elif status in _NO_BODY:
            self._finish()
        else:
            raise BadReply("a reply with neither Content-Length nor chunks")

    def _read_body(self) -> None:
        buffer, left = self._buffer, self._left
        if len(buffer) > left:
            piece, self._buffer = buffer[:left], buffer[left:]
        else:
            piece, self._buffer = buffer, b""
        self._left = left - len(piece)
        if self._on_piece is not None:
            self._on_piece(piece)
        else:
            self._parts.append(piece)
        if not self._left:
            if self._state == _LENGTH:
                self._finish()
            else:
                self._state = _CHUNK_END

    def _read_line(self) -> bool:
        """One line of the chunked framing: a size, the end of a chunk, or a trailer."""
        end = self._buffer.find(b"\r\n")
        if end < 0:
            if len(self._buffer) > HEAD_LIMIT_BYTES:
                raise BadReply("a chunk line without an end")
            return False
        line, self._buffer = self._buffer[:end], self._buffer[end + 2 :]
        if self._state == _SIZE:
            try:
                self._left = int(line.split(b";", 1)[0], 16)
            except ValueError:
                raise BadReply(f"a chunk size of {line!r}") from None
            self._state = _CHUNK if self._left else _TRAILER
        elif self._state == _CHUNK_END:
            if line:
                raise BadReply("a chunk longer than it said")
            self._state = _SIZE
        elif not line:
            self._finish()
        return True

    def _finish(self) -> None:
        parts = self._parts
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        self._parts = []
        self._state = _HEAD
        self._on_reply(self.status, body)
