"""Before the door: takes connections from the system, and turns strangers away at once.

A connection costs the loop and the framework half a millisecond before the door can say no: at 500
knocks a second that is a third of a core, and what the owner feels. So while the door has no room
for strangers, their knocks are answered here, with a few system calls and nothing built for them.
All other connections go on untouched; their first bytes are only looked at.

Nobody waits here. Linux holds a connection back until its first bytes have come; one that sends
none is let through after a second, and has to be dealt with behind.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import select
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Protocol, runtime_checkable

from aiohttp.helpers import rfc822_formatted_time

from aios_nb.wire.guard import Refusal
from aios_nb.wire.replies import JSON_HEADERS

log = logging.getLogger(__name__)

HOLD_BACK_S = 1
LOOK_BYTES = 2048
"""A knock of ours has 300. What is longer is not clearly one."""
LET_THROUGH_PER_TURN = 2
"""New connections, so that a crowd at the door does not hold up those who are in."""
TURNED_AWAY_PER_TURN = 8
RETRY_S = 1.0
_NO_MORE = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
"""The system has no room for one more: it would say so again and again until something closes."""

_NO_WAIT = getattr(socket, "MSG_DONTWAIT", 0)
_WITH_ITS_END = _NO_WAIT | getattr(socket, "MSG_MORE", 0)
"""The answer leaves with the close, in one packet: half the work, for both ends."""

_REQUEST_LINE = b"GET /ws HTTP/1.1\r\n"
_ASKED = (
    b"\nupgrade: websocket\r",
    b"\nconnection: upgrade\r",
    b"\nsec-websocket-version: 13\r",
    b"\nsec-websocket-key: ",
)
_SAYS_MORE = (b"\norigin", b"\nauthorization", b"\ncontent-length", b"\ntransfer-encoding")
"""Who sends one of these gets another answer, or sends more than a header."""


@runtime_checkable
class Shuts(Protocol):
    """A link that can say, before anyone has come, that there is no room for strangers."""

    def turns_away(self) -> Refusal | None:
        """What every knock is answered with now; None when it has to be looked at."""


def never() -> None:
    """What a server without other nodes turns away."""


def is_held_back() -> bool:
    """Whether this system gives out connections with their first bytes."""
    return sys.platform == "linux"


class Porch:
    """Accepts the connections of one listening socket, and closes it in the end."""

    def __init__(
        self,
        listening: socket.socket,
        let_through: Callable[[], asyncio.BaseProtocol],
        *,
        subprotocol: str,
        turns_away: Callable[[], Refusal | None],
        answers_to: Callable[[str], bool],
    ) -> None:
        """``let_through`` makes the protocol of a connection; ``answers_to`` knows our hosts.

        Knocks are upgrades to ``subprotocol``.
        """
        self._listening = listening
        self._let_through = let_through
        self._subprotocol = subprotocol.encode()
        self._turns_away = turns_away
        self._answers_to = answers_to
        self._answer = _Answer()
        self._passing: set[asyncio.Task[None]] = set()
        self._retry: asyncio.TimerHandle | None = None
        self._more = select.poll()
        self._more.register(listening, select.POLLIN)
        self._loop = asyncio.get_running_loop()
        self.turned_away = 0
        """Knocks that were answered here."""
        with suppress(OSError, AttributeError):  # without it, most are let through
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, HOLD_BACK_S)
        self._watch()

    def close(self) -> None:
        """Accept nothing any more."""
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        elif self._listening.fileno() >= 0:
            self._loop.remove_reader(self._listening)
        self._listening.close()

    async def wait_closed(self) -> None:
        """Return when nobody stands here, and aborted connections are gone."""
        if self._passing:
            await asyncio.wait(self._passing)
        await asyncio.sleep(0)

    def _watch(self) -> None:
        self._retry = None
        self._loop.add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        refusal = self._turns_away()  # the same for all of this turn
        answer = None if refusal is None else self._answer.now(refusal)
        room = LET_THROUGH_PER_TURN
        for _ in range(TURNED_AWAY_PER_TURN):
            try:
                accepted, _there = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as problem:
                if problem.errno not in _NO_MORE:
                    raise
                self._rest(problem)
                return
            if answer is None or not self._is_turned_away(accepted, answer):
                self._hand_over(accepted)
                room -= 1
            if not room or not self._more.poll(0):  # an accept in vain costs ten times as much
                return

    def _is_turned_away(self, accepted: socket.socket, answer: bytes) -> bool:
        try:
            first = accepted.recv(LOOK_BYTES, socket.MSG_PEEK | _NO_WAIT)
        except OSError:  # nothing was sent in time, or nobody is there any more
            return False
        host = knocked_at(first, self._subprotocol)
        if host is None or not self._answers_to(host):
            return False
        try:
            # Closed with bytes unread, the connection would be reset, and the answer lost.
            accepted.recv(LOOK_BYTES, _NO_WAIT)
            accepted.send(answer, _WITH_ITS_END)
        except OSError as problem:
            log.debug("nobody waited for the answer: %s", problem)
        accepted.close()
        self.turned_away += 1
        return True

    def _hand_over(self, accepted: socket.socket) -> None:
        task = self._loop.create_task(self._pass(accepted))
        self._passing.add(task)
        task.add_done_callback(self._passing.discard)

    async def _pass(self, accepted: socket.socket) -> None:
        try:
            if self._listening.fileno() < 0:
                accepted.close()
                return
            transport, _ = await self._loop.connect_accepted_socket(self._let_through, accepted)
        except OSError as problem:
            log.debug("a connection was lost before it began: %s", problem)
            accepted.close()
            return
        except BaseException:
            accepted.close()
            raise
        if self._listening.fileno() < 0:
            transport.abort()  # whoever closed all connections did not see this one

    def _rest(self, problem: OSError) -> None:
        log.warning("no new connections for %g s: %s", RETRY_S, problem.strerror)
        self._loop.remove_reader(self._listening)
        self._retry = self._loop.call_later(RETRY_S, self._watch)


def knocked_at(first: bytes, subprotocol: bytes) -> str | None:
    """The host that a knock is for, in lower case; None for what is not one, whole and alone.

    Who writes one in another way than our nodes do is not refused here but by the door.
    """
    if not first.startswith(_REQUEST_LINE) or first.find(b"\r\n\r\n") != len(first) - 4:
        return None
    said = first.lower()
    if b"\nsec-websocket-protocol: %b\r" % subprotocol not in said:
        return None
    for line in _ASKED:
        if line not in said:
            return None
    for name in _SAYS_MORE:
        if name in said:
            return None
    host = said.partition(b"\nhost: ")[2]
    return str(host[: host.find(b"\r")], "latin-1")


class _Answer:
    """A refusal as the bytes that the framework would send; made anew when the Date changes."""

    def __init__(self) -> None:
        self._made: tuple[int, Refusal] | None = None
        self._text = b""

    def now(self, refusal: Refusal) -> bytes:
        made = (int(time.time()), refusal)
        if self._made != made:
            self._made = made
            self._text = _told(refusal)
        return self._text


def _told(refusal: Refusal) -> bytes:
    body = refusal.body() + b"\n"
    headers = {
        **JSON_HEADERS,
        **dict(refusal.headers),
        "Content-Length": str(len(body)),
        "Date": rfc822_formatted_time(),
        "Connection": "close",
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    status = f"{refusal.status} {HTTPStatus(refusal.status).phrase}"
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body
