"""The relay itself: each message of the client to the node, each answer back, once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from typing import Any

import aiohttp

from aios_nb.cli.relay.messages import (
    INVALID_REQUEST,
    LOST,
    Id,
    Message,
    answer_to,
    failure,
    fields,
    one_line,
    read,
)
from aios_nb.cli.relay.pipes import note
from aios_nb.cli.relay.session import Session
from aios_nb.cli.relay.transport import Stream, Transport, read_out
from aios_nb.cli.relay.whereabouts import Place, Whereabouts
from aios_nb.errors import AiosError
from aios_nb.wire.eventreader import TooLong

NOTIFY_S = 10.0
"""How long the node may take to accept what needs no answer."""
CANCEL_S = 0.5
"""How long a cancellation waits until the node has what it cancels."""
ATTEMPTS = 3
"""For what surely was not delivered; anything else is tried once."""
_OK, _UNAUTHORIZED, _NOT_FOUND = 200, 401, 404
_GONE = "the node went away before it answered; whether it did anything is not known"
_LISTEN = "subscriptions/listen"

Say = Callable[[bytes], Awaitable[None]]


class _Broken(Exception):
    """The connection ended while an answer was expected."""


class _Asked:
    """A request under way."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self.arrived = asyncio.Event()
        """The node has it."""
        self.task: asyncio.Task[None] | None = None


