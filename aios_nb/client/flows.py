"""Streams and watches over ``/ws`` that survive a broken connection."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, Protocol

from aios_nb.changes import changes
from aios_nb.client.interface import closed_early
from aios_nb.client.link import Call, Link
from aios_nb.envelope import DEADLINE_DEFAULT_S
from aios_nb.errors import ConnectionLost, NotRunning

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
        self._reply_id = ""
        """The reply that is listened to; a message may have several."""
        self._over_link: Link | None = None

    async def result(self) -> Any:
        async for _ in self:
            pass
        if self._call is None or not self._call.answer.done():
            raise closed_early()
        return await self._call.answer

    def close(self) -> None:
        super().close()
        if self._link is not None:
            self._link.unlisten(self._message_id, self)

    def take(self, params: dict[str, Any]) -> None:
        offset, text = params.get("offset"), params.get("text")
        if not isinstance(offset, int) or not isinstance(text, str) or offset > self._offset:
            return  # a gap is another listener's; ours begins where we asked
        if not self._is_ours(str(params.get("reply_id"))):
            return
        self._known = True
        fresh = text[self._offset - offset :]
        if not fresh and text:
            return
        self._offset += len(fresh)
        self._texts.append(fresh)
        self._unread = params
        self.wake()

    def answered(self, result: Any, link: Link) -> None:
        link.unlisten(self._message_id, self)
        if isinstance(result, dict) and result.get("status") == "done":
            self._complete(result)
        self.wake()

    def _is_ours(self, reply_id: str) -> bool:
        """Whether this is the reply we follow: the one asked for, else the first that is heard."""
        if not self._reply_id:
            claimed = self._over_link is not None and self._over_link.is_heard(reply_id)
            if reply_id == self._message_id or not claimed:
                self._reply_id = reply_id
        return self._reply_id == reply_id

    def _complete(self, result: dict[str, Any]) -> None:
        """What others on this connection left us nothing of is in the result."""
        text = str(result.get("text"))
        if len(text) > self._offset:
            ids = {name: result.get(name) for name in ("message_id", "reply_id")}
            self._texts.append(text[self._offset :])
            self._offset = len(text)
            self._unread = {**ids, "offset": 0, "text": "", "done": True}

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
        self._over_link = link
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
    """Events as they happen. After a break, or too far behind, it begins again where it was."""

    def __init__(self, client: Linked, method: str, params: dict[str, Any]) -> None:
        super().__init__(client, method, params)
        self._events: deque[dict[str, Any]] = deque()
        self._watch = ""
        self._overrun = False

    async def result(self) -> Any:
        if self._closed and self._call is None:
            raise closed_early()
        call = await self._opened()
        if self._closed and not call.answer.done():
            raise closed_early()
        return await call.answer

    def close(self) -> None:
        super().close()
        self._leave()

    def take(self, params: dict[str, Any]) -> None:
        if self._overrun or len(self._events) >= EVENTS_HELD_MAX:
            self._overrun = True  # until all is read: what comes after a gap would hide it
            return
        self._events.append(params)
        self.wake()

    def answered(self, result: Any, link: Link) -> None:
        if isinstance(result, dict):
            self._watch = str(result.pop("watch", ""))  # the socket's own affair
            self._begun(result)
        if self._closed:
            self._link = link
            self._leave()
        else:
            link.listen(self._watch, self)
        self.wake()

    def _begun(self, result: dict[str, Any]) -> None:
        """The watch is there, for the first time or again."""
        raise NotImplementedError

    def _read(self, event: dict[str, Any]) -> None:
        """This event is about to be read: that is where we are now."""
        raise NotImplementedError

    def _next(self) -> dict[str, Any] | None:
        if self._events:
            event = self._events.popleft()
            self._read(event)
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
        return self._params

    def _leave(self) -> None:
        if self._link is not None and self._watch:
            self._link.unlisten(self._watch, self)
            self._client.say_later(self._link, "chat.unwatch", {"watch": self._watch})
            self._watch = ""


class LogWatch(Watch):
    """``chat.watch``: goes on after the last event that was read."""

    def __init__(self, client: Linked, method: str, params: dict[str, Any]) -> None:
        super().__init__(client, method, params)
        # In one conversation the position is its own `seq`, else the node's `cursor`.
        self._position = "seq" if params.get("conversation") else "cursor"
        self._after = params.get("after")

    def _begun(self, result: dict[str, Any]) -> None:
        if self._after is None:
            self._after = result.get(self._position)

    def _read(self, event: dict[str, Any]) -> None:
        self._after = event.get(self._position, self._after)

    def _request(self) -> dict[str, Any]:
        return self._params if self._after is None else {**self._params, "after": self._after}


class AgentsWatch(Watch):
    """``agents.watch``: what was missed is told as the difference to what was known."""

    def __init__(self, client: Linked, method: str, params: dict[str, Any]) -> None:
        super().__init__(client, method, params)
        self._there: dict[str, dict[str, Any]] | None = None
        """Who is there, by all that was read so far."""

    def _begun(self, result: dict[str, Any]) -> None:
        there = {row["id"]: row for row in result.get("agents", ())}
        if self._there is None:
            self._there = there
            return
        for event, row in changes(self._there, there):
            live = event != "withdrawn" and row.get("live", True)
            self._events.append({"event": event, "agent": {**row, "live": live}})

    def _read(self, event: dict[str, Any]) -> None:
        if self._there is not None:
            row = event["agent"]
            self._there.pop(row["id"], None)
            if event["event"] != "withdrawn":
                self._there[row["id"]] = row


WATCHES: dict[str, type[Watch]] = {"chat.watch": LogWatch, "agents.watch": AgentsWatch}
