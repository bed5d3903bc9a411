"""The paper's envelope, as one node sends it to another. No I/O."""

from __future__ import annotations

import secrets

from aios_nb.bench.calls import ChatStream, Result, Rpc
from aios_nb.bench.keys import identity
from aios_nb.bench.spec import Target

DEADLINE_MS = 60_000


class Envelopes:
    """Writes requests from the client's node to an agent of the target's."""

    def __init__(self, target: Target, *, stream: bool) -> None:
        self._keep = target.keep_conversation
        self._run = secrets.token_hex(6).encode()  # message ids are remembered across connections
        client, node = identity(target.seed).node_id, target.node_id or ""
        head = (
            b'{"jsonrpc":"2.0","id":%%d,"method":"aios.message","params":{"envelope":{'
            b'"sender":{"id":"owner@%b","type":"human","node_id":"%b"},'
            b'"recipient":{"id":"%b@%b","type":"agent"},"message_type":"request",'
            b'"content":{"task":"%%b"},"message_id":"%%b.%%d","conversation_id":"%%b",'
            b'"routing":{"path":["%b"],"max_hops":3,"deadline_ms":%d}}%b}}'
        )
        me, more = client.encode(), b',"stream":true' if stream else b""
        agent = target.agent.encode()
        self._form = head % (me, me, agent, node.encode(), me, DEADLINE_MS, more)

    def body(self, slot: int, number: int, task: bytes) -> bytes:
        run = self._run
        # As wide as a node makes them: its ids rise.
        conversation = b"%b.c%012d" % (run, slot if self._keep else number)
        return self._form % (number, task, run, number, conversation)


class _ByEnvelope(Rpc):
    """Asks by envelopes, and reads those that come back."""

    _envelopes: Envelopes

    def body(self, slot: int, number: int, task: bytes) -> bytes:
        return self._envelopes.body(slot, number, task)

    def text_of(self, result: Result) -> str | None:
        return result.content.result if result.content else None

    def accept(self, slot: int, result: Result) -> str | None:
        del slot
        said = result.content
        if result.message_type != "response" or said is None or said.status != "success":
            return f"no successful response: {result}"
        return None


class MessageSend(_ByEnvelope):
    """The durable call between nodes; with ``keep_conversation`` each slot has one of its own."""

    def __init__(self, target: Target) -> None:
        super().__init__(target.concurrency)
        self._envelopes = Envelopes(target, stream=False)


class MessageStream(_ByEnvelope, ChatStream):
    """The same, answered in pieces; the last of the text comes with the response."""

    def __init__(self, target: Target) -> None:
        super().__init__(target.concurrency, target.agent, target.chunks)
        self._envelopes = Envelopes(target, stream=True)

    def joins(self, pieces: str, text: str) -> bool:
        return text.startswith(pieces)
