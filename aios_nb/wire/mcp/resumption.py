"""Events of older clients' streams, kept for those that come back. In conformance mode only.

An ordinary node has its own log instead: an answer that was missed is in the conversation.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from mcp.server.streamable_http import EventMessage, EventStore

if TYPE_CHECKING:
    from mcp.server.streamable_http import EventCallback, EventId, StreamId
    from mcp_types import JSONRPCMessage

RETRY_MS = 100
KEPT = 1000


class Kept(EventStore):
    """The last events of all streams, in memory."""

    def __init__(self) -> None:
        self._events: OrderedDict[str, tuple[StreamId, JSONRPCMessage | None]] = OrderedDict()
        self._count = 0

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        self._count += 1
        event_id = str(self._count)
        self._events[event_id] = (stream_id, message)
        while len(self._events) > KEPT:
            self._events.popitem(last=False)
        return event_id

    async def replay_events_after(
        self, last_event_id: EventId, send_callback: EventCallback
    ) -> StreamId | None:
        if last_event_id not in self._events:
            return None
        stream_id, _ = self._events[last_event_id]
        for event_id, (stream, message) in list(self._events.items()):
            if stream == stream_id and int(event_id) > int(last_event_id) and message is not None:
                await send_callback(EventMessage(message, event_id))
        return stream_id
