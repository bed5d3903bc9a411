"""Streams and watches over ``/ws`` that survive a broken connection."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, Protocol

from aios_nb.client.link import Call, Link
from aios_nb.envelope import DEADLINE_DEFAULT_S
from aios_nb.errors import ConnectionLost, NotRunning, UsageError

RETURN_WITHIN_S = 15.0
"""How long a stream or a watch tries to get its connection back."""
RETURN_PAUSE_S = (0.05, 2.0)
"""The first pause between two tries, and the longest."""
EVENTS_HELD_MAX = 1000
"""Events waiting for a slow reader; beyond that the watch starts again where the reader is."""


class Linked(Protocol):
    """What a flow needs of its client."""

    async def link(self) -> Link: ...
    def say_later(self, link: Link, method: str, params: dict[str, Any]) -> None: ...


class _RemoteFlow:
    """What a stream and a watch share: opened late, and opened again when the link broke."""

    def __init__(self, client: Linked, method: str, params: dict[str, Any]) -> None:
        self._client = client
        self._method = method
        self._params = params
        self._link: Link | None = None
        self._call: Call | None = None
        self._news = asyncio.Event()
        self._closed = False

    def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        return self

    async def __anext__(self) -> dict[str, Any]:
        while not self._closed:
            call = await self._opened()
            if (piece := self._next()) is not None:
                return piece
            if call.answer.done() and self._over(call):
                break
            if self._link is not None and not self._link.alive:
                self._call = None
            if self._call is not call:
                continue
            self._news.clear()
            await self._news.wait()
        raise StopAsyncIteration

    async def result(self) -> Any:
        raise NotImplementedError

    def close(self) -> None:
        self._closed = True
        self.wake()
        if self._link is not None and self._call is not None:
            self._link.forget(self._call)

    def wake(self) -> None:
        self._news.set()

    def take(self, params: dict[str, Any]) -> None:
        """One notification of this flow."""
        raise NotImplementedError

    def answered(self, result: Any, link: Link) -> None:
        """The result came over ``link``."""
        raise NotImplementedError

    def _next(self) -> dict[str, Any] | None:
        raise NotImplementedError

    def _request(self) -> dict[str, Any]:
        """The parameters that go on where this flow is now."""
        raise NotImplementedError

    def _over(self, call: Call) -> bool:
        """Whether an answered call ends the flow; raises what it failed with."""
        raise NotImplementedError

    async def _opened(self) -> Call:
        if self._call is not None:
            return self._call
        again = self._link is not None
        give_up = time.monotonic() + RETURN_WITHIN_S
        pause, longest = RETURN_PAUSE_S
        while True:
            try:
                return await self._open()
            except (NotRunning, ConnectionLost):
                if not again or time.monotonic() + pause > give_up:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, longest)

    async def _open(self) -> Call:
        link = await self._client.link()
        call = Call(self._method, self._request(), self)
        self._opening(link)
        await link.send(call)
        self._link, self._call = link, call
        return call

    def _opening(self, link: Link) -> None:
        """Just before the call is sent over ``link``."""


class Stream(_RemoteFlow):
    """A reply as it is written. Unread pieces are joined, so a slow reader costs one text."""

    def __init__(self, client: Linked, method: str, params: dict[str, Any]) -> None:
        super().__init__(client, method, params)
        self._message_id = str(params["message_id"])
        self._begun = time.monotonic()
        self._unread: dict[str, Any] | None = None
        self._texts: list[str] = []
        self._offset = int(params.get("offset") or 0)
        """Code points received."""
        self._known = False
        """The node has shown that it has this message."""

    async def result(self) -> Any:
        async for _ in self:
            pass
        if self._call is None:
            raise UsageError("this stream was closed before it was read")
        return await self._call.answer

    def close(self) -> None:
        super().close()
        if self._link is not None:
            self._link.unlisten(self._message_id, self)

    def take(self, params: dict[str, Any]) -> None:
        offset, text = params.get("offset"), params.get("text")
        if not isinstance(offset, int) or not isinstance(text, str) or offset > self._offset:
            return  # a gap is another listener's; ours begins where we asked
        self._known = True
        fresh = text[self._offset - offset :]
        if not fresh and text:
            return
        self._offset += len(fresh)
        self._texts.append(fresh)
        self._unread = params
        self.wake()

    def answered(self, result: Any, link: Link) -> None:  # noqa: ARG002
        link.unlisten(self._message_id, self)
        self.wake()

    def _next(self) -> dict[str, Any] | None:
        if self._unread is None:
            return None
        text = "".join(self._texts)
        piece = {**self._unread, "offset": self._offset - len(text), "text": text}
        self._unread = None
        self._texts.clear()
        return piece

    def _over(self, call: Call) -> bool:
        error = call.answer.exception()
        if isinstance(error, ConnectionLost):
            self._call = None
            return False
        if error is not None:
            raise error
        return True

    def _opening(self, link: Link) -> None:
        link.listen(self._message_id, self)

    def _request(self) -> dict[str, Any]:
        if self._known:
            return {"message_id": self._message_id, "offset": self._offset}
        # Not a sign of life yet: ask in full, with the same id, for the time that is left.
        left = float(self._params.get("deadline_s") or DEADLINE_DEFAULT_S)
        if self._link is not None and "agent" in self._params:
            left = max(1.0, left - (time.monotonic() - self._begun))
            return {**self._params, "deadline_s": left}
        return self._params


class Watch(_RemoteFlow):
    """Events as they happen; after a break, or too far behind, on from the last one read."""

    def __init__(self, client: Linked, method: str, params: dict[str, Any]) -> None:
        super().__init__(client, method, params)
        self._events: deque[dict[str, Any]] = deque()
        self._watch = ""
        # In one conversation the position is its own `seq`, else the node's `cursor`.
        self._position = "seq" if params.get("conversation") else "cursor"
        self._after = params.get("after")
        self._overrun = False

    async def result(self) -> Any:
        return await (await self._opened()).answer

    def close(self) -> None:
        super().close()
        self._leave()

    def take(self, params: dict[str, Any]) -> None:
        if len(self._events) >= EVENTS_HELD_MAX:
            self._overrun = True
            return
        self._events.append(params)
        self.wake()

    def answered(self, result: Any, link: Link) -> None:
        if isinstance(result, dict):
            self._watch = str(result.pop("watch", ""))  # the socket's own affair
            if self._after is None:
                self._after = result.get(self._position)
        if self._closed:
            self._link = link
            self._leave()
        else:
            link.listen(self._watch, self)
        self.wake()

    def _next(self) -> dict[str, Any] | None:
        if self._events:
            event = self._events.popleft()
            self._after = event.get(self._position, self._after)
            return event
        if self._overrun:
            self._overrun = False
            self._leave()
            self._call = None
            self.wake()
        return None

    def _over(self, call: Call) -> bool:
        error = call.answer.exception()
        if isinstance(error, ConnectionLost):
            self._call = None
        elif error is not None:
            raise error
        return False

    def _request(self) -> dict[str, Any]:
        if self._after is None:
            return self._params
        return {**self._params, "after": self._after}

    def _leave(self) -> None:
        if self._link is not None and self._watch:
            self._link.unlisten(self._watch, self)
            self._client.say_later(self._link, "chat.unwatch", {"watch": self._watch})
            self._watch = ""
