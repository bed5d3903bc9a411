"""What is sent, and whether the answer is right. One class per kind of work; no I/O.

A slot is one place for a call in flight: an HTTP connection, or one of many on a WebSocket. Every
call sends a text no other call sends, and the very same text has to come back.
"""

from __future__ import annotations

import importlib
import secrets
from typing import Any, Protocol

import msgspec

from aios_nb.bench.spec import Target
from aios_nb.bench.tokens import TASK, chunk, event

SHOWN_BYTES = 200
"""How much of a wrong reply is quoted."""
OK = 200
_ELSEWHERE = {
    "message": ("envelopes", "MessageSend"),
    "message-stream": ("envelopes", "MessageStream"),
    "mcp-list": ("mcpcalls", "AgentsList"),
    "mcp-send": ("mcpcalls", "AgentSend"),
    "a2a-send": ("a2acalls", "SendMessage"),
}
"""Work of other protocols, by module and class: these build on what is here."""


class Call(Protocol):
    """A kind of work. ``request`` arms a slot; the checks say what is wrong, or None."""

    streamed: bool

    def request(self, slot: int) -> bytes:
        """The next body to send on this slot."""

    def reply(self, slot: int, body: bytes) -> str | None:
        """Check a whole reply."""

    def piece(self, slot: int, data: bytes) -> bool:
        """Take one event of a streamed reply; True when it brought some of the text."""

    def end(self, slot: int) -> str | None:
        """Check a streamed reply that has ended."""


def call_for(target: Target) -> Call:
    """The work that this target names."""
    if target.work == "echo":
        return Echo(target.concurrency)
    if target.work == "events":
        return Events(target.concurrency, target.chunks)
    if target.work == "stream":
        return ChatStream(target.concurrency, target.agent, target.chunks)
    if target.work in _ELSEWHERE:
        module, name = _ELSEWHERE[target.work]
        made: Call = getattr(importlib.import_module(f"aios_nb.bench.{module}"), name)(target)
        return made
    if target.work == "send":
        return ChatSend(target.concurrency, target.agent, keep=target.keep_conversation)
    return BenchEcho(target.concurrency)