class Relay:
    """Between one client and its node."""

    def __init__(self, nodes: Whereabouts, say: Say) -> None:
        self._nodes = nodes
        self._say = say
        self._asked: dict[tuple[type, Id], _Asked] = {}
        self._session: Session | None = None
        self._starting: asyncio.Task[None] | None = None
        self._renewing = asyncio.Lock()
        self._listening: asyncio.Task[None] | None = None
        self._http = Transport()

    async def take(self, line: bytes) -> None:
        """One line of the client. They are taken in order; requests are answered in any."""
        message = read(line)
        if isinstance(message, bytes):
            await self._say(message)
        elif message.method is not None and message.id is not None:
            self._ask(message, message.id)
        elif message.method == "notifications/cancelled":
            await self._cancel(message)
        elif self._session is not None and message.version is None:
            if message.method == "notifications/initialized":
                self._session.begun = message.body
            await self._notify(self._session, message.body)
        # The later era has no notifications of clients but the one above, and without a session
        # there is nobody who could ask a client anything.

    async def answered(self, within_s: float) -> None:
        """Give the node some time for what it was asked; who listens on does not count."""
        answers = {
            asked.task
            for asked in self._asked.values()
            if asked.task is not None and asked.message.method != _LISTEN
        }
        if answers:
            await asyncio.wait(answers, timeout=within_s)

    async def close(self) -> None:
        """Let go of everything: what is under way is cancelled, and the session ended."""
        tasks = [asked.task for asked in self._asked.values() if asked.task is not None]
        tasks += [self._listening] if self._listening is not None else []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        session = self._session
        if session is not None and session.place is not None:
            with suppress(aiohttp.ClientError, OSError, TimeoutError):
                async with (
                    asyncio.timeout(CANCEL_S),
                    self._http.delete(session.place, session.headers),
                ):
                    pass
        await self._http.close()

    # Requests -------------------------------------------------------------------------

    def _ask(self, message: Message, number: Id) -> None:
        key = (type(number), number)
        asked = _Asked(message)
        before = self._asked.get(key)
        if before is not None and before.task is not None:
            before.task.cancel()  # an id used again: only one answer can be meant
        self._asked[key] = asked
        asked.task = asyncio.create_task(self._answer(asked), name="aios-relay-request")

        def over(_: object) -> None:
            if self._asked.get(key) is asked:
                del self._asked[key]

        asked.task.add_done_callback(over)
        if message.method == "initialize":
            self._session = Session(message)
            self._starting = asked.task

    async def _answer(self, asked: _Asked) -> None:
        number = asked.message.id
        try:
            await self._exchange(asked)
        except AiosError as error:
            await self._say(failure(number, LOST, error.message, error.hint))
        except (_Broken, aiohttp.ClientError, OSError):
            await self._say(failure(number, LOST, _GONE))
        except TooLong:
            await self._say(failure(number, LOST, "the answer is too long"))

    async def _exchange(self, asked: _Asked) -> None:
        """Deliver a request and write what comes back. Raises when there is no answer."""
        message, attempt = asked.message, 0
        while True:
            attempt += 1
            place = await self._nodes.there()
            session = await self._session_for(message, place)
            headers = session.headers if session is not None else message.headers()
            try:
                async with self._http.post(place, message.body, headers) as response:
                    asked.arrived.set()
                    if self._is_refused(response, place, session) and attempt < ATTEMPTS:
                        continue
                    await self._write(asked, place, session, response)
                    return
            except aiohttp.ClientConnectorError:
                self._nodes.lost(place)
                if attempt >= ATTEMPTS:
                    raise

    async def _session_for(self, message: Message, place: Place) -> Session | None:
        """The session that this request belongs to, known to the node."""
        session = self._session
        if session is None or message.version is not None or message.method == "initialize":
            return None
        await self._is_started()
        if session.is_known and session.place is not place:
            await self._renew(session, place)
        return session

    async def _is_started(self) -> None:
        """What is said behind the start waits for its answer."""
        starting = self._starting
        if starting is not None and not starting.done():
            await asyncio.wait({starting})

    def _is_refused(
        self, response: aiohttp.ClientResponse, place: Place, session: Session | None
    ) -> bool:
        """Whether the node does not know us: then nothing was done, and it can be said again."""
        if response.status == _UNAUTHORIZED:
            self._nodes.lost(place)
            return True
        if response.status == _NOT_FOUND and session is not None and session.place is place:
            session.place = None
            return True
        return False

    async def _write(
        self,
        asked: _Asked,
        place: Place,
        session: Session | None,
        response: aiohttp.ClientResponse,
    ) -> None:
        """What the node answers, up to the one message that ends the request."""
        message = asked.message
        if "text/event-stream" in response.headers.get("Content-Type", ""):
            body = await self._follow(place, session, response)
        else:
            body = await response.read()
            if response.status != _OK:
                body = answer_to(message.id, body) or _refusal(message.id, response.status, body)
        said = fields(body)
        if not said:
            body = failure(message.id, INVALID_REQUEST, "the node gave no answer to this")
        elif "result" in said:
            if message.method == "initialize" and self._session is not None:
                session_id = response.headers.get("Mcp-Session-Id")
                self._session.agreed(place, session_id, said["result"])
            elif session is not None:
                session.done(message)
        await self._say(one_line(body))
        await read_out(response)

    async def _follow(
        self, place: Place, session: Session | None, response: aiohttp.ClientResponse
    ) -> bytes:
        """Write what comes before the answer, and give the answer.

        A stream that ends early is taken up again where it can be.
        """
        stream = Stream()
        async with AsyncExitStack() as taken_up:
            for _ in range(ATTEMPTS):
                with suppress(aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError):
                    async for event in stream.read(response):
                        said = fields(event)
                        if said and "method" not in said:
                            return event
                        if said:
                            await self._say(one_line(event))
                if stream.last is None or session is None:
                    break
                await asyncio.sleep(stream.retry_ms / 1000)
                headers = {**session.headers, "Last-Event-ID": stream.last}
                response = await taken_up.enter_async_context(self._http.get(place, headers))
                if response.status != _OK:
                    break
        raise _Broken

    # What needs no answer -------------------------------------------------------------

    async def _notify(self, session: Session, body: bytes) -> None:
        """Say something in the session; a node that is not there hears nothing."""
        await self._is_started()
        place = session.place
        if place is None or self._session is not session:
            return
        try:
            async with (
                asyncio.timeout(NOTIFY_S),
                self._http.post(place, body, session.headers) as response,
            ):
                if response.status == _NOT_FOUND:
                    session.place = None
        except (aiohttp.ClientError, OSError, TimeoutError):
            return
        if body is session.begun:
            self._listen(session)

    async def _cancel(self, message: Message) -> None:
        number = message.params.get("requestId")
        asked = self._asked.get((type(number), number)) if number is not None else None
        if asked is not None and asked.message.version is not None and asked.task is not None:
            asked.task.cancel()  # the later era cancels by closing the stream
            return
        if asked is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(asked.arrived.wait(), CANCEL_S)
        if asked is not None and asked.task is not None:
            # First: nobody waits for its answer any more, and none may come. In this era a broken
            # connection alone stops nothing.
            asked.task.cancel()
        if self._session is not None:
            await self._notify(self._session, message.body)

    # The session of the earlier era ---------------------------------------------------

    async def _renew(self, session: Session, place: Place) -> None:
        """Begin the session again on a node that does not know it."""
        async with self._renewing:
            if session.place is place or self._session is not session:
                return
            body, session_id = await self._said_again(place, session.starts_again(), {})
            session.agreed(place, session_id, fields(body).get("result"))
            if session.begun is None:
                return
            async with self._http.post(place, session.begun, session.headers):
                pass
            for request in session.wants_again():
                await self._said_again(place, request, session.headers)
            self._listen(session)
            for notice in session.may_have_changed():
                await self._say(notice)

    async def _said_again(
        self, place: Place, body: bytes, headers: Mapping[str, str]
    ) -> tuple[bytes, str | None]:
        async with self._http.post(place, body, headers) as response:
            if "text/event-stream" in response.headers.get("Content-Type", ""):
                answer = await self._follow(place, None, response)
                await read_out(response)
            else:
                answer = await response.read()
            return answer, response.headers.get("Mcp-Session-Id")

    def _listen(self, session: Session) -> None:
        """Hear what the node says by itself."""
        if self._listening is not None:
            self._listening.cancel()
        self._listening = asyncio.create_task(self._hear(session), name="aios-relay-stream")

    async def _hear(self, session: Session) -> None:
        """Write what comes; when the stream ends, begin again where the node is then."""
        stream = Stream()
        try:
            while session.place is not None and await self._heard(session, session.place, stream):
                await asyncio.sleep(stream.retry_ms / 1000)
                place = await self._nodes.there(start=False)
                if session.place is not place:
                    self._listening = None  # or the next one would end this very task
                    await self._renew(session, place)
                    return
        except AiosError as error:
            note(error.message)
        except (_Broken, aiohttp.ClientError, OSError, TooLong):
            note("the session with the node could not be begun again")

    async def _heard(self, session: Session, place: Place, stream: Stream) -> bool:
        """Whether there is a point in listening again."""
        headers = dict(session.headers)
        if stream.last is not None:
            headers["Last-Event-ID"] = stream.last
        with suppress(aiohttp.ClientError, OSError):
            async with self._http.get(place, headers) as response:
                if response.status == _NOT_FOUND:
                    session.place = None
                elif response.status != _OK:
                    return response.status == _UNAUTHORIZED
                else:
                    async for event in stream.read(response):
                        if fields(event):
                            await self._say(one_line(event))
        return True


def _refusal(number: Id | None, status: int, body: bytes) -> bytes:
    """What the node said before it looked at the message: its guard speaks in one line."""
    said: dict[str, Any] = fields(body)
    text = said.get("error")
    text = text if isinstance(text, str) else f"the node refused this: HTTP {status}"
    hint = said.get("hint")
    return failure(number, INVALID_REQUEST, text, hint if isinstance(hint, str) else None)
