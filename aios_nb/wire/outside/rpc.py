"""JSON-RPC to an A2A agent: one answer, or a stream of them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import msgspec

from aios_nb.config import MB
from aios_nb.errors import AgentFailed, Busy, NotAllowed, RpcError, TooLarge, Unreachable
from aios_nb.richtext import one_line
from aios_nb.wire.eventreader import EventReader, TooLong
from aios_nb.wire.fetching import Fetched, Fetcher, Flow

VERSION = "1.0"
ANSWER_LIMIT_BYTES = 32 * MB
"""Of one answer: a file of 20 MB is a third longer in JSON."""
STREAM_LIMIT_BYTES = 256 * MB
SILENCE_S = 60.0
"""A stream that says nothing for so long, not even that it is there, counts as lost."""
SAID_CHARS = 300
TASK_NOT_FOUND = -32001
INVALID_PARAMS = -32602
_INTERNAL = -32603
_WAIT_MAX_S = 60.0
_OK, _SERVER_ERROR = 200, 500
_SHUT = frozenset({401, 403})
_LATER = frozenset({429, 503})
_encode = msgspec.json.Encoder().encode


class Refusal(AgentFailed):
    """The agent answered with an error; ``code`` over there is ``their_code``."""

    def __init__(
        self, message: str, their_code: int = _INTERNAL, *, hint: str | None = None
    ) -> None:
        """With a message and a hint alone, as every error can be made: so it is copied."""
        ran = "unknown" if their_code == _INTERNAL else "no"
        super().__init__(message, hint=hint or "its owner may know more", ran=ran)
        self.their_code = their_code


class Lost(Exception):
    """The connection broke after the question was sent: what became of it is not known."""


class Rpc:
    """One agent's endpoint."""

    def __init__(self, fetcher: Fetcher, url: str, tenant: str = "") -> None:
        self._fetcher = fetcher
        self._url = url
        self._tenant = tenant

    async def call(self, method: str, params: Mapping[str, Any]) -> Any:
        """The result as builtins.

        Raises ``Refusal`` for its error, another ``RpcError`` if it was not taken, and ``Lost`` if
        nobody knows whether it was.
        """
        with _judged():
            async with self._open(method, params, "application/json") as flow:
                return _result(await _whole(flow))

    async def stream(self, method: str, params: Mapping[str, Any]) -> AsyncIterator[Any]:
        """The results as they come; to be closed. Raises as ``call`` does."""
        with _judged():
            async with self._open(method, params, "text/event-stream, application/json") as flow:
                kind = flow.headers.get("Content-Type", "").partition(";")[0].strip().lower()
                if flow.status != _OK or kind != "text/event-stream":
                    yield _result(await _whole(flow))
                    return
                async for event in _events(flow):
                    yield _result(event)

    @contextlib.asynccontextmanager
    async def _open(
        self, method: str, params: Mapping[str, Any], accept: str
    ) -> AsyncIterator[Flow]:
        if self._tenant:
            params = {"tenant": self._tenant, **params}
        body = _encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        headers = {"Content-Type": "application/json", "Accept": accept, "A2A-Version": VERSION}
        async with self._fetcher.stream(
            "POST", self._url, body, headers=headers, limit_bytes=STREAM_LIMIT_BYTES
        ) as flow:
            yield flow


@contextlib.contextmanager
def _judged() -> Iterator[None]:
    """Whether what broke off had been sent."""
    try:
        yield
    except Unreachable as error:
        if error.data.get("ran") == "unknown":
            raise Lost(error.message) from None
        raise
    except TooLarge as error:
        raise AgentFailed(f"its answer is not taken: {error.message}", ran="yes") from None


async def _whole(flow: Flow) -> bytes:
    """The body of an answer, if its status is one of an answer."""
    found = await flow.read(ANSWER_LIMIT_BYTES)
    if found.status != _OK and not _is_answer(found.body):
        raise _turned_away(found)
    return found.body


async def _events(flow: Flow) -> AsyncIterator[bytes]:
    """The data of each server-sent event."""
    reader = EventReader(ANSWER_LIMIT_BYTES)
    pieces = aiter(flow)
    while True:
        try:
            async with asyncio.timeout(SILENCE_S):
                piece = await anext(pieces)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise Lost("it went silent") from None
        try:
            events = reader.feed(piece)
        except TooLong:
            raise TooLarge(f"one event has more than {ANSWER_LIMIT_BYTES} bytes") from None
        for event in events:
            if event.data:
                yield event.data


class _Answer(msgspec.Struct):
    jsonrpc: str
    result: Any = None
    error: Any = None


_read = msgspec.json.Decoder(_Answer).decode


def _is_answer(body: bytes) -> bool:
    try:
        return _read(body).error is not None
    except (msgspec.DecodeError, RecursionError):
        return False


def _result(body: bytes) -> Any:
    try:
        answer = _read(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise AgentFailed(
            "it answered with something that is not JSON-RPC", ran="unknown"
        ) from None
    if answer.error is None:
        return answer.result
    error = answer.error if isinstance(answer.error, dict) else {}
    code, message = error.get("code"), error.get("message")
    said = one_line(message, SAID_CHARS) if isinstance(message, str) else ""
    raise Refusal(
        f"it refuses: {said}" if said else f"it refuses (error {code!s:.20})",
        code if isinstance(code, int) else _INTERNAL,
    )


def _turned_away(found: Fetched) -> RpcError | Lost:
    if found.status in _SHUT:
        return NotAllowed(
            f"it wants to know who asks (HTTP {found.status})",
            hint="give its token in an environment variable: aios-nb hub add URL --token-env NAME",
            ran="no",
        )
    if found.status in _LATER:
        wait = found.headers.get("Retry-After", "")
        wait_s = min(float(wait), _WAIT_MAX_S) if wait.isdigit() else 1.0
        return Busy("it has too much to do", hint="ask again later", retry_after_s=wait_s, ran="no")
    if found.status >= _SERVER_ERROR:
        return Lost(f"it answered with HTTP {found.status}")
    return Unreachable(
        f"it answered with HTTP {found.status}",
        hint="its card may be old",
        reason="refused",
        ran="no",
    )