class Serials:
    """Numbers that say which slot they belong to: number % slots."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._turn = [0] * slots

    def next(self, slot: int) -> int:
        self._turn[slot] += 1
        return self._turn[slot] * self.slots + slot


class Echo:
    """A bare body that must come back as it went."""

    streamed = False

    def __init__(self, slots: int) -> None:
        self._serials = Serials(slots)
        self._sent = [b""] * slots

    def request(self, slot: int) -> bytes:
        self._sent[slot] = sent = TASK % self._serials.next(slot)
        return sent

    def reply(self, slot: int, body: bytes) -> str | None:
        return None if body == self._sent[slot] else f"another text: {quoted(body)}"

    def piece(self, slot: int, data: bytes) -> bool:
        raise NotImplementedError

    def end(self, slot: int) -> str | None:
        raise NotImplementedError


class Events:
    """A bare stream of events, each checked for its text and its place."""

    streamed = True

    def __init__(self, slots: int, chunks: int) -> None:
        self._serials = Serials(slots)
        self._chunks = chunks
        self._salt = [""] * slots
        self._got: list[list[bytes]] = [[] for _ in range(slots)]

    def request(self, slot: int) -> bytes:
        self._salt[slot] = salt = str(self._serials.next(slot))
        self._got[slot] = []
        return f"{self._chunks} {salt}".encode()

    def reply(self, slot: int, body: bytes) -> str | None:
        raise NotImplementedError

    def piece(self, slot: int, data: bytes) -> bool:
        self._got[slot].append(data)
        return True

    def end(self, slot: int) -> str | None:
        salt, got = self._salt[slot], self._got[slot]
        if len(got) != self._chunks:
            return f"{len(got)} events of {self._chunks}"
        wanted = (event(salt, number) for number in range(self._chunks))
        for number, (have, want) in enumerate(zip(got, wanted, strict=True)):
            if b"data: " + have + b"\n\n" != want:
                return f"event {number} was {quoted(have)}"
        return None


# JSON-RPC ------------------------------------------------------------------------------


class Said(msgspec.Struct):
    """The content of a response envelope."""

    result: str | None = None
    status: str = ""


class Result(msgspec.Struct):
    text: str | None = None
    conversation: str = ""
    status: str = ""
    message_type: str = ""
    content: Said | None = None


class Piece(msgspec.Struct):
    message_id: str = ""
    offset: int = 0
    text: str = ""


class Incoming(msgspec.Struct):
    """A response or a notification, as far as a benchmark looks at it."""

    jsonrpc: str = ""
    id: int | str | None = None
    method: str | None = None
    params: Piece | None = None
    result: Result | None = None
    error: Any = None


_decode = msgspec.json.Decoder(Incoming).decode


def decode(body: bytes) -> Incoming | None:
    """The message, or None for bytes that are none."""
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


class Rpc:
    """Base of the JSON-RPC calls: ids, and the checks that all of them need."""

    streamed = False

    def __init__(self, slots: int) -> None:
        self._serials = Serials(slots)
        self._id = [0] * slots
        self._text = [""] * slots

    @property
    def slots(self) -> int:
        return self._serials.slots

    def request(self, slot: int) -> bytes:
        number = self._serials.next(slot)
        task = TASK % number
        self._id[slot] = number
        self._text[slot] = task.decode()
        return self.body(slot, number, task)

    def body(self, slot: int, number: int, task: bytes) -> bytes:
        raise NotImplementedError

    def reply(self, slot: int, body: bytes) -> str | None:
        incoming = decode(body)
        if incoming is None:
            return f"not a JSON-RPC message: {quoted(body)}"
        return self.answer(slot, incoming)

    def slot_of(self, incoming: Incoming) -> int | None:
        """Which slot a message on a shared connection is for."""
        if incoming.method is not None:
            number = incoming.params.message_id.rpartition(".")[2] if incoming.params else ""
            return int(number) % self.slots if number.isdigit() else None
        return incoming.id % self.slots if isinstance(incoming.id, int) else None

    def answer(self, slot: int, incoming: Incoming) -> str | None:
        result = incoming.result
        if incoming.error is not None:
            return f"an error: {incoming.error}"
        if result is None or incoming.jsonrpc != "2.0":
            return "neither a result nor an error"
        if incoming.id != self._id[slot]:
            return f"the reply to another call: id {incoming.id}, not {self._id[slot]}"
        text = self.text_of(result)
        if text != self._text[slot]:
            return f"another text: {quoted((text or '').encode())}"
        return self.accept(slot, result)

    def text_of(self, result: Result) -> str | None:
        """Where the text is that must be the one that was sent."""
        return result.text

    def accept(self, slot: int, result: Result) -> str | None:
        """Look at the rest of a result whose text is right."""
        del slot, result
        return None

    def piece(self, slot: int, data: bytes) -> bool:
        raise NotImplementedError

    def end(self, slot: int) -> str | None:
        raise NotImplementedError


class BenchEcho(Rpc):
    """The stateless call: nothing is looked up, nothing is logged."""

    def body(self, slot: int, number: int, task: bytes) -> bytes:
        del slot
        return (
            b'{"jsonrpc":"2.0","id":%d,"method":"bench.echo",'
            b'"params":{"agent":"echo","task":"%s"}}' % (number, task)
        )


class ChatSend(Rpc):
    """The durable call; with ``keep`` each slot goes on in its own conversation."""

    def __init__(self, slots: int, agent: str, *, keep: bool) -> None:
        super().__init__(slots)
        self._agent = agent.encode()
        self._keep = keep
        self._conversation = [""] * slots

    def body(self, slot: int, number: int, task: bytes) -> bytes:
        kept = self._conversation[slot]
        more = b',"conversation":"%s"' % kept.encode() if kept else b""
        return (
            b'{"jsonrpc":"2.0","id":%d,"method":"chat.send",'
            b'"params":{"agent":"%s","text":"%s"%s}}' % (number, self._agent, task, more)
        )

    def accept(self, slot: int, result: Result) -> str | None:
        if result.status != "done":
            return f"status {result.status!r}, not done"
        kept = self._conversation[slot]
        if not result.conversation or (kept and result.conversation != kept):
            return f"another conversation: {result.conversation!r}"
        if self._keep:
            self._conversation[slot] = result.conversation
        return None


class ChatStream(Rpc):
    """The streamed call: the pieces must join to the text, and the result must repeat it."""

    streamed = True

    def __init__(self, slots: int, agent: str, chunks: int) -> None:
        super().__init__(slots)
        self._agent = agent.encode()
        self._chunks = chunks
        self._prefix = secrets.token_hex(6)  # message ids are remembered across connections
        self._salt = [""] * slots
        self._parts: list[list[str]] = [[] for _ in range(slots)]
        self._length = [0] * slots
        self._problem: list[str | None] = [None] * slots
        self._last: list[Incoming | None] = [None] * slots

    def request(self, slot: int) -> bytes:
        number = self._serials.next(slot)
        self._salt[slot] = salt = str(number)
        self._id[slot] = number
        self._parts[slot] = []
        self._length[slot] = 0
        self._problem[slot] = None
        self._last[slot] = None
        return self.body(slot, number, f"{self._chunks} {salt}".encode())

    def body(self, slot: int, number: int, task: bytes) -> bytes:
        del slot
        return (
            b'{"jsonrpc":"2.0","id":%d,"method":"chat.stream","params":{"agent":"%s",'
            b'"text":"%s","message_id":"%s.%d"}}'
            % (number, self._agent, task, self._prefix.encode(), number)
        )

    def piece(self, slot: int, data: bytes) -> bool:
        incoming = decode(data)
        if incoming is None:
            return self._spoiled(slot, f"not a JSON-RPC message: {quoted(data)}")
        return self.take(slot, incoming)

    def take(self, slot: int, incoming: Incoming) -> bool:
        """Take a notification or the closing response; True when it brought text."""
        if incoming.method is None:
            self._last[slot] = incoming
            return False
        piece = incoming.params
        if incoming.method != "chat.delta" or piece is None:
            return self._spoiled(slot, f"an unexpected notification: {incoming.method}")
        if piece.offset != self._length[slot]:
            self._spoiled(slot, f"a piece at {piece.offset}, not at {self._length[slot]}")
        self._length[slot] += len(piece.text)
        self._parts[slot].append(piece.text)
        return bool(piece.text)

    def _spoiled(self, slot: int, problem: str) -> bool:
        """Keep the first thing that went wrong; the rest follows from it."""
        self._problem[slot] = self._problem[slot] or problem
        return False

    def end(self, slot: int) -> str | None:
        last = self._last[slot]
        if self._problem[slot] is not None:
            return self._problem[slot]
        if last is None:
            return "the stream ended without its result"
        # Made here, not in ``request``: that is inside the time to the first piece.
        salt = self._salt[slot]
        self._text[slot] = "".join(chunk(salt, place) for place in range(self._chunks))
        problem = self.answer(slot, last)
        if problem is None and not self.joins("".join(self._parts[slot]), self._text[slot]):
            return "the pieces do not join to the text"
        return problem

    def joins(self, pieces: str, text: str) -> bool:
        """Whether what came in pieces is what it should be."""
        return pieces == text


def quoted(body: bytes) -> str:
    """The beginning of a wrong reply, fit for one line."""
    return repr(body[:SHOWN_BYTES])[1:]
